//! What each binary operator does with two numbers.
//!
//! Must never know: series, the store.

use promql_parser::parser::{BinaryExpr, token};

use crate::query::promql::value::{error::PromqlError, series::ABSENT};

/// What an operator does with two numbers.
#[derive(Debug, Clone, Copy)]
pub(super) enum Operator {
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

impl Operator {
    /// The operator of an expression.
    pub(super) fn of(binary: &BinaryExpr) -> Result<Self, PromqlError> {
        Ok(match binary.op.id() {
            token::T_ADD => Self::Arithmetic(|one, next| one + next),
            token::T_SUB => Self::Arithmetic(|one, next| one - next),
            token::T_MUL => Self::Arithmetic(|one, next| one * next),
            token::T_DIV => Self::Arithmetic(|one, next| one / next),
            token::T_MOD => Self::Arithmetic(|one, next| one % next),
            token::T_POW => Self::Arithmetic(f64::powf),
            token::T_ATAN2 => Self::Arithmetic(f64::atan2),
            token::T_EQLC => Self::Comparison(|one, next| one == next),
            token::T_NEQ => Self::Comparison(|one, next| one != next),
            token::T_GTR => Self::Comparison(|one, next| one > next),
            token::T_LSS => Self::Comparison(|one, next| one < next),
            token::T_GTE => Self::Comparison(|one, next| one >= next),
            token::T_LTE => Self::Comparison(|one, next| one <= next),
            token::T_LAND => Self::And,
            token::T_LOR => Self::Or,
            token::T_LUNLESS => Self::Unless,
            _ => {
                return Err(PromqlError::BadData(format!(
                    "parse error: the operator {} is not known",
                    binary.op
                )));
            }
        })
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
