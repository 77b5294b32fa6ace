//! Intervals between readings, in milliseconds, that the counters of a row share. A rate is an
//! increase divided by one of these intervals.
//!
//! Must never know: the encoding of cells.

/// The maximum number of intervals, because a position among them has four bits.
const COUNT_MAX: usize = 15;
/// The maximum deviation from the mean interval that the search for a rate's interval tries.
const JITTER_MS: u64 = 8;
/// The number of intervals that the search tries per row before it gives up.
const TRIES_MAX: u32 = 2048;

/// The intervals that the writer of a row has found.
#[derive(Debug)]
pub(super) struct Elapsed {
    millis: Vec<u32>,
    tries: u32,
}

impl Default for Elapsed {
    fn default() -> Self {
        Self { millis: Vec::with_capacity(COUNT_MAX), tries: TRIES_MAX }
    }
}

impl Elapsed {
    /// The maximum number of intervals of a row.
    pub(super) const COUNT_MAX: usize = COUNT_MAX;
    /// The interval at an unused position; only rates of counters without growth refer to it.
    pub(super) const NONE: u32 = 1000;

    pub(super) fn clear(&mut self) {
        self.millis.clear();
        self.tries = TRIES_MAX;
    }

    pub(super) fn millis(&self) -> &[u32] {
        &self.millis
    }

    /// Returns the rate of an increase over the interval at a position.
    pub(super) fn rate(increase: f64, millis: &[u32], index: usize) -> f64 {
        per_second(increase, millis.get(index).copied().unwrap_or(Self::NONE))
    }

    /// Returns the position of the interval over which an increase has a rate. The increase spans
    /// one interval when `is_single`; otherwise, only a rate of zero without an increase is found.
    pub(super) fn of_increase(&mut self, increase: f64, rate: f64, is_single: bool) -> Option<u8> {
        if increase.to_bits() == 0 && rate.to_bits() == 0 {
            return Some(0);
        }
        if !is_single {
            return None;
        }
        // The bits of a computed NaN differ between machines.
        if rate.is_nan() {
            return None;
        }
        let is_exact = |millis: &u32| per_second(increase, *millis).to_bits() == rate.to_bits();
        if let Some(index) = self.millis.iter().position(is_exact) {
            return Some(index as u8);
        }
        let millis = (increase * 1000.0 / rate).round() as u32;
        if millis == 0 || !is_exact(&millis) { None } else { self.add(millis) }
    }

    /// Returns the position of a rate's interval, and the result of `find` for its increase. `step`
    /// is the mean interval. `find` gets an approximate increase and a test that an exact increase
    /// passes.
    pub(super) fn of_rate<T>(
        &mut self,
        rate: f64,
        step: u64,
        find: impl Fn(f64, &dyn Fn(f64) -> bool) -> Option<T>,
    ) -> Option<(u8, T)> {
        if !rate.is_finite() {
            return None;
        }
        let find_over = |millis: u32| {
            let is_exact = |increase| per_second(increase, millis).to_bits() == rate.to_bits();
            find(rate * (f64::from(millis) / 1000.0), &is_exact)
        };
        let mut known = self.millis.iter().enumerate();
        let found = known.find_map(|(index, millis)| Some((index as u8, find_over(*millis)?)));
        if found.is_some() || self.millis.len() == COUNT_MAX {
            return found;
        }
        let (from, to) = (step.saturating_sub(JITTER_MS).max(1), step + JITTER_MS);
        // The mean interval is the likeliest.
        for millis in std::iter::once(step.max(1)).chain(from..=to) {
            self.tries = self.tries.checked_sub(1)?;
            let millis = u32::try_from(millis).ok()?;
            if let Some(found) = find_over(millis) {
                return Some((self.add(millis)?, found));
            }
        }
        None
    }

    fn add(&mut self, millis: u32) -> Option<u8> {
        if self.millis.len() == COUNT_MAX {
            return None;
        }
        self.millis.push(millis);
        Some((self.millis.len() - 1) as u8)
    }
}

/// Returns the rate, computed exactly as in the model.
fn per_second(increase: f64, millis: u32) -> f64 {
    increase / (f64::from(millis) / 1000.0)
}
