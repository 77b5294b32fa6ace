//! Functions of values: arithmetic and comparisons.
//!
//! Must never know: documents. Missing or null arguments result in null; an argument of a wrong
//! type is an error, as in MongoDB.

use std::{cmp::Ordering, ops::RangeInclusive};

use crate::query::{QueryError, pipeline::value::Value};

/// A function of values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Function {
    Add,
    Subtract,
    Multiply,
    Divide,
    Equal,
    NotEqual,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
    Compare,
    And,
    Or,
    Not,
    Cond,
    IfNull,
}

/// The functions, with their numbers of arguments.
const FUNCTIONS: [(&str, Function, RangeInclusive<usize>); 16] = [
    ("$add", Function::Add, 1..=64),
    ("$subtract", Function::Subtract, 2..=2),
    ("$multiply", Function::Multiply, 1..=64),
    ("$divide", Function::Divide, 2..=2),
    ("$eq", Function::Equal, 2..=2),
    ("$ne", Function::NotEqual, 2..=2),
    ("$gt", Function::Greater, 2..=2),
    ("$gte", Function::GreaterOrEqual, 2..=2),
    ("$lt", Function::Less, 2..=2),
    ("$lte", Function::LessOrEqual, 2..=2),
    ("$cmp", Function::Compare, 2..=2),
    ("$and", Function::And, 1..=64),
    ("$or", Function::Or, 1..=64),
    ("$not", Function::Not, 1..=1),
    ("$cond", Function::Cond, 3..=3),
    ("$ifNull", Function::IfNull, 2..=64),
];

impl Function {
    pub(super) fn named(name: &str) -> Option<(Self, RangeInclusive<usize>)> {
        let found = FUNCTIONS.iter().find(|(known, ..)| *known == name);
        found.map(|(_, function, counts)| (*function, counts.clone()))
    }

    pub(super) fn names() -> impl Iterator<Item = &'static str> {
        FUNCTIONS.iter().map(|(known, ..)| *known)
    }

    pub(super) fn is_comparison(self) -> bool {
        matches!(
            self,
            Self::Equal
                | Self::NotEqual
                | Self::Greater
                | Self::GreaterOrEqual
                | Self::Less
                | Self::LessOrEqual
                | Self::Compare
        )
    }

    /// Returns the result of a comparison for an order.
    pub(super) fn comparison_result(self, order: Ordering) -> Value {
        Value::Bool(match self {
            Self::NotEqual => order.is_ne(),
            Self::Greater => order.is_gt(),
            Self::GreaterOrEqual => order.is_ge(),
            Self::Less => order.is_lt(),
            Self::LessOrEqual => order.is_le(),
            Self::Compare => return Value::Int(order as i64),
            _ => order.is_eq(),
        })
    }

    fn name(self) -> &'static str {
        let found = FUNCTIONS.iter().find(|(_, function, _)| *function == self);
        found.map_or("", |(name, ..)| *name)
    }
}

/// Calls a function.
pub(super) fn call(function: Function, arguments: Vec<Value>) -> Result<Value, QueryError> {
    let mut values = arguments.into_iter();
    let mut next = || values.next().unwrap_or(Value::Null);
    Ok(match function {
        Function::Not => Value::Bool(!next().is_truthy()),
        Function::Subtract | Function::Divide => {
            let (a, b) = (operand(function, next())?, operand(function, next())?);
            fold(function, &a, &b)?
        }
        _ => {
            let mut result = operand(function, next())?;
            for value in values {
                result = fold(function, &result, &operand(function, value)?)?;
            }
            result
        }
    })
}

/// Converts an argument to a number, a date or null.
fn operand(function: Function, value: Value) -> Result<Value, QueryError> {
    let takes_dates = matches!(function, Function::Add | Function::Subtract);
    match value {
        Value::Null => Ok(value),
        Value::Date(_) if takes_dates => Ok(value),
        other => {
            let expected = if takes_dates { "numbers and dates" } else { "numbers" };
            other.to_number().ok_or_else(|| unfit(function.name(), &other, expected))
        }
    }
}

fn fold(function: Function, a: &Value, b: &Value) -> Result<Value, QueryError> {
    if *a == Value::Null || *b == Value::Null {
        return Ok(Value::Null);
    }
    Ok(match (function, a, b) {
        (Function::Add, Value::Date(_), Value::Date(_)) => {
            return Err(QueryError::Invalid("$add takes at most one date".to_owned()));
        }
        (Function::Add, ..) => add(a, b),
        (Function::Subtract, Value::Date(a), Value::Date(b)) => Value::Int(a.0.saturating_sub(b.0)),
        (Function::Subtract, Value::Date(at), millis) => {
            Value::Date(at.minus(whole_millis(millis)))
        }
        (Function::Subtract, _, Value::Date(_)) => {
            return Err(QueryError::Invalid(
                "$subtract cannot subtract a date from a number".to_owned(),
            ));
        }
        (Function::Subtract, ..) => calculate(a, b, i64::checked_sub, |a, b| a - b),
        (Function::Divide, ..) => match b.number() {
            Some(0.0) => {
                let message = "$divide by zero; choose another value with $cond";
                return Err(QueryError::Invalid(message.to_owned()));
            }
            divisor => {
                let quotient = a.number().zip(divisor).map(|(a, b)| a / b);
                quotient.map_or(Value::Null, Value::Float)
            }
        },
        _ => calculate(a, b, i64::checked_mul, |a, b| a * b),
    })
}

fn whole_millis(value: &Value) -> i64 {
    value.as_whole().or_else(|| value.number().map(|number| number.round() as i64)).unwrap_or(0)
}

/// Returns the sum of numbers, or of a date and milliseconds; otherwise `Null`.
pub(super) fn add(a: &Value, b: &Value) -> Value {
    match (a, b) {
        (Value::Date(at), Value::Int(_) | Value::Float(_)) => Value::Date(at.plus(whole_millis(b))),
        (Value::Int(_) | Value::Float(_), Value::Date(at)) => Value::Date(at.plus(whole_millis(a))),
        _ => calculate(a, b, i64::checked_add, |a, b| a + b),
    }
}

/// Calculates with integers as long as the result fits, else with floats.
fn calculate(
    a: &Value,
    b: &Value,
    whole: fn(i64, i64) -> Option<i64>,
    float: fn(f64, f64) -> f64,
) -> Value {
    if let (Value::Int(a), Value::Int(b)) = (a, b)
        && let Some(number) = whole(*a, *b)
    {
        return Value::Int(number);
    }
    a.number().zip(b.number()).map_or(Value::Null, |(a, b)| Value::Float(float(a, b)))
}

/// Returns the error for a value of a type that a function does not accept.
pub(super) fn unfit(name: &str, value: &Value, expected: &str) -> QueryError {
    let value_text = match value {
        Value::Text(text) => format!(" ({:?})", text.chars().take(40).collect::<String>()),
        _ => String::new(),
    };
    QueryError::Invalid(format!("{name} takes {expected}, not {}{value_text}", value.kind()))
}
