//! What PromQL answers.
//!
//! Must never know: HTTP, how anything is computed.

use super::labels::Labels;

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
