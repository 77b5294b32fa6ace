//! Cells in time windows.
//!
//! When both edges of a window `(from, to]` are edges of slots, the window contains whole cells: a
//! cell belongs to the window that contains its last reading, so that adjacent windows count every
//! cell once. An edge within a slot cuts the cell, see [`Portion`]. Must never know: the store, the
//! tree.

use super::{
    cells::{Sample, TimedCell},
    portion::Portion,
    range_vector::RangeVector,
    steps::Steps,
};
use crate::model::Kind;

/// The extension of a selector beyond the edges of its windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Extension {
    /// An extension to the sample before the window.
    Anchored,
    /// An extension to the samples on either side.
    Smoothed,
}

/// The times of a window, equal for all series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Frame {
    /// The start of the window, exclusive, Unix milliseconds.
    pub(crate) from: i64,
    /// The end of the window, inclusive.
    pub(crate) to: i64,
    /// The evaluation time, which may differ from the end of the window because of an offset.
    pub(crate) evaluated_at: i64,
    /// The slot width of the cells; 0 when the cells are samples.
    pub(crate) width_ms: i64,
    /// The finest slot width of the store; 0 when the cells are samples.
    pub(crate) finest_ms: i64,
    /// True when an edge is within a slot.
    pub(crate) cuts_slots: bool,
}

#[cfg(test)]
impl Frame {
    /// Creates a window over slots of a minute.
    pub(crate) fn of_minutes(from: i64, to: i64) -> Self {
        let (width_ms, finest_ms) = (60_000, 60_000);
        let cuts_slots = [from, to].iter().any(|edge| edge.rem_euclid(width_ms) != 0);
        Self { from, to, evaluated_at: to, width_ms, finest_ms, cuts_slots }
    }
}

impl RangeVector {
    /// Returns the frame of each evaluation time, in ascending order.
    pub(crate) fn frames(&self, steps: &Steps) -> Vec<Frame> {
        let finest_ms = self.cells.finest_ms;
        let (mut at_start, mut at_end) = (self.cells.widths(), self.cells.widths());
        let is_inside = |edge: i64, width_ms: i64| width_ms > 0 && edge.rem_euclid(width_ms) != 0;
        let frame = |evaluated_at| {
            let to = self.shift.of(evaluated_at);
            let from = to - self.range_ms;
            let width_ms = at_end.width_at(to);
            let cuts_slots = is_inside(from, at_start.width_at(from)) || is_inside(to, width_ms);
            Frame { from, to, evaluated_at, width_ms, finest_ms, cuts_slots }
        };
        steps.times().map(frame).collect()
    }
}

/// The cells of one series in one window.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window<'a> {
    /// The times of the window.
    pub(crate) frame: Frame,
    /// All loaded cells of the series, in ascending order.
    pub(crate) all: &'a [TimedCell],
    /// The index of the first cell with readings in the window.
    pub(crate) lo: usize,
    /// The index after the last cell with readings in the window.
    pub(crate) hi: usize,
    /// The kind of cells that contain no kind.
    pub(crate) kind: Kind,
}

impl<'a> Window<'a> {
    /// Returns the cells with readings in the window, including cut cells.
    pub(crate) fn cells(&self) -> &'a [TimedCell] {
        &self.all[self.lo..self.hi]
    }

    /// Returns the kind of a cell.
    pub(crate) fn kind_of(&self, cell: &TimedCell) -> Kind {
        cell.kind.unwrap_or(self.kind)
    }

    /// Returns the length in milliseconds.
    pub(crate) fn range_ms(&self) -> i64 {
        self.frame.to - self.frame.from
    }

    /// Returns the readings of each cell that are in the window, in ascending order.
    pub(crate) fn portions(&self) -> impl Iterator<Item = Portion<'a>> + use<'a> {
        let window = *self;
        (self.lo..self.hi).filter_map(move |index| window.portion(index))
    }

    /// Returns the last portion.
    pub(crate) fn last_portion(&self) -> Option<Portion<'a>> {
        (self.lo..self.hi).rev().find_map(|index| self.portion(index))
    }

    #[inline]
    fn portion(&self, index: usize) -> Option<Portion<'a>> {
        let (cell, before) = (&self.all[index], index.checked_sub(1).map(|index| &self.all[index]));
        let Frame { from, to, cuts_slots, .. } = self.frame;
        if cuts_slots {
            Portion::in_window(cell, before, from, to)
        } else {
            Some(Portion::of_cell(cell, before))
        }
    }

    /// Returns the known readings in the window, in ascending order: the first and the last reading
    /// of each cell.
    pub(crate) fn readings(&self) -> impl Iterator<Item = Sample> + use<'a> {
        let Frame { from, to, .. } = self.frame;
        // The next cell may begin exactly at the end of the window.
        let touching = &self.all[self.lo..(self.hi + 1).min(self.all.len())];
        let readings = touching.iter().flat_map(|cell| {
            let first = (cell.n > 1).then_some((cell.first_at, cell.first));
            first.into_iter().chain([(cell.last_at, cell.last)])
        });
        readings.filter(move |(at, _)| *at > from && *at <= to)
    }

    /// Returns true when the window contains any reading.
    pub(crate) fn has_readings(&self) -> bool {
        if self.frame.cuts_slots { self.last_portion().is_some() } else { self.lo < self.hi }
    }

    /// Returns the cell before the window, if it is loaded.
    pub(crate) fn before(&self) -> Option<&'a TimedCell> {
        self.lo.checked_sub(1).map(|index| &self.all[index])
    }

    /// Returns true when some samples of the cells are unknown.
    pub(crate) fn has_merged(&self) -> bool {
        self.cells().iter().any(TimedCell::is_merged)
    }
}

/// A cursor over the cells of a series, for ascending windows.
#[derive(Debug, Default)]
pub(crate) struct Cursor {
    lo: usize,
    hi: usize,
}

impl Cursor {
    /// Returns the window of a frame. Edges must not decrease.
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

/// Returns true when the last cell is a single reading exactly at the end of the window, which
/// belongs to the next slot, while the first cell already includes a reading exactly at the start
/// of the window. Without this check, a window of one minute could contain 13 readings at intervals
/// of five seconds.
fn begins_next_slot(cells: &[TimedCell], from: i64, to: i64) -> bool {
    let (Some(first), Some(last)) = (cells.first(), cells.last()) else { return false };
    last.first_at == to && first.first_at == from && first.n > 1
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn adjacent_windows_contain_every_cell_once() {
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
