//! The readings of a cell that are in a window.
//!
//! A cell contains the number of its readings, and its first and last reading. When a window cuts a
//! cell, the readings are assumed to be equally spaced, like the readings of most senders. The
//! spacing determines the number and the times of the readings in the window. Cells of one or two
//! readings are exact. Must never know: the store, the tree, windows of other cells.

use super::cells::TimedCell;
use crate::model::counter::spread::{growth_to_first, lacks_growth};

/// The readings `lo` to `hi` of a cell, counted from 0.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Portion<'a> {
    /// The cell of the readings.
    pub(crate) cell: &'a TimedCell,
    /// The previous cell, if it is loaded.
    before: Option<&'a TimedCell>,
    lo: u32,
    hi: u32,
}

/// A reading of a portion: its time in Unix milliseconds, and its value. Both are estimates, except
/// for the first and the last reading of a cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct EstimatedReading {
    pub(crate) at: f64,
    pub(crate) value: f64,
}

impl<'a> Portion<'a> {
    /// Returns all readings of a cell.
    pub(crate) fn of_cell(cell: &'a TimedCell, before: Option<&'a TimedCell>) -> Self {
        Self { cell, before, lo: 0, hi: cell.n.saturating_sub(1) }
    }

    /// Returns the readings of a cell in the window `(from, to]`; `None` when there are none.
    pub(crate) fn in_window(
        cell: &'a TimedCell,
        before: Option<&'a TimedCell>,
        from: i64,
        to: i64,
    ) -> Option<Self> {
        if cell.last_at <= from || cell.first_at > to {
            return None;
        }
        let whole = Self::of_cell(cell, before);
        let duration_ms = i128::from(cell.last_at - cell.first_at);
        // Index of the last reading up to a time within the cell.
        let index = |at: i64| {
            let reached = i128::from(at - cell.first_at) * i128::from(whole.hi);
            reached.checked_div(duration_ms).map_or(0, |index| index as u32)
        };
        let lo = if from < cell.first_at { 0 } else { index(from) + 1 };
        let hi = if to >= cell.last_at { whole.hi } else { index(to) };
        (lo <= hi).then_some(Self { lo, hi, ..whole })
    }

    /// Returns the number of readings.
    pub(crate) fn count(&self) -> u32 {
        self.hi - self.lo + 1
    }

    /// Returns the number of intervals between readings.
    pub(crate) fn steps(&self) -> u32 {
        self.hi - self.lo
    }

    /// Returns true when the portion contains all readings of its cell.
    pub(crate) fn is_whole(&self) -> bool {
        self.lo == 0 && self.hi == self.steps_of_cell()
    }

    /// Returns true when the portion contains the cell's first reading.
    pub(crate) fn has_first(&self) -> bool {
        self.lo == 0
    }

    /// Returns true when the portion contains the cell's last reading.
    pub(crate) fn has_last(&self) -> bool {
        self.hi == self.steps_of_cell()
    }

    /// Returns the first reading.
    pub(crate) fn first(&self) -> EstimatedReading {
        self.reading(self.lo)
    }

    /// Returns the last reading.
    pub(crate) fn last(&self) -> EstimatedReading {
        self.reading(self.hi)
    }

    /// Returns the milliseconds between two readings of the cell; `None` when all readings have the
    /// same time.
    pub(crate) fn spacing_ms(&self) -> Option<f64> {
        let duration_ms = self.cell.last_at - self.cell.first_at;
        (duration_ms > 0).then(|| duration_ms as f64 / f64::from(self.steps_of_cell()))
    }

    /// Returns the sum of the values of a gauge or delta. The cell's first and last values are
    /// known; all other values are assumed to be equal.
    pub(crate) fn sum(&self) -> f64 {
        let TimedCell { n, sum, first, last, .. } = *self.cell;
        if self.is_whole() {
            return sum;
        }
        let known = [(self.has_first(), first), (self.has_last(), last)];
        let known = known.into_iter().filter(|(has, _)| *has).map(|(_, value)| value);
        let others = f64::from(self.count()) - known.clone().count() as f64;
        let other_value = (sum - first - last) / f64::from(n.saturating_sub(2));
        known.sum::<f64>() + if others > 0.0 { other_value * others } else { 0.0 }
    }

    /// Returns the smallest and the largest value of a gauge or delta. The extremes of a cut cell
    /// are used when the portion contains at least half of the cell's readings, or no reading with
    /// a known value.
    pub(crate) fn extremes(&self) -> (f64, f64) {
        let TimedCell { n, min, max, first, last, .. } = *self.cell;
        if u64::from(self.count()) * 2 >= u64::from(n) {
            return (min, max);
        }
        match (self.has_first(), self.has_last()) {
            (true, true) => (first.min(last), first.max(last)),
            (true, false) => (first, first),
            (false, true) => (last, last),
            (false, false) => (min, max),
        }
    }

