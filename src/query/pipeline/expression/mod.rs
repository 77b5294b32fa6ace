//! Expressions, which compute a value from a document.
//!
//! Must never know: stages. An expression is parsed once and evaluated for each document. The depth
//! of the request limits the recursion of parsing and evaluation.

mod dates;
mod evaluate;

use std::sync::Arc;

use jiff::tz::TimeZone;
use regex::Regex;

use self::dates::{DateFormat, DatePart, Truncation};
use super::{
    arithmetic::Function,
    operator::Operator,
    order::compare,
    path::Path,
    pattern::pattern,
    percentiles::{self, Percentiles},
    value::Value,
};

/// A parsed expression.
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
    /// The parts of a date; true for parts by ISO 8601 weeks.
    DateParts(Box<Expression>, TimeZone, bool),
    DateTrunc(Truncation, Box<Expression>, TimeZone),
    DateToString(Box<DateToString>),
    RegexMatch(Box<Expression>, Arc<Regex>),
    /// The result of an accumulator over a list or several arguments.
    Accumulated(Operator, Vec<Expression>),
    /// The percentiles of a list or of one value.
    Percentiles(Percentiles, Box<Expression>),
    Bucket(Box<Bucket>),
}

/// The arguments of `$dateToString`.
#[derive(Debug, Clone)]
pub(super) struct DateToString {
    date: Expression,
    zone: TimeZone,
    format: DateFormat,
    on_null: Option<Expression>,
}

/// The bucket of a value: its lower boundary, or a default.
#[derive(Debug, Clone)]
pub(super) struct Bucket {
    by: Expression,
    /// The boundaries in ascending order.
    boundaries: Vec<Value>,
    default: Option<Value>,
}

