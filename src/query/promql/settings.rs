//! The settings of PromQL queries, and the limits of one query.
//!
//! Must never know: HTTP, how an expression is evaluated.

use std::time::Duration;

use crate::query::{Budget, ExpressionLimits};

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
    /// Maximum number of series that a selector or the result of an aggregation may hold.
    pub series_max: usize,
    /// Maximum number of points of an answer and of values that are held.
    pub points_max: usize,
    /// Maximum memory of the cells and values of all running queries, in bytes.
    pub memory_max: usize,
}

impl PromqlSettings {
    /// Returns the limits of a query with a budget.
    pub fn limits<'a>(&self, budget: &'a Budget) -> ExpressionLimits<'a> {
        ExpressionLimits {
            series_max: self.series_max,
            points_max: self.points_max,
            steps_max: STEPS_MAX,
            query_bytes_max: QUERY_BYTES_MAX,
            regex_bytes_max: REGEX_BYTES_MAX,
            budget,
        }
    }
}
