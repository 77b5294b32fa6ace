//! Binary operators: between numbers, between vectors and numbers, and between two vectors, whose
//! series are matched first.
//!
//! Must never know: the store, how the operands were evaluated.

mod fill;
mod histograms;
mod matching;
mod operators;
mod vectors;

use crate::query::QueryError;
use crate::query::promql::{
    context::Context,
    syntax::tree::Binary,
    value::series::{Element, Series, Value, is_present},
};
use histograms::{Combined, Operating};
use operators::Operation;

/// Evaluates an operator. The notes of the context name the location of the operator.
pub(crate) fn operate(
    binary: &Binary,
    left: Value,
    right: Value,
    context: &Context<'_>,
) -> Result<Value, QueryError> {
    let (operation, return_bool) = (Operation::of(binary.operator), binary.return_bool);
    let (operator, notes) = (binary.operator, context.notes.at_call());
    let operating = Operating { operator, operation, return_bool, notes };
    let drops = operation.drops_metric() || return_bool;
    Ok(match (left, right) {
        (Value::Scalar(_), Value::Scalar(_)) if matches!(operation, Operation::Trim(_)) => {
            return Err(QueryError::Execution(format!(
                "operator \"{operator}\" not allowed for Scalar operations"
            )));
        }
        (Value::Scalar(mut left), Value::Scalar(right)) => {
            for (left, right) in left.iter_mut().zip(right) {
                *left = operation.apply(*left, right, *left, true);
            }
            Value::Scalar(left)
        }
        (Value::Vector(series), Value::Scalar(numbers)) => {
            let compute = |value, number| operation.apply(value, number, value, return_bool);
            let series =
                operate_on_histograms(series, &numbers, drops, (&operating, true), context)?;
            Value::Vector(operate_with_numbers(series, &numbers, drops, compute))
        }
        (Value::Scalar(numbers), Value::Vector(series)) => {
            let compute = |value, number| operation.apply(number, value, value, return_bool);
            let series =
                operate_on_histograms(series, &numbers, drops, (&operating, false), context)?;
            Value::Vector(operate_with_numbers(series, &numbers, drops, compute))
        }
        (Value::Vector(left), Value::Vector(right)) => {
            Value::Vector(vectors::operate(left, right, &operating, binary, context)?)
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

/// Replaces the histograms by results, which are histograms too.
fn operate_on_histograms(
    mut series: Vec<Series>,
    numbers: &[f64],
    drops_metric: bool,
    (operating, is_left): (&Operating<'_>, bool),
    context: &Context<'_>,
) -> Result<Vec<Series>, QueryError> {
    let is_trim = matches!(operating.operation, Operation::Trim(_));
    for entry in &mut series {
        if is_trim && entry.values.iter().any(|value| is_present(*value)) {
            operating.incompatible("float", "float");
        }
        if entry.histograms.is_empty() {
            continue;
        }
        context.bounds.check_time()?;
        entry.drop_metric |= drops_metric;
        let histograms = std::mem::take(&mut entry.histograms);
        for (step, histogram) in histograms.iter() {
            let (value, number) = (Element::Histogram(histogram), Element::Number(numbers[step]));
            let (left, right) = if is_left { (value, number) } else { (number, value) };
            if let Combined::Histogram(result) = operating.apply(left, right, value) {
                context.bounds.reserve(result.bytes())?;
                entry.histograms.set(step, result, numbers.len());
            }
        }
    }
    Ok(series)
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
