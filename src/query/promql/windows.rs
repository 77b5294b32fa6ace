//! Cells in windows of time.
//!
//! A cell belongs to the window `(from, to]` that its last reading is in, so that windows side by
//! side count every cell once. Must never know: the store, the tree.

use crate::model::{Cell, Kind, UnixMillis};
use crate::store::Slot;

/// A cell with the times of its readings.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct TimedCell {
    /// Time of the first reading, Unix milliseconds.
    pub(super) first_at: i64,
    /// Time of the last reading.
    pub(super) last_at: i64,
    /// Samples.
    pub(super) n: u32,
    /// As in [`Cell`].
    pub(super) sum: f64,
    /// As in [`Cell`].
    pub(super) min: f64,
    /// As in [`Cell`].
    pub(super) max: f64,
    /// As in [`Cell`].
    pub(super) first: f64,
    /// As in [`Cell`].
    pub(super) last: f64,
}

impl TimedCell {
    /// A sample as such.
    pub(super) fn sample(at: i64, value: f64) -> Self {
        Self {
            first_at: at,
            last_at: at,
            n: 1,
            sum: value,
            min: value,
            max: value,
            first: value,
            last: value,
        }
    }

    fn of_slot(start: UnixMillis, cell: &Cell) -> Self {
        Self {
            first_at: start.0 + i64::from(cell.first_at),
            last_at: start.0 + i64::from(cell.last_at),
            n: cell.n,
            sum: cell.sum,
            min: cell.min,
            max: cell.max,
            first: cell.first,
            last: cell.last,
        }
    }

    /// Whether samples were merged such that not all of them are known.
    pub(super) fn is_merged(&self) -> bool {
        self.n > 2
    }

    /// The two samples of a cell of two.
    fn split(&self, kind: Kind) -> [Self; 2] {
        let mut first = Self::sample(self.first_at, self.first);
        let mut last = Self::sample(self.last_at, self.last);
        if kind == Kind::Counter {
            // A decrease is a reset, as when the readings came.
            let grown = self.last - self.first;
            last.sum = if grown < 0.0 { self.last } else { grown };
            first.sum = (self.sum - last.sum).max(0.0);
            let seconds = (self.last_at - self.first_at) as f64 / 1000.0;
            (last.min, last.max) = (last.sum / seconds, last.sum / seconds);
            // With one rate the first reading had no neighbour before it.
            let alone = self.min == self.max && first.sum == 0.0;
            let rate = if alone { f64::NEG_INFINITY } else { self.max };
            (first.min, first.max) = (-rate, rate);
            if !alone {
                first.min = self.min;
            }
        }
        [first, last]
    }
}

/// Appends slots as timed cells. A cell of two samples is two cells: both are known.
pub(super) fn append_cells(slots: &[Slot], kind: Kind, out: &mut Vec<TimedCell>) {
    out.reserve(slots.len());
    for slot in slots.iter().filter(|slot| slot.cell.n > 0) {
        let cell = TimedCell::of_slot(slot.start, &slot.cell);
        if cell.n == 2 && cell.first_at < cell.last_at {
            out.extend(cell.split(kind));
        } else {
            out.push(cell);
        }
    }
}

/// The cells of one series in one window.
#[derive(Debug, Clone, Copy)]
pub(super) struct Window<'a> {
    /// All loaded cells of the series, ascending.
    pub(super) all: &'a [TimedCell],
    /// Index of the first cell that belongs to the window.
    pub(super) lo: usize,
    /// Index behind the last one.
    pub(super) hi: usize,
    /// Where the window begins, exclusive, Unix milliseconds.
    pub(super) from: i64,
    /// Where it ends, inclusive.
    pub(super) to: i64,
    /// Time of the evaluation, which an offset may set apart from the window.
    pub(super) evaluated_at: i64,
    /// How the values are to be read.
    pub(super) kind: Kind,
    /// Width of the slots that the cells come from; 0 when they are samples as such.
    pub(super) width_ms: i64,
}

impl<'a> Window<'a> {
    /// The cells that belong to it; never empty where a function sees it.
    pub(super) fn cells(&self) -> &'a [TimedCell] {
        &self.all[self.lo..self.hi]
    }

    /// Length in milliseconds.
    pub(super) fn range_ms(&self) -> i64 {
        self.to - self.from
    }

    /// The readings in it, ascending: of merged cells the first and the last.
    pub(super) fn readings(&self) -> impl Iterator<Item = (i64, f64)> + use<'a> {
        let window = *self;
        self.touching().iter().flat_map(move |cell| window.readings_of(cell))
    }

    /// The cells that belong to it, and the next one: it may begin in this window.
    pub(super) fn touching(&self) -> &'a [TimedCell] {
        &self.all[self.lo..(self.hi + 1).min(self.all.len())]
    }

    /// The readings of a cell that are in it.
    pub(super) fn readings_of(
        &self,
        cell: &'a TimedCell,
    ) -> impl Iterator<Item = (i64, f64)> + use<'a> {
        let (from, to) = (self.from, self.to);
        let first = (cell.n > 1).then_some((cell.first_at, cell.first));
        let readings = first.into_iter().chain([(cell.last_at, cell.last)]);
        readings.filter(move |(at, _)| *at > from && *at <= to)
    }

    /// The cell before the window, when it is loaded.
    pub(super) fn before(&self) -> Option<&'a TimedCell> {
        self.lo.checked_sub(1).map(|index| &self.all[index])
    }

    /// Whether some cell's samples are not all known.
    pub(super) fn has_merged(&self) -> bool {
        self.cells().iter().any(TimedCell::is_merged)
    }
}

/// Moves over a series' cells as windows go forward in time.
#[derive(Debug, Default)]
pub(super) struct Cursor {
    lo: usize,
    hi: usize,
}

impl Cursor {
    /// Indexes of the cells whose last reading is in `(from, to]`; neither may go back.
    pub(super) fn advance(&mut self, cells: &[TimedCell], from: i64, to: i64) -> (usize, usize) {
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
pub(super) fn cell_around(
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

    #[test]
    fn a_cell_of_two_samples_is_split_exactly() {
        let mut cell = Cell::reading(1000, 5.0, 2.0, Some(1.0));
        cell.merge(&Cell::reading(3000, 9.0, 4.0, Some(2.0)));
        let slot = Slot { start: UnixMillis(60_000), cell };
        let mut out = Vec::new();
        append_cells(&[slot], Kind::Counter, &mut out);
        let sums: Vec<_> = out.iter().map(|cell| (cell.last_at, cell.sum, cell.last)).collect();
        assert_eq!(sums, [(61_000, 2.0, 5.0), (63_000, 4.0, 9.0)]);
        assert!(out.iter().all(|cell| cell.max.is_finite()));
        // The first reading of all has no increase.
        let mut cell = Cell::reading(1000, 5.0, 0.0, None);
        cell.merge(&Cell::reading(3000, 9.0, 4.0, Some(2.0)));
        out.clear();
        append_cells(&[Slot { start: UnixMillis(0), cell }], Kind::Counter, &mut out);
        assert_eq!((out[0].sum, out[0].max), (0.0, f64::NEG_INFINITY));
        assert_eq!((out[1].sum, out[1].max), (4.0, 2.0));
    }
}
