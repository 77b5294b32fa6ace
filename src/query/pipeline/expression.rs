//! Expressions: what a stage computes from a document.
//!
//! Must never know: stages. Parsed once, then evaluated for each document; both depths are
//! bounded by that of the pipeline as it was read.

use std::sync::Arc;

use jiff::tz::TimeZone;

use super::{
    path::Path,
    quota::Taken,
    value::{Fields, Value, compare},
};
use crate::{
    model::UnixMillis,
    query::{CalendarUnit, QueryError, time_zone},
};

/// An expression as it was read.
#[derive(Debug, Clone)]
pub(super) enum Expression {
    Literal(Value),
    Path(Path),
    /// The whole document.
    Root,
    Fields(Vec<(Arc<str>, Expression)>),
    List(Vec<Expression>),
    Call(Function, Vec<Expression>),
    DatePart(DatePart, Box<Expression>, TimeZone),
    DateTrunc(CalendarUnit, Box<Expression>, TimeZone),
}

/// What is computed of arguments.
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
    And,
    Or,
    Not,
    Cond,
    IfNull,
}

/// A part of a date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DatePart {
    Year,
    Month,
    DayOfMonth,
    DayOfWeek,
    Hour,
    Minute,
}

/// Every function with the number of its arguments.
const FUNCTIONS: [(&str, Function, std::ops::RangeInclusive<usize>); 15] = [
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
    ("$and", Function::And, 1..=64),
    ("$or", Function::Or, 1..=64),
    ("$not", Function::Not, 1..=1),
    ("$cond", Function::Cond, 3..=3),
    ("$ifNull", Function::IfNull, 2..=2),
];

const DATE_PARTS: [(&str, DatePart); 6] = [
    ("$year", DatePart::Year),
    ("$month", DatePart::Month),
    ("$dayOfMonth", DatePart::DayOfMonth),
    ("$dayOfWeek", DatePart::DayOfWeek),
    ("$hour", DatePart::Hour),
    ("$minute", DatePart::Minute),
];

impl Expression {
    /// Reads an expression.
    ///
    /// # Errors
    /// With what is not known and what is.
    pub(super) fn parse(value: &Value) -> Result<Self, String> {
        Ok(match value {
            Value::Text(text) => match text.strip_prefix('$') {
                Some("$ROOT") => Self::Root,
                Some(path) if path.starts_with('$') => {
                    return Err(format!("{text:?} is not known; of variables there is $$ROOT"));
                }
                Some(path) => Self::Path(Path::parse(path)?),
                None => Self::Literal(value.clone()),
            },
            Value::List(values) => {
                Self::List(values.iter().map(Self::parse).collect::<Result<_, _>>()?)
            }
            Value::Fields(fields) => match fields.single() {
                Some((name, argument)) if name.starts_with('$') => Self::call(name, argument)?,
                _ => {
                    let field = |(name, value): (&Arc<str>, &Value)| {
                        if name.starts_with('$') {
                            return Err(format!("{name} must be alone in its document"));
                        }
                        Ok((name.clone(), Self::parse(value)?))
                    };
                    Self::Fields(fields.iter().map(field).collect::<Result<_, _>>()?)
                }
            },
            Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Date(_) => {
                Self::Literal(value.clone())
            }
        })
    }

