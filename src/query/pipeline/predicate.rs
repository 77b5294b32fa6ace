//! The conditions of `$match`.
//!
//! Must never know: stages. `pushdown.rs` reads from them which series and times are wanted.

use std::{cmp::Ordering, sync::Arc};

use regex::{Regex, RegexBuilder};

use super::{
    expression::Expression,
    notation::date,
    order::order,
    path::Path,
    quota::Taken,
    value::{Fields, Value},
};
use crate::{
    model::UnixMillis,
    query::{QueryError, series::go_regex},
};

/// Bytes that a compiled pattern takes, at most; its cache takes twice as many.
const PATTERN_BYTES_MAX: usize = 128 << 10;
/// Levels of groups in a pattern, at most.
const PATTERN_DEPTH_MAX: u32 = 50;

/// A condition on a document.
#[derive(Debug, Clone)]
pub(super) enum Predicate {
    All(Vec<Predicate>),
    Any(Vec<Predicate>),
    None(Vec<Predicate>),
    Field(Path, Test),
    /// `$expr`.
    Computed(Box<Expression>),
}

/// A condition on the value of a field.
#[derive(Debug, Clone)]
pub(super) enum Test {
    Compare(Comparison, Literal),
    Matches(Arc<Regex>),
    Exists(bool),
    All(Vec<Test>),
    Any(Vec<Test>),
    Not(Box<Test>),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Comparison {
    Equal,
    Greater,
    GreaterOrEqual,
    Less,
    LessOrEqual,
}

/// What a field is compared with.
#[derive(Debug, Clone)]
pub(super) struct Literal {
    pub(super) value: Value,
    /// The value read as a date, for fields that are dates.
    date: Option<UnixMillis>,
}

/// Hands values to a function until it returns true; returns whether it did.
type Values<'v> = dyn Fn(&mut dyn FnMut(&Value) -> bool) -> bool + 'v;

impl Literal {
    fn new(value: &Value) -> Self {
        let date = value.as_date().or_else(|| value.as_text().and_then(|text| date(text)));
        Self { value: value.clone(), date }
    }

    pub(super) fn as_date(&self) -> Option<UnixMillis> {
        self.date
    }

    /// How a value compares; `None` when they are of different kinds.
    fn order(&self, value: &Value) -> Option<Ordering> {
        match value {
            Value::Date(at) => self.date.map(|date| at.cmp(&date)),
            _ => order(value, &self.value),
        }
    }
}

impl Predicate {
    /// Reads the document of a `$match`.
    ///
    /// # Errors
    /// With what is not known and what is.
    pub(super) fn parse(value: &Value) -> Result<Self, String> {
        let Value::Fields(fields) = value else {
            return Err("a condition is a document, such as {host: \"web1\"}".to_owned());
        };
        let mut all = Vec::with_capacity(fields.len());
        for (name, value) in fields.iter() {
            match &**name {
                "$and" => all.push(Self::All(Self::parse_list(name, value)?)),
                "$or" => all.push(Self::Any(Self::parse_list(name, value)?)),
                "$nor" => all.push(Self::None(Self::parse_list(name, value)?)),
                "$expr" => all.push(Self::Computed(Box::new(Expression::parse(value)?))),
                "$comment" => {}
                other if other.starts_with('$') => {
                    return Err(format!(
                        "{other} is not known; use $and, $or, $nor, $expr or a field"
                    ));
                }
                path => {
                    let path = Path::parse(path)?;
                    let tests = Test::parse(value)?.into_iter();
                    all.extend(tests.map(|test| Self::Field(path.clone(), test)));
                }
            }
        }
        Ok(Self::All(all))
    }

    fn parse_list(name: &str, value: &Value) -> Result<Vec<Self>, String> {
        match value {
            Value::List(values) if !values.is_empty() => values.iter().map(Self::parse).collect(),
            _ => Err(format!("{name} takes a list of conditions")),
        }
    }

