//! A PromQL request, and the limits of its answer.
//!
//! Must never know: HTTP, how values are computed.

use crate::{
    model::UnixMillis,
    query::{Budget, QueryError},
};

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

/// The limits of one answer.
#[derive(Clone, Copy)]
pub struct PromqlLimits<'a> {
    /// Maximum number of series that a selector may match.
    pub series_max: usize,
    /// Maximum number of points (steps times series) of the answer and of every intermediate value,
    /// and of cells read.
    pub points_max: usize,
    /// Maximum number of steps between the first and the last evaluation of a range query.
    pub steps_max: usize,
    /// Maximum length of an expression in bytes.
    pub query_bytes_max: usize,
    /// Maximum size of a compiled pattern in bytes.
    pub regex_bytes_max: usize,
    /// The turns, memory and time of the query.
    pub budget: &'a Budget,
}

impl PromqlLimits<'_> {
    /// Reserves memory until the query ends.
    ///
    /// # Errors
    /// When there is not enough free memory.
    pub fn reserve(&self, bytes: usize) -> Result<(), QueryError> {
        self.budget.reserve(bytes).map_err(|cause| {
            QueryError::Busy(format!(
                "{cause}: try again, ask for a shorter range, a larger step or fewer series, or \
                 raise limits.query_memory_max"
            ))
        })
    }
}