    fn call(name: &str, argument: &Value) -> Result<Self, String> {
        if name == "$literal" {
            return Ok(Self::Literal(argument.clone()));
        }
        if let Some((_, part)) = DATE_PARTS.iter().find(|(known, _)| *known == name) {
            let (date, zone) = match argument {
                Value::Fields(fields) if fields.get("date").is_some() => {
                    options(name, fields, &["date", "timezone"])?
                }
                other => (Self::parse(other)?, TimeZone::UTC),
            };
            return Ok(Self::DatePart(*part, Box::new(date), zone));
        }
        if name == "$dateTrunc" {
            let Value::Fields(fields) = argument else {
                return Err("$dateTrunc takes {date, unit, timezone}".to_owned());
            };
            let (date, zone) = options(name, fields, &["date", "unit", "timezone"])?;
            let unit = fields.get("unit").and_then(Value::as_text);
            let unit = unit.and_then(|unit| CalendarUnit::named(unit)).ok_or_else(|| {
                let units = CalendarUnit::NAMED.map(|(_, unit)| unit).join(", ");
                format!("$dateTrunc: unit is one of {units}")
            })?;
            return Ok(Self::DateTrunc(unit, Box::new(date), zone));
        }
        let Some((_, function, counts)) = FUNCTIONS.iter().find(|(known, ..)| *known == name)
        else {
            let functions = FUNCTIONS.iter().map(|(known, ..)| *known);
            let parts = DATE_PARTS.iter().map(|(known, _)| *known);
            let known: Vec<_> = functions.chain(parts).chain(["$dateTrunc", "$literal"]).collect();
            return Err(format!("{name} is not known; use one of {}", known.join(", ")));
        };
        let arguments = match (function, argument) {
            (Function::Cond, Value::Fields(fields)) => {
                let part = |name: &str| fields.get(name).cloned().unwrap_or(Value::Null);
                vec![part("if"), part("then"), part("else")]
            }
            (_, Value::List(values)) => values.clone(),
            (_, single) => vec![single.clone()],
        };
        if !counts.contains(&arguments.len()) {
            return Err(format!("{name} takes {} arguments", counts.end()));
        }
        let arguments = arguments.iter().map(Self::parse).collect::<Result<_, _>>()?;
        Ok(Self::Call(*function, arguments))
    }

    /// The value for a document; `None` where a path leads nowhere.
    ///
    /// # Errors
    /// When what it makes is not to be had.
    pub(super) fn evaluate(
        &self,
        document: &Fields,
        taken: &mut Taken<'_>,
    ) -> Result<Option<Value>, QueryError> {
        Ok(match self {
            Self::Literal(value) => Some(taken.copy(value)?),
            Self::Path(path) => path.get(document, taken)?,
            Self::Root => Some(Value::Fields(taken.copy_fields(document)?)),
            Self::Fields(fields) => {
                taken.take(1)?;
                let mut out = Vec::new();
                for (name, own) in fields {
                    out.extend(own.evaluate(document, taken)?.map(|value| (name.clone(), value)));
                }
                Some(Value::Fields(out.into_iter().collect()))
            }
            Self::List(values) => {
                taken.take(1)?;
                Some(Value::List(evaluate_all(values, document, taken)?))
            }
            Self::Call(function, arguments) => {
                Some(evaluate_call(*function, arguments, document, taken)?)
            }
            Self::DatePart(part, date, zone) => date
                .evaluate(document, taken)?
                .map(|date| date.as_date().map_or(Value::Null, |at| part_of(*part, at, zone))),
            Self::DateTrunc(unit, date, zone) => date.evaluate(document, taken)?.map(|date| {
                date.as_date().map_or(Value::Null, |at| Value::Date(unit.start_of(at, zone)))
            }),
        })
    }
}

/// The `date` and `timezone` of a date expression.
fn options(name: &str, fields: &Fields, known: &[&str]) -> Result<(Expression, TimeZone), String> {
    if let Some((other, _)) = fields.iter().find(|(own, _)| !known.contains(&&***own)) {
        return Err(format!("{name}: {other} is not known; use {}", known.join(", ")));
    }
    let Some(date) = fields.get("date") else { return Err(format!("{name}: date is missing")) };
    let zone = match fields.get("timezone") {
        None => TimeZone::UTC,
        Some(Value::Text(zone)) => time_zone(zone)?,
        Some(_) => return Err(format!("{name}: timezone is a name such as Europe/Berlin")),
    };
    Ok((Expression::parse(date)?, zone))
}

