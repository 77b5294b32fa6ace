//! From a selector to what is to be read for it: which series, at which granularities, of which time.
//!
//! The granularity is chosen by `policy/query_plan.rs`; where it is dropped already, the next
//! coarser one goes on, and a warning says so. Must never know: how cells are read.

use std::rc::Rc;

use super::{Selectors, neighbours::Around};
use crate::{
    model::{GranularityIndex, Kind, SeriesId, SeriesInfo, UnixMillis},
    policy::{
        coverage::{Coverage, Segment},
        query_plan::{self, Detail, Windows},
    },
    query::{
        SeriesMatcher,
        budget::remembered::Matched,
        cells::coverage::coverage,
        promql::value::{
            error::PromqlError,
            labels::Labels,
            range_vector::{CellMatrix, CellSeries},
        },
        series::selection::select_again,
        series::selector::CHUNK,
    },
    store::Columns,
};

/// A series that a selector matches.
pub(super) struct Selected {
    pub(super) id: SeriesId,
    /// In the order of labels of all that match.
    pub(super) place: u32,
    info: SeriesInfo,
    ended_at: i64,
}

impl From<Selected> for CellSeries {
    /// Without any cell yet.
    fn from(selected: Selected) -> Self {
        Self {
            labels: Labels::of_key(selected.info.key),
            drop_metric: false,
            kind: selected.info.kind,
            ended_at: selected.ended_at,
            cells: Vec::new(),
        }
    }
}

/// What is to be read for a selector, and from where.
pub(super) struct Plan<'a> {
    pub(super) key: ReadKey,
    pub(super) columns: Columns,
    pub(super) found: Vec<Selected>,
    pub(super) segments: Vec<Segment>,
    /// See [`CellMatrix::widths`].
    pub(super) widths: Vec<(i64, i64)>,
    /// See [`CellMatrix::finest_ms`].
    pub(super) finest_ms: i64,
    /// Where neighbours of gaps are found, of windows of whole slots.
    pub(super) around: Option<Around<'a>>,
}

/// Finds the matchers of a selector.
pub(super) type Matchers<'w> = dyn Fn() -> Result<Vec<Vec<SeriesMatcher>>, PromqlError> + 'w;

/// What is asked for.
#[derive(Clone, Copy)]
pub(super) struct Wanted<'w> {
    /// Tells these matchers from others.
    pub(super) text: &'w str,
    pub(super) matchers: &'w Matchers<'w>,
    pub(super) windows: &'w Windows,
    pub(super) needed: Needed,
    pub(super) columns: Columns,
}

/// A selector's cells, or how to read them.
pub(super) enum Planned<'a> {
    Read(Rc<CellMatrix>),
    ToRead(Box<Plan<'a>>),
}

/// What tells what was read for one selector from that of another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ReadKey {
    selector: String,
    width_ms: i64,
    from: i64,
    to: i64,
    single: bool,
    pub(super) needed: Needed,
}

/// What was read for a selector, and which columns of it.
#[derive(Debug, Clone)]
pub(super) struct Read {
    pub(super) key: ReadKey,
    pub(super) columns: Columns,
    pub(super) cells: Rc<CellMatrix>,
}

/// Which cells are needed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Needed {
    /// All within the windows.
    All,
    /// Of each series at least the newest up to the only time; older ones only where there is none
    /// lately.
    Newest,
}

