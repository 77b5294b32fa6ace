//! Binary operators: between numbers, between vectors and numbers, and between two vectors, whose
//! series are matched first.
//!
//! Must never know: the store, how the operands were evaluated.

mod fill;
mod matching;
mod operators;
mod vectors;

use crate::query::QueryError;
use crate::query::promql::{
    context::Context,
    syntax::tree::Binary,
    value::series::{Series, Value, is_present},
};
use operators::Operation;

/// Evaluates an operator.
pub(crate) fn operate(
    binary: &Binary,
    left: Value,
    right: Value,
    context: &Context<'_>,
) -> Result<Value, QueryError> {
    let (operation, return_bool) = (Operation::of(binary.operator), binary.return_bool);
    Ok(match (left, right) {
        (Value::Scalar(mut left), Value::Scalar(right)) => {
            for (left, right) in left.iter_mut().zip(right) {
                *left = operation.apply(*left, right, *left, true);
            }
            Value::Scalar(left)
        }
        (Value::Vector(series), Value::Scalar(numbers)) => {
            let compute = |value, number| operation.apply(value, number, value, return_bool);
            let drops = operation.drops_metric() || return_bool;
            Value::Vector(operate_with_numbers(series, &numbers, drops, compute))
        }
        (Value::Scalar(numbers), Value::Vector(series)) => {
            let compute = |value, number| operation.apply(number, value, value, return_bool);
            let drops = operation.drops_metric() || return_bool;
            Value::Vector(operate_with_numbers(series, &numbers, drops, compute))
        }
        (Value::Vector(left), Value::Vector(right)) => {
            Value::Vector(vectors::operate(left, right, operation, binary, context)?)
        }
        (Value::Text(_), _) | (_, Value::Text(_)) => {
            return Err(QueryError::Invalid(
                "parse error: binary expression must contain only scalar and instant vector \
                 types"
                    .to_owned(),
            ));
        }
    })
}

fn operate_with_numbers(
    mut series: Vec<Series>,
    numbers: &[f64],
    drops_metric: bool,
    compute: impl Fn(f64, f64) -> f64,
) -> Vec<Series> {
    for entry in &mut series {
        entry.drop_metric |= drops_metric;
        for (value, number) in entry.values.iter_mut().zip(numbers) {
            if is_present(*value) {
                *value = compute(*value, *number);
            }
        }
    }
    series.retain(Series::has_values);
    series
}