fn part_of(part: DatePart, at: UnixMillis, zone: &TimeZone) -> Value {
    let local = at.timestamp().to_zoned(zone.clone());
    Value::Int(i64::from(match part {
        DatePart::Year => local.year(),
        DatePart::Month => i16::from(local.month()),
        DatePart::DayOfMonth => i16::from(local.day()),
        // MongoDB counts from Sunday = 1.
        DatePart::DayOfWeek => i16::from(local.weekday().to_sunday_one_offset()),
        DatePart::Hour => i16::from(local.hour()),
        DatePart::Minute => i16::from(local.minute()),
    }))
}

/// The values of expressions; nothing is `Null`.
fn evaluate_all(
    expressions: &[Expression],
    document: &Fields,
    taken: &mut Taken<'_>,
) -> Result<Vec<Value>, QueryError> {
    let value = |own: &Expression| Ok(own.evaluate(document, taken)?.unwrap_or(Value::Null));
    expressions.iter().map(value).collect()
}

fn evaluate_call(
    function: Function,
    arguments: &[Expression],
    document: &Fields,
    taken: &mut Taken<'_>,
) -> Result<Value, QueryError> {
    let mut value = |index: usize| -> Result<Value, QueryError> {
        let found = arguments.get(index).map(|own| own.evaluate(document, taken));
        Ok(found.transpose()?.flatten().unwrap_or(Value::Null))
    };
    // Only what is chosen is made.
    match function {
        Function::Cond => {
            let chosen = if value(0)?.holds() { 1 } else { 2 };
            value(chosen)
        }
        Function::IfNull => {
            let first = value(0)?;
            if first == Value::Null { value(1) } else { Ok(first) }
        }
        _ => Ok(call(function, evaluate_all(arguments, document, taken)?)),
    }
}

/// A function of values.
fn call(function: Function, arguments: Vec<Value>) -> Value {
    let value = |index: usize| arguments.get(index).unwrap_or(&Value::Null);
    let order = || compare(value(0), value(1));
    match function {
        Function::Add => arguments.into_iter().reduce(|a, b| add(&a, &b)).unwrap_or(Value::Null),
        Function::Multiply => {
            let product = |a: Value, b: Value| numbers(&a, &b, i64::checked_mul, |a, b| a * b);
            arguments.into_iter().reduce(product).unwrap_or(Value::Null)
        }
        Function::Subtract => match (value(0), value(1)) {
            (Value::Date(a), Value::Date(b)) => Value::Int(a.0.saturating_sub(b.0)),
            (Value::Date(a), Value::Int(millis)) => Value::Date(a.minus(*millis)),
            (a, b) => numbers(a, b, i64::checked_sub, |a, b| a - b),
        },
        Function::Divide => {
            let quotient = value(0).number().zip(value(1).number()).map(|(a, b)| a / b);
            quotient.filter(|quotient| quotient.is_finite()).map_or(Value::Null, Value::Float)
        }
        Function::Equal => Value::Bool(order().is_eq()),
        Function::NotEqual => Value::Bool(order().is_ne()),
        Function::Greater => Value::Bool(order().is_gt()),
        Function::GreaterOrEqual => Value::Bool(order().is_ge()),
        Function::Less => Value::Bool(order().is_lt()),
        Function::LessOrEqual => Value::Bool(order().is_le()),
        Function::And => Value::Bool(arguments.iter().all(Value::holds)),
        Function::Or => Value::Bool(arguments.iter().any(Value::holds)),
        Function::Not => Value::Bool(!value(0).holds()),
        // These choose among their arguments before they are made.
        Function::Cond | Function::IfNull => Value::Null,
    }
}

/// The sum of numbers, or of a date and milliseconds; `Null` of anything else.
pub(super) fn add(a: &Value, b: &Value) -> Value {
    match (a, b) {
        (Value::Date(at), Value::Int(millis)) | (Value::Int(millis), Value::Date(at)) => {
            Value::Date(at.plus(*millis))
        }
        _ => numbers(a, b, i64::checked_add, |a, b| a + b),
    }
}

/// Whole numbers stay whole while they fit.
fn numbers(
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