    /// Whether it holds for a document; `taken` counts what expressions make.
    ///
    /// # Errors
    /// When an expression cannot be computed.
    pub(super) fn holds(
        &self,
        document: &Fields,
        taken: &mut Taken<'_>,
    ) -> Result<bool, QueryError> {
        let (own, wanted) = match self {
            Self::All(own) => (own, false),
            Self::Any(own) | Self::None(own) => (own, true),
            Self::Field(path, test) => return Ok(test.holds(path, document)),
            Self::Computed(expression) => {
                return Ok(expression.evaluate(document, taken)?.is_some_and(|own| own.holds()));
            }
        };
        for predicate in own {
            if predicate.holds(document, taken)? == wanted {
                return Ok(matches!(self, Self::Any(_)));
            }
        }
        Ok(!matches!(self, Self::Any(_)))
    }

    /// Hands out every field that is looked at; `None` for an expression, which may look at any.
    pub(super) fn for_each_field(&self, visit: &mut dyn FnMut(Option<&Path>)) {
        match self {
            Self::All(own) | Self::Any(own) | Self::None(own) => {
                for predicate in own {
                    predicate.for_each_field(visit);
                }
            }
            Self::Field(path, _) => visit(Some(path)),
            Self::Computed(_) => visit(None),
        }
    }

    /// Hands out the tests that a document must all pass.
    pub(super) fn for_each_must(&self, visit: &mut dyn FnMut(&Path, &Test)) {
        match self {
            Self::All(own) => {
                for predicate in own {
                    predicate.for_each_must(visit);
                }
            }
            Self::Field(path, test) => visit(path, test),
            Self::Any(_) | Self::None(_) | Self::Computed(_) => {}
        }
    }
}

impl Test {
    /// Reads what stands behind a field: a value, a pattern, or a document of conditions.
    fn parse(value: &Value) -> Result<Vec<Self>, String> {
        let Value::Fields(fields) = value else { return Ok(vec![Self::equal(value)]) };
        if !fields.iter().any(|(name, _)| name.starts_with('$')) {
            return Ok(vec![Self::equal(value)]);
        }
        let options = fields.get("$options");
        if options.is_some() && fields.get("$regex").is_none() {
            return Err("$options needs a $regex".to_owned());
        }
        let others = fields.iter().filter(|(name, _)| &***name != "$options");
        others.map(|(name, value)| Self::parse_one(name, value, options)).collect()
    }

    fn parse_one(name: &str, value: &Value, options: Option<&Value>) -> Result<Self, String> {
        let compare = |comparison| Ok(Self::Compare(comparison, Literal::new(value)));
        let within = || match value {
            Value::List(values) => {
                let element = |value: &Value| match value {
                    Value::Fields(fields) if fields.get("$regex").is_some() => {
                        Self::parse(value).map(Self::All)
                    }
                    _ => Ok(Self::equal(value)),
                };
                Ok(Self::Any(values.iter().map(element).collect::<Result<_, String>>()?))
            }
            _ => Err(format!("{name} takes a list")),
        };
        match name {
            "$eq" => compare(Comparison::Equal),
            "$gt" => compare(Comparison::Greater),
            "$gte" => compare(Comparison::GreaterOrEqual),
            "$lt" => compare(Comparison::Less),
            "$lte" => compare(Comparison::LessOrEqual),
            "$ne" => Ok(Self::Not(Box::new(compare(Comparison::Equal)?))),
            "$in" => within(),
            "$nin" => Ok(Self::Not(Box::new(within()?))),
            "$exists" => Ok(Self::Exists(value.holds())),
            "$regex" => Ok(Self::Matches(pattern(value, options)?.into())),
            "$not" => match value {
                Value::Fields(fields) if fields.len() > 0 => {
                    Ok(Self::Not(Box::new(Self::All(Self::parse(value)?))))
                }
                _ => Err("$not takes a pattern or a document of conditions".to_owned()),
            },
            other => Err(format!(
                "{other} is not known; use $eq, $ne, $gt, $gte, $lt, $lte, $in, $nin, $exists, \
                 $regex or $not"
            )),
        }
    }

    fn equal(value: &Value) -> Self {
        Self::Compare(Comparison::Equal, Literal::new(value))
    }

