//! Reads a pipeline as people write it: JSON, extended JSON, or as in MongoDB's shell with names
//! without quotes, single quotes, comments, trailing commas and `ISODate("...")`.
//!
//! Must never know: what the values mean.

use std::sync::Arc;

use super::value::{DEPTH_MAX, Fields, Value};
use crate::model::UnixMillis;

/// What was read, and the collection that a shell's `db.NAME.aggregate(...)` names.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Read {
    pub(super) collection: Option<String>,
    pub(super) value: Value,
}

/// Reads a text whole.
///
/// # Errors
/// With the place of what cannot be read.
pub(super) fn read(text: &str) -> Result<Read, String> {
    let mut reader = Reader { text, at: 0 };
    reader.skip();
    let collection = reader.collection()?;
    let value = reader.value(0)?;
    reader.skip();
    if collection.is_some() {
        if reader.take(",") {
            // Options of the shell, such as allowDiskUse, change nothing here.
            reader.value(0)?;
        }
        reader.expect(")")?;
        reader.take(";");
    }
    reader.skip();
    if reader.at < text.len() {
        return Err(reader.fault("the end"));
    }
    Ok(Read { collection, value })
}

/// A date as RFC 3339, or only its day.
pub(super) fn date(text: &str) -> Option<UnixMillis> {
    let instant = text.parse().ok().map(|at: jiff::Timestamp| UnixMillis(at.as_millisecond()));
    instant.or_else(|| text.parse().ok().map(UnixMillis::from_date))
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Reader<'t> {
    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn fault(&self, wanted: &str) -> String {
        let line = self.text.get(..self.at).unwrap_or_default().split('\n').count();
        let found: String = self.rest().chars().take(20).collect();
        format!("line {line}: expected {wanted} at {found:?}")
    }

    /// Passes over white space and comments.
    fn skip(&mut self) {
        loop {
            let trimmed = self.rest().trim_start();
            self.at = self.text.len() - trimmed.len();
            let length = if trimmed.starts_with("//") {
                trimmed.find('\n')
            } else if trimmed.starts_with("/*") {
                trimmed.find("*/").map(|end| end + 2)
            } else {
                return;
            };
            self.at += length.unwrap_or(trimmed.len());
        }
    }

    fn take(&mut self, mark: &str) -> bool {
        self.skip();
        let is_there = self.rest().starts_with(mark);
        self.at += if is_there { mark.len() } else { 0 };
        is_there
    }

    fn expect(&mut self, mark: &str) -> Result<(), String> {
        if self.take(mark) { Ok(()) } else { Err(self.fault(mark)) }
    }

    /// `db.NAME.aggregate(` at the beginning.
    fn collection(&mut self) -> Result<Option<String>, String> {
        if !self.take("db.") {
            return Ok(None);
        }
        let Some((name, rest)) = self.rest().split_once(".aggregate") else {
            return Err(self.fault("NAME.aggregate([...])"));
        };
        self.at = self.text.len() - rest.len();
        self.expect("(")?;
        let quoted = name.strip_prefix("getCollection(").and_then(|name| name.strip_suffix(')'));
        let name = quoted.map_or(name, |name| name.trim_matches(['"', '\'']));
        Ok(Some(name.to_owned()))
    }

    fn value(&mut self, depth: usize) -> Result<Value, String> {
        if depth > DEPTH_MAX {
            return Err(format!("it nests deeper than {DEPTH_MAX} levels"));
        }
        self.skip();
        match self.rest().chars().next() {
            Some('{') => self.document(depth),
            Some('[') => self.list(depth),
            Some(quote @ ('"' | '\'')) => Ok(Value::Text(self.quoted(quote)?)),
            Some(c) if c.is_ascii_digit() || matches!(c, '-' | '+' | '.') => self.number(),
            Some(_) => self.word(),
            None => Err(self.fault("a value")),
        }
    }

    fn document(&mut self, depth: usize) -> Result<Value, String> {
        self.expect("{")?;
        let mut fields = Fields::default();
        while !self.take("}") {
            let name = match self.rest().chars().next() {
                Some(quote @ ('"' | '\'')) => self.quoted(quote)?,
                _ => self.name()?.into(),
            };
            self.expect(":")?;
            let value = self.value(depth + 1)?;
            if fields.get(&name).is_some() {
                return Err(format!("{name:?} is given twice in a document"));
            }
            fields.set(name, value);
            if !self.take(",") {
                self.expect("}")?;
                break;
            }
        }
        match fields.single() {
            Some(("$date", value)) => self.extended_date(value),
            Some(("$numberLong" | "$numberInt" | "$numberDouble", Value::Text(text))) => {
                Reader { text, at: 0 }.number()
            }
            _ => Ok(Value::Fields(fields)),
        }
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

    /// A name without quotes.
    fn name(&mut self) -> Result<&'t str, String> {
        let rest = self.rest();
        let is_part = |c: char| c.is_alphanumeric() || matches!(c, '_' | '$');
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        match rest.get(..end) {
            Some(name) if !name.is_empty() => {
                self.at += end;
                Ok(name)
            }
            _ => Err(self.fault("a name")),
        }
    }

    fn word(&mut self) -> Result<Value, String> {
        let begin = self.at;
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
                Value::Text(text) => Reader { text: &text, at: 0 }.number(),
                number => Ok(number),
            },
            _ => {
                self.at = begin;
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
            Some(quote @ ('"' | '\'')) => Value::Text(self.quoted(quote)?),
            _ => self.number()?,
        };
        self.expect(")")?;
        Ok(value)
    }

    fn number(&mut self) -> Result<Value, String> {
        let rest = self.rest();
        let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '+' | '.');
        let end = rest.find(|c| !is_part(c)).unwrap_or(rest.len());
        let text = rest.get(..end).unwrap_or_default();
        let float = || text.parse().ok().filter(|number: &f64| number.is_finite());
        let number = text.parse().map(Value::Int).ok().or_else(|| float().map(Value::Float));
        let number = number.ok_or_else(|| self.fault("a number"))?;
        self.at += end;
        Ok(number)
    }

    /// A text in quotes, with the escapes of JSON.
    fn quoted(&mut self, quote: char) -> Result<Arc<str>, String> {
        let begin = self.at;
        let rest = self.rest();
        let mut escaped = false;
        let mut ends = rest.char_indices().skip(1).filter(|(_, c)| {
            let ends = *c == quote && !escaped;
            escaped = *c == '\\' && !escaped;
            ends
        });
        let Some((end, _)) = ends.next() else { return Err(self.fault("the end of a text")) };
        let inner = rest.get(1..end).unwrap_or_default();
        self.at = begin + end + 1;
        if !inner.contains('\\') {
            return Ok(inner.into());
        }
        // Only the quotes differ from JSON.
        let json = if quote == '"' { format!("\"{inner}\"") } else { escape_double_quotes(inner) };
        let text: Result<String, _> = serde_json::from_str(&json);
        text.map(Into::into).map_err(|cause| format!("a text cannot be read: {cause}"))
    }
}

