//! The limits of the answer to an expression.
//!
//! Must never know: HTTP, settings, how an expression is evaluated.

use crate::query::{Budget, QueryError};

/// The limits of the answer to an expression: a PromQL query or a target of Graphite.
#[derive(Clone, Copy)]
pub struct ExpressionLimits<'a> {
    /// Maximum number of series that a selector may match, unless an aggregation reads them in
    /// chunks, and maximum number of series of the result of such an aggregation.
    pub series_max: usize,
    /// Maximum number of points (steps times series) of the answer and of every intermediate value
    /// that is held, and of cells that are held.
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

impl ExpressionLimits<'_> {
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
