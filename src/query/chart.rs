//! Charts: one point per slot, for single series or merged series.

use std::ops::Range;

use jiff::tz::TimeZone;
use serde::{Deserialize, Serialize};

use crate::{
    model::{Cell, Histogram, SeriesId, SeriesInfo, UnixMillis},
    policy::coverage::Coverage,
    query::{
        Budget, Display, Distribution, QueryError, QueryLimits, Rank, Resolution, Selector,
        SeriesEntry, SeriesMerge,
        cells::axis::{Axis, AxisRequest},
        cells::coverage::coverage,
        cells::reader::CellReader,
        cells::spacing::SpacingSearch,
        histograms::{HistogramReader, merge_all, percentile},
        series::grouping::{Group, Ranking, check_lines, group},
        series::selector::{check_count, series_max},
        series::suggestion,
        zone_name,
    },
    store::Store,
};

/// A request for a chart.
#[derive(Debug, Clone, PartialEq)]
pub struct ChartRequest {
    /// The series to show.
    pub selector: Selector,
    /// Other metrics whose series with the same tags are also shown.
    pub others: Vec<String>,
    /// The width of the slots.
    pub resolution: Resolution,
    /// The time range, end exclusive; it is extended to whole slots.
    pub range: Range<UnixMillis>,
    /// The numbers to show; when empty, the kind of each series decides.
    pub displays: Vec<Display>,
    /// The time zone of calendar slots; UTC when `None`.
    pub time_zone: Option<TimeZone>,
    /// Maximum number of slots with automatic resolution.
    pub points: Option<usize>,
    /// The merging of series into lines.
    pub merge: SeriesMerge,
    /// The ranking of lines; `None` shows all lines.
    pub rank: Option<Rank>,
}

impl ChartRequest {
    /// Creates a request that shows each series as a line, with the number that suits its kind, in
    /// UTC.
    pub fn new(selector: Selector, resolution: Resolution, range: Range<UnixMillis>) -> Self {
        Self {
            selector,
            others: Vec::new(),
            resolution,
            range,
            displays: Vec::new(),
            time_zone: None,
            points: None,
            merge: SeriesMerge::Nothing,
            rank: None,
        }
    }

    /// Selects the series of all metrics, in order. The limit applies to their total.
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

/// A chart.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChartAnswer {
    /// The granularity of the points, or the calendar unit.
    pub resolution: String,
    /// The time zone of the request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_zone: Option<String>,
    /// Start of the first slot, Unix milliseconds.
    pub start: i64,
    /// End of the last slot, Unix milliseconds.
    pub end: i64,
    /// Start of the first slot that has not ended; its numbers may change.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub incomplete_from: Option<i64>,
    /// The lines, in order of metric and tags; ranked lines are in order of rank.
    pub series: Vec<ChartSeries>,
    /// Remarks for the reader, for example that a part comes from a coarser granularity.
    pub notes: Vec<String>,
}

/// A line: one displayed number of a series or of merged series.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ChartSeries {
    /// The series; for merged series, the metric and tags that they share.
    #[serde(flatten)]
    pub series: SeriesEntry,
    /// The number of merged series, when series are merged.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merged: Option<usize>,
    /// The displayed number.
    pub display: String,
    /// The start of each slot in Unix milliseconds and the number; `None` for an empty slot.
    pub points: Vec<Point>,
    /// The distribution, for `display=distribution`; the points count observations.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub distribution: Option<Distribution>,
}

type Point = (i64, Option<f64>);

/// Number of slots between checks of the budget.
const SLOTS_AT_A_TIME: usize = 4096;

/// Answers a request for a chart.
///
/// # Errors
/// When the resolution is unknown, the answer is too large, the budget is used up, or the store
/// cannot be read.
pub fn chart(
    store: &Store,
    budget: &Budget,
    request: &ChartRequest,
    limits: &QueryLimits,
    now: UnixMillis,
) -> Result<ChartAnswer, QueryError> {
    let merges = request.merge != SeriesMerge::Nothing || request.rank.is_some();
    let found = request.select(store, budget, limits, merges)?;
    let groups = group(&found, &request.merge, budget)?;
    let lines = request.rank.map_or(groups.len(), |rank| rank.count.min(groups.len()));
    check_lines(lines, limits)?;
    let ids: Vec<_> = found.iter().map(|(id, _)| *id).collect();
    let coverage = coverage(store, &ids, &request.range, now);
    let readings = SpacingSearch::new((store, budget), &coverage, ids.into_iter(), &request.range);
    let axis_request = AxisRequest {
        resolution: &request.resolution,
        range: &request.range,
        zone: request.time_zone.as_ref(),
        points: request.points,
        series: found.len(),
        lines: lines * request.displays.len().max(1),
        readings: Some(&readings),
    };
    let mut axis = Axis::plan(&coverage, &axis_request, limits)?;
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
        series: LineBuilder { store, budget, coverage: &coverage, axis: &axis, request, now }
            .lines(groups)?,
        notes: axis.notes,
    })
}

/// The inputs from which the lines of a chart are built.
struct LineBuilder<'a> {
    store: &'a Store,
    budget: &'a Budget,
    coverage: &'a Coverage<'a>,
    axis: &'a Axis,
    request: &'a ChartRequest,
    now: UnixMillis,
}

