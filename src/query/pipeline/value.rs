//! The values that flow through a pipeline, their order, and how they are written.
//!
//! Must never know: stages, or where documents come from.

use std::{cmp::Ordering, sync::Arc};

use serde::{Serialize, Serializer, ser::SerializeMap};

use crate::{model::UnixMillis, query::Timestamp};

/// Levels of nesting that a value may have.
pub(super) const DEPTH_MAX: usize = 32;

/// A value of a document.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(Arc<str>),
    Date(UnixMillis),
    List(Vec<Value>),
    Fields(Fields),
}

/// A document: fields in their order.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Fields(Vec<(Arc<str>, Value)>);

impl Fields {
    pub(super) fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(own, _)| **own == *name).map(|(_, value)| value)
    }

    pub(super) fn get_mut(&mut self, name: &str) -> Option<&mut Value> {
        self.0.iter_mut().find(|(own, _)| **own == *name).map(|(_, value)| value)
    }

    /// Replaces a field in its place, or adds it at the end.
    pub(super) fn set(&mut self, name: Arc<str>, value: Value) {
        match self.get_mut(&name) {
            Some(own) => *own = value,
            None => self.0.push((name, value)),
        }
    }

    pub(super) fn remove(&mut self, name: &str) {
        self.0.retain(|(own, _)| **own != *name);
    }

    pub(super) fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &Value)> {
        self.0.iter().map(|(name, value)| (name, value))
    }

    /// The only field, if there is just one.
    pub(super) fn single(&self) -> Option<(&str, &Value)> {
        match &self.0[..] {
            [(name, value)] => Some((name, value)),
            _ => None,
        }
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    /// Values in the document, or `None` when it nests too deep.
    pub(super) fn size(&self) -> Option<usize> {
        size_of_fields(self, 0)
    }
}

impl FromIterator<(Arc<str>, Value)> for Fields {
    fn from_iter<I: IntoIterator<Item = (Arc<str>, Value)>>(fields: I) -> Self {
        Self(fields.into_iter().collect())
    }
}

fn size_of_fields(fields: &Fields, depth: usize) -> Option<usize> {
    let mut sizes = fields.0.iter().map(|(_, value)| size_of_value(value, depth + 1));
    sizes.try_fold(1, |sum, size| Some(sum + size?))
}

fn size_of_value(value: &Value, depth: usize) -> Option<usize> {
    if depth > DEPTH_MAX {
        return None;
    }
    match value {
        Value::List(values) => {
            let sizes = values.iter().map(|value| size_of_value(value, depth + 1));
            sizes.into_iter().try_fold(1, |sum, size| Some(sum + size?))
        }
        Value::Fields(fields) => size_of_fields(fields, depth),
        Value::Text(text) => Some(1 + text.len() / 64),
        Value::Null | Value::Bool(_) | Value::Int(_) | Value::Float(_) | Value::Date(_) => Some(1),
    }
}

impl Value {
    pub(super) fn text(text: &str) -> Self {
        Self::Text(text.into())
    }

    /// Values in it, or `None` when it nests too deep.
    pub(super) fn size(&self) -> Option<usize> {
        size_of_value(self, 0)
    }

    pub(super) fn as_text(&self) -> Option<&Arc<str>> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    pub(super) fn as_date(&self) -> Option<UnixMillis> {
        if let Self::Date(at) = self { Some(*at) } else { None }
    }

    pub(super) fn number(&self) -> Option<f64> {
        match self {
            Self::Int(number) => Some(*number as f64),
            Self::Float(number) => Some(*number),
            Self::Null
            | Self::Bool(_)
            | Self::Text(_)
            | Self::Date(_)
            | Self::List(_)
            | Self::Fields(_) => None,
        }
    }

    /// As a condition: false, zero and nothing do not hold.
    pub(super) fn holds(&self) -> bool {
        match self {
            Self::Null => false,
            Self::Bool(held) => *held,
            Self::Int(number) => *number != 0,
            Self::Float(number) => *number != 0.0,
            Self::Text(_) | Self::Date(_) | Self::List(_) | Self::Fields(_) => true,
        }
    }

    /// What kind of value it is, in the order in which MongoDB sorts them.
    pub(super) fn rank(&self) -> u8 {
        match self {
            Self::Null => 0,
            Self::Int(_) | Self::Float(_) => 1,
            Self::Text(_) => 2,
            Self::Fields(_) => 3,
            Self::List(_) => 4,
            Self::Bool(_) => 5,
            Self::Date(_) => 6,
        }
    }
}

/// The order of values, whatever they are.
pub(super) fn compare(a: &Value, b: &Value) -> Ordering {
    match (a, b) {
        (Value::Int(a), Value::Int(b)) => a.cmp(b),
        (Value::Text(a), Value::Text(b)) => a.cmp(b),
        (Value::Date(a), Value::Date(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::List(a), Value::List(b)) => {
            let pairs = a.iter().zip(b).map(|(a, b)| compare(a, b));
            pairs.into_iter().find(|order| order.is_ne()).unwrap_or(a.len().cmp(&b.len()))
        }
        (Value::Fields(a), Value::Fields(b)) => {
            let pair = |((a_name, a), (b_name, b)): ((&Arc<str>, _), (&Arc<str>, _))| {
                a_name.cmp(b_name).then_with(|| compare(a, b))
            };
            let mut pairs = a.iter().zip(b.iter()).map(pair);
            pairs.find(|order| order.is_ne()).unwrap_or(a.len().cmp(&b.len()))
        }
        _ => match (a.number(), b.number()) {
            // Zero has no sign, and what is no number comes before all others.
            (Some(a), Some(b)) => a.partial_cmp(&b).unwrap_or_else(|| b.is_nan().cmp(&a.is_nan())),
            _ => a.rank().cmp(&b.rank()),
        },
    }
}

/// A value as the key of a group.
#[derive(Debug, Clone)]
pub(super) struct Key(pub(super) Value);

impl PartialEq for Key {
    fn eq(&self, other: &Self) -> bool {
        self.cmp(other).is_eq()
    }
}

impl Eq for Key {}

impl PartialOrd for Key {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Key {
    fn cmp(&self, other: &Self) -> Ordering {
        compare(&self.0, &other.0)
    }
}

/// As relaxed extended JSON: dates are `{"$date": "2015-08-18T00:00:00Z"}`.
impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(held) => serializer.serialize_bool(*held),
            Self::Int(number) => serializer.serialize_i64(*number),
            Self::Float(number) => serializer.serialize_f64(*number),
            Self::Text(text) => serializer.serialize_str(text),
            Self::Date(at) => {
                let mut map = serializer.serialize_map(Some(1))?;
                map.serialize_entry("$date", &Timestamp(*at))?;
                map.end()
            }
            Self::List(values) => serializer.collect_seq(values),
            Self::Fields(fields) => fields.serialize(serializer),
        }
    }
}

impl Serialize for Fields {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (&**name, value)))
    }
}
