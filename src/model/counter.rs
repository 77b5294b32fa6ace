//! From samples to cells: what each kind contributes, and what a counter must remember.

use super::{Cell, Kind, UnixMillis};

/// Stretches that are remembered of a counter, so that late readings find their neighbours.
pub const STRETCHES_MAX: usize = 3;

/// The value by which Prometheus says that a series has ended: a NaN of its own
/// (`StaleNaN` of prometheus/model/value).
const STALE_MARKER: u64 = 0x7ff0_0000_0000_0002;

/// Whether a value is Prometheus' stale marker.
pub fn is_stale_marker(value: f64) -> bool {
    value.to_bits() == STALE_MARKER
}

/// One reading of a counter.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Reading {
    /// When it was read, Unix milliseconds.
    pub at: i64,
    /// What the counter said.
    pub value: f64,
    /// Since when it counts, Unix milliseconds; 0 when not known.
    pub start: i64,
}

impl Reading {
    /// How much was counted from this reading to a later one. A reset is known by a start later
    /// than this reading, else by a decrease; a wrap is never guessed.
    fn increase_to(&self, later: &Self) -> f64 {
        let reset = later.start > self.at || later.value < self.value;
        if reset { later.value } else { later.value - self.value }
    }
}

/// Readings without a known gap between them: all increases from the first to the last are
/// accounted for.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Stretch {
    /// The first in time.
    pub first: Reading,
    /// The last in time.
    pub last: Reading,
}

/// What is remembered of a series between its samples.
///
/// A counter becomes increases when it is accepted: each reading adds what was counted since the
/// reading before it in time. Where readings come later than their turn, a gap shows: what was
/// counted over it is first given to the reading behind it, and a late reading that falls into
/// the gap takes its part from there. A late reading that falls where no gap was seen adds
/// nothing, because the reading behind it has it already. So totals never drift, whatever the
/// order.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SeriesState {
    /// How the series' values are to be read.
    pub kind: Kind,
    /// Whether the sender said that there are no more samples for now.
    pub ended: bool,
    /// Stretches remembered.
    count: u8,
    /// The latest interval between readings in ms, by which gaps are told; 0 when not known.
    pub step_ms: u32,
    /// Time of the latest sample; `i64::MIN` before the first.
    pub last_at: UnixMillis,
    /// Of a counter, ascending by time. The very first reading is that of the first stretch.
    stretches: [Stretch; STRETCHES_MAX],
}

/// What one sample changes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Observed {
    /// The sample's own cell, seen from the start of its slot.
    pub cell: Cell,
    /// For a late reading: the time of the reading after it, and what its increase changes by.
    pub correction: Option<(UnixMillis, f64)>,
}

impl SeriesState {
    /// The state of a series that has no sample yet.
    pub fn new(kind: Kind) -> Self {
        Self {
            kind,
            ended: false,
            count: 0,
            step_ms: 0,
            last_at: UnixMillis(i64::MIN),
            stretches: [Stretch::default(); STRETCHES_MAX],
        }
    }

    /// Puts back stretches as they were stored, at most [`STRETCHES_MAX`].
    pub fn restore_stretches(&mut self, stretches: &[Stretch]) {
        self.count = stretches.len().min(STRETCHES_MAX) as u8;
        for (own, stretch) in self.stretches.iter_mut().zip(stretches) {
            *own = *stretch;
        }
    }

    /// What is remembered of a counter, ascending by time.
    pub fn stretches(&self) -> &[Stretch] {
        &self.stretches[..usize::from(self.count)]
    }

    /// Whether the series ever had a sample.
    pub fn is_fresh(&self) -> bool {
        self.last_at.0 == i64::MIN
    }

    /// Takes in one sample. `start` says since when a counter counts, 0 when not known.
    pub fn observe(&mut self, at: UnixMillis, value: f64, start: i64, slot_start: i64) -> Observed {
        let offset = (at.0 - slot_start) as u32;
        if at >= self.last_at {
            self.last_at = at;
            self.ended = false;
        }
        match self.kind {
            Kind::Gauge | Kind::Delta => {
                Observed { cell: Cell::single(offset, value), correction: None }
            }
            Kind::Counter => self.observe_reading(Reading { at: at.0, value, start }, offset),
        }
    }

