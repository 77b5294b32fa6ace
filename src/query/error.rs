//! The reasons why a query has no answer.
//!
//! Must never know: HTTP.

use crate::{query::budget::OverBudget, store::StoreError};

/// Why there is no answer.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    /// The request cannot be answered as it is.
    #[error("{0}")]
    Invalid(String),
    /// The answer would be larger than allowed.
    #[error("{0}")]
    TooMuch(String),
    /// The queries under way hold what it needs.
    #[error("{0}")]
    Busy(String),
    /// It took too long.
    #[error("{0}")]
    Timeout(String),
    /// The store cannot be read.
    #[error(transparent)]
    Store(#[from] StoreError),
}

impl QueryError {
    /// See [`StoreError::is_settled`].
    pub fn is_settled(&self) -> bool {
        matches!(self, Self::Store(cause) if cause.is_settled())
    }
}

impl From<OverBudget> for QueryError {
    fn from(cause: OverBudget) -> Self {
        match cause {
            OverBudget::Memory => {
                Self::Busy(format!("{cause} (limits.query_memory_max): ask for less, or later"))
            }
            OverBudget::Time => Self::Timeout(format!(
                "{cause}: ask for a shorter range, a coarser resolution or fewer series, or raise \
                 limits.query_timeout"
            )),
            OverBudget::Abandoned => Self::Timeout(cause.to_string()),
        }
    }
}
