//! Evaluation of a request: the times, the value of the expression, and the answer.
//!
//! Must never know: HTTP, how cells are read, what functions and operators compute.

mod call;
mod chunks;
mod expression;
mod range_vector;
mod shards;
mod step_invariant;
#[cfg(test)]
mod tests;

use std::cell::RefCell;

use crate::query::{ExpressionLimits, QueryError};
use crate::{
    model::UnixMillis,
    policy::query_plan::Detail,
    query::promql::{
        context::bounds::Bounds,
        request::PromqlRequest,
        selectors::{Selectors, sizes::ChunkSizes},
        syntax::ParsedQuery,
        syntax::tree::Expr,
        value::{
            annotations::{Annotations, Notes},
            answer::{MatrixSeries, Points, PromqlAnswer, PromqlValue, VectorSample},
            histograms::TimedHistogram,
            series::{Series, Value, without_names},
            steps::{QueryRange, QueryTimes, Steps},
            text::displayable,
        },
    },
    store::{Columns, Store},
};
use expression::{Evaluator, is_range_vector};
pub use shards::aggregate_of_question;

/// Maximum distance of times from 1970, so that calculations cannot overflow.
const TIME_MAX_MS: i64 = 1_000_000_000_000_000;

/// Evaluates an expression at the times of the request. The sizes of chunks do not change the
/// answer.
pub(crate) fn answer(
    store: &Store,
    parsed: &ParsedQuery,
    request: &PromqlRequest,
    limits: &ExpressionLimits<'_>,
    (now, sizes): (UnixMillis, ChunkSizes),
) -> Result<PromqlAnswer, QueryError> {
    let (expression, steps) = (&parsed.tree, steps(request, limits)?);
    let query = QueryRange {
        start: steps.start,
        end: if request.step_ms > 0 { request.end.0 } else { steps.start },
        step_ms: if steps.count < 2 { 0 } else { steps.step_ms },
        times: QueryTimes {
            step: request.step_ms as f64 / 1000.0,
            range: request.end.0.saturating_sub(request.start.0) as f64 / 1000.0,
        },
    };
    let annotations = RefCell::new(Annotations::default());
    let (bounds, notes) = (Bounds::new(limits), Notes::new(&annotations));
    let selectors = Selectors::new(store, now, request.lookback_ms, query, &bounds, notes);
    let evaluator = Evaluator {
        selectors: selectors.for_expression(expression, sizes),
        bounds: &bounds,
        notes,
        query,
        parsed,
        delayed_name_removal: request.delayed_name_removal,
    };
    let value = if request.step_ms > 0 {
        range_answer(&evaluator, expression, &steps)?
    } else if is_range_vector(expression) {
        PromqlValue::Matrix(readings(&evaluator, expression, &steps)?)
    } else {
        instant_answer(evaluator.value(expression, &steps)?, steps.start)?
    };
    drop(evaluator);
    let Annotations { warnings, infos } = annotations.into_inner();
    Ok(PromqlAnswer { value, warnings, infos })
}

/// Returns the evaluation times.
fn steps(request: &PromqlRequest, limits: &ExpressionLimits<'_>) -> Result<Steps, QueryError> {
    let (start, end, step_ms) = (request.start.0, request.end.0, request.step_ms);
    let invalid = |problem: &str| Err(QueryError::Invalid(problem.to_owned()));
    if start.abs() > TIME_MAX_MS || end.abs() > TIME_MAX_MS {
        return invalid("times must be within 30,000 years of 1970");
    }
    if step_ms == 0 {
        return Ok(Steps::instant(start));
    }
    if step_ms < 0 {
        return invalid(
            "zero or negative query resolution step widths are not accepted. Try a positive integer",
        );
    }
    if end < start {
        return invalid("end timestamp must not be before start time");
    }
    let steps = ((end - start) / step_ms) as usize;
    if steps > limits.steps_max {
        return Err(QueryError::Invalid(format!(
            "exceeded maximum resolution of {} points per timeseries. Try decreasing the query \
             resolution (?step=XX)",
            limits.steps_max
        )));
    }
    Ok(Steps { start, step_ms, count: steps + 1 })
}

fn range_answer(
    evaluator: &Evaluator<'_>,
    expression: &Expr,
    steps: &Steps,
) -> Result<PromqlValue, QueryError> {
    let wrong_kind = |kind: &str| {
        QueryError::Invalid(format!(
            "invalid expression type \"{kind}\" for range query, must be Scalar or instant Vector"
        ))
    };
    if is_range_vector(expression) {
        return Err(wrong_kind("range vector"));
    }
    let series = match evaluator.value(expression, steps)? {
        Value::Text(_) => return Err(wrong_kind("string")),
        Value::Scalar(values) => vec![Series::unlabelled(values)],
        Value::Vector(series) => without_names(series)?,
    };
    let points = |series: Series| MatrixSeries {
        labels: series.labels,
        points: Points::from_steps(steps, series.values),
        histograms: series
            .histograms
            .iter()
            .map(|(step, found)| (steps.time_at(step), found.clone()))
            .collect(),
    };
    let mut all: Vec<_> = series.into_iter().filter(Series::has_values).map(points).collect();
    all.sort_by(|left, right| left.labels.cmp(&right.labels));
    Ok(PromqlValue::Matrix(all))
}

fn instant_answer(value: Value, at: i64) -> Result<PromqlValue, QueryError> {
    Ok(match value {
        Value::Text(text) => PromqlValue::String(at, displayable(&text)),
        Value::Scalar(values) => {
            PromqlValue::Scalar(at, values.first().copied().unwrap_or(f64::NAN))
        }
        Value::Vector(series) => {
            let samples = without_names(series)?.into_iter().filter(Series::has_values);
            let sample = |series: Series| {
                let histogram = series.histograms.get(0).cloned();
                let value = if histogram.is_some() { f64::NAN } else { series.values[0] };
                VectorSample { labels: series.labels, at, value, histogram }
            };
            PromqlValue::Vector(samples.map(sample).collect())
        }
    })
}

/// Returns the answer to an instant query for a range vector: the stored readings.
fn readings(
    evaluator: &Evaluator<'_>,
    expression: &Expr,
    steps: &Steps,
) -> Result<Vec<MatrixSeries>, QueryError> {
    let windows = evaluator.range_vector(expression, steps, Detail::Samples, Columns::ENDS)?;
    let to = windows.shift.of(steps.start);
    let from = to - windows.range_ms;
    let mut out = Vec::new();
    for series in &windows.cells.series {
        evaluator.bounds.check_time()?;
        evaluator.bounds.reserve(series.cells.len() * 2 * size_of::<(i64, f64)>())?;
        let mut points = Vec::new();
        for cell in &series.cells {
            if cell.n > 1 {
                points.push((cell.first_at, cell.first));
            }
            points.push((cell.last_at, cell.last));
        }
        points.retain(|(at, _)| *at > from && *at <= to);
        let readings = series.histograms.iter().flat_map(TimedHistogram::readings);
        let readings = readings.filter(|(at, _)| *at > from && *at <= to);
        let histograms: Vec<_> = readings.map(|(at, found)| (at, found.clone())).collect();
        if !points.is_empty() || !histograms.is_empty() {
            let labels = &series.labels;
            let labels = if series.drop_metric { labels.without_metric() } else { labels.clone() };
            out.push(MatrixSeries { labels, points: Points::from_list(points), histograms });
        }
    }
    out.sort_by(|left, right| left.labels.cmp(&right.labels));
    Ok(out)
}
