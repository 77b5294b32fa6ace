//! Cells in windows of time.
//!
//! A cell belongs to the window `(from, to]` that its last reading is in, so that windows side by
//! side count every cell once. Must never know: the store, the tree.

use super::cells::TimedCell;
use crate::model::Kind;

/// A sample that is known: its time and its value.
pub(crate) type Sample = (i64, f64);

/// How a selector goes beyond the edges of its windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extension {
    /// To the sample before it.
    Anchored,
    /// To the samples on either side.
    Smoothed,
}

/// The cells of one series in one window.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window<'a> {
    /// All loaded cells of the series, ascending.
    pub(crate) all: &'a [TimedCell],
    /// Index of the first cell that belongs to the window.
    pub(crate) lo: usize,
    /// Index behind the last one.
    pub(crate) hi: usize,
    /// Where the window begins, exclusive, Unix milliseconds.
    pub(crate) from: i64,
    /// Where it ends, inclusive.
    pub(crate) to: i64,
    /// Time of the evaluation, which an offset may set apart from the window.
    pub(crate) evaluated_at: i64,
    /// How the values are to be read.
    pub(crate) kind: Kind,
    /// Width of the slots that the cells come from; 0 when they are samples as such.
    pub(crate) width_ms: i64,
}

impl<'a> Window<'a> {
    /// The cells that belong to it; never empty where a function sees it.
    pub(crate) fn cells(&self) -> &'a [TimedCell] {
        &self.all[self.lo..self.hi]
    }

    /// Length in milliseconds.
    pub(crate) fn range_ms(&self) -> i64 {
        self.to - self.from
    }

    /// The readings in it, ascending: of merged cells the first and the last.
    pub(crate) fn readings(&self) -> impl Iterator<Item = (i64, f64)> + use<'a> {
        let window = *self;
        self.touching().iter().flat_map(move |cell| window.readings_of(cell))
    }

    /// The cells that belong to it, and the next one: it may begin in this window.
    pub(crate) fn touching(&self) -> &'a [TimedCell] {
        &self.all[self.lo..(self.hi + 1).min(self.all.len())]
    }

    /// The readings of a cell that are in it.
    pub(crate) fn readings_of(
        &self,
        cell: &'a TimedCell,
    ) -> impl Iterator<Item = (i64, f64)> + use<'a> {
        let (from, to) = (self.from, self.to);
        let first = (cell.n > 1).then_some((cell.first_at, cell.first));
        let readings = first.into_iter().chain([(cell.last_at, cell.last)]);
        readings.filter(move |(at, _)| *at > from && *at <= to)
    }

    /// The cell before the window, when it is loaded.
    pub(crate) fn before(&self) -> Option<&'a TimedCell> {
        self.lo.checked_sub(1).map(|index| &self.all[index])
    }

    /// Whether some cell's samples are not all known.
    pub(crate) fn has_merged(&self) -> bool {
        self.cells().iter().any(TimedCell::is_merged)
    }
}

/// Moves over a series' cells as windows go forward in time.
#[derive(Debug, Default)]
pub(crate) struct Cursor {
    lo: usize,
    hi: usize,
}

impl Cursor {
    /// Indexes of the cells whose last reading is in `(from, to]`; neither may go back.
    pub(crate) fn advance(&mut self, cells: &[TimedCell], from: i64, to: i64) -> (usize, usize) {
        while cells.get(self.lo).is_some_and(|cell| cell.last_at <= from) {
            self.lo += 1;
        }
        self.hi = self.hi.max(self.lo);
        while cells.get(self.hi).is_some_and(|cell| cell.last_at <= to) {
            self.hi += 1;
        }
        (self.lo, self.hi)
    }
}

/// Where a window is shorter than the slots, the merged cell of the slot that it ends in.
pub(crate) fn cell_around(
    cells: &[TimedCell],
    near: usize,
    to: i64,
    width_ms: i64,
) -> Option<usize> {
    let slot = (to - 1).div_euclid(width_ms) * width_ms;
    let around = |index: usize| {
        cells.get(index).is_some_and(|cell| {
            cell.is_merged() && cell.first_at >= slot && cell.first_at < slot + width_ms
        })
    };
    [near, near.wrapping_sub(1)].into_iter().find(|index| around(*index))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_side_by_side_hold_every_cell_once() {
        let cells: Vec<_> = (0..50).map(|i| TimedCell::sample(i * 7, i as f64)).collect();
        let mut cursor = Cursor::default();
        let mut seen = 0;
        for to in (-10..400).step_by(10) {
            let (lo, hi) = cursor.advance(&cells, to - 10, to);
            assert!(cells[lo..hi].iter().all(|cell| cell.last_at > to - 10 && cell.last_at <= to));
            seen += hi - lo;
        }
        assert_eq!(seen, 50);
    }
}
