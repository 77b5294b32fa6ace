//! The milliseconds between readings that the counters of a row share: a rate is an increase in one
//! of them.
//!
//! Must never know: how cells are written.

/// Bits of a place among them.
const COUNT_MAX: usize = 15;
/// Milliseconds of jitter each way that are tried.
const JITTER_MS: u64 = 8;
/// Milliseconds that are tried in a row before it is given up to find those of rates.
const TRIES_MAX: u32 = 2048;

/// The milliseconds that the writer of a row found so far.
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
    /// The most milliseconds of a row.
    pub(super) const COUNT_MAX: usize = COUNT_MAX;
    /// The milliseconds where there are none: only for counters that did not count.
    pub(super) const NONE: u32 = 1000;

    pub(super) fn clear(&mut self) {
        self.millis.clear();
        self.tries = TRIES_MAX;
    }

    pub(super) fn millis(&self) -> &[u32] {
        &self.millis
    }

    /// The rate of an increase in the milliseconds at a place.
    pub(super) fn rate(increase: f64, millis: &[u32], index: usize) -> f64 {
        per_second(increase, millis.get(index).copied().unwrap_or(Self::NONE))
    }

    /// The place of the milliseconds in which a rate is a known increase. They are computed from it
    /// when `is_one`: when the increase is one from a single reading to the next.
    pub(super) fn of_increase(&mut self, increase: f64, rate: f64, is_one: bool) -> Option<u8> {
        if increase.to_bits() == 0 && rate.to_bits() == 0 {
            return Some(0);
        }
        if !is_one {
            return None;
        }
        // Which NaN a division gives is not the same everywhere.
        if rate.is_nan() {
            return None;
        }
        let is_it = |millis: &u32| per_second(increase, *millis).to_bits() == rate.to_bits();
        if let Some(index) = self.millis.iter().position(is_it) {
            return Some(index as u8);
        }
        let millis = (increase * 1000.0 / rate).round() as u32;
        if millis == 0 || !is_it(&millis) { None } else { self.add(millis) }
    }

    /// The milliseconds, and with them the increase, of a rate. `step` ms lie between readings in
    /// the mean. `find` is asked for an increase that is near one and passes a test.
    pub(super) fn of_rate<T>(
        &mut self,
        rate: f64,
        step: u64,
        find: impl Fn(f64, &dyn Fn(f64) -> bool) -> Option<T>,
    ) -> Option<(u8, T)> {
        if !rate.is_finite() {
            return None;
        }
        let look = |millis: u32| {
            let is_it = |increase| per_second(increase, millis).to_bits() == rate.to_bits();
            find(rate * (f64::from(millis) / 1000.0), &is_it)
        };
        let mut known = self.millis.iter().enumerate();
        let found = known.find_map(|(index, value)| Some((index as u8, look(*value)?)));
        if found.is_some() || self.millis.len() == COUNT_MAX {
            return found;
        }
        let (from, to) = (step.saturating_sub(JITTER_MS).max(1), step + JITTER_MS);
        // The likeliest first.
        for millis in std::iter::once(step.max(1)).chain(from..=to) {
            self.tries = self.tries.checked_sub(1)?;
            let millis = u32::try_from(millis).ok()?;
            if let Some(found) = look(millis) {
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

/// Rate as the model computes it.
fn per_second(increase: f64, millis: u32) -> f64 {
    increase / (f64::from(millis) / 1000.0)
}