    /// Returns the increase of a counter from the reading before the cell to the cell's first
    /// reading; `None` when the previous reading is unknown. A decrease is a reset.
    pub(crate) fn increase_before(&self) -> Option<f64> {
        let cell = self.cell;
        if cell.n == 1 {
            // The stored increase also covers the start of a counter.
            return (cell.max > f64::NEG_INFINITY).then_some(cell.sum);
        }
        let before = self.before?;
        let grown = if cell.first < before.last { cell.first } else { cell.first - before.last };
        if lacks_growth(grown, cell.sum, cell.first, cell.last) {
            return Some(growth_to_first(cell.sum, cell.first, cell.last).max(0.0));
        }
        Some(grown)
    }

    /// Returns the mean increase of a counter between two readings of the cell.
    pub(crate) fn increase_per_step(&self) -> f64 {
        let cell = self.cell;
        if cell.n < 2 {
            return 0.0;
        }
        let grown = cell.last - cell.first;
        let counted = match self.before {
            Some(_) => {
                (cell.sum - self.increase_before().unwrap_or(0.0)).clamp(0.0, cell.sum.max(0.0))
            }
            None if grown >= 0.0 => grown,
            None => cell.sum,
        };
        counted / f64::from(self.steps_of_cell())
    }

    /// Returns the time and increase of a counter between the last two readings.
    pub(crate) fn last_step(&self) -> Option<(f64, f64)> {
        if self.hi > 0 {
            return Some((self.spacing_ms()?, self.increase_per_step()));
        }
        self.step_to_first()
    }

    /// Returns the time and increase of a counter from the reading before the portion to its first
    /// reading.
    pub(crate) fn step_to_first(&self) -> Option<(f64, f64)> {
        let cell = self.cell;
        if self.lo > 0 {
            return Some((self.spacing_ms()?, self.increase_per_step()));
        }
        if let Some(before) = self.before {
            let passed = (cell.first_at - before.last_at) as f64;
            return self.increase_before().map(|counted| (passed, counted));
        }
        // The rate of a cell's only reading implies the time over which its increase was measured.
        let is_lone = cell.n == 1 && cell.max > 0.0 && cell.min == cell.max;
        is_lone.then(|| (cell.sum / cell.max * 1000.0, cell.sum))
    }

    fn steps_of_cell(&self) -> u32 {
        self.cell.n.saturating_sub(1)
    }

    fn reading(&self, index: u32) -> EstimatedReading {
        let cell = self.cell;
        let steps = self.steps_of_cell();
        let between = |first: f64, last: f64| match index {
            0 => first,
            _ if index == steps => last,
            _ => first + (last - first) * (f64::from(index) / f64::from(steps)),
        };
        EstimatedReading {
            at: between(cell.first_at as f64, cell.last_at as f64),
            value: between(cell.first, cell.last),
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// A cell with four readings from 10 to 50 s.
    const CELL: TimedCell = TimedCell {
        first_at: 10_000,
        last_at: 50_000,
        n: 4,
        sum: 20.0,
        min: 2.0,
        max: 9.0,
        first: 3.0,
        last: 6.0,
        m2: 29.0,
        kind: None,
    };

    #[test]
    fn a_cut_cell_counts_its_readings_in_the_window() {
        for (from, to, count, sum, max) in [
            (20, 60, 3, 17.0, 9.0),
            (0, 30, 2, 8.5, 9.0),
            (0, 20, 1, 3.0, 3.0),
            (30, 45, 1, 5.5, 9.0),
            (9, 50, 4, 20.0, 9.0),
        ] {
            let portion = Portion::in_window(&CELL, None, from * 1000, to * 1000).unwrap();
            let found = (portion.count(), portion.sum(), portion.extremes().1);
            assert_eq!(found, (count, sum, max), "({from}, {to}]");
        }
        for (from, to) in [(0, 9), (50, 60), (11, 20)] {
            assert!(
                Portion::in_window(&CELL, None, from * 1000, to * 1000).is_none(),
                "({from}, {to}]"
            );
        }
    }

    proptest! {
        #[test]
        fn readings_that_are_equally_spaced_are_counted_exactly(
            n in 1..50_i64, spacing in 1..10_000_i64, from in -10_000..500_000_i64, length in 1..500_000_i64
        ) {
            let times: Vec<i64> = (0..n).map(|index| index * spacing).collect();
            let value = |at: i64| at as f64 / 8.0;
            let sum = times.iter().map(|at| value(*at)).sum();
            let last_at = (n - 1) * spacing;
            let cell = TimedCell { first_at: 0, last_at, n: n as u32, sum, last: value(last_at), ..TimedCell::sample(0, 0.0) };
            let to = from + length;
            let inside: Vec<i64> = times.into_iter().filter(|at| *at > from && *at <= to).collect();
            let portion = Portion::in_window(&cell, None, from, to);
            prop_assert_eq!(portion.map_or(0, |portion| portion.count() as usize), inside.len());
            if let (Some(portion), [first, .., last]) = (portion, &inside[..]) {
                prop_assert!((portion.first().at - *first as f64).abs() < 1e-6);
                prop_assert!((portion.last().at - *last as f64).abs() < 1e-6);
                prop_assert!((portion.last().value - value(*last)).abs() < 1e-6);
            }
        }
    }
}
