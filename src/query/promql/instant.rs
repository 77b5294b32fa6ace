//! The value of an expression at one time, for roles without HTTP.
//!
//! Must never know: HTTP, how an expression is evaluated.

use super::settings::PromqlSettings;
use crate::{
    model::{Moment, UnixMillis},
    query::{
        Budget, Labels, PromqlAnswer, PromqlRequest, PromqlValue, QueryError, VectorSample, promql,
        run_with_retries,
    },
    store::Store,
};

/// Evaluates an expression at one time. Waits for a turn; dropping the budget releases turn and
/// memory.
///
/// # Errors
/// See [`QueryError`].
pub fn evaluate_at(
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
        delayed_name_removal: true,
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
    let answer = evaluate_at(store, budget, settings, expression, at, now);
    match answer.map_err(|cause| cause.to_string())?.value {
        PromqlValue::Vector(samples) if samples.iter().any(|sample| sample.histogram.is_some()) => {
            Err("the expression results in native histograms, which rules cannot record or \
                 compare: use histogram_quantile, histogram_fraction or histogram_count"
                .to_owned())
        }
        PromqlValue::Vector(samples) => Ok(samples),
        PromqlValue::Scalar(at, value) => {
            Ok(vec![VectorSample { labels: Labels::default(), at, value, histogram: None }])
        }
        PromqlValue::String(..) | PromqlValue::Matrix(_) => {
            Err("the expression is neither an instant vector nor a scalar".to_owned())
        }
    }
}
