//! Range vectors: the cells of several series, with the windows over them.
//!
//! Must never know: the store, the tree, how functions use a window.

use std::rc::Rc;

use super::{
    cells::{Sample, TimedCell},
    histograms::TimedHistogram,
    steps::TimeShift,
};
use crate::{model::Kind, query::Labels};

/// Windows over cells.
pub(crate) struct RangeVector {
    /// The cells.
    pub(crate) cells: Rc<CellMatrix>,
    /// The length of a window.
    pub(crate) range_ms: i64,
    /// The shift from an evaluation time to the end of its window.
    pub(crate) shift: TimeShift,
}

/// The series of a selector or a subquery, with their cells.
#[derive(Debug)]
pub(crate) struct CellMatrix {
    /// The series in order of labels.
    pub(crate) series: Vec<CellSeries>,
    /// The start times and the slot widths of the parts of the range, in ascending order; empty for
    /// subqueries.
    pub(crate) widths: Vec<(i64, i64)>,
    /// The finest slot width of the store; 0 for subqueries.
    pub(crate) finest_ms: i64,
}

/// A series with its cells.
#[derive(Debug)]
pub(crate) struct CellSeries {
    /// The labels of the series.
    pub(crate) labels: Labels,
    /// True when the metric's name does not apply to the values.
    pub(crate) drop_metric: bool,
    /// The kind of the series.
    pub(crate) kind: Kind,
    /// The time from which a stale marker ends the series.
    pub(crate) ended_at: i64,
    /// The cells in ascending order. In a series of several kinds, each cell has a kind.
    pub(crate) cells: Vec<TimedCell>,
    /// The kind of the native histograms, if there are any.
    pub(crate) histogram_kind: Kind,
    /// The native histograms in ascending order.
    pub(crate) histograms: Vec<TimedHistogram>,
    /// The cells as cells of a counter, if the series has several kinds and was a counter.
    pub(crate) counted: Vec<TimedCell>,
}

impl CellMatrix {
    /// Returns a cursor over the slot widths, for ascending times.
    pub(crate) fn widths(&self) -> Widths<'_> {
        Widths { all: &self.widths, next: 0 }
    }
}

/// A cursor over slot widths; see [`CellMatrix::widths`].
pub(crate) struct Widths<'a> {
    all: &'a [(i64, i64)],
    /// The index of the first part after the last requested time.
    next: usize,
}

impl Widths<'_> {
    /// Returns the slot width at a time, or 0 without slots. Times must not decrease.
    pub(crate) fn width_at(&mut self, at: i64) -> i64 {
        while self.all.get(self.next).is_some_and(|(from, _)| *from <= at) {
            self.next += 1;
        }
        self.all.get(self.next.saturating_sub(1)).map_or(0, |(_, width)| *width)
    }
}

impl CellSeries {
    /// Returns the cells and their kind, for functions that count increases or for other functions.
    pub(crate) fn cells_for(&self, counts_increases: bool) -> (&[TimedCell], Kind) {
        match (self.counted.is_empty(), counts_increases) {
            (true, _) => (&self.cells, self.kind),
            (false, true) => (&self.counted, Kind::Counter),
            // `Counter` is the strictest kind. It excludes shortcuts that are valid for gauges.
            (false, false) => (&self.cells, Kind::Counter),
        }
    }

    /// Returns the known samples: the first and the last sample of each cell.
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
