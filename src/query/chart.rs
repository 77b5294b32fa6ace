//! Charts: one point per slot, for single series or merged series.

mod lines;
mod merging;
mod part;
mod shards;

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
        histograms::HistogramReader,
        series::grouping::{Group, check_lines, group},
        series::selector::{check_count, series_max},
        series::suggestion,
        zone_name,
    },
    store::Store,
};
use lines::Lines;
pub(crate) use merging::{common_slots, identity, join_entries};
pub(crate) use part::{GroupPart, Part, put_axis, put_group};
pub(crate) use shards::GatheredChart;
pub use shards::{ChartStep, chart_of_shards, chart_step};

/// The note of a line of series of several kinds.
const SEVERAL_KINDS: &str = "series of several kinds are merged: name more tags";

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
    /// True to spread the growth of counters over gaps.
    pub spreads: bool,
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
            spreads: true,
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
    let mut planned = PlannedChart::new((store, budget), request, limits, now)?;
    let (groups, notes) = (std::mem::take(&mut planned.groups), planned.axis.notes.clone());
    let mut lines = Lines::new(budget, request, (&planned.axis, now), groups.iter())?;
    planned.read(&groups, &mut |group, cells, histograms| lines.push(group, cells, histograms))?;
    let series = lines.finish();
    Ok(request.answer(&planned.axis, (series, notes), now))
}

impl ChartRequest {
    /// Returns the answer with its lines and notes.
    fn answer(
        &self,
        axis: &Axis,
        (series, notes): (Vec<ChartSeries>, Vec<String>),
        now: UnixMillis,
    ) -> ChartAnswer {
        ChartAnswer {
            resolution: axis.resolution.clone(),
            time_zone: self.time_zone.as_ref().map(zone_name),
            start: axis.start_or(self.range.start),
            end: axis.end_or(self.range.end),
            incomplete_from: axis.incomplete_from(now),
            series,
            notes,
        }
    }
}

/// A visitor of the cells and histograms of a line.
type VisitGroup<'v> =
    dyn FnMut(&Group, &[Cell], &[Option<Histogram>]) -> Result<(), QueryError> + 'v;

/// The groups and slots of a chart, before cells are read.
struct PlannedChart<'a> {
    store: &'a Store,
    budget: &'a Budget,
    request: &'a ChartRequest,
    coverage: Coverage<'a>,
    axis: Axis,
    groups: Vec<Group>,
    /// The number of series.
    series: usize,
}

impl<'a> PlannedChart<'a> {
    fn new(
        (store, budget): (&'a Store, &'a Budget),
        request: &'a ChartRequest,
        limits: &QueryLimits,
        now: UnixMillis,
    ) -> Result<Self, QueryError> {
        let merges = request.merge != SeriesMerge::Nothing || request.rank.is_some();
        let found = request.select(store, budget, limits, merges)?;
        let groups = group(&found, &request.merge, budget)?;
        let lines = request.rank.map_or(groups.len(), |rank| rank.count.min(groups.len()));
        check_lines(lines, limits)?;
        let ids: Vec<_> = found.iter().map(|(id, _)| *id).collect();
        let coverage = coverage(store, &ids, &request.range, now);
        let readings =
            SpacingSearch::new((store, budget), &coverage, ids.into_iter(), &request.range);
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
            axis.notes.push(SEVERAL_KINDS.to_owned());
        }
        Ok(Self { store, budget, request, coverage, axis, groups, series: found.len() })
    }

    /// Calls `visit` with the cells and the histograms of each group, in order.
    fn read(&self, groups: &[Group], visit: &mut VisitGroup<'_>) -> Result<(), QueryError> {
        let (axis, request) = (&self.axis, self.request);
        self.budget.reserve(axis.len() * size_of::<Cell>())?;
        let mut cells = vec![Cell::EMPTY; axis.len()];
        let members = groups.iter().flat_map(|group| &group.members).copied().collect();
        let mut reader = CellReader::new(self.store, self.budget, axis, members);
        if request.spreads {
            reader = reader.spreading(&self.coverage);
        }
        let source = (self.store, self.budget);
        let numbers = request.numbers();
        let mut histogram_reader = HistogramReader::for_displays(source, axis, groups, numbers)?;
        for group in groups {
            cells.fill(Cell::EMPTY);
            for _ in &group.members {
                reader.merge_next(&mut cells)?;
            }
            let histograms = match &mut histogram_reader {
                Some(reader) => &reader.read(group)?[..],
                None => &[],
            };
            visit(group, &cells, histograms)?;
        }
        Ok(())
    }
}

impl ChartRequest {
    /// Returns the numbers that are shown or ranked by.
    fn numbers(&self) -> impl Iterator<Item = Display> {
        self.displays.iter().copied().chain(self.rank.and_then(|rank| rank.by))
    }
}
