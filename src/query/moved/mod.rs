//! The series that moved: each series of a selection during a stretch of time, compared with the
//! same length of time before.
//!
//! One series is read at a time, and only the series that moved most are kept. Therefore the number
//! of series is not limited: the budget's time and memory are the only bounds. Must never know:
//! HTTP, what is drawn.

mod score;
mod shards;
#[cfg(test)]
mod tests;

use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::{
    model::{Cell, Kind, SeriesId, UnixMillis},
    policy::coverage::Coverage,
    query::{
        Budget, Display, QueryError, QueryLimits, Resolution, Selector, SeriesEntry,
        cells::axis::{Axis, AxisRequest},
        cells::coverage::coverage,
        cells::reader::CellReader,
    },
    store::Store,
};
use score::{Change, SCORE_MIN, VALUES_MIN, compare};
pub use shards::{MovedPart, moved_of_shard, moved_of_shards};

/// Default number of series in an answer.
const TOP_DEFAULT: usize = 24;
/// Maximum number of series in an answer.
const TOP_MAX: usize = 200;
/// Maximum number of slots of a series; more do not change the score.
const SLOTS_MAX: usize = 120;
/// Number of series whose newest samples are requested together.
const SERIES_AT_A_TIME: usize = 4096;

/// A request for the series that moved.
#[derive(Debug, Clone, PartialEq)]
pub struct MovedRequest {
    selector: Selector,
    stretch: Range<UnixMillis>,
    top: usize,
}

/// The series that moved most.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MovedAnswer {
    /// The width of the slots.
    pub resolution: String,
    /// Start of the time before the stretch, Unix milliseconds.
    pub before: i64,
    /// Start of the stretch, Unix milliseconds.
    pub start: i64,
    /// End of the stretch, Unix milliseconds.
    pub end: i64,
    /// Number of series with samples in these times.
    pub compared: usize,
    /// Number of series that moved.
    pub moved: usize,
    /// The series that moved most, first the clearest move.
    pub series: Vec<MovedSeries>,
    /// Remarks for the reader, for example that a part comes from a coarser granularity.
    pub notes: Vec<String>,
}

/// A series that moved.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct MovedSeries {
    /// The series.
    #[serde(flatten)]
    pub series: SeriesEntry,
    /// The compared number.
    pub display: String,
    /// The rank, in typical deviations; a series that begins or ends has the score 5.
    pub score: f64,
    /// The median before the stretch; `None` for a series that begins.
    pub median_before: Option<f64>,
    /// The mean during the stretch; `None` for a series that ends.
    pub mean_during: Option<f64>,
    /// The start of each slot in Unix milliseconds and the number; `None` for an empty slot.
    pub points: Vec<(i64, Option<f64>)>,
}

impl MovedRequest {
    /// Creates a request for the `top` series that moved during a stretch.
    ///
    /// # Errors
    /// When the number is out of range.
    pub fn new(
        selector: Selector,
        stretch: Range<UnixMillis>,
        top: Option<usize>,
    ) -> Result<Self, QueryError> {
        let top = top.unwrap_or(TOP_DEFAULT);
        if !(1..=TOP_MAX).contains(&top) {
            return Err(QueryError::Invalid(format!("top={top} must be between 1 and {TOP_MAX}")));
        }
        Ok(Self { selector, stretch, top })
    }

    fn times(&self, now: UnixMillis) -> Result<Times, QueryError> {
        let Range { start, end } = self.stretch;
        let end = end.min(now);
        if start >= end {
            return Err(QueryError::Invalid("the stretch begins in the future".to_owned()));
        }
        Ok(Times { before: start.minus(end.since(start)), start, end })
    }
}

/// Ranks the series of a selection by how much they moved.
///
/// # Errors
/// When the stretch is too short or not kept, the budget is used up, or the store cannot be read.
pub fn moved(
    store: &Store,
    budget: &Budget,
    request: &MovedRequest,
    limits: &QueryLimits,
    now: UnixMillis,
) -> Result<MovedAnswer, QueryError> {
    let times = request.times(now)?;
    let ids = active_series(store, budget, &request.selector, times.before)?;
    ranked((store, budget), (request, ids, &Resolution::Auto), times, limits, now)
}

/// The start of the time before the stretch, the start and the end of the stretch.
#[derive(Debug, Clone, Copy)]
struct Times {
    before: UnixMillis,
    start: UnixMillis,
    end: UnixMillis,
}

/// Ranks series of a selection with a resolution.
fn ranked(
    (store, budget): (&Store, &Budget),
    (request, ids, resolution): (&MovedRequest, Vec<SeriesId>, &Resolution),
    Times { before, start, end }: Times,
    limits: &QueryLimits,
    now: UnixMillis,
) -> Result<MovedAnswer, QueryError> {
    let range = before..end;
    let coverage = coverage(store, &ids, &range, now);
    let axis = plan(&coverage, (&range, resolution), limits)?;
    let mut comparison = Comparison::new(&axis, start, now)?;
    let mut ranking = Ranking { top: request.top, moved: 0, best: Vec::new() };
    let mut cells = vec![Cell::EMPTY; axis.len()];
    budget.reserve(size_of_val(cells.as_slice()) + request.top * entry_bytes(axis.len()))?;
    let mut reader = CellReader::new(store, budget, &axis, ids.clone());
    for chunk in ids.chunks(SERIES_AT_A_TIME) {
        let kinds: Vec<Option<Kind>> = {
            let dictionary = store.dictionary();
            chunk.iter().map(|id| dictionary.kind(*id)).collect()
        };
        for (id, kind) in chunk.iter().zip(kinds) {
            cells.fill(Cell::EMPTY);
            reader.merge_next(&mut cells)?;
            // A series that was deleted in the meantime has no kind.
            let Some(kind) = kind else { continue };
            let change = comparison.compare(&cells, Display::AvgPerSec.for_kind(kind));
            ranking.add(*id, change, &comparison.numbers);
        }
    }
    Ok(MovedAnswer {
        resolution: axis.resolution.clone(),
        before: axis.start_or(before),
        start: start.0,
        end: axis.end_or(end).min(end.0),
        compared: ids.len(),
        moved: ranking.moved,
        series: ranking.into_series(store, &axis),
        notes: axis.notes,
    })
}