    /// Notes that the sender has no more samples for now; older markers than the latest sample
    /// change nothing.
    pub fn end(&mut self, at: UnixMillis) {
        self.ended |= at >= self.last_at;
    }

    fn observe_reading(&mut self, new: Reading, offset: u32) -> Observed {
        // The stretches before `place` begin at or before the reading.
        let place = self.stretches().partition_point(|stretch| stretch.first.at <= new.at);
        let before = place.checked_sub(1).map(|index| self.stretches[index].last);
        let after = self.stretches().get(place).map(|stretch| stretch.first);
        if before.is_some_and(|before| new.at <= before.at) {
            let cell = Cell::reading(offset, new.value, 0.0, None);
            return Observed { cell, correction: None };
        }
        let increase = before.map_or(0.0, |before| before.increase_to(&new));
        let rate =
            before.map(|before| increase / (new.at.saturating_sub(before.at) as f64 / 1000.0));
        let correction = after.map(|after| {
            let had = before.map_or(0.0, |before| before.increase_to(&after));
            (UnixMillis(after.at), new.increase_to(&after) - had)
        });
        self.remember(place, new, before.is_some(), after.is_none());
        Observed { cell: Cell::reading(offset, new.value, increase, rate), correction }
    }

    /// Joins the reading to the stretch before it when it follows in step, else begins a stretch.
    fn remember(&mut self, place: usize, new: Reading, follows: bool, newest: bool) {
        let gap = if follows {
            new.at.saturating_sub(self.stretches[place - 1].last.at)
        } else {
            i64::MAX
        };
        let in_step = |gap: i64| gap <= i64::from(self.step_ms) * 3 / 2;
        let joins = in_step(gap);
        let meets =
            !newest && joins && in_step(self.stretches[place].first.at.saturating_sub(new.at));
        if newest && follows {
            self.step_ms = u32::try_from(gap).unwrap_or(u32::MAX);
        }
        if meets {
            // The gap is closed.
            self.stretches[place - 1].last = self.stretches[place].last;
            self.forget(place);
        } else if joins {
            self.stretches[place - 1].last = new;
        } else {
            self.begin(place, new);
        }
    }

    fn begin(&mut self, mut place: usize, new: Reading) {
        if usize::from(self.count) == STRETCHES_MAX {
            match place {
                0 => return self.stretches[0].first = new,
                1 => return self.stretches[0].last = new,
                // The oldest gap is given up.
                _ => {
                    self.stretches[0].last = self.stretches[1].last;
                    self.forget(1);
                    place -= 1;
                }
            }
        }
        self.stretches.copy_within(place..usize::from(self.count), place + 1);
        self.stretches[place] = Stretch { first: new, last: new };
        self.count += 1;
    }

