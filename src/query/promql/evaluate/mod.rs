//! From a checked request to an answer: the times, the evaluation, and what becomes of its value.
//!
//! Must never know: HTTP, how cells are read, what functions and operators compute.

mod call;
pub(crate) mod expression;
mod step_invariant;

use promql_parser::parser::Expr;

use crate::{
    model::UnixMillis,
    policy::query_plan::Detail,
    query::promql::{
        Labels, MatrixSeries, PromqlAnswer, PromqlError, PromqlLimits, PromqlRequest, PromqlValue,
        VectorSample,
        parse::{literals::shown, positions::Positions},
        value::{
            series::{Series, Value, is_present, without_names},
            steps::Grid,
        },
    },
    store::Store,
};
use expression::{Evaluator, is_matrix};

/// Times further from 1970 than this are refused, so that calculations cannot overflow.
const TIME_MAX_MS: i64 = 1_000_000_000_000_000;

/// Evaluates an expression at the request's times.
pub(crate) fn answer(
    store: &Store,
    expression: &Expr,
    request: &PromqlRequest,
    limits: &PromqlLimits<'_>,
    now: UnixMillis,
) -> Result<PromqlAnswer, PromqlError> {
    let grid = grid(request, limits)?;
    let positions = Positions::of(expression, &request.query);
    let evaluator = Evaluator::new(store, request, limits, grid, positions, now);
    let value = if request.step_ms > 0 {
        range_answer(&evaluator, expression, &grid)?
    } else if is_matrix(expression) {
        PromqlValue::Matrix(readings(&evaluator, expression, &grid)?)
    } else {
        instant_answer(evaluator.value(expression, &grid)?, grid.start)?
    };
    let notes = evaluator.notes.into_inner();
    Ok(PromqlAnswer { value, warnings: notes.warnings, infos: notes.infos })
}

/// The evaluation times.
fn grid(request: &PromqlRequest, limits: &PromqlLimits<'_>) -> Result<Grid, PromqlError> {
    let (start, end, step) = (request.start.0, request.end.0, request.step_ms);
    let bad = |problem: &str| Err(PromqlError::BadData(problem.to_owned()));
    if start.abs() > TIME_MAX_MS || end.abs() > TIME_MAX_MS {
        return bad("times must lie within 30,000 years of 1970");
    }
    if step == 0 {
        return Ok(Grid::instant(start));
    }
    if step < 0 {
        return bad(
            "zero or negative query resolution step widths are not accepted. Try a positive integer",
        );
    }
    if end < start {
        return bad("end timestamp must not be before start time");
    }
    let count = ((end - start) / step + 1) as usize;
    if count > limits.steps_max {
        return Err(PromqlError::BadData(format!(
            "exceeded maximum resolution of {} points per timeseries. Try decreasing the query \
             resolution (?step=XX)",
            limits.steps_max
        )));
    }
    Ok(Grid { start, step, count })
}

fn range_answer(
    evaluator: &Evaluator<'_>,
    expression: &Expr,
    grid: &Grid,
) -> Result<PromqlValue, PromqlError> {
    let not_of = |kind: &str| {
        PromqlError::BadData(format!(
            "invalid expression type \"{kind}\" for range query, must be Scalar or instant Vector"
        ))
    };
    if is_matrix(expression) {
        return Err(not_of("range vector"));
    }
    let series = match evaluator.value(expression, grid)? {
        Value::Text(_) => return Err(not_of("string")),
        Value::Scalar(values) => {
            vec![Series { labels: Labels::default(), drop_metric: false, values }]
        }
        Value::Vector(series) => without_names(series)?,
    };
    let points = |series: Series| MatrixSeries {
        labels: series.labels,
        points: grid.times().zip(series.values).filter(|point| is_present(point.1)).collect(),
    };
    let mut all: Vec<_> = series.into_iter().filter(Series::has_values).map(points).collect();
    all.sort_by(|one, next| one.labels.cmp(&next.labels));
    Ok(PromqlValue::Matrix(all))
}

fn instant_answer(value: Value, at: i64) -> Result<PromqlValue, PromqlError> {
    Ok(match value {
        Value::Text(text) => PromqlValue::String(at, shown(&text)),
        Value::Scalar(values) => {
            PromqlValue::Scalar(at, values.first().copied().unwrap_or(f64::NAN))
        }
        Value::Vector(series) => {
            let samples = without_names(series)?.into_iter().filter(Series::has_values);
            let sample = |series: Series| VectorSample {
                labels: series.labels,
                at,
                value: series.values[0],
            };
            PromqlValue::Vector(samples.map(sample).collect())
        }
    })
}

/// What an instant query for a range vector shows: the readings that are kept.
fn readings(
    evaluator: &Evaluator<'_>,
    expression: &Expr,
    grid: &Grid,
) -> Result<Vec<MatrixSeries>, PromqlError> {
    let matrix = evaluator.matrix(expression, grid, Detail::Samples)?;
    let to = matrix.end_at(grid.start);
    let from = to - matrix.range_ms;
    let mut out = Vec::new();
    for series in &matrix.loaded.series {
        evaluator.check_time()?;
        evaluator.limits.take(series.cells.len() * 2 * size_of::<(i64, f64)>())?;
        let mut points = Vec::new();
        for cell in &series.cells {
            if cell.n > 1 {
                points.push((cell.first_at, cell.first));
            }
            points.push((cell.last_at, cell.last));
        }
        points.retain(|(at, _)| *at > from && *at <= to);
        if !points.is_empty() {
            let labels = &series.labels;
            let labels = if series.drop_metric { labels.without_metric() } else { labels.clone() };
            out.push(MatrixSeries { labels, points });
        }
    }
    out.sort_by(|one, next| one.labels.cmp(&next.labels));
    Ok(out)
}
