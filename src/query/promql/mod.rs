//! PromQL over cells: a request comes as a checked struct, an answer goes as plain values.
//!
//! Must never know: HTTP. An expression is parsed within bounds (`syntax`), evaluated for all its
//! times at once, series by series (`evaluate`), over cells that are read once (`selectors`).
//!
//! # What a sample is
//!
//! A cell of one or two samples is these samples, with their exact times and values. Of a cell of
//! more, the first and the last are known, and the sum, smallest and largest of all.
//!
//! - A selector gives the newest known sample at or before a time, not older than the lookback. In
//!   between the first and the last sample of a merged cell a series lives, however wide the slot.
//! - A window `(t - r, t]` holds the cells whose last sample lies in it. Windows side by side count
//!   every sample once. Where a window is shorter than a merged slot, the slot that it ends in
//!   answers for it.
//! - A stale marker ends a series after its latest sample; markers before newer samples are not
//!   kept.
//!
//! # Counters, deltas and gauges
//!
//! The kind of a series decides, not the function's wish:
//!
//! - Of counters, `rate` and `increase` add up the increases stored at ingest: exact over resets,
//!   never extrapolated; one sample in the window is enough when one came before it. Where a window
//!   cuts merged slots, the increases count for the time that they cover. `irate` goes by the last
//!   cell.
//! - Of deltas (events counted by the sender) the values are the increases.
//! - Of gauges, and in subqueries, `rate`, `increase` and `delta` calculate as Prometheus does,
//!   extrapolation included.
//!
//! # What merged samples do not answer
//!
//! `stddev_over_time`, `stdvar_over_time`, `quantile_over_time` but for 0 and 1, `mad_over_time`,
//! `changes` and `resets` need every sample; so do `sum_over_time` and `avg_over_time` of a counter,
//! whose cells hold increases. They are exact where cells hold one or two samples or one value, or
//! where a counter's rates tell, and an error elsewhere that says what to use instead. `idelta` and
//! smoothing go by the samples known; `deriv` and `predict_linear` by all, as if those between the
//! first and the last of a cell were evenly spaced.
//!
//! # Which granularity
//!
//! `policy::query_plan` chooses for each selector. An instant query takes the finest granularity
//! that keeps its whole window, and finer ones for the slot that the window ends in. A range query
//! takes the coarsest that answers as well as finer ones:
//! its slots' borders are the windows' borders, or a window is at least 60 times as long as a slot.
//! Functions that need every sample take the finest, those that need many readings go by the second
//! rule only.
//! On such a border a sample counts to the window that begins there, not to the one that ends
//! there. Where a granularity is dropped already, the next coarser one goes on and a warning says
//! so; a rate over less than a slot is that of the slot.
//!
//! # Beside Prometheus
//!
//! Metric names are dropped at the end of an evaluation, as with Prometheus' delayed name removal:
//! `sum by (__name__)` of a rate keeps series apart. Without `promql.delayed_name_removal` they are
//! dropped where they stop fitting. Native histograms are not stored.

mod aggregation;
mod binary;
mod context;
mod evaluate;
mod functions;
mod parsed;
mod request;
mod rules;
mod selectors;
mod settings;
mod syntax;
mod value;

pub(super) use parsed::Parsed;
pub use parsed::{check_promql, format_promql, promql_tree};
pub use request::{PromqlLimits, PromqlRequest};
pub use rules::{check_rule_promql, lengths_of_plain_promql, measured_promql};
pub use selectors::matchers::series_matchers;
pub use settings::{PromqlSettings, STEPS_MAX, evaluate, evaluate_vector};
pub use value::{
    answer::{MatrixSeries, Points, PromqlAnswer, PromqlValue, VectorSample},
    error::PromqlError,
    labels::Labels,
};

use crate::{model::UnixMillis, store::Store};

/// Answers a query.
///
/// # Errors
/// See [`PromqlError`].
pub fn promql(
    store: &Store,
    request: &PromqlRequest,
    limits: &PromqlLimits<'_>,
    now: UnixMillis,
) -> Result<PromqlAnswer, PromqlError> {
    let parsed = Parsed::remembered(&request.query, limits)?;
    evaluate::answer(store, &parsed, request, limits, now)
}

/// A quantile of a classic histogram, as `histogram_quantile` has it: of upper bounds, ascending, the
/// last infinite, and how many observations were at most that. NaN when there are none.
pub fn quantile_of_buckets(quantile: f64, buckets: &[(f64, f64)]) -> f64 {
    functions::quantile_of_buckets(quantile, buckets)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::Budget;

    /// Bounds as a daemon has them, and all the time of the world.
    pub(super) const LIMITS: PromqlLimits<'static> = PromqlLimits {
        series_max: 1000,
        points_max: 10_000_000,
        steps_max: 11_000,
        query_bytes_max: 65_536,
        regex_bytes_max: 1 << 20,
        budget: &Budget::UNLIMITED,
    };
}
