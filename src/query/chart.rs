//! Charts: one point for each slot of a range, of series or of several merged into one.

use std::ops::Range;

use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use crate::{
    model::{Cell, SeriesId, SeriesInfo, UnixMillis},
    policy::coverage::Coverage,
    query::{
        Budget, Display, Merge, QueryError, QueryLimits, Rank, Resolution, Selector, SeriesEntry,
        cells::axis::{Axis, AxisRequest},
        cells::coverage::coverage,
        cells::reader::CellReader,
        cells::spacing::Readings,
        series::grouping::{Group, Ranking, check_lines, group},
        series::selector::{check_count, series_max},
        series::suggestion,
        zone_name,
    },
    store::Store,
};

/// What is asked.
#[derive(Debug, Clone, PartialEq)]
pub struct ChartRequest {
    /// Which series.
    pub selector: Selector,
    /// Other metrics whose series with the same tags are shown as well.
    pub others: Vec<String>,
    /// How wide the slots are.
    pub resolution: Resolution,
    /// From when to when, end exclusive; widened to whole slots.
    pub range: Range<UnixMillis>,
    /// Which numbers are shown; one by kind when there is none.
    pub displays: Vec<Display>,
    /// Where days begin; UTC when `None`.
    pub time_zone: Option<TimeZone>,
    /// Slots, at most, when the resolution is left to the daemon.
    pub points: Option<usize>,
    /// What is merged.
    pub merge: Merge,
    /// Which lines are shown; all when `None`.
    pub rank: Option<Rank>,
}

impl ChartRequest {
    /// Each series by itself, with the number that its kind suggests, in UTC.
    pub fn new(selector: Selector, resolution: Resolution, range: Range<UnixMillis>) -> Self {
        Self {
            selector,
            others: Vec::new(),
            resolution,
            range,
            displays: Vec::new(),
            time_zone: None,
            points: None,
            merge: Merge::Nothing,
            rank: None,
        }
    }

    /// The series of all metrics, in order; together no more than may match.
    fn select(
        &self,
        store: &Store,
        budget: &Budget,
        limits: &QueryLimits,
        merges: bool,
    ) -> Result<Vec<(SeriesId, SeriesInfo)>, QueryError> {
        let mut found = self.selector.select_within(store, budget, limits, merges)?;
        for metric in &self.others {
            let other = Selector { metric: Some(metric.clone()), ..self.selector.clone() };
            found.extend(other.select_within(store, budget, limits, merges)?);
            found.sort_by(|a, b| a.1.key.cmp(&b.1.key));
            found.dedup_by_key(|(id, _)| *id);
            check_count(found.len(), series_max(limits, merges))?;
        }
        Ok(found)
    }
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChartAnswer {
    /// Granularity of the points, or unit of the calendar.
    pub resolution: String,
    /// Where days begin, when it was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
    /// Start of the first slot, Unix milliseconds.
    pub start: i64,
    /// End of the last slot, Unix milliseconds.
    pub end: i64,
    /// Start of the first slot that is not over yet: its numbers will change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incomplete_from: Option<i64>,
    /// The series in order of metric and tags, or best first.
    pub series: Vec<ChartSeries>,
    /// What a reader should know, such as that a part comes from a coarser granularity.
    pub notes: Vec<String>,
}

/// One series of a chart, or one number of it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChartSeries {
    /// Which series; of merged ones what they have in common.
    #[serde(flatten)]
    pub series: SeriesEntry,
    /// How many series are merged, when any are.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merged: Option<usize>,
    /// Which number of each slot is shown.
    pub display: String,
    /// Slot start in Unix milliseconds and number; `None` where the slot is empty.
    pub points: Vec<Point>,
}

type Point = (i64, Option<f64>);

/// Slots that are shown between checks of the budget.
const SLOTS_AT_A_TIME: usize = 4096;

/// Answers a chart request.
///
/// # Errors
/// When the resolution is not known, the answer too large, the budget used up, or the store cannot
/// be read.
pub fn chart(
    store: &Store,
    budget: &Budget,
    request: &ChartRequest,
    limits: &QueryLimits,
    now: UnixMillis,
) -> Result<ChartAnswer, QueryError> {
    let merges = request.merge != Merge::Nothing || request.rank.is_some();
    let found = request.select(store, budget, limits, merges)?;
    let groups = group(&found, &request.merge, budget)?;
    let lines = request.rank.map_or(groups.len(), |rank| rank.count.min(groups.len()));
    check_lines(lines, limits)?;
    let coverage = coverage(store, &request.range, now);
    let ids = found.iter().map(|(id, _)| *id);
    let readings = Readings::of((store, budget), &coverage, ids, &request.range);
    let asked = AxisRequest {
        resolution: &request.resolution,
        range: &request.range,
        zone: request.time_zone.as_ref(),
        points: request.points,
        series: found.len(),
        lines: lines * request.displays.len().max(1),
        readings: Some(&readings),
    };
    let mut axis = Axis::plan(&coverage, &asked, limits)?;
    if found.is_empty() {
        axis.notes.extend(suggestion::note(store, &request.selector));
    }
    if groups.iter().any(|group| !group.is_one_kind) {
        axis.notes.push("series of several kinds are merged: name more tags".to_owned());
    }
    Ok(ChartAnswer {
        resolution: std::mem::take(&mut axis.resolution),
        time_zone: request.time_zone.as_ref().map(zone_name),
        start: axis.start_or(request.range.start),
        end: axis.end_or(request.range.end),
        incomplete_from: axis.incomplete_from(now),
        series: Shown { store, budget, coverage: &coverage, axis: &axis, request, now }
            .lines(groups)?,
        notes: axis.notes,
    })
}

