//! Parsing of values and documents: JSON, extended JSON, and the syntax of MongoDB's shell with
//! unquoted names, single quotes, comments, trailing commas, patterns and `ISODate("...")`.
//!
//! Must never know: calls.

use super::{
    Reader, date,
    lexical::{end_of_quoted, is_quote},
};
use crate::{
    model::UnixMillis,
    shell::value::{DEPTH_MAX, Fields, Value},
};

/// The maximum number of fields in a document, because each name is compared with all previous
/// names.
const FIELDS_MAX: usize = 4096;

impl Reader<'_> {
    pub(super) fn value(&mut self, depth: usize) -> Result<Value, String> {
        if depth > DEPTH_MAX {
            return Err(format!("the value is nested deeper than {DEPTH_MAX} levels"));
        }
        self.skip();
        match self.rest().chars().next() {
            Some('{') => self.document(depth),
            Some('[') => self.list(depth),
            Some(quote) if is_quote(quote) => Ok(Value::Text(self.quoted(quote)?)),
            Some('/') => self.pattern(),
            Some(c) if c.is_ascii_digit() || matches!(c, '-' | '+' | '.') => self.number(),
            Some(_) => self.word(),
            None => Err(self.fault("a value")),
        }
    }

    fn document(&mut self, depth: usize) -> Result<Value, String> {
        let fields = self.braces(depth)?;
        match fields.single() {
            Some(("$date", value)) => self.extended_date(value),
            Some(("$numberLong" | "$numberInt" | "$numberDouble", Value::Text(text))) => {
                Reader::new(text).number()
            }
            _ => Ok(Value::Fields(fields)),
        }
    }

    fn braces(&mut self, depth: usize) -> Result<Fields, String> {
        if depth > DEPTH_MAX {
            return Err(format!("the value is nested deeper than {DEPTH_MAX} levels"));
        }
        self.expect("{")?;
        let mut fields = Fields::default();
        while !self.take("}") {
            // Some articles print an update as a document of documents: `{ {$set: ...}, {$inc: ...}
            // }`.
            let inner = self.rest().starts_with('{').then(|| self.braces(depth + 1)).transpose()?;
            let read = if let Some(fields) = inner {
                fields
            } else {
                let name = match self.rest().chars().next() {
                    Some(quote) if is_quote(quote) => self.quoted(quote)?,
                    _ => self.name()?.into(),
                };
                self.expect(":")?;
                std::iter::once((name, self.value(depth + 1)?)).collect()
            };
            for (name, value) in read {
                if fields.get(&name).is_some() {
                    return Err(format!("{name:?} occurs twice in a document"));
                }
                if fields.len() == FIELDS_MAX {
                    return Err(format!("a document has more than {FIELDS_MAX} fields"));
                }
                fields.set(name, value);
            }
            if !self.take(",") {
                self.expect("}")?;
                break;
            }
        }
        Ok(fields)
    }

    /// Parses `/pattern/letters`.
    fn pattern(&mut self) -> Result<Value, String> {
        let rest = self.rest();
        let Some(end) = end_of_quoted(rest, '/') else {
            return Err(self.fault("the end of a pattern"));
        };
        let pattern = rest.get(1..end).unwrap_or_default().replace("\\/", "/");
        self.at += end + 1;
        let mut fields: Fields =
            std::iter::once(("$regex".into(), Value::text(&pattern))).collect();
        let rest = self.rest();
        let letters = rest.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(rest.len());
        if letters > 0 {
            let options = rest.get(..letters).unwrap_or_default();
            fields.set("$options".into(), Value::text(options));
            self.at += letters;
        }
        Ok(Value::Fields(fields))
    }

    fn extended_date(&self, value: &Value) -> Result<Value, String> {
        let at = match value {
            Value::Text(text) => date(text),
            Value::Int(millis) => Some(UnixMillis(*millis)),
            Value::Null
            | Value::Bool(_)
            | Value::Float(_)
            | Value::Date(_)
            | Value::List(_)
            | Value::Fields(_) => None,
        };
        let in_time = at.filter(|at| at.0.unsigned_abs() <= UnixMillis::MAX.0 as u64);
        in_time.map(Value::Date).ok_or_else(|| self.fault("a date such as 2015-08-18T00:00:00Z"))
    }

    fn list(&mut self, depth: usize) -> Result<Value, String> {
        self.expect("[")?;
        let mut values = Vec::new();
        while !self.take("]") {
            values.push(self.value(depth + 1)?);
            if !self.take(",") {
                self.expect("]")?;
                break;
            }
        }
        Ok(Value::List(values))
    }

    fn word(&mut self) -> Result<Value, String> {
        let start = self.at;
        match self.name()? {
            "true" => Ok(Value::Bool(true)),
            "false" => Ok(Value::Bool(false)),
            "null" | "undefined" => Ok(Value::Null),
            "ISODate" => self.constructed_date(),
            "new" => {
                self.skip();
                match self.name()? {
                    "Date" | "ISODate" => self.constructed_date(),
                    _ => Err(self.fault("Date after new")),
                }
            }
            "NumberLong" | "NumberInt" | "Long" | "Int32" | "Double" => match self.argument()? {
                Value::Text(text) => Reader::new(&text).number(),
                number => Ok(number),
            },
            _ => {
                self.at = start;
                Err(self.fault("a value"))
            }
        }
    }

    fn constructed_date(&mut self) -> Result<Value, String> {
        let argument = self.argument()?;
        self.extended_date(&argument)
    }

    fn argument(&mut self) -> Result<Value, String> {
        self.expect("(")?;
        self.skip();
        let value = match self.rest().chars().next() {
            Some(quote) if is_quote(quote) => Value::Text(self.quoted(quote)?),
            _ => self.number()?,
        };
        self.expect(")")?;
        Ok(value)
    }
}
