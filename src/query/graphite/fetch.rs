//! Lines of stored series: the granularity, the number of each slot, and even steps.
//!
//! Must never know: targets, functions.

use std::{collections::BTreeMap, ops::Range};

use super::{
    aggregation::{Aggregation, NULL},
    line::{Line, cut_name},
    paths::FoundSeries,
};
use crate::{
    model::{
        Cell, GranularityIndex, Kind, SeriesId, SeriesInfo, Span, UnixMillis,
        graphite::GraphiteName,
    },
    policy::coverage::Coverage,
    query::{
        ExpressionLimits, QueryError, QueryLimits, Resolution,
        cells::axis::{Axis, AxisRequest},
        cells::coverage::coverage,
        cells::reader::CellReader,
    },
    store::Store,
};

/// The maximum number of points of a line when the request sets none, as in Prometheus.
pub(super) const POINTS_MAX: usize = 11_000;

/// The memory of a slot: its times, its index and its cell.
pub(super) const SLOT_BYTES: usize =
    size_of::<(i64, i64)>() + size_of::<usize>() + size_of::<Cell>();

/// A function that adds the cells of the series with an index.
type ReadCells<'r> = dyn FnMut(usize, &mut [Cell]) -> Result<(), QueryError> + 'r;

/// A request for the lines of series.
pub(super) struct FetchRequest<'a> {
    pub(super) store: &'a Store,
    pub(super) limits: &'a ExpressionLimits<'a>,
    pub(super) now: UnixMillis,
    /// The time range, from after its start to its end.
    pub(super) range: Range<UnixMillis>,
    /// The maximum number of points of a line.
    pub(super) points: usize,
    /// The aggregation of each slot; `None` lets the kind of the series decide.
    pub(super) aggregation: Option<Aggregation>,
    /// The pattern that the series match.
    pub(super) origin: &'a str,
}

