//! The number of series that are read and evaluated together.
//!
//! Must never know: the store, values.

use super::Selectors;
use crate::{
    model::GranularitySet,
    policy::coverage::Interval,
    query::promql::value::{cells::TimedCell, range_vector::CellSeries, series::Series},
};

/// The numbers of series that are read and evaluated together.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ChunkSizes {
    /// Number of series per view. Creating a view blocks the writer for a moment.
    pub(crate) view: usize,
    /// Number of series whose cells are in memory when each cell of a view is used only once. A day
    /// of slots of five minutes takes 18 KB per series.
    pub(crate) part: usize,
    /// Memory of the cells and values of a chunk. A larger chunk reads fewer groups of the store
    /// twice; a smaller chunk stays in the CPU cache.
    pub(crate) bytes: usize,
}

impl ChunkSizes {
    /// The sizes for all queries.
    pub(crate) const DEFAULT: Self = Self { view: 1024, part: 8, bytes: 32 << 20 };
}

/// Returns the maximum number of cells of a series in these intervals. A slot of two samples
/// becomes two cells, and each edge may have a neighbour.
pub(super) fn cells_per_series(intervals: &[Interval], granularities: &GranularitySet) -> usize {
    let slots = |interval: &Interval| {
        let length_ms = interval.range.end.0 - interval.range.start.0;
        (length_ms / granularities[interval.granularity].width_ms).max(0) as usize + 2
    };
    intervals.iter().map(slots).fold(0, |all, slots| slots.saturating_mul(2).saturating_add(all))
}

impl Selectors<'_> {
    /// Returns the number of series of a chunk, given the maximum number of cells of a series and
    /// the number of times. Native histograms have no maximum of bytes that a chunk could rely on.
    pub(super) fn chunk_size(
        &self,
        (cells_max, has_histograms): (usize, bool),
        times: usize,
    ) -> usize {
        if has_histograms {
            return self.sizes.part;
        }
        let cells = cells_max.saturating_mul(size_of::<TimedCell>());
        let values = size_of::<Series>() + times * size_of::<f64>();
        let series_bytes = size_of::<CellSeries>() + values;
        let by_points = self.bounds.limits.points_max / cells_max.max(times).max(1);
        let by_bytes = self.sizes.bytes / cells.saturating_add(series_bytes);
        by_bytes.min(by_points).max(self.sizes.part)
    }
}
