//! What PromQL answers, and why it does not.
//!
//! Must never know: HTTP, how anything is computed.

use super::Labels;
use crate::store::StoreError;

/// The answer of a range query is a matrix; that of an instant query is what the expression is.
#[derive(Debug, Clone, PartialEq)]
pub enum PromqlValue {
    /// Unix milliseconds and a number.
    Scalar(i64, f64),
    /// Unix milliseconds and a text.
    String(i64, String),
    /// One number a series. In order of labels unless the expression sorts.
    Vector(Vec<VectorSample>),
    /// Several numbers a series, in order of labels.
    Matrix(Vec<MatrixSeries>),
}

/// A series at one time.
#[derive(Debug, Clone, PartialEq)]
pub struct VectorSample {
    /// Which series.
    pub labels: Labels,
    /// The evaluation time, Unix milliseconds.
    pub at: i64,
    /// Its value.
    pub value: f64,
}

/// A series over time.
#[derive(Debug, Clone, PartialEq)]
pub struct MatrixSeries {
    /// Which series.
    pub labels: Labels,
    /// Unix milliseconds and value, ascending.
    pub points: Vec<(i64, f64)>,
}

/// The answer with what a reader should know of it.
#[derive(Debug, Clone, PartialEq)]
pub struct PromqlAnswer {
    /// The values.
    pub value: PromqlValue,
    /// What may be wrong with the answer, each once.
    pub warnings: Vec<String>,
    /// What may be wrong with the expression, each once.
    pub infos: Vec<String>,
}

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
