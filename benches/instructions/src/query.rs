//! Queries over the last part of the hour, with the limits of the daemon.

use std::time::Duration;

use granary_model::UnixMillis;
use granary_query::{ExpressionLimits, PromqlAnswer, PromqlRequest, QueryResources, promql};
use granary_store::Store;

pub(super) const MINUTE: i64 = 60_000;
/// 2026-01-05T00:00:00Z.
pub(super) const BEGIN: UnixMillis = UnixMillis(1_767_571_200_000);

/// Runs a query at the end of the hour, or over its last 45 minutes.
pub(super) fn query(
    store: &Store,
    resources: &QueryResources,
    text: &str,
    is_range: bool,
) -> PromqlAnswer {
    let limits = ExpressionLimits {
        series_max: 100_000,
        points_max: 4_000_000,
        steps_max: 11_000,
        query_bytes_max: 65_536,
        regex_bytes_max: 1 << 20,
        budget: &resources.budget(Duration::MAX),
    };
    let end = BEGIN.plus(59 * MINUTE);
    let (start, step_ms) = if is_range { (end.minus(45 * MINUTE), MINUTE) } else { (end, 0) };
    let (query, lookback_ms) = (text.to_owned(), 5 * MINUTE);
    let request =
        PromqlRequest { query, start, end, step_ms, lookback_ms, delayed_name_removal: false };
    promql(store, &request, &limits, end.plus(3 * MINUTE)).unwrap()
}