fn escape_double_quotes(inner: &str) -> String {
    let plain = inner.replace("\\'", "'").replace("\\\"", "\"");
    format!("\"{}\"", plain.replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> String {
        serde_json::to_string(&read(text).unwrap().value).unwrap()
    }

    #[test]
    fn json_and_the_language_of_the_shell_are_read() {
        assert_eq!(
            json(r#" {"a": [1, -2.5, true, null, "x\n\u00e9\""], "b": {"$date": "2015-08-18"}} "#),
            r#"{"a":[1,-2.5,true,null,"x\né\""],"b":{"$date":"2015-08-18T00:00:00Z"}}"#
        );
        let shell = read(
            "db.test.aggregate([ // days
                {$match: {'days.date': {'$gte' : ISODate('2015-08-18T00:00:00.000Z')},}},
                /* and */ {$limit: NumberInt(3), s: 'it\\'s \"so\"', l: {$numberLong: '7'}},
            ], {allowDiskUse: true});",
        )
        .unwrap();
        assert_eq!(shell.collection.as_deref(), Some("test"));
        assert_eq!(
            serde_json::to_string(&shell.value).unwrap(),
            r#"[{"$match":{"days.date":{"$gte":{"$date":"2015-08-18T00:00:00Z"}}}},{"$limit":3,"s":"it's \"so\"","l":7}]"#
        );
        assert_eq!(read("db.getCollection('1h').aggregate([])").unwrap().collection.unwrap(), "1h");
    }

    #[test]
    fn what_cannot_be_read_is_named_with_its_line() {
        let fault = |text: &str| read(text).unwrap_err();
        assert_eq!(fault("[1,\n 2"), "line 2: expected ] at \"\"");
        assert_eq!(fault("{a 1}"), "line 1: expected : at \"1}\"");
        assert_eq!(fault("[1] x"), "line 1: expected the end at \"x\"");
        assert_eq!(
            fault("db.test.find({})"),
            "line 1: expected NAME.aggregate([...]) at \"test.find({})\""
        );
        assert_eq!(fault("{a: 1, a: 2}"), "\"a\" is given twice in a document");
        assert!(fault("ISODate('soon')").contains("expected a date"));
        assert!(fault("'open").contains("the end of a text"));
        assert!(fault("1e999").contains("a number"));
        assert!(fault("forEach").contains("a value"));
        assert!(fault(&"[".repeat(100_000)).contains("deeper than 32"));
        assert!(fault(&"{a:".repeat(100_000)).contains("deeper than 32"));
        assert!(fault(&"new ".repeat(100_000)).contains("Date after new"));
    }
}
