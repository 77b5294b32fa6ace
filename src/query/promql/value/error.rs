//! Why PromQL does not answer.
//!
//! Must never know: HTTP status codes.

use crate::{query::QueryError, store::StoreError};

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum PromqlError {
    /// The expression cannot be parsed or has wrong types; Prometheus: 400 `bad_data`.
    #[error("{0}")]
    BadData(String),
    /// The values do not allow it; Prometheus: 422 `execution`.
    #[error("{0}")]
    Execution(String),
    /// A limit is passed; the text names it and the remedy. Prometheus: 422 `execution`.
    #[error("{0}")]
    TooMuch(String),
    /// All queries together need more memory than they may; Prometheus: 503 `unavailable`.
    #[error("{0}")]
    Busy(String),
    /// It took too long; Prometheus: 503 `timeout`.
    #[error("{0}")]
    Timeout(String),
    /// The store cannot be read; Prometheus: 500 `internal`.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl PromqlError {
    /// See [`StoreError::is_settled`].
    pub fn is_settled(&self) -> bool {
        matches!(self, Self::Store(cause) if cause.is_settled())
    }
}

impl From<QueryError> for PromqlError {
    fn from(cause: QueryError) -> Self {
        match cause {
            QueryError::Invalid(text) => Self::Execution(text),
            QueryError::TooMuch(text) => Self::TooMuch(text),
            QueryError::Busy(text) => Self::Busy(text),
            QueryError::Timeout(text) => Self::Timeout(text),
            QueryError::Store(cause) => Self::Store(cause),
        }
    }
}