    fn forget(&mut self, index: usize) {
        self.stretches.copy_within(index + 1..usize::from(self.count), index);
        self.count -= 1;
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;

    use super::*;

    /// Increases by the time of the reading that they belong to.
    fn increases(readings: &[(i64, f64, i64)]) -> BTreeMap<i64, f64> {
        let mut state = SeriesState::new(Kind::Counter);
        let mut out = BTreeMap::new();
        for (at, value, start) in readings {
            let seen = state.observe(UnixMillis(*at), *value, *start, 0);
            *out.entry(*at).or_default() += seen.cell.sum;
            if let Some((at, change)) = seen.correction {
                *out.entry(at.0).or_default() += change;
            }
        }
        out
    }

    fn values(readings: &[(i64, f64, i64)]) -> Vec<f64> {
        increases(readings).into_values().collect()
    }

    #[test]
    fn a_decrease_is_a_reset_and_never_a_wrap() {
        let got = values(&[(1000, 4_294_967_290.0, 0), (2000, 10.0, 0), (3000, 12.0, 0)]);
        assert_eq!(got, [0.0, 10.0, 2.0]);
    }

    #[test]
    fn a_later_start_is_a_reset_even_when_the_value_grew() {
        assert_eq!(values(&[(1000, 5.0, 100), (2000, 9.0, 1500)]), [0.0, 9.0]);
        assert_eq!(values(&[(1000, 5.0, 100), (2000, 9.0, 100)]), [0.0, 4.0]);
    }

    #[test]
    fn a_late_reading_takes_its_part_from_the_reading_after_it() {
        let late = [(1000, 0.0, 0), (3000, 10.0, 0), (2000, 4.0, 0), (4000, 11.0, 0)];
        assert_eq!(values(&late), [0.0, 4.0, 6.0, 1.0]);
        // The very first may come late, too.
        assert_eq!(values(&[(2000, 7.0, 0), (1000, 5.0, 0)]), [0.0, 2.0]);
        // It may show a reset that was hidden.
        assert_eq!(values(&[(1000, 5.0, 0), (3000, 6.0, 0), (2000, 1.0, 0)]), [0.0, 1.0, 5.0]);
    }

    #[test]
    fn rates_are_per_second_between_neighbours() {
        let mut state = SeriesState::new(Kind::Counter);
        let first = state.observe(UnixMillis(0), 5.0, 0, 0).cell;
        assert_eq!((first.n, first.min), (1, f64::INFINITY));
        let second = state.observe(UnixMillis(2000), 9.0, 0, 0).cell;
        assert_eq!((second.min, second.max, second.first, second.last), (2.0, 2.0, 9.0, 9.0));
    }

    #[test]
    fn a_series_ends_until_its_next_sample() {
        let mut state = SeriesState::new(Kind::Gauge);
        state.observe(UnixMillis(1000), 1.0, 0, 0);
        state.end(UnixMillis(500));
        assert!(!state.ended);
        state.end(UnixMillis(2000));
        assert!(state.ended);
        state.observe(UnixMillis(3000), 1.0, 0, 0);
        assert!(!state.ended);
    }

    proptest! {
        #[test]
        fn blocks_that_overtake_each_other_give_every_slot_its_increase(
            values in prop::collection::vec(0..50_u32, 1..60),
            cuts in prop::collection::vec(0..60_usize, 0..4),
            swap: bool,
        ) {
            let readings: Vec<_> = (0..).zip(&values)
                .map(|(i, value)| (i * 1000_i64, f64::from(*value), 0_i64)).collect();
            let mut cuts: Vec<_> = cuts.into_iter().map(|cut| cut % readings.len()).collect();
            cuts.extend([0, readings.len()]);
            cuts.sort_unstable();
            let mut blocks: Vec<_> = cuts.windows(2).map(|cut| &readings[cut[0]..cut[1]]).collect();
            // Two queues: every second block comes before the one that it follows.
            if swap {
                blocks.chunks_exact_mut(2).for_each(<[_]>::reverse);
            }
            // The step must be known for gaps to be seen; before, a block of one may hide one.
            prop_assume!(blocks.iter().all(|block| block.is_empty() || block.len() > 2));
            let arrived: Vec<_> = blocks.concat();
            prop_assert_eq!(increases(&arrived), increases(&readings));
        }

        #[test]
        fn the_total_is_exact_in_every_order(
            steps in prop::collection::vec((0..9_u32, 1..5_i64), 1..40), seed: u64
        ) {
            let (mut at, mut value) = (0, 0.0);
            let mut readings = Vec::new();
            for (grown, passed) in steps {
                at += passed * 1000;
                value += f64::from(grown);
                readings.push((at, value, 0));
            }
            let total = value - readings[0].1;
            fastrand::Rng::with_seed(seed).shuffle(&mut readings);
            prop_assert_eq!(increases(&readings).values().sum::<f64>(), total);
        }
    }
}
