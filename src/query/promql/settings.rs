//! PromQL with the daemon's settings: the limits of one query, and the value of an expression at
//! one time for roles without HTTP.
//!
//! Must never know: HTTP, how an expression is evaluated.

use std::time::Duration;

use crate::{
    model::{Moment, UnixMillis},
    query::{
        Budget, Labels, PromqlAnswer, PromqlLimits, PromqlRequest, PromqlValue, QueryError,
        VectorSample, promql, run_with_retries,
    },
    store::Store,
};

/// Maximum number of steps of a range query; clients of Prometheus rely on its limit.
pub const STEPS_MAX: usize = 11_000;
/// Maximum length of an expression in bytes.
const QUERY_BYTES_MAX: usize = 64 << 10;
/// Maximum size of a compiled pattern in bytes.
const REGEX_BYTES_MAX: usize = 1 << 20;

/// The settings of `PromQL` queries.
#[derive(Debug, Clone, Copy)]
pub struct PromqlSettings {
    /// Time limit of a query, including the wait for a turn.
    pub timeout: Duration,
    /// Maximum age of a sample that still counts as the value of a series.
    pub lookback: Duration,
    /// True when metric names are dropped at the end of the evaluation.
    pub delayed_name_removal: bool,
    /// Maximum number of series that a selector may match.
    pub series_max: usize,
    /// Maximum number of points of an answer and of intermediate values.
    pub points_max: usize,
    /// Maximum memory of the cells and values of all running queries, in bytes.
    pub memory_max: usize,
}

impl PromqlSettings {
    /// Returns the limits of a query with a budget.
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

/// Evaluates an expression at one time. Waits for a turn; dropping the budget releases turn and
/// memory.
///
/// # Errors
/// See [`QueryError`].
pub fn evaluate(
    store: &Store,
    budget: &Budget,
    settings: &PromqlSettings,
    expression: &str,
    at: UnixMillis,
    now: Moment,
) -> Result<PromqlAnswer, QueryError> {
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
    run_with_retries(budget, run, QueryError::is_transient)
}

/// Evaluates an expression at one time to series with one value each. A number becomes a series
/// without labels.
///
/// # Errors
/// The reason why the expression has no answer, or is neither a vector nor a number.
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
