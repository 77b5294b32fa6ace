//! The conditions of `$match`.
//!
//! Must never know: stages. `pushdown.rs` reads from them which series and times are wanted.

use std::cmp::Ordering;

use super::{
    notation::date,
    path::Path,
    value::{Fields, Value, compare},
};
use crate::model::UnixMillis;

/// A condition on a document.
#[derive(Debug, Clone)]
pub(super) enum Predicate {
    All(Vec<Predicate>),
    Any(Vec<Predicate>),
    None(Vec<Predicate>),
    Field(Path, Test),
}

/// A condition on the value of a field.
#[derive(Debug, Clone)]
pub(super) enum Test {
    Compare(Comparison, Literal),
    In(Vec<Literal>),
    Exists(bool),
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
    /// A number as it is written, for tags, which are texts.
    text: Option<String>,
}

impl Literal {
    fn new(value: &Value) -> Self {
        let date = value.as_date().or_else(|| value.as_text().and_then(|text| date(text)));
        let text = match value {
            Value::Int(number) => Some(number.to_string()),
            Value::Float(number) => Some(number.to_string()),
            Value::Text(text) => Some(text.to_string()),
            Value::Null | Value::Bool(_) | Value::Date(_) | Value::List(_) | Value::Fields(_) => {
                None
            }
        };
        Self { value: value.clone(), date, text }
    }

    pub(super) fn as_date(&self) -> Option<UnixMillis> {
        self.date
    }

    /// What a tag must be to be equal.
    pub(super) fn as_tag(&self) -> Option<&str> {
        self.text.as_deref()
    }

    /// How a value compares; `None` when they are of different kinds.
    fn order(&self, value: &Value) -> Option<Ordering> {
        match value {
            Value::Date(at) => self.date.map(|date| at.cmp(&date)),
            Value::Text(text) => match (&self.value, &self.text) {
                (Value::Text(own), _) => Some(text.cmp(own)),
                (_, Some(own)) => (**text == **own).then_some(Ordering::Equal),
                (_, None) => None,
            },
            Value::Null
            | Value::Bool(_)
            | Value::Int(_)
            | Value::Float(_)
            | Value::List(_)
            | Value::Fields(_) => {
                (value.rank() == self.value.rank()).then(|| compare(value, &self.value))
            }
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
                other if other.starts_with('$') => {
                    return Err(format!("{other} is not known; use $and, $or, $nor or a field"));
                }
                path => {
                    let path = Path::parse(path)?;
                    let tests = parse_tests(value)?.into_iter();
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

    pub(super) fn holds(&self, document: &Fields) -> bool {
        match self {
            Self::All(own) => own.iter().all(|predicate| predicate.holds(document)),
            Self::Any(own) => own.iter().any(|predicate| predicate.holds(document)),
            Self::None(own) => !own.iter().any(|predicate| predicate.holds(document)),
            Self::Field(path, test) => test.holds(path, document),
        }
    }

    /// Hands out every field that is looked at.
    pub(super) fn for_each_field(&self, visit: &mut dyn FnMut(&Path)) {
        match self {
            Self::All(own) | Self::Any(own) | Self::None(own) => {
                for predicate in own {
                    predicate.for_each_field(visit);
                }
            }
            Self::Field(path, _) => visit(path),
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
            Self::Any(_) | Self::None(_) => {}
        }
    }
}

fn parse_tests(value: &Value) -> Result<Vec<Test>, String> {
    match value {
        Value::Fields(fields) if fields.iter().any(|(name, _)| name.starts_with('$')) => {
            fields.iter().map(|(name, value)| parse_test(name, value)).collect()
        }
        _ => Ok(vec![Test::Compare(Comparison::Equal, Literal::new(value))]),
    }
}

fn parse_test(name: &str, value: &Value) -> Result<Test, String> {
    let compare = |comparison| Ok(Test::Compare(comparison, Literal::new(value)));
    let within = || match value {
        Value::List(values) => Ok(Test::In(values.iter().map(Literal::new).collect())),
        _ => Err(format!("{name} takes a list")),
    };
    match name {
        "$eq" => compare(Comparison::Equal),
        "$gt" => compare(Comparison::Greater),
        "$gte" => compare(Comparison::GreaterOrEqual),
        "$lt" => compare(Comparison::Less),
        "$lte" => compare(Comparison::LessOrEqual),
        "$ne" => Ok(Test::Not(Box::new(compare(Comparison::Equal)?))),
        "$in" => within(),
        "$nin" => Ok(Test::Not(Box::new(within()?))),
        "$exists" => Ok(Test::Exists(value.holds())),
        "$not" => match value {
            Value::Fields(fields) => match fields.single() {
                Some((name, value)) => Ok(Test::Not(Box::new(parse_test(name, value)?))),
                None => Err("$not takes a document with one condition".to_owned()),
            },
            _ => Err("$not takes a document with one condition".to_owned()),
        },
        other => Err(format!(
            "{other} is not known; use $eq, $ne, $gt, $gte, $lt, $lte, $in, $nin, $exists or $not"
        )),
    }
}

impl Test {
    fn holds(&self, path: &Path, document: &Fields) -> bool {
        match self {
            Self::Exists(wanted) => path.any(document, &mut |_| true) == *wanted,
            Self::Not(test) => !test.holds(path, document),
            Self::In(literals) => {
                literals.iter().any(|literal| Comparison::Equal.holds(literal, path, document))
            }
            Self::Compare(comparison, literal) => comparison.holds(literal, path, document),
        }
    }
}

impl Comparison {
    fn holds(self, literal: &Literal, path: &Path, document: &Fields) -> bool {
        let accepts = |order: Ordering| match self {
            Self::Equal => order.is_eq(),
            Self::Greater => order.is_gt(),
            Self::GreaterOrEqual => order.is_ge(),
            Self::Less => order.is_lt(),
            Self::LessOrEqual => order.is_le(),
        };
        if path.any(document, &mut |value| literal.order(value).is_some_and(accepts)) {
            return true;
        }
        // Nothing equals null.
        literal.value == Value::Null
            && accepts(Ordering::Equal)
            && !path.any(document, &mut |_| true)
    }
}
