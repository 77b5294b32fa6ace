//! PromQL as the daemon bounds it: from settings and a budget to the limits of one query, and for a
//! role without HTTP an expression's value at one time.
//!
//! Must never know: HTTP, how an expression is evaluated.

use std::time::Duration;

use crate::{
    model::{Moment, UnixMillis},
    query::{
        Budget, Labels, PromqlAnswer, PromqlError, PromqlLimits, PromqlRequest, PromqlValue,
        VectorSample, promql, run_until_settled,
    },
    store::Store,
};

/// Steps of a range query, at most (Prometheus' limit, which its clients know).
pub const STEPS_MAX: usize = 11_000;
/// Bytes of an expression.
const QUERY_BYTES_MAX: usize = 64 << 10;
/// Bytes of a compiled pattern.
const REGEX_BYTES_MAX: usize = 1 << 20;

/// Bounds of `PromQL` queries.
#[derive(Debug, Clone, Copy)]
pub struct PromqlSettings {
    /// How long a query may take, with its wait for its turn.
    pub timeout: Duration,
    /// How old a sample may be that still counts as the value of a series.
    pub lookback: Duration,
    /// Whether metric names that no longer fit are dropped at the end only.
    pub delayed_name_removal: bool,
    /// Series that a selector may match.
    pub series_max: usize,
    /// Points on the way to an answer.
    pub points_max: usize,
    /// Bytes that the cells and values of all queries under way may take.
    pub memory_max: usize,
}

impl PromqlSettings {
    /// The limits of a query with this budget.
    pub fn limits<'a>(&self, budget: &'a Budget) -> PromqlLimits<'a> {
        PromqlLimits {
            series_max: self.series_max,
            points_max: self.points_max,
            steps_max: STEPS_MAX + 1,
            query_bytes_max: QUERY_BYTES_MAX,
            regex_bytes_max: REGEX_BYTES_MAX,
            budget,
        }
    }
}

/// The value of an expression at a time. Waits for a turn; the budget's turn and memory are given back
/// when it is dropped.
///
/// # Errors
/// See [`PromqlError`].
pub fn evaluate(
    store: &Store,
    budget: &Budget,
    settings: &PromqlSettings,
    expression: &str,
    at: UnixMillis,
    now: Moment,
) -> Result<PromqlAnswer, PromqlError> {
    let request = PromqlRequest {
        query: expression.to_owned(),
        start: at,
        end: at,
        step_ms: 0,
        lookback_ms: settings.lookback.as_millis() as i64,
        delayed_name_removal: settings.delayed_name_removal,
    };
    let limits = settings.limits(budget);
    let run = || promql(store, &request, &limits, now.earliest());
    run_until_settled(budget, run, PromqlError::is_settled)
}

/// The series of an expression at a time, each with one value; a number is a series without labels.
///
/// # Errors
/// With the reason when there is no answer, or one of another kind.
pub fn evaluate_vector(
    store: &Store,
    budget: &Budget,
    settings: &PromqlSettings,
    expression: &str,
    at: UnixMillis,
    now: Moment,
) -> Result<Vec<VectorSample>, String> {
    let answer = evaluate(store, budget, settings, expression, at, now);
    match answer.map_err(|cause| cause.to_string())?.value {
        PromqlValue::Vector(samples) => Ok(samples),
        PromqlValue::Scalar(at, value) => {
            Ok(vec![VectorSample { labels: Labels::default(), at, value }])
        }
        PromqlValue::String(..) | PromqlValue::Matrix(_) => {
            Err("it is neither an instant vector nor a scalar".to_owned())
        }
    }
}
