//! The types of the values of expressions.
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
    /// Writes the type in the words of Prometheus' documentation.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Scalar => "scalar",
            Self::Vector => "instant vector",
            Self::Matrix => "range vector",
            Self::Text => "string",
        })
    }
}
