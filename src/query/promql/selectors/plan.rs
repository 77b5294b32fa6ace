//! The plan for reading a selector: series, granularities and times.
//!
//! `policy/query_plan.rs` chooses the granularity. Where this granularity has already expired, the
//! next coarser granularity is used, and a warning reports it. Must never know: how cells are read.

use std::rc::Rc;

use super::{Selectors, neighbours::GapSearch};
use crate::query::{Labels, QueryError};
use crate::{
    model::{GranularityIndex, Kind, SeriesId, SeriesInfo, UnixMillis},
    policy::{
        coverage::{Coverage, Interval},
        query_plan::{self, Detail, Windows},
    },
    query::{
        SeriesMatcher,
        budget::cache::MatchingSeries,
        cells::coverage::coverage,
        promql::value::range_vector::{CellMatrix, CellSeries},
        series::matched::select_cached,
        series::selector::CHUNK,
    },
    store::Columns,
};

/// A series that a selector matches.
pub(super) struct SelectedSeries {
    pub(super) id: SeriesId,
    /// The position in label order among all matching series.
    pub(super) position: u32,
    info: SeriesInfo,
    /// True when the series is or was a counter.
    is_counter: bool,
    ended_at: i64,
}

impl From<SelectedSeries> for CellSeries {
    /// Creates a series without cells.
    fn from(selected: SelectedSeries) -> Self {
        Self {
            labels: Labels::of_key(selected.info.key),
            drop_metric: false,
            kind: selected.info.kind,
            ended_at: selected.ended_at,
            cells: Vec::new(),
            counted: Vec::new(),
        }
    }
}

/// The ranges to read for a selector.
pub(super) struct ReadPlan<'a> {
    pub(super) key: ReadKey,
    pub(super) columns: Columns,
    pub(super) found: Vec<SelectedSeries>,
    pub(super) intervals: Vec<Interval>,
    /// The slot widths; see [`CellMatrix::widths`].
    pub(super) widths: Vec<(i64, i64)>,
    /// The finest slot width; see [`CellMatrix::finest_ms`].
    pub(super) finest_ms: i64,
    /// The search for readings beyond gaps, for windows of whole slots.
    pub(super) gap_search: Option<GapSearch<'a>>,
}

/// A function that returns the matchers of a selector.
pub(super) type Matchers<'w> = dyn Fn() -> Result<Vec<Vec<SeriesMatcher>>, QueryError> + 'w;

/// A request for the cells of a selector.
#[derive(Clone, Copy)]
pub(super) struct ReadRequest<'w> {
    /// The text that identifies the matchers.
    pub(super) text: &'w str,
    pub(super) matchers: &'w Matchers<'w>,
    pub(super) windows: &'w Windows,
    pub(super) needed: NeededCells,
    pub(super) columns: Columns,
}

/// The cells of a selector, or the plan for reading them.
pub(super) enum PlannedRead<'a> {
    Read(Rc<CellMatrix>),
    ToRead(Box<ReadPlan<'a>>),
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

/// The cells that are needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NeededCells {
    /// All cells within the windows.
    All,
    /// The newest cell of each series up to the only time, possibly with older cells.
    Newest,
}

impl<'a> Selectors<'a> {
    /// Plans the reading of a selector.
    pub(super) fn plan(&self, request: &ReadRequest<'_>) -> Result<PlannedRead<'a>, QueryError> {
        let ReadRequest { text, matchers, windows, needed, columns } = *request;
        let coverage = self.coverage(text, matchers, windows)?;
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
        let found = self.select(text, matchers, span.start)?;
        let counters = found.iter().any(|selected| selected.is_counter);
        if windows.detail == Detail::Values && counters && granularity > GranularityIndex::FINEST {
            let sample_windows = Windows { detail: Detail::Samples, ..*windows };
            return self.plan(&ReadRequest { windows: &sample_windows, columns, ..*request });
        }
        self.bounds.check_points(found.len(), windows.count)?;
        self.warn_of_coarse_slots(&coverage, granularity, &intervals);
        let finest_ms = granularities[GranularityIndex::FINEST].width_ms;
        let is_of_whole_slots = windows.range_ms > 0 && !cuts_slots;
        let widths =
            intervals.iter().map(|interval| (interval.range.start.0, width(interval))).collect();
        let gap_search =
            is_of_whole_slots.then(|| GapSearch::new(coverage, windows, &intervals, finest_ms));
        let gap_search = gap_search.flatten();
        Ok(PlannedRead::ToRead(Box::new(ReadPlan {
            key,
            columns,
            found,
            intervals,
            widths,
            finest_ms,
            gap_search,
        })))
    }

    /// Returns the coverage of the series that match a selector.
    fn coverage(
        &self,
        text: &str,
        matchers: &Matchers<'_>,
        windows: &Windows,
    ) -> Result<Coverage<'a>, QueryError> {
        if !self.store.has_classes() {
            return Ok(coverage(self.store, &[], &windows.span(), self.now));
        }
        let limits = self.bounds.limits;
        let MatchingSeries { ids, .. } = select_cached(self.store, text, matchers, limits)?;
        Ok(coverage(self.store, &ids, &windows.span(), self.now))
    }

    /// Returns the series that match a selector and have samples at or after a time.
    fn select(
        &self,
        text: &str,
        matchers: &Matchers<'_>,
        from: UnixMillis,
    ) -> Result<Vec<SelectedSeries>, QueryError> {
        let limits = self.bounds.limits;
        let MatchingSeries { ids, positions } = select_cached(self.store, text, matchers, limits)?;
        let mut found = Vec::new();
        for (ids, positions) in ids.chunks(CHUNK).zip(positions.chunks(CHUNK)) {
            self.bounds.check_time()?;
            let last = self.store.last_samples(ids);
            let before = found.len();
            let dictionary = self.store.dictionary();
            found.extend(ids.iter().zip(positions).zip(last).filter_map(
                |((id, position), last)| {
                    let last = last.filter(|last| last.at >= from)?;
                    let ended_at = last.ended_at.map_or(i64::MAX, |ended| ended.0);
                    let info = dictionary.info(*id)?;
                    let is_counter = |id: &SeriesId| dictionary.kind(*id) == Some(Kind::Counter);
                    let is_counter = is_counter(id) || dictionary.parts(*id).iter().any(is_counter);
                    Some(SelectedSeries {
                        id: *id,
                        position: *position,
                        info,
                        is_counter,
                        ended_at,
                    })
                },
            ));
            drop(dictionary);
            let labels =
                found[before..].iter().map(|selected| Labels::bytes_of_key(&selected.info.key));
            limits.reserve(size_of_val(&found[before..]) + labels.sum::<usize>())?;
        }
        Ok(found)
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
