//! From samples to cells: what each kind contributes, and what a counter must remember.

use super::{Cell, Kind, UnixMillis};

/// What is remembered of a series between its samples.
///
/// A counter becomes increases when it is accepted. A reset is known by a start time later than
/// the reading before, else by a decrease; a wrap is never guessed. A reading that arrives late
/// adds no increase: what it would add is already in the reading after it, so totals never
/// drift.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct SeriesState {
    /// How the series' values are to be read.
    pub kind: Kind,
    /// Time of the latest sample; `i64::MIN` before the first.
    pub last_at: UnixMillis,
    /// Value of the latest sample.
    pub last: f64,
}

impl SeriesState {
    /// The state of a series that has no sample yet.
    pub fn new(kind: Kind) -> Self {
        Self { kind, last_at: UnixMillis(i64::MIN), last: 0.0 }
    }

    /// Whether the series ever had a sample.
    pub fn is_fresh(&self) -> bool {
        self.last_at.0 == i64::MIN
    }

    /// Takes in one sample and returns its cell, seen from `slot_start`.
    ///
    /// `start` says since when a counter counts, 0 when not known.
    pub fn observe(&mut self, at: UnixMillis, value: f64, start: i64, slot_start: i64) -> Cell {
        let offset = (at.0 - slot_start) as u32;
        let cell = match self.kind {
            Kind::Gauge | Kind::Delta => Cell::single(offset, value),
            Kind::Counter => self.counter_cell(at, value, start, offset),
        };
        if at >= self.last_at {
            self.last_at = at;
            self.last = value;
        }
        cell
    }

    fn counter_cell(&self, at: UnixMillis, value: f64, start: i64, offset: u32) -> Cell {
        if self.is_fresh() || at <= self.last_at {
            return Cell::reading(offset, value, 0.0, None);
        }
        let reset = start > self.last_at.0 || value < self.last;
        let increase = if reset { value } else { value - self.last };
        let seconds = (at.0 - self.last_at.0) as f64 / 1000.0;
        Cell::reading(offset, value, increase, Some(increase / seconds))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn increases(readings: &[(i64, f64, i64)]) -> Vec<f64> {
        let mut state = SeriesState::new(Kind::Counter);
        readings
            .iter()
            .map(|(at, value, start)| state.observe(UnixMillis(*at), *value, *start, 0).sum)
            .collect()
    }

    #[test]
    fn a_decrease_is_a_reset_and_never_a_wrap() {
        let got = increases(&[(1000, 4_294_967_290.0, 0), (2000, 10.0, 0), (3000, 12.0, 0)]);
        assert_eq!(got, [0.0, 10.0, 2.0]);
    }

    #[test]
    fn a_later_start_is_a_reset_even_when_the_value_grew() {
        assert_eq!(increases(&[(1000, 5.0, 100), (2000, 9.0, 1500)]), [0.0, 9.0]);
        assert_eq!(increases(&[(1000, 5.0, 100), (2000, 9.0, 100)]), [0.0, 4.0]);
    }

    #[test]
    fn a_late_reading_does_not_change_the_total() {
        let got = increases(&[(1000, 0.0, 0), (3000, 10.0, 0), (2000, 4.0, 0), (4000, 11.0, 0)]);
        assert_eq!(got.iter().sum::<f64>(), 11.0);
    }

    #[test]
    fn rates_are_per_second_between_neighbours() {
        let mut state = SeriesState::new(Kind::Counter);
        let first = state.observe(UnixMillis(0), 5.0, 0, 0);
        assert_eq!((first.n, first.min), (1, f64::INFINITY));
        let second = state.observe(UnixMillis(2000), 9.0, 0, 0);
        assert_eq!((second.min, second.max, second.first, second.last), (2.0, 2.0, 9.0, 9.0));
    }
}
