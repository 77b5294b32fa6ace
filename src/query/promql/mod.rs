//! PromQL over cells: a checked request, and an answer of plain values.
//!
//! Must never know: HTTP. An expression is parsed within limits (`syntax`) and evaluated at all its
//! times at once, series by series (`evaluate`), over cells that are read once (`selectors`). The
//! input of an aggregation is evaluated in chunks of series, so its memory is that of its result.
//!
//! # Samples
//!
//! A cell of one or two samples contains these samples, with their exact times and values. A cell
//! of more samples contains the first and the last sample, and the sum, min and max of all samples.
//!
//! - A selector returns the newest known sample at or before the evaluation time, unless that
//!   sample is older than the lookback. Between the first and the last sample of a merged cell, a
//!   series exists, however wide the slot is.
//! - A window `(t - r, t]` whose edges are slot borders contains the cells whose last sample is in
//!   the window, so that adjacent windows count every sample once. An edge within a slot cuts the
//!   cell, whose samples are then assumed to be equally spaced.
//! - A stale marker ends a series after its latest sample; markers before newer samples are not
//!   stored.
//!
//! # Counters, deltas and gauges
//!
//! The kind of a series decides, not the function:
//!
//! - For counters, `rate` and `increase` over whole slots add up the increases that were stored at
//!   ingest. They are exact across resets and not extrapolated; one sample in the window is enough
//!   when there is an earlier sample. Windows that cut slots follow Prometheus' rule, including
//!   extrapolation. `irate` uses the last cell, or the last two samples when the window cuts slots.
//! - For deltas (events counted by the sender), the values are the increases.
//! - For gauges, and in subqueries, `rate`, `increase` and `delta` calculate as in Prometheus,
//!   including extrapolation.
//!
//! # Functions that need every sample
//!
//! `quantile_over_time` (except for 0 and 1), `mad_over_time`, and of gauges `changes` and `resets`
//! need every sample, as do `sum_over_time`, `avg_over_time` and `stddev_over_time` of a counter,
//! whose cells contain increases. These functions are exact when cells have one or two samples or
//! one value, or when a counter's rates determine the result. Otherwise they fail with an error
//! that names an alternative and the settings that keep samples. `stddev_over_time` of gauges
//! follows from the second moments of cells. `idelta` and smoothing use the known samples; `deriv`
//! and `predict_linear` use all samples, as if the samples between the first and the last of a cell
//! were evenly spaced. `forecast` and `forecast_until` need the means of at least 60 time steps.
//!
//! # Granularity
//!
//! `policy::query_plan` chooses a granularity for each selector. An instant query uses the finest
//! granularity that retains its whole window, and finer granularities for the slot in which the
//! window ends. A range query uses the coarsest granularity that answers as well as finer
//! granularities: either all borders of the windows are borders of its slots, or a window is at
//! least 60 times as long as a slot. Functions that need every sample use the finest granularity;
//! for functions that need many readings, only the second rule applies, and for forecasts in
//! instant queries too. A sample exactly on a
//! border counts in the window that begins there, not in the window that ends there. Where a
//! granularity has expired, the next coarser granularity is used and a warning reports it; a rate
//! over less than a slot is the rate of the slot.
//!
//! # Differences from Prometheus
//!
//! Metric names are dropped at the end of an evaluation, as with Prometheus' delayed name removal:
//! `sum by (__name__)` of a rate keeps series apart. Without delayed name removal, which only
//! tests turn off, each operation drops names that do not apply to its result.
//!
//! # Native histograms
//!
//! A series has a number or a histogram at each time, in columns of their own, so that numbers cost
//! what they cost without histograms. Where slots have one or two histograms, functions follow
//! Prometheus; merged slots have the first and the last histogram, and the increase or the sum.

mod aggregation;
mod binary;
mod context;
mod evaluate;
mod functions;
mod instant;
mod parse;
mod request;
mod rules;
mod selectors;
mod settings;
mod syntax;
mod value;

pub use evaluate::aggregate_of_question;
pub use instant::{evaluate_at, evaluate_vector};
pub use parse::{check_promql, format_promql, key_selector, promql_tree};
pub use request::PromqlRequest;
pub use rules::{
    check_rule_promql, durations_of_plain_promql, labels_always_differ, measured_promql,
};
use selectors::sizes::ChunkSizes;
pub use selectors::{compiled::series_matchers, shards::cells_of_question};
pub use settings::{PromqlSettings, STEPS_MAX};
pub use value::answer::{MatrixSeries, Points, PromqlAnswer, PromqlValue, VectorSample};

use crate::{
    model::UnixMillis,
    query::{ExpressionLimits, QueryError},
    store::Store,
};

/// Answers a query.
///
/// # Errors
/// See [`QueryError`].
pub fn promql(
    store: &Store,
    request: &PromqlRequest,
    limits: &ExpressionLimits<'_>,
    now: UnixMillis,
) -> Result<PromqlAnswer, QueryError> {
    let parsed = parse::parse_cached(&request.query, limits)?;
    evaluate::answer(store, &parsed, request, limits, (now, ChunkSizes::DEFAULT))
}

/// Returns a quantile of a classic histogram, as `histogram_quantile` does. Each bucket is an upper
/// bound and a cumulative count; bounds ascend and the last is infinite. Returns NaN without
/// observations.
pub fn quantile_of_buckets(quantile: f64, buckets: &[(f64, f64)]) -> f64 {
    functions::quantile_of_buckets(quantile, buckets)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::Budget;

    /// Limits similar to a daemon's, without a time limit.
    pub(super) const LIMITS: ExpressionLimits<'static> = ExpressionLimits {
        series_max: 1000,
        points_max: 10_000_000,
        steps_max: 11_000,
        query_bytes_max: 65_536,
        regex_bytes_max: 1 << 20,
        budget: &Budget::UNLIMITED,
    };
}