impl<'a> Selectors<'a> {
    /// What is to be read for a selector.
    pub(super) fn plan(&self, wanted: &Wanted<'_>) -> Result<Planned<'a>, PromqlError> {
        let Wanted { text, matchers, windows, needed, columns } = *wanted;
        let coverage = coverage(self.store, &windows.span(), self.now);
        let granularities = coverage.granularities();
        let granularity = query_plan::granularity_for_windows(&coverage, windows, self.now);
        let mut span = windows.span();
        let width_ms = granularities[granularity].width_ms;
        if windows.range_ms > 0 {
            // The reading before a window says what time the window's first increase covers.
            span.start = span.start.minus(width_ms);
        }
        let mut segments = coverage.segments(granularity, span.clone());
        if windows.count < 2 {
            segments = coverage.with_fine_end(segments);
        }
        let width = |segment: &Segment| granularities[segment.granularity].width_ms;
        let cuts_slots = segments.iter().any(|segment| !windows.have_edges_on(width(segment)));
        // Of cut cells the first and the last value are known.
        let columns =
            if windows.range_ms > 0 && cuts_slots { columns.and(Columns::ENDS) } else { columns };
        let key = ReadKey {
            selector: text.to_owned(),
            width_ms,
            from: span.start.0,
            to: span.end.0,
            single: windows.count < 2,
            needed: if windows.count < 2 { needed } else { Needed::All },
        };
        let before = self.read.borrow().iter().find(|own| own.key == key).cloned();
        let columns = match before {
            Some(own) if own.columns.and(columns) == own.columns => {
                return Ok(Planned::Read(own.cells));
            }
            // Another function will want yet others.
            Some(_) => Columns::ALL,
            None => columns,
        };
        let found = self.select(text, matchers, span.start)?;
        let counters = found.iter().any(|selected| selected.info.kind == Kind::Counter);
        if windows.detail == Detail::Values && counters && granularity > GranularityIndex::FINEST {
            let each = Windows { detail: Detail::Samples, ..*windows };
            return self.plan(&Wanted { windows: &each, columns, ..*wanted });
        }
        self.bounds.check_points(found.len(), windows.count)?;
        self.warn_of_coarse(&coverage, granularity, &segments);
        let finest_ms = granularities[GranularityIndex::FINEST].width_ms;
        let is_of_whole_slots = windows.range_ms > 0 && !cuts_slots;
        let widths = segments.iter().map(|own| (own.range.start.0, width(own))).collect();
        let around =
            is_of_whole_slots.then(|| Around::new(coverage, windows, &segments, finest_ms));
        let around = around.flatten();
        Ok(Planned::ToRead(Box::new(Plan {
            key,
            columns,
            found,
            segments,
            widths,
            finest_ms,
            around,
        })))
    }

    /// The series that match a selector and have samples at or after a time.
    fn select(
        &self,
        text: &str,
        matchers: &Matchers<'_>,
        from: UnixMillis,
    ) -> Result<Vec<Selected>, PromqlError> {
        let limits = self.bounds.limits;
        let Matched { ids, places } = select_again(self.store, text, matchers, limits)?;
        let mut found = Vec::new();
        for (ids, places) in ids.chunks(CHUNK).zip(places.chunks(CHUNK)) {
            self.bounds.check_time()?;
            let last = self.store.last_samples(ids);
            let before = found.len();
            let dictionary = self.store.dictionary();
            found.extend(ids.iter().zip(places).zip(last).filter_map(|((id, place), last)| {
                let last = last.filter(|last| last.at >= from)?;
                let ended_at = last.ended_at.map_or(i64::MAX, |ended| ended.0);
                let info = dictionary.info(*id)?;
                Some(Selected { id: *id, place: *place, info, ended_at })
            }));
            drop(dictionary);
            let labels = found[before..].iter().map(|own| Labels::bytes_of_key(&own.info.key));
            limits.take(size_of_val(&found[before..]) + labels.sum::<usize>())?;
        }
        Ok(found)
    }

    fn warn_of_coarse(
        &self,
        coverage: &Coverage<'_>,
        asked: GranularityIndex,
        segments: &[Segment],
    ) {
        let granularities = coverage.granularities();
        let is_other = |own: &&Segment| {
            own.granularity > asked || !coverage.is_whole(own.granularity, &own.range)
        };
        let coarse = segments.iter().rfind(is_other);
        if let Some(Segment { granularity: shown, range, .. }) = coarse {
            self.notes.warn(|| {
                let (wanted, end) = (&granularities[asked], range.end);
                let why = if coverage.keeps(asked, range.start) {
                    coverage.why_not(asked, range)
                } else {
                    format!("{} is kept for {} only", wanted.name, wanted.retention)
                };
                format!("values before {end} come from {} slots: {why}", granularities[*shown].name)
            });
        }
    }
}
