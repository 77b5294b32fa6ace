//! The conditions of `$match`.
//!
//! Must never know: stages. `pushdown.rs` derives the required series and times from them.

use std::{cmp::Ordering, sync::Arc};

use regex::Regex;

use super::{
    expression::Expression,
    notation::date,
    order::order,
    path::Path,
    pattern::pattern,
    quota::Share,
    value::{Fields, Value},
};
use crate::{model::UnixMillis, query::QueryError};

/// A condition on a document.
#[derive(Debug, Clone)]
pub(super) enum Predicate {
    All(Vec<Predicate>),
    Any(Vec<Predicate>),
    None(Vec<Predicate>),
    Field(Path, Test),
    /// The condition `$expr`.
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

/// A literal to compare with.
#[derive(Debug, Clone)]
pub(super) struct Literal {
    pub(super) value: Value,
    /// The literal as a date, for comparison with dates.
    date: Option<UnixMillis>,
}

/// A function that passes each value of a field to another function until that function returns
/// true, and then returns true.
type VisitValues<'v> = dyn Fn(&mut dyn FnMut(&Value) -> bool) -> bool + 'v;

impl Literal {
    fn new(value: &Value) -> Self {
        let date = value.as_date().or_else(|| value.as_text().and_then(|text| date(text)));
        Self { value: value.clone(), date }
    }

    pub(super) fn as_date(&self) -> Option<UnixMillis> {
        self.date
    }

    /// Compares a value with the literal; `None` when their types differ.
    fn order(&self, value: &Value) -> Option<Ordering> {
        match value {
            Value::Date(at) => self.date.map(|date| at.cmp(&date)),
            _ => order(value, &self.value),
        }
    }
}

impl Predicate {
    /// Parses the document of a `$match`.
    ///
    /// # Errors
    /// When the condition is invalid; the message names the known operators.
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

    /// Returns true when a document matches. Values that expressions create are charged to `share`.
    ///
    /// # Errors
    /// When an expression cannot be evaluated.
    pub(super) fn holds(
        &self,
        document: &Fields,
        share: &mut Share<'_>,
    ) -> Result<bool, QueryError> {
        let (predicates, decisive) = match self {
            Self::All(predicates) => (predicates, false),
            Self::Any(predicates) | Self::None(predicates) => (predicates, true),
            Self::Field(path, test) => return Ok(test.holds(path, document)),
            Self::Computed(expression) => {
                return Ok(expression
                    .evaluate(document, share)?
                    .is_some_and(|value| value.is_truthy()));
            }
        };
        for predicate in predicates {
            if predicate.holds(document, share)? == decisive {
                return Ok(matches!(self, Self::Any(_)));
            }
        }
        Ok(!matches!(self, Self::Any(_)))
    }

    /// Calls `visit` with every field that the condition reads; `None` for an expression, which may
    /// read any field.
    pub(super) fn for_each_field(&self, visit: &mut dyn FnMut(Option<&Path>)) {
        match self {
            Self::All(predicates) | Self::Any(predicates) | Self::None(predicates) => {
                for predicate in predicates {
                    predicate.for_each_field(visit);
                }
            }
            Self::Field(path, _) => visit(Some(path)),
            Self::Computed(_) => visit(None),
        }
    }

    /// Calls `visit` with the tests that every matching document passes.
    pub(super) fn for_each_required_test(&self, visit: &mut dyn FnMut(&Path, &Test)) {
        match self {
            Self::All(predicates) => {
                for predicate in predicates {
                    predicate.for_each_required_test(visit);
                }
            }
            Self::Field(path, test) => visit(path, test),
            Self::Any(_) | Self::None(_) | Self::Computed(_) => {}
        }
    }
}

impl Test {
    /// Parses the condition of a field: a value, a pattern, or a document of operators.
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
        let in_list = || match value {
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
            "$in" => in_list(),
            "$nin" => Ok(Self::Not(Box::new(in_list()?))),
            "$exists" => Ok(Self::Exists(value.is_truthy())),
            "$regex" => Ok(Self::Matches(pattern(value, options)?.into())),
            "$not" => match value {
                Value::Fields(fields) if !fields.is_empty() => {
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
        self.holds_for(&|visit| path.any_value(document, visit))
    }

    /// Returns true when a field with this text, or a missing field, passes the test.
    pub(super) fn holds_for_text(&self, text: Option<&str>) -> bool {
        let value = text.map(Value::text);
        self.holds_for(&|visit| value.as_ref().is_some_and(visit))
    }

    fn holds_for(&self, any: &VisitValues<'_>) -> bool {
        match self {
            Self::Exists(must_exist) => any(&mut |_| true) == *must_exist,
            Self::Not(test) => !test.holds_for(any),
            Self::All(tests) => tests.iter().all(|test| test.holds_for(any)),
            Self::Any(tests) => tests.iter().any(|test| test.holds_for(any)),
            Self::Matches(pattern) => {
                any(&mut |value| value.as_text().is_some_and(|text| pattern.is_match(text)))
            }
            Self::Compare(comparison, literal) => comparison.holds(literal, any),
        }
    }

    /// Returns true when few values of a field pass, so that searching for them pays off.
    pub(super) fn is_narrow(&self) -> bool {
        match self {
            Self::Compare(comparison, literal) => {
                *comparison == Comparison::Equal && literal.value != Value::Null
            }
            Self::Any(tests) => tests.iter().all(Self::is_narrow),
            Self::Matches(_) | Self::Exists(_) | Self::All(_) | Self::Not(_) => false,
        }
    }

    /// Returns true when the test compares with a number: only numbers, and texts that spell a
    /// number, can pass the test.
    pub(super) fn wants_number(&self) -> bool {
        match self {
            Self::Compare(_, literal) => literal.value.number().is_some(),
            Self::All(tests) | Self::Any(tests) => tests.iter().any(Self::wants_number),
            Self::Matches(_) | Self::Exists(_) | Self::Not(_) => false,
        }
    }

    /// Returns the only text that passes, if there is exactly one.
    pub(super) fn only_text(&self) -> Option<&str> {
        match self {
            Self::Compare(Comparison::Equal, literal) => {
                literal.value.as_text().map(|text| &**text)
            }
            _ => None,
        }
    }
}

impl Comparison {
    fn holds(self, literal: &Literal, any: &VisitValues<'_>) -> bool {
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
        // A missing value equals null.
        literal.value == Value::Null && accepts(Ordering::Equal) && !any(&mut |_| true)
    }
}
