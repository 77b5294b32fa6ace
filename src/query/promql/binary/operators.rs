//! What each binary operator does with two numbers.
//!
//! Must never know: series, the store.

use crate::query::promql::{syntax::operator::Operator, value::series::ABSENT};

/// What an operator does with two numbers.
#[derive(Debug, Clone, Copy)]
pub(super) enum Operation {
    /// Yields a number.
    Arithmetic(fn(f64, f64) -> f64),
    /// Yields yes or no: keeps or drops the left value, or 1 or 0 with `bool`.
    Comparison(fn(f64, f64) -> bool),
    /// `and`
    And,
    /// `or`
    Or,
    /// `unless`
    Unless,
}

impl Operation {
    /// The operation of an operator.
    pub(super) fn of(operator: Operator) -> Self {
        match operator {
            Operator::Add => Self::Arithmetic(|one, next| one + next),
            Operator::Subtract => Self::Arithmetic(|one, next| one - next),
            Operator::Multiply => Self::Arithmetic(|one, next| one * next),
            Operator::Divide => Self::Arithmetic(|one, next| one / next),
            Operator::Modulo => Self::Arithmetic(|one, next| one % next),
            Operator::Power => Self::Arithmetic(f64::powf),
            Operator::Atan2 => Self::Arithmetic(f64::atan2),
            Operator::Equal => Self::Comparison(|one, next| one == next),
            Operator::NotEqual => Self::Comparison(|one, next| one != next),
            Operator::Greater => Self::Comparison(|one, next| one > next),
            Operator::Less => Self::Comparison(|one, next| one < next),
            Operator::GreaterOrEqual => Self::Comparison(|one, next| one >= next),
            Operator::LessOrEqual => Self::Comparison(|one, next| one <= next),
            Operator::And => Self::And,
            Operator::Or => Self::Or,
            Operator::Unless => Self::Unless,
        }
    }

    /// The result for two values that are there; [`ABSENT`] where a comparison drops it. `kept` is
    /// what a comparison keeps.
    pub(super) fn apply(self, one: f64, next: f64, kept: f64, return_bool: bool) -> f64 {
        match self {
            Self::Arithmetic(compute) => compute(one, next),
            Self::Comparison(holds) if return_bool => f64::from(u8::from(holds(one, next))),
            Self::Comparison(holds) if holds(one, next) => kept,
            Self::Comparison(_) | Self::And | Self::Or | Self::Unless => ABSENT,
        }
    }

    /// Whether the result is no longer what the metric's name says.
    pub(super) fn drops_metric(self) -> bool {
        matches!(self, Self::Arithmetic(_))
    }
}