impl Expression {
    /// Parses an expression.
    ///
    /// # Errors
    /// When the expression is invalid; the message names the known operators.
    pub(super) fn parse(value: &Value) -> Result<Self, String> {
        Ok(match value {
            Value::Text(text) => match text.strip_prefix('$') {
                Some("$ROOT" | "$CURRENT") => Self::Root,
                Some(path) if path.starts_with('$') => {
                    let path_in_root =
                        ["$ROOT.", "$CURRENT."].iter().find_map(|prefix| path.strip_prefix(prefix));
                    if let Some(path) = path_in_root {
                        return Ok(Self::Path(Path::parse(path)?));
                    }
                    return Err(format!("{text:?} is not known; use the variable $$ROOT"));
                }
                Some(path) => Self::Path(Path::parse(path)?),
                None => Self::Literal(value.clone()),
            },
            Value::List(values) => Self::List(parse_all(values)?),
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
        match name {
            "$literal" => return Ok(Self::Literal(argument.clone())),
            "$regexMatch" => return regex_match(argument),
            "$dateTrunc" => {
                let fields = dates::options(name, argument, &dates::DATE_TRUNC_OPTIONS)?;
                let (date, zone) = dates::date_and_zone(name, argument)?;
                return Ok(Self::DateTrunc(Truncation::parse(fields)?, Box::new(date), zone));
            }
            "$dateToString" => {
                let fields = dates::options(name, argument, &dates::DATE_TO_STRING_OPTIONS)?;
                let (date, zone) = dates::date_and_zone(name, argument)?;
                let format = DateFormat::parse(fields.get("format"), &zone)?;
                let on_null = fields.get("onNull").map(Self::parse).transpose()?;
                let arguments = DateToString { date, zone, format, on_null };
                return Ok(Self::DateToString(Box::new(arguments)));
            }
            "$dateToParts" => {
                let fields = dates::options(name, argument, &dates::DATE_TO_PARTS_OPTIONS)?;
                let iso = fields.get("iso8601").is_some_and(Value::is_truthy);
                let (date, zone) = dates::date_and_zone(name, argument)?;
                return Ok(Self::DateParts(Box::new(date), zone, iso));
            }
            _ => {}
        }
        if let Some((found, input)) = Percentiles::parse(name, argument)? {
            return Ok(Self::Percentiles(found, Box::new(Self::parse(input)?)));
        }
        if let Some(part) = DatePart::named(name) {
            let (date, zone) = dates::date_and_zone(name, argument)?;
            return Ok(Self::DatePart(part, Box::new(date), zone));
        }
        if let Some(operator) = Operator::named_in_expressions(name) {
            return Ok(Self::Accumulated(operator, arguments(argument)?));
        }
        let Some((function, counts)) = Function::named(name) else {
            return Err(unknown_function_message(name));
        };
        let arguments = match (function, argument) {
            (Function::Cond, Value::Fields(fields)) => {
                let part = |name: &str| {
                    let part = fields.get(name).map(Self::parse);
                    part.ok_or_else(|| format!("$cond: {name} is missing"))?
                };
                vec![part("if")?, part("then")?, part("else")?]
            }
            _ => arguments(argument)?,
        };
        if !counts.contains(&arguments.len()) {
            let (least, most) = (counts.start(), counts.end());
            let counts =
                if least == most { most.to_string() } else { format!("{least} to {most}") };
            return Err(format!("{name} takes {counts} arguments"));
        }
        Ok(Self::Call(function, arguments))
    }

    /// Parses the arguments of `$bucket`.
    ///
    /// # Errors
    /// When the boundaries do not ascend, or the default lies between them.
    pub(super) fn bucket(
        by: &Value,
        boundaries: &Value,
        default: Option<&Value>,
    ) -> Result<Self, String> {
        let Value::List(boundaries) = boundaries else {
            return Err("boundaries must be a list of at least 2 values".to_owned());
        };
        let constant = |value: &Value| match value {
            Value::Fields(fields) if fields.iter().any(|(name, _)| name.starts_with('$')) => {
                Err("boundaries and default are values, not expressions".to_owned())
            }
            _ => Ok(value.clone()),
        };
        let boundaries: Vec<_> = boundaries.iter().map(constant).collect::<Result<_, _>>()?;
        let is_wrong = |pair: &[Value]| match pair {
            [low, high] => low.rank() != high.rank() || compare(low, high).is_ge(),
            _ => true,
        };
        if boundaries.len() < 2 || boundaries.windows(2).any(is_wrong) {
            return Err(
                "boundaries must be a list of at least 2 ascending values of one kind".into()
            );
        }
        let default = default.map(constant).transpose()?;
        if let (Some(default), [low, .., high]) = (&default, &boundaries[..])
            && default.rank() == low.rank()
            && compare(default, low).is_ge()
            && compare(default, high).is_lt()
        {
            return Err("default must be outside the boundaries".to_owned());
        }
        let by = Self::parse(by)?;
        Ok(Self::Bucket(Box::new(Bucket { by, boundaries, default })))
    }
}

fn unknown_function_message(name: &str) -> String {
    let known = Function::names().chain(DatePart::names()).chain(Operator::names_in_expressions());
    let others = ["$dateTrunc", "$dateToString", "$dateToParts", "$regexMatch", "$literal"];
    let known: Vec<_> = known.chain(percentiles::NAMES).chain(others).collect();
    format!("{name} is not known; use one of {}", known.join(", "))
}

fn regex_match(argument: &Value) -> Result<Expression, String> {
    let fields = dates::options("$regexMatch", argument, &["input", "regex", "options"])?;
    let (Some(input), Some(regex)) = (fields.get("input"), fields.get("regex")) else {
        return Err("$regexMatch takes {input, regex, options}".to_owned());
    };
    let pattern = pattern(regex, fields.get("options"))?;
    Ok(Expression::RegexMatch(Box::new(Expression::parse(input)?), pattern.into()))
}

fn parse_all(values: &[Value]) -> Result<Vec<Expression>, String> {
    values.iter().map(Expression::parse).collect()
}

/// Parses the arguments of a function. A single argument needs no list.
fn arguments(argument: &Value) -> Result<Vec<Expression>, String> {
    match argument {
        Value::List(values) => parse_all(values),
        single => Ok(vec![Expression::parse(single)?]),
    }
}
