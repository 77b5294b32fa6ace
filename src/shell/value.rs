//! Values and documents of the shell, and their JSON form.
//!
//! Must never know: the meaning of values.

use std::sync::Arc;

use serde::{Serialize, Serializer, ser::SerializeMap};

use crate::model::UnixMillis;

/// The maximum depth of nested values.
pub const DEPTH_MAX: usize = 32;

/// The maximum length of a text that is parsed as a number.
const NUMBER_BYTES_MAX: usize = 64;

/// A value of a document.
#[derive(Debug, Clone, PartialEq)]
pub enum Value {
    /// Nothing.
    Null,
    /// True or false.
    Bool(bool),
    /// A whole number.
    Int(i64),
    /// A number with a fraction.
    Float(f64),
    /// A text.
    Text(Arc<str>),
    /// A time.
    Date(UnixMillis),
    /// An array.
    List(Vec<Value>),
    /// A document.
    Fields(Fields),
}

/// A document with its fields in order.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Fields(Vec<(Arc<str>, Value)>);

impl Fields {
    /// Returns the value of a field.
    pub fn get(&self, name: &str) -> Option<&Value> {
        self.0.iter().find(|(key, _)| **key == *name).map(|(_, value)| value)
    }

    /// Returns the value of a field, to change it.
    pub fn get_mut(&mut self, name: &str) -> Option<&mut Value> {
        self.0.iter_mut().find(|(key, _)| **key == *name).map(|(_, value)| value)
    }

    /// Replaces the value of a field, or appends the field.
    pub fn set(&mut self, name: Arc<str>, value: Value) {
        match self.get_mut(&name) {
            Some(current) => *current = value,
            None => self.0.push((name, value)),
        }
    }

    /// Removes a field.
    pub fn remove(&mut self, name: &str) {
        self.0.retain(|(key, _)| **key != *name);
    }

    /// Returns the fields in order.
    pub fn iter(&self) -> impl Iterator<Item = (&Arc<str>, &Value)> {
        self.0.iter().map(|(name, value)| (name, value))
    }

    /// Returns the only field of a document with one field.
    pub fn single(&self) -> Option<(&str, &Value)> {
        match &self.0[..] {
            [(name, value)] => Some((name, value)),
            _ => None,
        }
    }

    /// Returns the number of fields.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns true for a document without fields.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns the number of values in the document, or `None` when it is nested too deeply.
    pub fn size(&self) -> Option<usize> {
        size_of_fields(self, 0)
    }
}

impl IntoIterator for Fields {
    type Item = (Arc<str>, Value);
    type IntoIter = std::vec::IntoIter<Self::Item>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
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

/// Parses a number in decimal digits, such as `7`, `-2.5`, `007` or `1e3`.
fn parse_number(text: &str) -> Option<Value> {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    if text.len() > NUMBER_BYTES_MAX || !digits.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    let float = || text.parse().ok().filter(|number: &f64| number.is_finite()).map(Value::Float);
    text.parse().map(Value::Int).ok().or_else(float)
}

impl Value {
    /// Returns a text as a value.
    pub fn text(text: &str) -> Self {
        Self::Text(text.into())
    }

    /// Returns the number of nested values, or `None` when they are nested too deeply.
    pub fn size(&self) -> Option<usize> {
        size_of_value(self, 0)
    }

    /// Returns the string of a text.
    pub fn as_text(&self) -> Option<&Arc<str>> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    /// Returns the number of a whole number.
    pub fn as_whole(&self) -> Option<i64> {
        if let Self::Int(number) = self { Some(*number) } else { None }
    }

    /// Returns the time of a date.
    pub fn as_date(&self) -> Option<UnixMillis> {
        if let Self::Date(at) = self { Some(*at) } else { None }
    }

    /// Returns the number of a number.
    pub fn number(&self) -> Option<f64> {
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

    /// Returns the value as a number; parses the number in a text.
    pub fn to_number(&self) -> Option<Self> {
        match self {
            Self::Int(_) | Self::Float(_) => Some(self.clone()),
            Self::Text(text) => parse_number(text),
            Self::Null | Self::Bool(_) | Self::Date(_) | Self::List(_) | Self::Fields(_) => None,
        }
    }

    /// Returns the kind of value, for messages.
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Null => "null",
            Self::Bool(_) => "true or false",
            Self::Int(_) | Self::Float(_) => "a number",
            Self::Text(_) => "a text",
            Self::Date(_) => "a date",
            Self::List(_) => "an array",
            Self::Fields(_) => "a document",
        }
    }

    /// Returns the value as a condition: null, false and zero are false.
    pub fn is_truthy(&self) -> bool {
        match self {
            Self::Null => false,
            Self::Bool(flag) => *flag,
            Self::Int(number) => *number != 0,
            Self::Float(number) => *number != 0.0,
            Self::Text(_) | Self::Date(_) | Self::List(_) | Self::Fields(_) => true,
        }
    }

    /// Returns the rank of the value's type in MongoDB's sort order.
    pub fn rank(&self) -> u8 {
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

/// Serializes as relaxed extended JSON: dates are `{"$date": "2015-08-18T00:00:00Z"}`.
impl Serialize for Value {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        match self {
            Self::Null => serializer.serialize_unit(),
            Self::Bool(flag) => serializer.serialize_bool(*flag),
            Self::Int(number) => serializer.serialize_i64(*number),
            Self::Float(number) => serializer.serialize_f64(*number),
            Self::Text(text) => serializer.serialize_str(text),
            Self::Date(at) => {
                let mut map = serializer.serialize_map(Some(1))?;
                map.serialize_entry("$date", &at.to_string())?;
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