impl FetchRequest<'_> {
    /// Reads the lines of series.
    pub(super) fn lines(&self, found: Vec<FoundSeries>) -> Result<Vec<Line>, QueryError> {
        if found.is_empty() || self.range.start >= self.range.end {
            return Ok(Vec::new());
        }
        let ids: Vec<_> = found.iter().map(|series| series.id).collect();
        let axis = self.axis_of(&ids, found.len(), None)?;
        let mut reader = CellReader::new(self.store, self.limits.budget, &axis, ids);
        let found = found.into_iter().map(|series| (series.info, series.name)).collect();
        self.lines_on(&axis, found, &mut |_, cells| reader.merge_next(cells))
    }

    /// Plans the slots of series; `series` is their number in all shards. Without a width, slots are
    /// as fine as the number of points allows.
    pub(super) fn axis_of(
        &self,
        ids: &[SeriesId],
        series: usize,
        width_ms: Option<i64>,
    ) -> Result<Axis, QueryError> {
        let limits = QueryLimits::new(self.limits.series_max, self.limits.points_max);
        let range = self.range.start..self.range.end.plus(1);
        let coverage = coverage(self.store, ids, &range, self.now);
        let reserved = self.limits.budget.reserved();
        self.limits.reserve(self.slots_max(&coverage, series).saturating_mul(SLOT_BYTES))?;
        let axis = self.axis(&coverage, &range, &limits, (series, width_ms))?;
        self.limits.budget.shrink_to(reserved);
        Ok(axis)
    }

    /// Returns the lines of series; `read` adds the cells of the series with an index.
    pub(super) fn lines_on(
        &self,
        axis: &Axis,
        found: Vec<(SeriesInfo, GraphiteName)>,
        read: &mut ReadCells<'_>,
    ) -> Result<Vec<Line>, QueryError> {
        let end = self.range.end.plus(1);
        let Some(step) = axis.slots().iter().map(|(_, width)| *width).max() else {
            return Ok(Vec::new());
        };
        // As in Graphite, the range begins after `from` and ends with `until`.
        let starts = axis.slots().iter().map(|(start, _)| *start);
        let early = starts.clone().take_while(|start| *start <= self.range.start.0).count();
        let skipped = early.min(axis.len() - 1);
        let first = axis.slots()[skipped].0;
        let positions: Vec<_> =
            starts.skip(skipped).map(|start| ((start - first) / step) as usize).collect();
        let count = ((axis.end_or(end) - first) / step) as usize;
        self.reserve(axis, count, found.len())?;
        let mut cells = vec![Cell::EMPTY; axis.len()];
        let mut lines = Vec::with_capacity(found.len());
        for (index, (info, name)) in found.into_iter().enumerate() {
            cells.fill(Cell::EMPTY);
            read(index, &mut cells)?;
            let kind = info.kind;
            let mut values = vec![NULL; count];
            for (cell, position) in cells.iter().skip(skipped).zip(&positions) {
                if let Some(value) = values.get_mut(*position) {
                    *value = number(cell, kind, self.aggregation);
                }
            }
            let line = self.line((&info, &name), (first, step), values);
            // The memory of the numbers is reserved above.
            self.limits.reserve(line.bytes() - size_of_val(&line.values[..]))?;
            lines.push(line);
        }
        Ok(lines)
    }

    /// Returns the maximum number of slots of an axis.
    fn slots_max(&self, coverage: &Coverage<'_>, series: usize) -> usize {
        let finest = coverage.granularities()[GranularityIndex::FINEST].width_ms.max(1);
        let length = self.range.end.0.saturating_sub(self.range.start.0).max(0) / finest + 2;
        self.points.min(self.limits.points_max / series.max(1)).min(length as usize)
    }

    /// Reserves the memory of the slots and of the numbers of all lines before they are read.
    fn reserve(&self, axis: &Axis, count: usize, series: usize) -> Result<(), QueryError> {
        let points_max = self.limits.points_max;
        let points = count.saturating_mul(series);
        if points > points_max {
            return Err(QueryError::TooMuch(format!(
                "{series} series of {count} points exceed the limit of {points_max}: ask for a \
                 shorter range or window, fewer points or fewer series, or raise \
                 limits.query_points_max"
            )));
        }
        let slots = axis.len().saturating_mul(SLOT_BYTES);
        self.limits.reserve(slots.saturating_add(points.saturating_mul(size_of::<f64>())))
    }

    fn line(
        &self,
        (info, graphite_name): (&SeriesInfo, &GraphiteName),
        (first, step): (i64, i64),
        values: Vec<f64>,
    ) -> Line {
        let tags = info.key.tags().map(|(name, value)| (name.to_owned(), value.to_owned()));
        let mut tags: BTreeMap<_, _> = tags.collect();
        let metric = if graphite_name.is_plain() { &graphite_name.path } else { info.key.metric() };
        tags.insert("name".to_owned(), metric.to_owned());
        let by_kind = match info.kind.of_counts() {
            Kind::Gauge => Aggregation::Average,
            Kind::Counter => Aggregation::Last,
            Kind::Delta | Kind::Histogram | Kind::GaugeHistogram | Kind::DeltaHistogram => {
                Aggregation::Sum
            }
        };
        Line {
            name: cut_name(graphite_name.to_string()),
            origin: cut_name(self.origin.to_owned()),
            tags,
            start: first.div_euclid(1000),
            step: (step / 1000).max(1),
            values,
            consolidation: self.aggregation.unwrap_or(by_kind),
        }
    }

    /// Chooses slots of one width. When a part of the range has coarser slots only, all slots are
    /// that wide.
    fn axis(
        &self,
        coverage: &Coverage<'_>,
        range: &Range<UnixMillis>,
        limits: &QueryLimits,
        (series, width_ms): (usize, Option<i64>),
    ) -> Result<Axis, QueryError> {
        let plan = |resolution: &Resolution| {
            let request = AxisRequest {
                resolution,
                range,
                zone: None,
                points: Some(self.points),
                series,
                lines: series,
                readings: None,
            };
            Axis::plan(coverage, &request, limits)
        };
        let named = |width: i64| Resolution::Named(Span::Fixed(width).to_string());
        if let Some(width) = width_ms {
            return plan(&named(width));
        }
        let axis = plan(&Resolution::Auto)?;
        let widths = || axis.slots().iter().map(|(_, width)| *width);
        let (Some(narrowest), Some(widest)) = (widths().min(), widths().max()) else {
            return Ok(axis);
        };
        // Points are whole seconds apart.
        let widest = widest.max(1000);
        if narrowest == widest {
            return Ok(axis);
        }
        plan(&named(widest))
    }
}

/// Returns the number of a cell: the mean of levels, the last reading of a counter, the sum of
/// events, unless the request selects an aggregation.
fn number(cell: &Cell, kind: Kind, aggregation: Option<Aggregation>) -> f64 {
    if cell.is_empty() {
        return NULL;
    }
    // Other numbers of a counter's cell are increases and rates, not readings.
    match (kind.of_counts(), aggregation) {
        (Kind::Counter, Some(Aggregation::First)) => cell.first,
        (Kind::Counter, _) | (_, Some(Aggregation::Last)) => cell.last,
        (_, Some(Aggregation::First)) => cell.first,
        (_, Some(Aggregation::Min)) => cell.min,
        (_, Some(Aggregation::Max)) => cell.max,
        (_, Some(Aggregation::Sum)) | (Kind::Delta, None) => cell.sum,
        (_, Some(Aggregation::Count)) => f64::from(cell.n),
        _ => cell.mean().unwrap_or(NULL),
    }
}
