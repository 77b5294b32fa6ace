//! Functions of range vectors, evaluated for each series and each of its windows.
//!
//! This file also defines which functions need more than a slot's aggregates. Must never know: the
//! store, the tree, how a function computes.

use super::{
    distributions::{self, MixedWindow, Outcome},
    forecast, over_time, rates,
    window::{RangeFunction, WindowResult},
};
use crate::query::QueryError;
use crate::{
    policy::query_plan::Detail,
    query::promql::{
        context::Context,
        value::{
            histograms::HistogramWindow,
            range_vector::{CellSeries, RangeVector},
            series::{ABSENT, Series},
            windows::{Cursor, Frame, Window},
        },
    },
    store::Columns,
};

/// Number of cells between checks of the time limit.
const CELLS_BETWEEN_CHECKS: usize = 1_000_000;

/// Returns the function with a name, if it takes a range vector.
pub(crate) fn function(name: &str) -> Option<RangeFunction> {
    over_time::function(name).or_else(|| rates::function(name)).or_else(|| forecast::function(name))
}

/// Returns the detail that a function needs. Functions of single samples read the granularity that
/// stores single samples, even when a coarser granularity would fit the windows.
pub(crate) fn needed_detail(name: &str) -> Detail {
    match name {
        "changes"
        | "double_exponential_smoothing"
        | "holt_winters"
        | "idelta"
        | "irate"
        | "mad_over_time"
        | "quantile_over_time"
        | "resets"
        | "stddev_over_time"
        | "stdvar_over_time" => Detail::Samples,
        "deriv" | "predict_linear" => Detail::Readings,
        "forecast" | "forecast_until" => Detail::Means,
        "avg_over_time" | "sum_over_time" => Detail::Values,
        _ => Detail::Aggregates,
    }
}

/// Returns the columns that a function reads from cells of gauges and deltas.
pub(crate) fn read_columns(name: &str) -> Columns {
    match name {
        "avg_over_time" | "sum_over_time" => Columns::SUM,
        "count_over_time" | "present_over_time" => Columns::NONE,
        "max_over_time" | "ts_of_max_over_time" => Columns::MAX,
        "min_over_time" | "ts_of_min_over_time" => Columns::MIN,
        "first_over_time"
        | "last_over_time"
        | "ts_of_first_over_time"
        | "ts_of_last_over_time"
        | "delta" => Columns::ENDS,
        // Deltas need the sums, gauges the readings.
        "forecast" | "forecast_until" | "increase" | "rate" => Columns::SUM.and(Columns::ENDS),
        "stddev_over_time" | "stdvar_over_time" => Columns::ALL,
        _ => Columns::VALUES,
    }
}

/// Evaluates a function. `numbers` are its further arguments at each time.
pub(crate) fn call(
    name: &str,
    function: RangeFunction,
    windows: &RangeVector,
    numbers: &[Vec<f64>],
    context: &Context<'_>,
) -> Result<Vec<Series>, QueryError> {
    let mut at_time = vec![0.0; numbers.len()];
    // In a gap without readings, the growth of a counter is known.
    let is_increase = matches!(name, "rate" | "increase");
    // These functions count the increases of counters, even in series that were once gauges.
    let counts = matches!(name, "increase" | "irate" | "rate" | "resets");
    let mut at_time_of_mixed = at_time.clone();
    let set = |at_time: &mut Vec<f64>, index: usize| {
        for (argument, all) in at_time.iter_mut().zip(numbers) {
            *argument = all[index];
        }
    };
    let of_numbers = |window: &Window<'_>, index| {
        if !is_increase && !window.has_readings() {
            return Ok(None);
        }
        set(&mut at_time, index);
        function(window, &at_time, &context.notes)
    };
    let of_mixed = |window: &MixedWindow<'_>, index| {
        set(&mut at_time_of_mixed, index);
        distributions::call((name, function), window, &at_time_of_mixed, &context.notes)
    };
    let mut series = over_windows(windows, counts, context, of_numbers, of_mixed)?;
    if is_increase {
        rates::inform_of_gauges(windows, &series, &context.notes);
    }
    if !matches!(name, "last_over_time" | "first_over_time") {
        for entry in &mut series {
            entry.drop_metric = true;
        }
    }
    Ok(series)
}

/// Calls a function for each series and each window. `counts` is true when the function counts
/// increases.
pub(crate) fn over_windows(
    windows: &RangeVector,
    counts: bool,
    context: &Context<'_>,
    mut function: impl FnMut(&Window<'_>, usize) -> WindowResult,
    mut of_mixed: impl FnMut(&MixedWindow<'_>, usize) -> Result<Outcome, QueryError>,
) -> Result<Vec<Series>, QueryError> {
    let (steps, bounds) = (context.steps, context.bounds);
    bounds.check_points(windows.cells.series.len(), steps.count)?;
    let frames = windows.frames(steps);
    let mut out = Vec::with_capacity(windows.cells.series.len());
    for series in &windows.cells.series {
        bounds.check_time()?;
        if !series.histograms.is_empty() {
            out.push(over_mixed_windows(series, &frames, counts, context, &mut of_mixed)?);
            continue;
        }
        let (cells, kind) = series.cells_for(counts);
        let mut cursor = Cursor::default();
        let mut values = Vec::with_capacity(steps.count);
        let mut cells_read = 0;
        for (index, frame) in frames.iter().enumerate() {
            let window = cursor.window(cells, kind, *frame);
            let value = function(&window, index)?;
            cells_read += window.cells().len();
            if cells_read > CELLS_BETWEEN_CHECKS {
                cells_read = 0;
                bounds.check_time()?;
            }
            values.push(value.unwrap_or(ABSENT));
        }
        let (labels, drop_metric) = (series.labels.clone(), series.drop_metric);
        out.push(Series::new(labels, drop_metric, values));
    }
    out.retain(Series::has_values);
    Ok(out)
}

/// Calls a function for each window of a series with histograms.
fn over_mixed_windows(
    series: &CellSeries,
    frames: &[Frame],
    counts: bool,
    context: &Context<'_>,
    function: &mut impl FnMut(&MixedWindow<'_>, usize) -> Result<Outcome, QueryError>,
) -> Result<Series, QueryError> {
    let (cells, kind) = series.cells_for(counts);
    let mut cursor = Cursor::default();
    let mut out =
        Series::new(series.labels.clone(), series.drop_metric, vec![ABSENT; frames.len()]);
    for (index, frame) in frames.iter().enumerate() {
        context.bounds.check_time()?;
        let histograms = HistogramWindow::new(&series.histograms, frame.from, frame.to);
        let window = MixedWindow {
            numbers: cursor.window(cells, kind, *frame),
            histograms,
            kind: histograms.kind().unwrap_or(series.histogram_kind),
            metric: series.labels.metric(),
        };
        match function(&window, index)? {
            Outcome::Nothing => {}
            Outcome::Number(value) => out.values[index] = value,
            Outcome::Histogram(histogram) => {
                context.bounds.reserve(histogram.bytes())?;
                out.histograms.set(index, histogram, frames.len());
            }
        }
    }
    Ok(out)
}