impl LineBuilder<'_> {
    /// Builds the lines in their order.
    fn lines(&self, groups: Vec<Group>) -> Result<Vec<ChartSeries>, QueryError> {
        let (axis, request) = (self.axis, self.request);
        self.reserve_memory(&groups)?;
        let mut ranking = request.rank.map(Ranking::new);
        let mut lines = Vec::new();
        let mut cells = vec![Cell::EMPTY; axis.len()];
        let members = groups.iter().flat_map(|group| &group.members).copied().collect();
        let reader = CellReader::new(self.store, self.budget, axis, members);
        let mut reader = reader.spreading(self.coverage);
        let numbers = request.displays.iter().copied().chain(request.rank.and_then(|rank| rank.by));
        let source = (self.store, self.budget);
        let mut histogram_reader = HistogramReader::for_displays(source, axis, &groups, numbers)?;
        for group in groups {
            cells.fill(Cell::EMPTY);
            for _ in &group.members {
                reader.merge_next(&mut cells)?;
            }
            let histograms = match &mut histogram_reader {
                Some(reader) => &reader.read(&group)?[..],
                None => &[],
            };
            let kind = group.entry.kind;
            let mut displays: Vec<_> =
                request.displays.iter().map(|display| display.for_kind(kind)).collect();
            if displays.is_empty() {
                displays.push(Display::of_kind(kind));
            }
            match (&mut ranking, request.rank) {
                (Some(ranking), Some(rank)) => {
                    let display = rank.by.map_or(displays[0], |display| display.for_kind(kind));
                    let number = self.rank_number(display, &cells, histograms);
                    let line = self.group_lines((&cells, histograms), &group, &displays)?;
                    ranking.push(number, line);
                }
                _ => lines.extend(self.group_lines((&cells, histograms), &group, &displays)?),
            }
        }
        lines.extend(ranking.into_iter().flat_map(Ranking::finish).flatten());
        Ok(lines)
    }

    /// Returns the number by which a line is ranked: over the ended slots, or over all slots for
    /// a line without numbers in ended slots.
    fn rank_number(
        &self,
        display: Display,
        cells: &[Cell],
        histograms: &[Option<Histogram>],
    ) -> Option<f64> {
        let ended = self.ended_slots();
        let width = ended.iter().map(|(_, width)| width).sum();
        let number = |slots: usize| {
            if display.is_percentile() {
                percentile(display, merge_all(histograms.get(..slots)?).as_ref())
            } else {
                display.of_cell(&merge_slots(cells.get(..slots)?), width)
            }
        };
        number(ended.len()).or_else(|| number(cells.len()))
    }

    /// Reserves the memory of the lines that are held at a time, and of one line's cells.
    fn reserve_memory(&self, groups: &[Group]) -> Result<(), QueryError> {
        let lines_held =
            self.request.rank.map_or(usize::MAX, Ranking::<Vec<ChartSeries>>::lines_in_memory_max);
        let entries = groups.iter().take(lines_held).map(|group| group.entry.bytes());
        let lines = entries.len().saturating_mul(self.request.displays.len().max(1));
        let points = lines.saturating_mul(self.axis.len()).saturating_mul(size_of::<Point>());
        let entries = entries.sum::<usize>() * self.request.displays.len().max(1);
        self.budget.reserve(self.axis.len() * size_of::<Cell>())?;
        Ok(self.budget.reserve(points.saturating_add(entries))?)
    }

    /// Returns the slots that decide the ranking: the ended slots, or all slots when no slot has
    /// ended.
    fn ended_slots(&self) -> &[(i64, i64)] {
        let slots = self.axis.slots();
        let incomplete_from = self.axis.incomplete_from(self.now);
        let closed = slots.partition_point(|(start, _)| {
            incomplete_from.is_none_or(|incomplete_from| *start < incomplete_from)
        });
        if closed == 0 { slots } else { &slots[..closed] }
    }

    fn group_lines(
        &self,
        (cells, histograms): (&[Cell], &[Option<Histogram>]),
        group: &Group,
        displays: &[Display],
    ) -> Result<Vec<ChartSeries>, QueryError> {
        let mut lines = Vec::with_capacity(displays.len());
        for display in displays {
            let mut points = Vec::with_capacity(cells.len());
            for (index, (slot, cell)) in self.axis.slots().iter().zip(cells).enumerate() {
                if index % SLOTS_AT_A_TIME == 0 {
                    self.budget.check()?;
                }
                let number = if display.is_percentile() {
                    percentile(*display, histograms.get(index).and_then(Option::as_ref))
                } else {
                    group.number(*display, cell, *slot, self.now)
                };
                points.push((slot.0, number));
            }
            lines.push(ChartSeries {
                series: group.entry.clone(),
                merged: group.merged.then_some(group.members.len()),
                display: display.name().into_owned(),
                points,
                distribution: (*display == Display::Distribution)
                    .then(|| Distribution::new(histograms, self.budget))
                    .transpose()?,
            });
        }
        Ok(lines)
    }
}

/// Merges all slots into one cell. The index of each slot replaces its time.
fn merge_slots(cells: &[Cell]) -> Cell {
    let mut all = Cell::EMPTY;
    for (index, cell) in (0..).zip(cells) {
        all.merge(&Cell { first_at: index, last_at: index, ..*cell });
    }
    all
}
