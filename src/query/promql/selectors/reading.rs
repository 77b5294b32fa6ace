//! From a selector to the cells of its series: each document is read once.
//!
//! The granularity is chosen by `policy/query_plan.rs`; where it is dropped already, the next
//! coarser one goes on, and a warning says so. Must never know: what becomes of the cells.

use std::rc::Rc;

use promql_parser::parser::VectorSelector;

use super::Selectors;
use crate::{
    model::{GranularityIndex, GranularitySet, Kind, SeriesId, SeriesInfo, UnixMillis},
    policy::{
        coverage::{Coverage, Segment},
        query_plan::{self, Detail, Windows},
    },
    query::{
        SeriesMatcher, coverage,
        matching::select_again,
        promql::{
            parse::selector::matchers_of,
            value::{
                cells::{TimedCell, append_cells},
                error::PromqlError,
                labels::Labels,
                range_vector::{CellMatrix, CellSeries},
            },
        },
        select::CHUNK,
    },
    store::{Columns, Slot, View},
};

/// Series that are read with one view: each holds up the writer for a moment.
const SERIES_PER_VIEW: usize = 1024;
/// Series whose cells are there at a time where functions look at them once: a day of slots of five
/// minutes takes 18 KB.
const SERIES_PER_PART: usize = 8;

/// A series that a selector matches.
struct Selected {
    id: SeriesId,
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
struct Plan {
    key: ReadKey,
    columns: Columns,
    found: Vec<Selected>,
    segments: Vec<Segment>,
    /// See [`CellMatrix::widths`].
    widths: Vec<(i64, i64)>,
}

/// A selector's cells, or how to read them.
enum Planned {
    Read(Rc<CellMatrix>),
    ToRead(Plan),
}

/// What tells what was read for one selector from that of another.
#[derive(Debug, Clone, PartialEq, Eq)]
struct ReadKey {
    selector: String,
    width_ms: i64,
    from: i64,
    to: i64,
    single: bool,
    needed: Needed,
}

/// What was read for a selector, and which columns of it.
#[derive(Debug, Clone)]
pub(super) struct Read {
    key: ReadKey,
    columns: Columns,
    cells: Rc<CellMatrix>,
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

impl Selectors<'_> {
    /// The cells that a selector's windows need.
    pub(super) fn cells(
        &self,
        selector: &VectorSelector,
        windows: &Windows,
        needed: Needed,
        columns: Columns,
    ) -> Result<Rc<CellMatrix>, PromqlError> {
        let matchers = || matchers_of(selector, self.bounds.limits);
        self.cells_matching(text_of(selector), windows, needed, columns, &matchers)
    }

    /// The cells that windows need of series that match; the text tells these matchers from others.
    pub(super) fn cells_matching(
        &self,
        text: String,
        windows: &Windows,
        needed: Needed,
        columns: Columns,
        matchers: &dyn Fn() -> Result<Vec<Vec<SeriesMatcher>>, PromqlError>,
    ) -> Result<Rc<CellMatrix>, PromqlError> {
        match self.plan(text, windows, needed, columns, matchers)? {
            Planned::Read(cells) => Ok(cells),
            Planned::ToRead(plan) => self.read(plan, windows),
        }
    }

    /// Hands out the cells that a selector's windows need, those of some series at a time, in order of
    /// labels. They are let go before the next ones are read: so they are near to the core while
    /// functions look at them.
    pub(super) fn cells_in_parts(
        &self,
        selector: &VectorSelector,
        windows: &Windows,
        columns: Columns,
        visit: &mut dyn FnMut(Rc<CellMatrix>) -> Result<(), PromqlError>,
    ) -> Result<(), PromqlError> {
        let matchers = || matchers_of(selector, self.bounds.limits);
        let text = text_of(selector);
        let plan = match self.plan(text, windows, Needed::All, columns, &matchers)? {
            Planned::Read(cells) => return visit(cells),
            Planned::ToRead(plan) => plan,
        };
        // What is said of short windows is said of all series together.
        let is_short = plan.widths.iter().any(|(_, width)| *width > windows.range_ms);
        if is_short || plan.found.len() > SERIES_PER_VIEW {
            return visit(self.read(plan, windows)?);
        }
        let Plan { found, segments, widths, columns, .. } = plan;
        let ids: Vec<_> = found.iter().map(|selected| selected.id).collect();
        let view = |own: &Segment| self.store.view(own.stored, own.range.clone(), &ids);
        let views = segments.iter().map(view).collect::<Result<Vec<_>, _>>()?;
        let mut series: Vec<_> =
            found.into_iter().map(|own| (own.id, CellSeries::from(own))).collect();
        series.sort_by(|one, next| one.1.labels.cmp(&next.1.labels));
        let (mut series, mut slots) = (series.into_iter(), Vec::new());
        while !series.as_slice().is_empty() {
            let mut part = Vec::with_capacity(SERIES_PER_PART);
            for (id, mut own) in series.by_ref().take(SERIES_PER_PART) {
                for view in &views {
                    self.append(view, id, columns, &mut own, &mut slots)?;
                }
                part.push(own);
            }
            visit(Rc::new(CellMatrix { series: part, widths: widths.clone() }))?;
        }
        Ok(())
    }