/// Which lines of a chart are shown, and from what they are made.
struct Shown<'a> {
    store: &'a Store,
    budget: &'a Budget,
    coverage: &'a Coverage<'a>,
    axis: &'a Axis,
    request: &'a ChartRequest,
    now: UnixMillis,
}

impl Shown<'_> {
    /// The lines that are shown, in their order.
    fn lines(&self, groups: Vec<Group>) -> Result<Vec<ChartSeries>, QueryError> {
        let (axis, request) = (self.axis, self.request);
        self.take(&groups)?;
        let mut ranking = request.rank.map(Ranking::new);
        let mut shown = Vec::new();
        let mut cells = vec![Cell::EMPTY; axis.len()];
        let members = groups.iter().flat_map(|group| &group.members).copied().collect();
        let reader = CellReader::new(self.store, self.budget, axis, members);
        let mut reader = reader.spreading(self.coverage);
        for group in groups {
            cells.fill(Cell::EMPTY);
            for _ in &group.members {
                reader.merge_next(&mut cells)?;
            }
            let kind = group.entry.kind;
            let own = Display::of_kind(kind);
            let mut displays: Vec<_> =
                request.displays.iter().map(|display| display.for_kind(kind)).collect();
            if displays.is_empty() {
                displays.push(own);
            }
            match (&mut ranking, request.rank) {
                (Some(ranking), Some(rank)) => {
                    let by = rank.by.map_or(displays[0], |by| by.for_kind(kind));
                    let closed = self.closed();
                    let width = closed.iter().map(|(_, width)| width).sum();
                    // A line that has nothing yet but the slot under way goes by that.
                    let closed = by.of_cell(&over_range(&cells[..closed.len()]), width);
                    let number = closed.or_else(|| by.of_cell(&over_range(&cells), width));
                    ranking.push(number, self.group_lines(&cells, &group, &displays)?);
                }
                _ => shown.extend(self.group_lines(&cells, &group, &displays)?),
            }
        }
        shown.extend(ranking.into_iter().flat_map(Ranking::finish).flatten());
        Ok(shown)
    }

    /// Takes the memory of all lines that are held at a time, and of the cells of one.
    fn take(&self, groups: &[Group]) -> Result<(), QueryError> {
        let held = self.request.rank.map_or(usize::MAX, Ranking::<Vec<ChartSeries>>::held_max);
        let entries = groups.iter().take(held).map(|group| group.entry.bytes());
        let lines = entries.len().saturating_mul(self.request.displays.len().max(1));
        let points = lines.saturating_mul(self.axis.len()).saturating_mul(size_of::<Point>());
        let entries = entries.sum::<usize>() * self.request.displays.len().max(1);
        self.budget.take(self.axis.len() * size_of::<Cell>())?;
        Ok(self.budget.take(points.saturating_add(entries))?)
    }

    /// The slots that are over, which decide an order; all when none is.
    fn closed(&self) -> &[(i64, i64)] {
        let slots = self.axis.slots();
        let open = self.axis.incomplete_from(self.now);
        let closed = slots.partition_point(|(start, _)| open.is_none_or(|open| *start < open));
        if closed == 0 { slots } else { &slots[..closed] }
    }

    fn group_lines(
        &self,
        cells: &[Cell],
        group: &Group,
        displays: &[Display],
    ) -> Result<Vec<ChartSeries>, QueryError> {
        let mut lines = Vec::with_capacity(displays.len());
        for display in displays {
            let mut points = Vec::with_capacity(cells.len());
            let chunks = self.axis.slots().chunks(SLOTS_AT_A_TIME);
            for (slots, cells) in chunks.zip(cells.chunks(SLOTS_AT_A_TIME)) {
                self.budget.check()?;
                let pairs = slots.iter().zip(cells);
                points.extend(
                    pairs.map(|(slot, cell)| {
                        (slot.0, group.number(*display, cell, *slot, self.now))
                    }),
                );
            }
            lines.push(ChartSeries {
                series: group.entry.clone(),
                merged: group.merged.then_some(group.members.len()),
                display: display.name().to_owned(),
                points,
            });
        }
        Ok(lines)
    }
}

/// All slots as one cell; the number of a slot stands for its time.
fn over_range(cells: &[Cell]) -> Cell {
    let mut all = Cell::EMPTY;
    for (index, cell) in (0..).zip(cells) {
        all.merge(&Cell { first_at: index, last_at: index, ..*cell });
    }
    all
}
