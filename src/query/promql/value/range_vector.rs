//! Range vectors: the cells of several series, and which window of them belongs to which time.
//!
//! Must never know: the store, the tree, what functions make of a window.

use std::rc::Rc;

use super::{cells::TimedCell, labels::Labels, steps::TimeShift, windows::Sample};
use crate::model::Kind;

/// Windows over cells.
pub(crate) struct RangeVector {
    /// The cells that the windows are of.
    pub(crate) cells: Rc<CellMatrix>,
    /// Length of a window.
    pub(crate) range_ms: i64,
    /// Where the window of an evaluation time ends.
    pub(crate) shift: TimeShift,
}

/// The series of a selector, or of a subquery, with their cells.
#[derive(Debug)]
pub(crate) struct CellMatrix {
    /// In order of labels.
    pub(crate) series: Vec<CellSeries>,
    /// From when on cells come from slots of which width, ascending; none for subqueries.
    pub(crate) widths: Vec<(i64, i64)>,
    /// Width of the finest slots that the store keeps; 0 for subqueries.
    pub(crate) finest_ms: i64,
}

/// One of the series.
#[derive(Debug)]
pub(crate) struct CellSeries {
    /// Which series.
    pub(crate) labels: Labels,
    /// Whether its metric's name no longer fits.
    pub(crate) drop_metric: bool,
    /// How values are to be read.
    pub(crate) kind: Kind,
    /// There is no value from this time on: the sender said so.
    pub(crate) ended_at: i64,
    /// Ascending.
    pub(crate) cells: Vec<TimedCell>,
}

impl CellMatrix {
    /// The widths of slots as times go forward.
    pub(crate) fn widths(&self) -> Widths<'_> {
        Widths { all: &self.widths, next: 0 }
    }
}

/// See [`CellMatrix::widths`].
pub(crate) struct Widths<'a> {
    all: &'a [(i64, i64)],
    /// The first that begins behind the last time that was asked for.
    next: usize,
}

impl Widths<'_> {
    /// Width of the slots that hold cells of this time, which may not go back; 0 when there are no
    /// slots.
    pub(crate) fn at(&mut self, at: i64) -> i64 {
        while self.all.get(self.next).is_some_and(|(from, _)| *from <= at) {
            self.next += 1;
        }
        self.all.get(self.next.saturating_sub(1)).map_or(0, |(_, width)| *width)
    }
}

impl CellSeries {
    /// The samples that are known: of a merged cell the first and the last.
    pub(crate) fn known_samples(&self) -> Vec<Sample> {
        let mut samples = Vec::with_capacity(self.cells.len());
        for cell in &self.cells {
            if cell.n > 1 && cell.first_at < cell.last_at {
                samples.push((cell.first_at, cell.first));
            }
            samples.push((cell.last_at, cell.last));
        }
        samples
    }
}
