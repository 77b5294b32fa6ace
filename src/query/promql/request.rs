//! A PromQL request.
//!
//! Must never know: HTTP, how values are computed.

use crate::model::UnixMillis;

/// A PromQL request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromqlRequest {
    /// The expression.
    pub query: String,
    /// The first evaluation time; the only evaluation time of an instant query.
    pub start: UnixMillis,
    /// The last evaluation time, inclusive.
    pub end: UnixMillis,
    /// The step between evaluation times, in milliseconds; 0 for an instant query at `start`.
    pub step_ms: i64,
    /// The lookback in milliseconds: the maximum age of a sample that still counts as the value of
    /// a series.
    pub lookback_ms: i64,
    /// True when metric names are dropped at the end of the evaluation, false when they are dropped
    /// by each operation.
    pub delayed_name_removal: bool,
}