    /// What is to be read for a selector.
    fn plan(
        &self,
        text: String,
        windows: &Windows,
        needed: Needed,
        columns: Columns,
        matchers: &dyn Fn() -> Result<Vec<Vec<SeriesMatcher>>, PromqlError>,
    ) -> Result<Planned, PromqlError> {
        let coverage = coverage(self.store, &windows.span(), self.now);
        let granularities = coverage.granularities();
        let granularity = query_plan::granularity_for_windows(&coverage, windows, self.now);
        let mut span = windows.span();
        let width_ms = granularities[granularity].width_ms;
        if windows.range_ms > 0 {
            // The reading before a window says what time the window's first increase covers.
            span.start = span.start.minus(width_ms);
        }
        let key = ReadKey {
            selector: text,
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
        let found = self.select(&key.selector, matchers, span.start)?;
        let counters = found.iter().any(|selected| selected.info.kind == Kind::Counter);
        if windows.detail == Detail::Values && counters && granularity > GranularityIndex::FINEST {
            let each = Windows { detail: Detail::Samples, ..*windows };
            return self.plan(key.selector, &each, needed, columns, matchers);
        }
        self.bounds.check_points(found.len(), windows.count)?;
        let mut segments = coverage.segments(granularity, span);
        if windows.count < 2 {
            segments = coverage.with_fine_end(segments);
        }
        self.warn_of_coarse(&coverage, granularity, &segments);
        let width = |segment: &Segment| granularities[segment.granularity].width_ms;
        let widths = segments.iter().map(|own| (own.range.start.0, width(own))).collect();
        Ok(Planned::ToRead(Plan { key, columns, found, segments, widths }))
    }

    /// Reads the cells of all series.
    fn read(&self, plan: Plan, windows: &Windows) -> Result<Rc<CellMatrix>, PromqlError> {
        let Plan { key, columns, found, segments, widths } = plan;
        let mut series = match key.needed {
            Needed::All => self.cells_of(found, &segments, columns)?,
            Needed::Newest => {
                let granularities = self.store.granularities();
                let newest_first = newest_first(&segments, granularities, windows.first);
                self.newest_cells_of(found, &newest_first, windows.first, columns)?
            }
        };
        series.sort_by(|one, next| one.labels.cmp(&next.labels));
        let cells = Rc::new(CellMatrix { series, widths });
        let mut read = self.read.borrow_mut();
        read.retain(|own| own.key != key);
        read.push(Read { key, columns, cells: cells.clone() });
        Ok(cells)
    }

    /// The series that match a selector and have samples at or after a time.
    fn select(
        &self,
        text: &str,
        matchers: &dyn Fn() -> Result<Vec<Vec<SeriesMatcher>>, PromqlError>,
        from: UnixMillis,
    ) -> Result<Vec<Selected>, PromqlError> {
        let limits = self.bounds.limits;
        let ids = select_again(self.store, text, matchers, limits)?;
        let mut found = Vec::new();
        for ids in ids.chunks(CHUNK) {
            self.bounds.check_time()?;
            let last = self.store.last_samples(ids);
            let before = found.len();
            let dictionary = self.store.dictionary();
            found.extend(ids.iter().zip(last).filter_map(|(id, last)| {
                let last = last.filter(|last| last.at >= from)?;
                let ended_at = last.ended_at.map_or(i64::MAX, |ended| ended.0);
                Some(Selected { id: *id, info: dictionary.info(*id)?, ended_at })
            }));
            drop(dictionary);
            let labels = found[before..].iter().map(|own| Labels::bytes_of_key(&own.info.key));
            limits.take(size_of_val(&found[before..]) + labels.sum::<usize>())?;
        }
        Ok(found)
    }

    fn cells_of(
        &self,
        found: Vec<Selected>,
        segments: &[Segment],
        columns: Columns,
    ) -> Result<Vec<CellSeries>, PromqlError> {
        read_in_parts(found, |ids, series, slots| {
            for segment in segments {
                let view = self.store.view(segment.stored, segment.range.clone(), ids)?;
                for (id, series) in ids.iter().zip(&mut *series) {
                    self.append(&view, *id, columns, series, slots)?;
                }
            }
            Ok(())
        })
    }

    /// The same, segments from the newest on only until each series has a cell up to a time.
    fn newest_cells_of(
        &self,
        found: Vec<Selected>,
        newest_first: &[Segment],
        upto: UnixMillis,
        columns: Columns,
    ) -> Result<Vec<CellSeries>, PromqlError> {
        read_in_parts(found, |ids, series, slots| {
            let mut missing: Vec<usize> = (0..ids.len()).collect();
            for segment in newest_first {
                let ids: Vec<_> = missing.iter().map(|place| ids[*place]).collect();
                let view = self.store.view(segment.stored, segment.range.clone(), &ids)?;
                for (id, place) in ids.iter().zip(&missing) {
                    let newer = std::mem::take(&mut series[*place].cells);
                    self.append(&view, *id, columns, &mut series[*place], slots)?;
                    series[*place].cells.extend(newer);
                }
                let is_older = |cell: &TimedCell| cell.first_at <= upto.0;
                missing.retain(|place| !series[*place].cells.first().is_some_and(is_older));
                if missing.is_empty() {
                    break;
                }
            }
            Ok(())
        })
    }

    /// Appends the cells of a series.
    fn append(
        &self,
        view: &View,
        id: SeriesId,
        columns: Columns,
        series: &mut CellSeries,
        slots: &mut Vec<Slot>,
    ) -> Result<(), PromqlError> {
        self.bounds.check_time()?;
        // What a counter's aggregates say depends on its rates.
        let is_plain =
            series.kind != Kind::Counter || [Columns::NONE, Columns::ENDS].contains(&columns);
        view.slots_into(id, if is_plain { columns } else { Columns::ALL }, slots)?;
        self.bounds.count_cells(slots.len())?;
        append_cells(slots, series.kind, &mut series.cells);
        Ok(())
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

/// What tells a selector from others.
fn text_of(selector: &VectorSelector) -> String {
    format!("{} {:?}", selector.name.as_deref().unwrap_or_default(), selector.matchers)
}

/// The segments from the newest on. The newest begins with the slot before that of a time: most series
/// have a sample there.
fn newest_first(
    segments: &[Segment],
    granularities: &GranularitySet,
    at: UnixMillis,
) -> Vec<Segment> {
    let mut out: Vec<_> = segments.iter().rev().cloned().collect();
    if let Some(newest) = out.first_mut() {
        let own = &granularities[newest.granularity];
        let border = own.slot_start(at).minus(own.width_ms);
        if border > newest.range.start && border < newest.range.end {
            let older = Segment { range: newest.range.start..border, ..newest.clone() };
            newest.range.start = border;
            out.insert(1, older);
        }
    }
    out
}

/// Reads the cells of some series at a time.
fn read_in_parts(
    found: Vec<Selected>,
    read: impl Fn(&[SeriesId], &mut [CellSeries], &mut Vec<Slot>) -> Result<(), PromqlError>,
) -> Result<Vec<CellSeries>, PromqlError> {
    let mut series = Vec::with_capacity(found.len());
    let mut slots = Vec::new();
    let mut found = found.into_iter();
    while !found.as_slice().is_empty() {
        let part: Vec<_> = found.by_ref().take(SERIES_PER_VIEW).collect();
        let ids: Vec<_> = part.iter().map(|selected| selected.id).collect();
        let first = series.len();
        series.extend(part.into_iter().map(CellSeries::from));
        read(&ids, &mut series[first..], &mut slots)?;
    }
    Ok(series)
}
