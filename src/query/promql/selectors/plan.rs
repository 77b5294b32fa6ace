//! The plan for reading a selector: series, granularities and times.
//!
//! `policy/query_plan.rs` chooses the granularity. Where this granularity has already expired, the
//! next coarser granularity is used, and a warning reports it. Must never know: how cells are read.

use std::rc::Rc;

use super::{
    Selectors,
    neighbours::GapSearch,
    request::{NeededCells, ReadRequest},
    selected::PlannedSeries,
    sizes::cells_per_series,
};
use crate::query::QueryError;
use crate::{
    model::{GranularityIndex, UnixMillis},
    policy::{
        coverage::{Coverage, Interval},
        query_plan::{self, Detail, Windows},
    },
    query::{
        cells::coverage::coverage,
        promql::value::range_vector::{CellMatrix, CellSeries},
    },
    store::Columns,
};

/// The ranges to read for a selector.
pub(super) struct ReadPlan<'a> {
    pub(super) key: ReadKey,
    pub(super) columns: Columns,
    /// Series without samples at or after this time are not read.
    pub(super) since: UnixMillis,
    /// The maximum number of cells of a series.
    pub(super) cells_max: usize,
    pub(super) intervals: Vec<Interval>,
    /// The slot widths; see [`CellMatrix::widths`].
    pub(super) widths: Vec<(i64, i64)>,
    /// The finest slot width; see [`CellMatrix::finest_ms`].
    pub(super) finest_ms: i64,
    /// The search for readings beyond gaps, for windows of whole slots.
    pub(super) gap_search: Option<GapSearch<'a>>,
}

impl ReadPlan<'_> {
    /// Returns a matrix of series of the plan.
    pub(super) fn matrix(&self, series: Vec<CellSeries>) -> CellMatrix {
        CellMatrix { series, widths: self.widths.clone(), finest_ms: self.finest_ms }
    }
}

/// The cells of a selector, or the plan for reading them.
pub(super) enum PlannedRead<'a> {
    Read(Rc<CellMatrix>),
    ToRead(Box<ReadPlan<'a>>, PlannedSeries),
}

/// The key of cells that were read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ReadKey {
    selector: String,
    width_ms: i64,
    from: i64,
    to: i64,
    single: bool,
    pub(super) needed: NeededCells,
}

/// Cells that were read, with their columns.
#[derive(Debug, Clone)]
pub(super) struct CachedCells {
    pub(super) key: ReadKey,
    pub(super) columns: Columns,
    pub(super) cells: Rc<CellMatrix>,
}

impl<'a> Selectors<'a> {
    /// Plans the reading of a selector.
    pub(super) fn plan(&self, request: &ReadRequest<'_>) -> Result<PlannedRead<'a>, QueryError> {
        let ReadRequest { text, windows, needed, columns, .. } = *request;
        // Only rules of retention depend on the series.
        let matching = self.store.has_classes().then(|| self.matching(request)).transpose()?;
        let ids = matching.as_ref().map_or(&[][..], |matching| &matching.ids);
        let coverage = coverage(self.store, ids, &windows.span(), self.now);
        let granularities = coverage.granularities();
        let granularity = query_plan::granularity_for_windows(&coverage, windows, self.now);
        let mut span = windows.span();
        let width_ms = granularities[granularity].width_ms;
        if windows.range_ms > 0 {
            // The reading before a window determines the time that the window's first increase
            // covers.
            span.start = span.start.minus(width_ms);
        }
        let mut intervals = coverage.intervals(granularity, span.clone());
        if windows.count < 2 {
            intervals = coverage.with_fine_end(intervals);
        }
        let width = |interval: &Interval| granularities[interval.granularity].width_ms;
        let cuts_slots = intervals.iter().any(|interval| !windows.have_edges_on(width(interval)));
        // Cut cells require their first and last value.
        let columns =
            if windows.range_ms > 0 && cuts_slots { columns.and(Columns::ENDS) } else { columns };
        let key = ReadKey {
            selector: text.to_owned(),
            width_ms,
            from: span.start.0,
            to: span.end.0,
            single: windows.count < 2,
            needed: if windows.count < 2 { needed } else { NeededCells::All },
        };
        let before = self.read.borrow().iter().find(|read| read.key == key).cloned();
        let columns = match before {
            Some(read) if read.columns.and(columns) == read.columns => {
                return Ok(PlannedRead::Read(read.cells));
            }
            // A third function is likely to need further columns.
            Some(_) => columns.and(Columns::VALUES),
            None => columns,
        };
        let matching = matching.map_or_else(|| self.matching(request), Ok)?;
        let cells_max = cells_per_series(&intervals, granularities);
        let series = self.planned_series(request, matching, span.start, cells_max)?;
        if windows.detail == Detail::Values
            && granularity > GranularityIndex::FINEST
            && self.has_counters(&series, span.start)?
        {
            let sample_windows = Windows { detail: Detail::Samples, ..*windows };
            return self.plan(&ReadRequest { windows: &sample_windows, columns, ..*request });
        }
        self.warn_of_coarse_slots(&coverage, granularity, &intervals);
        let finest_ms = granularities[GranularityIndex::FINEST].width_ms;
        let is_of_whole_slots = windows.range_ms > 0 && !cuts_slots;
        let widths =
            intervals.iter().map(|interval| (interval.range.start.0, width(interval))).collect();
        let gap_search =
            is_of_whole_slots.then(|| GapSearch::new(coverage, windows, &intervals, finest_ms));
        let gap_search = gap_search.flatten();
        let plan = ReadPlan {
            key,
            columns,
            since: span.start,
            cells_max,
            intervals,
            widths,
            finest_ms,
            gap_search,
        };
        Ok(PlannedRead::ToRead(Box::new(plan), series))
    }

    fn warn_of_coarse_slots(
        &self,
        coverage: &Coverage<'_>,
        requested: GranularityIndex,
        intervals: &[Interval],
    ) {
        let granularities = coverage.granularities();
        let is_coarse_or_incomplete = |interval: &&Interval| {
            interval.granularity > requested
                || !coverage.is_whole(interval.granularity, &interval.range)
        };
        let coarse = intervals.iter().rfind(is_coarse_or_incomplete);
        if let Some(Interval { granularity: shown, range, .. }) = coarse {
            self.notes.warn(|| {
                let (wanted, end) = (&granularities[requested], range.end);
                let why = if coverage.keeps(requested, range.start) {
                    coverage.why_not(requested, range)
                } else {
                    format!("{} is kept for {} only", wanted.name, wanted.retention())
                };
                format!("values before {end} come from {} slots: {why}", granularities[*shown].name)
            });
        }
    }
}