/// Returns the approximate memory of a series in the answer in bytes.
fn entry_bytes(slots: usize) -> usize {
    const TEXT_BYTES: usize = 2048;
    TEXT_BYTES + slots * (size_of::<Option<f64>>() + size_of::<(i64, Option<f64>)>())
}

/// Returns the matching series that have samples since a time, in order of their IDs.
fn active_series(
    store: &Store,
    budget: &Budget,
    selector: &Selector,
    since: UnixMillis,
) -> Result<Vec<SeriesId>, QueryError> {
    let ids = store.dictionary().select(&selector.matchers());
    // The list of all series, and the copy of the active ones that the reader has.
    budget.reserve(3 * size_of_val(ids.as_slice()))?;
    let mut active = Vec::new();
    for chunk in ids.chunks(SERIES_AT_A_TIME) {
        budget.check()?;
        let last = store.last_samples(chunk).into_iter().zip(chunk);
        active.extend(last.filter_map(|(last, id)| (last?.at >= since).then_some(*id)));
    }
    Ok(active)
}

fn plan(
    coverage: &Coverage<'_>,
    (range, resolution): (&Range<UnixMillis>, &Resolution),
    limits: &QueryLimits,
) -> Result<Axis, QueryError> {
    let request = AxisRequest {
        resolution,
        range,
        zone: None,
        points: Some(SLOTS_MAX),
        // The limit of slots applies to one series, because one is in memory at a time.
        series: 1,
        lines: 1,
        readings: None,
    };
    Axis::plan(coverage, &request, limits)
}

/// The comparison of one series after another, with buffers for their numbers.
struct Comparison<'a> {
    /// The start and width of the slots that have ended.
    slots: &'a [(i64, i64)],
    /// Number of slots before the stretch.
    slots_before: usize,
    numbers: Vec<Option<f64>>,
    before: Vec<f64>,
    during: Vec<f64>,
}

impl<'a> Comparison<'a> {
    /// # Errors
    /// When a side has too few slots.
    fn new(axis: &'a Axis, start: UnixMillis, now: UnixMillis) -> Result<Self, QueryError> {
        let slots = axis.slots();
        let incomplete_from = axis.incomplete_from(now).unwrap_or(i64::MAX);
        let ended = slots.partition_point(|(start, _)| *start < incomplete_from);
        let slots = &slots[..ended];
        // A slot belongs to the side that contains its middle.
        let slots_before = slots.partition_point(|(at, width)| at + width / 2 < start.0);
        if slots_before.min(ended - slots_before) < VALUES_MIN {
            return Err(QueryError::Invalid(format!(
                "the stretch has {} ended slots of {}, and the same length before has {}, but each \
                 needs {VALUES_MIN}: choose a longer or a more recent stretch",
                ended - slots_before,
                axis.resolution,
                slots_before,
            )));
        }
        let (numbers, before, during) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Self { slots, slots_before, numbers, before, during })
    }

    fn compare(&mut self, cells: &[Cell], display: Display) -> Change {
        let cells = cells.iter().zip(self.slots);
        self.numbers.clear();
        self.numbers.extend(cells.map(|(cell, (_, width))| display.of_cell(cell, *width)));
        let (before, during) = self.numbers.split_at(self.slots_before);
        self.before.clear();
        self.before.extend(before.iter().flatten());
        self.during.clear();
        self.during.extend(during.iter().flatten());
        compare(&mut self.before, &mut self.during)
    }
}

/// A series of the ranking, with its numbers.
struct Ranked {
    id: SeriesId,
    change: Change,
    numbers: Box<[Option<f64>]>,
}

/// The series that moved most so far.
struct Ranking {
    top: usize,
    moved: usize,
    /// The clearest move first.
    best: Vec<Ranked>,
}

impl Ranking {
    fn add(&mut self, id: SeriesId, change: Change, numbers: &[Option<f64>]) {
        if change.score < SCORE_MIN {
            return;
        }
        self.moved += 1;
        let at = self.best.partition_point(|other| other.change.score >= change.score);
        if at < self.top {
            self.best.truncate(self.top - 1);
            self.best.insert(at, Ranked { id, change, numbers: numbers.into() });
        }
    }

    fn into_series(self, store: &Store, axis: &Axis) -> Vec<MovedSeries> {
        let dictionary = store.dictionary();
        let series = self.best.into_iter().filter_map(|Ranked { id, change, numbers }| {
            let info = dictionary.info(id)?;
            let starts = axis.slots().iter().map(|(start, _)| *start);
            Some(MovedSeries {
                series: SeriesEntry::new(&info),
                display: Display::AvgPerSec.for_kind(info.kind).name().into_owned(),
                score: change.score,
                median_before: change.before,
                mean_during: change.during,
                points: starts.zip(numbers).collect(),
            })
        });
        series.collect()
    }
}
