//! Cells in windows of time.
//!
//! A window `(from, to]` whose edges lie on slots' edges holds whole cells: a cell belongs to the
//! window that its last reading is in, so that windows side by side count every cell once. A window
//! with an edge inside a slot cuts the cell there, see [`Portion`]. Must never know: the store, the
//! tree.

use super::{cells::TimedCell, portion::Portion, range_vector::RangeVector, steps::Steps};
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

/// The times of a window, for all series alike.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Frame {
    /// Where the window begins, exclusive, Unix milliseconds.
    pub(crate) from: i64,
    /// Where it ends, inclusive.
    pub(crate) to: i64,
    /// Time of the evaluation, which an offset may set apart from the window.
    pub(crate) evaluated_at: i64,
    /// Width of the slots that the cells come from; 0 when they are samples as such.
    pub(crate) width_ms: i64,
    /// Width of the finest slots that the store keeps; 0 when cells are samples as such.
    pub(crate) finest_ms: i64,
    /// Whether an edge lies inside a slot.
    pub(crate) cuts_slots: bool,
}

#[cfg(test)]
impl Frame {
    /// A window over slots of a minute.
    pub(crate) fn of_minutes(from: i64, to: i64) -> Self {
        let (width_ms, finest_ms) = (60_000, 60_000);
        let cuts_slots = [from, to].iter().any(|edge| edge.rem_euclid(width_ms) != 0);
        Self { from, to, evaluated_at: to, width_ms, finest_ms, cuts_slots }
    }
}

impl RangeVector {
    /// The frame of each evaluation time, ascending.
    pub(crate) fn frames(&self, steps: &Steps) -> Vec<Frame> {
        let finest_ms = self.cells.finest_ms;
        let (mut at_start, mut at_end) = (self.cells.widths(), self.cells.widths());
        let is_inside = |edge: i64, width_ms: i64| width_ms > 0 && edge.rem_euclid(width_ms) != 0;
        let frame = |evaluated_at| {
            let to = self.shift.of(evaluated_at);
            let from = to - self.range_ms;
            let width_ms = at_end.at(to);
            let cuts_slots = is_inside(from, at_start.at(from)) || is_inside(to, width_ms);
            Frame { from, to, evaluated_at, width_ms, finest_ms, cuts_slots }
        };
        steps.times().map(frame).collect()
    }
}

/// The cells of one series in one window.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window<'a> {
    /// When it is.
    pub(crate) frame: Frame,
    /// All loaded cells of the series, ascending.
    pub(crate) all: &'a [TimedCell],
    /// Index of the first cell that has readings in the window.
    pub(crate) lo: usize,
    /// Index behind the last one.
    pub(crate) hi: usize,
    /// How the values are to be read.
    pub(crate) kind: Kind,
}

impl<'a> Window<'a> {
    /// The cells that have readings in it; cut ones too.
    pub(crate) fn cells(&self) -> &'a [TimedCell] {
        &self.all[self.lo..self.hi]
    }

    /// Length in milliseconds.
    pub(crate) fn range_ms(&self) -> i64 {
        self.frame.to - self.frame.from
    }

    /// The readings of each cell that are in it, ascending.
    pub(crate) fn portions(&self) -> impl Iterator<Item = Portion<'a>> + use<'a> {
        let window = *self;
        (self.lo..self.hi).filter_map(move |index| window.portion(index))
    }

    /// The last of the portions.
    pub(crate) fn last_portion(&self) -> Option<Portion<'a>> {
        (self.lo..self.hi).rev().find_map(|index| self.portion(index))
    }

    #[inline]
    fn portion(&self, index: usize) -> Option<Portion<'a>> {
        let (cell, before) = (&self.all[index], index.checked_sub(1).map(|index| &self.all[index]));
        let Frame { from, to, cuts_slots, .. } = self.frame;
        if cuts_slots {
            Portion::cut(cell, before, from, to)
        } else {
            Some(Portion::whole(cell, before))
        }
    }

    /// The known readings in it, ascending: of merged cells the first and the last.
    pub(crate) fn readings(&self) -> impl Iterator<Item = Sample> + use<'a> {
        let Frame { from, to, .. } = self.frame;
        // The next cell may begin at the very end of the window.
        let touching = &self.all[self.lo..(self.hi + 1).min(self.all.len())];
        let readings = touching.iter().flat_map(|cell| {
            let first = (cell.n > 1).then_some((cell.first_at, cell.first));
            first.into_iter().chain([(cell.last_at, cell.last)])
        });
        readings.filter(move |(at, _)| *at > from && *at <= to)
    }

    /// Whether any reading is in it.
    pub(crate) fn has_readings(&self) -> bool {
        if self.frame.cuts_slots { self.last_portion().is_some() } else { self.lo < self.hi }
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
    /// Finds the window of a frame; neither edge may go back.
    pub(crate) fn window<'a>(
        &mut self,
        cells: &'a [TimedCell],
        kind: Kind,
        frame: Frame,
    ) -> Window<'a> {
        let Frame { from, to, cuts_slots, .. } = frame;
        while cells.get(self.lo).is_some_and(|cell| cell.last_at <= from) {
            self.lo += 1;
        }
        self.hi = self.hi.max(self.lo);
        while cells.get(self.hi).is_some_and(|cell| cell.last_at <= to) {
            self.hi += 1;
        }
        let (lo, mut hi) = (self.lo, self.hi);
        if cuts_slots {
            hi += usize::from(cells.get(hi).is_some_and(|cell| cell.first_at <= to));
        } else if begins_next_slot(&cells[lo..hi], from, to) {
            hi -= 1;
        }
        Window { frame, all: cells, lo, hi, kind }
    }
}

/// Whether the last cell is a reading at the very end of the window, of a slot under way, while the
/// first one holds the reading at its very beginning, which counts with its slot: a window of one
/// minute would have 13 readings of five seconds.
fn begins_next_slot(cells: &[TimedCell], from: i64, to: i64) -> bool {
    let (Some(first), Some(last)) = (cells.first(), cells.last()) else { return false };
    last.first_at == to && first.first_at == from && first.n > 1
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
            let from = to - 10;
            let frame =
                Frame { from, to, evaluated_at: to, width_ms: 1, finest_ms: 1, cuts_slots: false };
            let window = cursor.window(&cells, Kind::Gauge, frame);
            assert!(window.cells().iter().all(|cell| cell.last_at > from && cell.last_at <= to));
            seen += window.cells().len();
        }
        assert_eq!(seen, 50);
    }
}
