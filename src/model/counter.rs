//! From samples to cells: what each kind contributes, and what a counter must remember.

use super::{Cell, Kind, UnixMillis};

/// Readings that are remembered of a counter, so that late ones find their neighbours.
pub const READINGS_MAX: usize = 4;

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

/// What is remembered of a series between its samples.
///
/// A counter becomes increases when it is accepted: each reading adds what was counted since the
/// reading before it in time. A late reading takes its part out of the increase of the reading
/// after it, as long as that is remembered; a later one still adds none, because the reading
/// after it has it already. So totals never drift.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SeriesState {
    /// How the series' values are to be read.
    pub kind: Kind,
    /// Whether the sender said that there are no more samples for now.
    pub ended: bool,
    /// Time of the latest sample; `i64::MIN` before the first.
    pub last_at: UnixMillis,
    /// Readings remembered.
    count: u8,
    /// The latest readings of a counter, ascending by time.
    readings: [Reading; READINGS_MAX],
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
        let last_at = UnixMillis(i64::MIN);
        let readings = [Reading::default(); READINGS_MAX];
        Self { kind, ended: false, last_at, count: 0, readings }
    }

    /// A state as it was stored. There are at most [`READINGS_MAX`] readings.
    pub fn restored(kind: Kind, ended: bool, last_at: UnixMillis, readings: &[Reading]) -> Self {
        let mut state = Self { ended, last_at, ..Self::new(kind) };
        for reading in readings.iter().take(READINGS_MAX) {
            state.readings[usize::from(state.count)] = *reading;
            state.count += 1;
        }
        state
    }

    /// The latest readings of a counter, ascending by time.
    pub fn readings(&self) -> &[Reading] {
        &self.readings[..usize::from(self.count)]
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
        let count = usize::from(self.count);
        let place = self.readings().partition_point(|known| known.at < new.at);
        let after = self.readings().get(place).copied();
        let before = place.checked_sub(1).map(|index| self.readings[index]);
        let repeated = after.is_some_and(|after| after.at == new.at);
        // Older than all that is remembered: its neighbour before it may be forgotten.
        let forgotten = place == 0 && count == READINGS_MAX;
        if repeated || forgotten {
            let cell = Cell::reading(offset, new.value, 0.0, None);
            return Observed { cell, correction: None };
        }
        let increase = before.map_or(0.0, |before| before.increase_to(&new));
        let rate = before.map(|before| increase / ((new.at - before.at) as f64 / 1000.0));
        let correction = after.map(|after| {
            let had = before.map_or(0.0, |before| before.increase_to(&after));
            (UnixMillis(after.at), new.increase_to(&after) - had)
        });
        self.remember(place, new);
        Observed { cell: Cell::reading(offset, new.value, increase, rate), correction }
    }

    fn remember(&mut self, place: usize, new: Reading) {
        let count = usize::from(self.count);
        if count < READINGS_MAX {
            self.readings.copy_within(place..count, place + 1);
            self.readings[place] = new;
            self.count += 1;
        } else {
            // The oldest is forgotten.
            self.readings.copy_within(1..place, 0);
            self.readings[place - 1] = new;
        }
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
        fn the_order_of_arrival_does_not_matter_among_neighbours(
            // Each reading may come up to three places late.
            values in prop::collection::vec((0..50_u32, 0..4_usize), 1..40)
        ) {
            let readings: Vec<_> = (0..).zip(&values)
                .map(|(i, (value, _))| (i * 1000_i64, f64::from(*value), 0_i64)).collect();
            let mut order: Vec<usize> = (0..readings.len()).collect();
            order.sort_by_key(|i| (i + values[*i].1, *i));
            let arrived: Vec<_> = order.iter().map(|i| readings[*i]).collect();
            prop_assert_eq!(increases(&arrived), increases(&readings));
        }
    }
}
