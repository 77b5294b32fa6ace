//! The types of values that expressions have.
//!
//! Must never know: expressions.

use std::fmt;

/// The type of an expression's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ValueType {
    Scalar,
    /// An instant vector.
    Vector,
    /// A range vector.
    Matrix,
    Text,
}

impl fmt::Display for ValueType {
    /// The type as Prometheus' documents name it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Scalar => "scalar",
            Self::Vector => "instant vector",
            Self::Matrix => "range vector",
            Self::Text => "string",
        })
    }
}
