//! Binary operators between numbers, and between vectors and numbers.
//!
//! Must never know: the store. How two vectors are matched is in `matching.rs`.

use promql_parser::parser::{BinaryExpr, token};

use crate::query::promql::{
    PromqlError,
    evaluate::expression::Evaluator,
    value::{
        series::{ABSENT, Series, Value, is_present},
        steps::Grid,
    },
};

/// What an operator does with two numbers.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Operator {
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
    fn of(binary: &BinaryExpr) -> Result<Self, PromqlError> {
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
    pub(crate) fn apply(self, one: f64, next: f64, kept: f64, yes_or_no: bool) -> f64 {
        match self {
            Self::Arithmetic(compute) => compute(one, next),
            Self::Comparison(holds) if yes_or_no => f64::from(u8::from(holds(one, next))),
            Self::Comparison(holds) if holds(one, next) => kept,
            Self::Comparison(_) | Self::And | Self::Or | Self::Unless => ABSENT,
        }
    }

    /// Whether the result is no longer what the metric's name says.
    pub(crate) fn drops_metric(self) -> bool {
        matches!(self, Self::Arithmetic(_))
    }
}

impl Evaluator<'_> {
    /// What a binary expression comes to.
    pub(crate) fn binary(&self, binary: &BinaryExpr, grid: &Grid) -> Result<Value, PromqlError> {
        let one = self.value(&binary.lhs, grid)?;
        let held = self.hold(&one);
        let next = self.value(&binary.rhs, grid)?;
        drop(held);
        self.operated(binary, one, next, grid)
    }

    /// What an operator makes of its operands. Apart from their evaluation, which may be deep.
    fn operated(
        &self,
        binary: &BinaryExpr,
        one: Value,
        next: Value,
        grid: &Grid,
    ) -> Result<Value, PromqlError> {
        let operator = Operator::of(binary)?;
        let yes_or_no = binary.return_bool();
        Ok(match (one, next) {
            (Value::Scalar(mut one), Value::Scalar(next)) => {
                for (one, next) in one.iter_mut().zip(next) {
                    *one = operator.apply(*one, next, *one, true);
                }
                Value::Scalar(one)
            }
            (Value::Vector(series), Value::Scalar(numbers)) => {
                let compute = |value, number| operator.apply(value, number, value, yes_or_no);
                let drops = operator.drops_metric() || yes_or_no;
                Value::Vector(with_numbers(series, &numbers, drops, compute))
            }
            (Value::Scalar(numbers), Value::Vector(series)) => {
                let compute = |value, number| operator.apply(number, value, value, yes_or_no);
                let drops = operator.drops_metric() || yes_or_no;
                Value::Vector(with_numbers(series, &numbers, drops, compute))
            }
            (Value::Vector(one), Value::Vector(next)) => {
                let modifier = binary.modifier.as_ref();
                Value::Vector(self.between_vectors(one, next, operator, modifier, grid)?)
            }
            (Value::Text(_), _) | (_, Value::Text(_)) => {
                return Err(PromqlError::BadData(
                    "parse error: binary expression must contain only scalar and instant vector \
                     types"
                        .to_owned(),
                ));
            }
        })
    }
}

fn with_numbers(
    mut series: Vec<Series>,
    numbers: &[f64],
    drops_metric: bool,
    compute: impl Fn(f64, f64) -> f64,
) -> Vec<Series> {
    for one in &mut series {
        one.drop_metric |= drops_metric;
        for (value, number) in one.values.iter_mut().zip(numbers) {
            if is_present(*value) {
                *value = compute(*value, *number);
            }
        }
    }
    series.retain(Series::has_values);
    series
}
