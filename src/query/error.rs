//! The reasons why a query has no answer.
//!
//! Must never know: HTTP.

use crate::store::StoreError;

/// The reason why a query must end.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OverBudget {
    /// The query's time is over.
    #[error("the query timed out")]
    Time,
    /// The client has disconnected.
    #[error("nobody waits for the answer")]
    Abandoned,
    /// The running queries use all of the shared memory.
    #[error("running queries use all memory for queries")]
    Memory,
}

/// The reason why a query has no answer, with the status that Prometheus' API returns for it.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    /// The request or the expression is invalid; Prometheus: 400 `bad_data`.
    #[error("{0}")]
    Invalid(String),
    /// The values do not allow an evaluation; Prometheus: 422 `execution`.
    #[error("{0}")]
    Execution(String),
    /// A limit is exceeded; the text names it and the remedy. Prometheus: 422 `execution`.
    #[error("{0}")]
    TooMuch(String),
    /// Running queries use the memory that this query needs; Prometheus: 503 `unavailable`.
    #[error("{0}")]
    Busy(String),
    /// The query exceeded its time limit; Prometheus: 503 `timeout`.
    #[error("{0}")]
    Timeout(String),
    /// The store cannot be read; Prometheus: 500 `internal`.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl QueryError {
    /// Returns true when running the query again may succeed; see [`StoreError::is_transient`].
    pub fn is_transient(&self) -> bool {
        matches!(self, Self::Store(cause) if cause.is_transient())
    }
}

impl From<OverBudget> for QueryError {
    fn from(cause: OverBudget) -> Self {
        match cause {
            OverBudget::Memory => Self::Busy(format!(
                "{cause} (limits.query_memory_max): ask for less, or try again later"
            )),
            OverBudget::Time => Self::Timeout(format!(
                "{cause}: ask for a shorter range, a coarser resolution or fewer series, or raise \
                 limits.query_timeout"
            )),
            OverBudget::Abandoned => Self::Timeout(cause.to_string()),
        }
    }
}
