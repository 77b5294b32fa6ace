//! The readings on either side of a gap that begins before the first window or ends after the last
//! window.
//!
//! The growth of a counter in a gap is spread over the slots of the gap, so a window over a part of
//! the gap needs both readings. Must never know: how the cells are used.

use std::ops::Range;

use super::Selectors;
use crate::query::QueryError;
use crate::{
    model::{GranularityIndex, Kind, SeriesId, UnixMillis, counter::spread::spacing_ms},
    policy::{
        coverage::{Coverage, Interval},
        query_plan::Windows,
    },
    query::{
        cells::neighbours::{NeighbourSearch, Side},
        promql::value::{
            cells::{TimedCell, append_cells},
            range_vector::CellSeries,
        },
    },
    store::Slot,
};

/// The edges beyond which readings are searched.
#[derive(Debug)]
pub(super) struct GapSearch<'a> {
    coverage: Coverage<'a>,
    /// The start of the first window, and the end of the last.
    windows: Range<i64>,
    before: (GranularityIndex, UnixMillis),
    after: (GranularityIndex, UnixMillis),
    finest_ms: i64,
}

impl<'a> GapSearch<'a> {
    /// Creates the search beyond the edges of these intervals; `None` without intervals.
    pub(super) fn new(
        coverage: Coverage<'a>,
        windows: &Windows,
        intervals: &[Interval],
        finest_ms: i64,
    ) -> Option<Self> {
        let (first, last) = (intervals.first()?, intervals.last()?);
        Some(Self {
            coverage,
            windows: windows.first.0 - windows.range_ms..windows.last().0,
            before: (first.granularity, first.range.start),
            after: (last.granularity, last.range.end),
            finest_ms,
        })
    }

    /// Returns true when the counter's last reading before the first window is not among the cells.
    fn lacks_reading_before(&self, series: &CellSeries) -> bool {
        let is_behind = |cell: &TimedCell| cell.last_at > self.windows.start;
        series.kind == Kind::Counter && series.cells.first().is_none_or(is_behind)
    }

    /// Returns true when the last window ends in a gap.
    fn ends_in_gap(&self, series: &CellSeries, now: UnixMillis) -> bool {
        let Some(last) = series.cells.last() else { return false };
        let spacing = spacing_ms(last.n, last.first_at, last.last_at);
        let passed = self.windows.end - last.last_at;
        series.kind == Kind::Counter
            && self.windows.end + self.finest_ms < now.0
            && passed as f64 > (1.5 * spacing).min(self.finest_ms as f64)
    }
}

impl Selectors<'_> {
    /// Adds to the cells of each counter its last reading before the first window and its next
    /// reading after the last window, if there is a gap.
    pub(super) fn add_neighbours(
        &self,
        gap_search: &GapSearch<'_>,
        ids: &[SeriesId],
        series: &mut [CellSeries],
    ) -> Result<(), QueryError> {
        let lacking_indexes =
            |lacks: &dyn Fn(&CellSeries) -> bool, series: &[CellSeries]| -> Vec<usize> {
                (0..series.len()).filter(|index| lacks(&series[*index])).collect()
            };
        let lacking = lacking_indexes(&|series| gap_search.lacks_reading_before(series), series);
        let found =
            self.cells_beside(gap_search, gap_search.before, Side::Before, ids, &lacking)?;
        for (index, cells) in lacking.into_iter().zip(found) {
            let series = &mut series[index];
            series.cells.splice(..0, cells.last().copied());
            if !series.counted.is_empty() {
                series.counted.splice(..0, cells.last().copied());
            }
        }
        let lacking = lacking_indexes(&|series| gap_search.ends_in_gap(series, self.now), series);
        let found = self.cells_beside(gap_search, gap_search.after, Side::After, ids, &lacking)?;
        for (index, cells) in lacking.into_iter().zip(found) {
            let series = &mut series[index];
            series.cells.extend(cells.first());
            if !series.counted.is_empty() {
                series.counted.extend(cells.first());
            }
        }
        Ok(())
    }

    /// Returns the cells of the slot next to an edge for some of the series.
    fn cells_beside(
        &self,
        gap_search: &GapSearch<'_>,
        (granularity, edge): (GranularityIndex, UnixMillis),
        side: Side,
        ids: &[SeriesId],
        indexes: &[usize],
    ) -> Result<Vec<Vec<TimedCell>>, QueryError> {
        if indexes.is_empty() {
            return Ok(Vec::new());
        }
        let ids: Vec<_> = indexes.iter().map(|index| ids[*index]).collect();
        self.bounds.count_cells(ids.len())?;
        let (store, budget, coverage) =
            (self.store, self.bounds.limits.budget, &gap_search.coverage);
        let search = NeighbourSearch { store, budget, coverage, granularity, edge, side };
        let cells_of = |slot: Option<Slot>| {
            let (mut slots, mut cells) = (Vec::from_iter(slot), Vec::new());
            append_cells(&mut slots, Kind::Counter, &mut cells);
            cells
        };
        Ok(search.nearest_slots(&ids)?.into_iter().map(cells_of).collect())
    }
}