    fn holds(&self, path: &Path, document: &Fields) -> bool {
        self.holds_for(&|visit| path.any(document, visit))
    }

    /// Whether it holds for a field with this text, or without the field.
    pub(super) fn holds_for_text(&self, text: Option<&str>) -> bool {
        let value = text.map(Value::text);
        self.holds_for(&|visit| value.as_ref().is_some_and(visit))
    }

    fn holds_for(&self, any: &Values<'_>) -> bool {
        match self {
            Self::Exists(wanted) => any(&mut |_| true) == *wanted,
            Self::Not(test) => !test.holds_for(any),
            Self::All(tests) => tests.iter().all(|test| test.holds_for(any)),
            Self::Any(tests) => tests.iter().any(|test| test.holds_for(any)),
            Self::Matches(pattern) => {
                any(&mut |value| value.as_text().is_some_and(|text| pattern.is_match(text)))
            }
            Self::Compare(comparison, literal) => comparison.holds(literal, any),
        }
    }

    /// Whether only a few values of a field can pass, so that it pays to look for these.
    pub(super) fn is_narrow(&self) -> bool {
        match self {
            Self::Compare(comparison, literal) => {
                *comparison == Comparison::Equal && literal.value != Value::Null
            }
            Self::Any(tests) => tests.iter().all(Self::is_narrow),
            Self::Matches(_) | Self::Exists(_) | Self::All(_) | Self::Not(_) => false,
        }
    }

    /// Whether it compares with a number, which only numbers and texts that spell one pass.
    pub(super) fn wants_number(&self) -> bool {
        match self {
            Self::Compare(_, literal) => literal.value.number().is_some(),
            Self::All(tests) | Self::Any(tests) => tests.iter().any(Self::wants_number),
            Self::Matches(_) | Self::Exists(_) | Self::Not(_) => false,
        }
    }

    /// The only text that passes, when there is just one.
    pub(super) fn only_text(&self) -> Option<&str> {
        match self {
            Self::Compare(Comparison::Equal, literal) => {
                literal.value.as_text().map(|text| &**text)
            }
            _ => None,
        }
    }
}

/// Compiles a pattern, which may be a document of its own.
pub(super) fn pattern(value: &Value, options: Option<&Value>) -> Result<Regex, String> {
    let (value, options) = match value {
        Value::Fields(fields) => {
            (fields.get("$regex").unwrap_or(value), fields.get("$options").or(options))
        }
        _ => (value, options),
    };
    let Some(text) = value.as_text() else {
        return Err("$regex takes a pattern as a text".to_owned());
    };
    let options = match options {
        None => "",
        Some(Value::Text(options)) => options,
        Some(_) => return Err("$options takes letters of imsx".to_owned()),
    };
    if let Some(other) = options.chars().find(|c| !"imsxu".contains(*c)) {
        return Err(format!("$options: {other} is not known; use letters of imsx"));
    }
    RegexBuilder::new(&go_regex::translated(text))
        .case_insensitive(options.contains('i'))
        .multi_line(options.contains('m'))
        .dot_matches_new_line(options.contains('s'))
        .ignore_whitespace(options.contains('x'))
        .size_limit(PATTERN_BYTES_MAX)
        .dfa_size_limit(2 * PATTERN_BYTES_MAX)
        .nest_limit(PATTERN_DEPTH_MAX)
        .build()
        .map_err(|cause| match cause {
            regex::Error::CompiledTooBig(_) => format!("$regex: {text:?} becomes too large"),
            other => format!("$regex: {other}"),
        })
}

impl Comparison {
    fn holds(self, literal: &Literal, any: &Values<'_>) -> bool {
        let accepts = |order: Ordering| match self {
            Self::Equal => order.is_eq(),
            Self::Greater => order.is_gt(),
            Self::GreaterOrEqual => order.is_ge(),
            Self::Less => order.is_lt(),
            Self::LessOrEqual => order.is_le(),
        };
        if any(&mut |value| literal.order(value).is_some_and(accepts)) {
            return true;
        }
        // Nothing equals null.
        literal.value == Value::Null && accepts(Ordering::Equal) && !any(&mut |_| true)
    }
}
