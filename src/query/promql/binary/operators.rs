//! Operations of the binary operators on two numbers.
//!
//! Must never know: series, the store.

use crate::{
    model::Histogram,
    query::promql::{syntax::operator::Operator, value::series::ABSENT},
};

/// The operation of an operator.
#[derive(Debug, Clone, Copy)]
pub(super) enum Operation {
    /// An operation that results in a number.
    Arithmetic(fn(f64, f64) -> f64),
    /// A comparison: keeps or drops the left value, or returns 1 or 0 with `bool`.
    Comparison(fn(f64, f64) -> bool),
    /// A part of a histogram, limited by a number; it has no result for two numbers.
    Trim(fn(&Histogram, f64) -> Histogram),
    /// `and`
    And,
    /// `or`
    Or,
    /// `unless`
    Unless,
}

impl Operation {
    /// Returns the operation of an operator.
    pub(super) fn of(operator: Operator) -> Self {
        match operator {
            Operator::Add => Self::Arithmetic(|left, right| left + right),
            Operator::Subtract => Self::Arithmetic(|left, right| left - right),
            Operator::Multiply => Self::Arithmetic(|left, right| left * right),
            Operator::Divide => Self::Arithmetic(|left, right| left / right),
            Operator::Modulo => Self::Arithmetic(|left, right| left % right),
            Operator::Power => Self::Arithmetic(f64::powf),
            Operator::Atan2 => Self::Arithmetic(f64::atan2),
            Operator::Equal => Self::Comparison(|left, right| left == right),
            Operator::NotEqual => Self::Comparison(|left, right| left != right),
            Operator::Greater => Self::Comparison(|left, right| left > right),
            Operator::Less => Self::Comparison(|left, right| left < right),
            Operator::GreaterOrEqual => Self::Comparison(|left, right| left >= right),
            Operator::LessOrEqual => Self::Comparison(|left, right| left <= right),
            Operator::TrimUpper => Self::Trim(Histogram::trimmed_above),
            Operator::TrimLower => Self::Trim(Histogram::trimmed_below),
            Operator::And => Self::And,
            Operator::Or => Self::Or,
            Operator::Unless => Self::Unless,
        }
    }

    /// Applies the operation to two present values. A comparison results in `kept` or [`ABSENT`].
    pub(super) fn apply(self, left: f64, right: f64, kept: f64, return_bool: bool) -> f64 {
        match self {
            Self::Arithmetic(compute) => compute(left, right),
            Self::Comparison(holds) if return_bool => f64::from(u8::from(holds(left, right))),
            Self::Comparison(holds) if holds(left, right) => kept,
            Self::Trim(_) | Self::Comparison(_) | Self::And | Self::Or | Self::Unless => ABSENT,
        }
    }

    /// Returns true when the metric's name does not apply to the result.
    pub(super) fn drops_metric(self) -> bool {
        matches!(self, Self::Arithmetic(_))
    }
}
