//! What is asked of PromQL, and the bounds of one answer.
//!
//! Must never know: HTTP, how anything is computed.

use crate::{
    model::UnixMillis,
    query::{Budget, promql::value::error::PromqlError},
};

/// What is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PromqlRequest {
    /// The expression.
    pub query: String,
    /// The first, or of an instant query the only, evaluation time.
    pub start: UnixMillis,
    /// The last evaluation time, inclusive.
    pub end: UnixMillis,
    /// Between evaluation times, in milliseconds; 0 for an instant query at `start`.
    pub step_ms: i64,
    /// How old a sample may be that still counts as the value of a series, in milliseconds.
    pub lookback_ms: i64,
    /// Whether metric names that no longer fit are dropped at the end only, not where they stop
    /// fitting.
    pub delayed_name_removal: bool,
}

/// Bounds of one answer.
#[derive(Clone, Copy)]
pub struct PromqlLimits<'a> {
    /// Series that a selector may match, at most.
    pub series_max: usize,
    /// Steps times series of the answer and of every value on the way to it, and cells loaded, at
    /// most.
    pub points_max: usize,
    /// Evaluation times of a range query, at most.
    pub steps_max: usize,
    /// Bytes of the expression, at most.
    pub query_bytes_max: usize,
    /// Bytes that a compiled pattern may take, at most.
    pub regex_bytes_max: usize,
    /// Turns, memory and time.
    pub budget: &'a Budget,
}

impl PromqlLimits<'_> {
    /// Takes memory until the query ends.
    ///
    /// # Errors
    /// When there is not so much left.
    pub fn take(&self, bytes: usize) -> Result<(), PromqlError> {
        self.budget.take(bytes).map_err(|cause| {
            PromqlError::Busy(format!(
                "{cause}: try again, ask for a shorter range, a larger step or fewer series, or \
                 raise limits.query_memory_max"
            ))
        })
    }
}
