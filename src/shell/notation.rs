//! Parsing of values, documents and calls: JSON, extended JSON, and the syntax of MongoDB's shell
//! with unquoted names, single quotes, comments, trailing commas, patterns and `ISODate("...")`.
//!
//! Must never know: what the values mean.

use std::sync::Arc;

use super::value::{DEPTH_MAX, Fields, Value};
use crate::model::UnixMillis;

/// The maximum number of chained calls, and of arguments of a call.
const CALLS_MAX: usize = 8;
/// The maximum number of fields in a document, because each name is compared with those before it.
const FIELDS_MAX: usize = 4096;

/// A parsed statement.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Statement {
    /// A value.
    Value(Value),
    /// The calls `db.NAME.METHOD(...)` and the calls on its result.
    Calls { collection: String, calls: Vec<Call> },
}

/// A method call with its arguments.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Call {
    pub(crate) method: String,
    pub(crate) arguments: Vec<Value>,
}

/// Parses a text that contains exactly one statement.
///
/// # Errors
/// When the text is invalid; the message names the line.
pub(crate) fn read(text: &str) -> Result<Statement, String> {
    let mut reader = Reader::new(text);
    let read = reader.next()?;
    if reader.is_at_end() { Ok(read) } else { Err(reader.fault("the end")) }
}

/// Parses a date in RFC 3339, or a day.
pub(crate) fn date(text: &str) -> Option<UnixMillis> {
    let instant = text.parse().ok().map(|at: jiff::Timestamp| UnixMillis(at.as_millisecond()));
    instant.or_else(|| text.parse().ok().map(UnixMillis::from_date))
}

/// A parser of consecutive statements.
pub(crate) struct Reader<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Reader<'t> {
    pub(crate) fn new(text: &'t str) -> Self {
        Self { text, at: 0 }
    }

    /// Returns true when no statement is left.
    pub(crate) fn is_at_end(&mut self) -> bool {
        self.skip();
        self.at >= self.text.len()
    }

    /// Parses a value, or calls up to a semicolon.
    ///
    /// # Errors
    /// When the text is invalid; the message names the line.
    pub(crate) fn next(&mut self) -> Result<Statement, String> {
        if !self.take("db.") {
            return Ok(Statement::Value(self.value(0)?));
        }
        let collection = self.collection()?;
        let mut calls = Vec::new();
        while calls.is_empty() || self.take(".") {
            if calls.len() == CALLS_MAX {
                return Err(self.fault("fewer calls"));
            }
            calls.push(self.call()?);
        }
        self.take(";");
        Ok(Statement::Calls { collection, calls })
    }

    fn call(&mut self) -> Result<Call, String> {
        self.skip();
        let method = self.name()?.to_owned();
        self.expect("(")?;
        let mut arguments = Vec::new();
        while !self.take(")") {
            if arguments.len() == CALLS_MAX {
                return Err(self.fault("fewer arguments"));
            }
            arguments.push(self.value(0)?);
            if !self.take(",") {
                self.expect(")")?;
                break;
            }
        }
        Ok(Call { method, arguments })
    }

    fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    fn fault(&self, wanted: &str) -> String {
        let line = self.text.get(..self.at).unwrap_or_default().split('\n').count();
        let found: String = self.rest().chars().take(20).collect();
        format!("line {line}: expected {wanted} at {found:?}")
    }

    /// Skips white space and comments.
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
        let is_next = self.rest().starts_with(mark);
        self.at += if is_next { mark.len() } else { 0 };
        is_next
    }

    fn expect(&mut self, mark: &str) -> Result<(), String> {
        if self.take(mark) { Ok(()) } else { Err(self.fault(mark)) }
    }

    /// Parses the name of a collection, up to the first method. Names may contain dots.
    fn collection(&mut self) -> Result<String, String> {
        let rest = self.rest();
        let is_method = |at: usize| {
            let after = rest.get(at + 1..).unwrap_or_default().trim_start();
            let end = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(0);
            end > 0 && after.get(end..).is_some_and(|after| after.trim_start().starts_with('('))
        };
        let stop = rest.find([';', '{']).unwrap_or(rest.len());
        let mut dots = rest.match_indices('.').map(|(at, _)| at).take_while(|at| *at < stop);
        let Some(at) = dots.find(|at| is_method(*at)) else {
            return Err(self.fault("NAME.METHOD(...), such as 1h.find({})"));
        };
        let name = rest.get(..at).unwrap_or_default().trim();
        self.at += at + 1;
        let quoted = name.strip_prefix("getCollection(").and_then(|name| name.strip_suffix(')'));
        let name = quoted.map_or(name, |name| name.trim_matches(['"', '\'']));
        Ok(name.to_owned())
    }

    fn value(&mut self, depth: usize) -> Result<Value, String> {
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

    /// Parses an unquoted name.
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

    /// Parses a quoted text with JSON's escapes.
    fn quoted(&mut self, quote: char) -> Result<Arc<str>, String> {
        let rest = self.rest();
        // Printed articles have typographic quotes.
        let closing = if quote == '\u{201c}' { '\u{201d}' } else { quote };
        let Some(end) = end_of_quoted(rest, closing) else {
            return Err(self.fault("the end of a string"));
        };
        let inner = rest.get(quote.len_utf8()..end).unwrap_or_default();
        self.at += end + closing.len_utf8();
        if !inner.contains('\\') {
            return Ok(inner.into());
        }
        // Only the quotes differ from JSON.
        let json = if quote == '"' { format!("\"{inner}\"") } else { escape_double_quotes(inner) };
        let text: Result<String, _> = serde_json::from_str(&json);
        text.map(Into::into).map_err(|cause| format!("invalid string: {cause}"))
    }
}

fn is_quote(c: char) -> bool {
    matches!(c, '"' | '\'' | '\u{201c}')
}

/// Returns the index of the quote that ends a text.
fn end_of_quoted(text: &str, closing: char) -> Option<usize> {
    let mut escaped = false;
    let mut ends = text.char_indices().skip(1).filter(|(_, c)| {
        let ends = *c == closing && !escaped;
        escaped = *c == '\\' && !escaped;
        ends
    });
    ends.next().map(|(end, _)| end)
}

fn escape_double_quotes(inner: &str) -> String {
    let plain = inner.replace("\\'", "'").replace("\\\"", "\"");
    format!("\"{}\"", plain.replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn json(text: &str) -> String {
        serde_json::to_string(&value(text)).unwrap()
    }

    fn value(text: &str) -> Value {
        match read(text).unwrap() {
            Statement::Value(value) => value,
            Statement::Calls { .. } => unreachable!("{text}"),
        }
    }

    fn shell(text: &str) -> String {
        let Statement::Calls { collection, calls } = read(text).unwrap() else {
            unreachable!("{text}")
        };
        let call = |Call { method, arguments }: &Call| {
            format!(" {method}{}", serde_json::to_string(arguments).unwrap())
        };
        calls.iter().map(call).fold(collection, |all, call| all + &call)
    }

    #[test]
    fn json_and_the_syntax_of_the_shell_are_parsed() {
        assert_eq!(
            json(r#" {"a": [1, -2.5, true, null, "x\n\u00e9\""], "b": {"$date": "2015-08-18"}} "#),
            r#"{"a":[1,-2.5,true,null,"x\né\""],"b":{"$date":"2015-08-18T00:00:00Z"}}"#
        );
        assert_eq!(
            shell(
                "db.test.aggregate([ // days
                {$match: {'days.date': {'$gte' : ISODate('2015-08-18T00:00:00.000Z')},}},
                /* and */ {$limit: NumberInt(3), s: 'it\\'s \"so\"', l: {$numberLong: '7'}},
            ], {allowDiskUse: true});"
            ),
            r#"test aggregate[[{"$match":{"days.date":{"$gte":{"$date":"2015-08-18T00:00:00Z"}}}},{"$limit":3,"s":"it's \"so\"","l":7}],{"allowDiskUse":true}]"#
        );
        assert_eq!(shell("db.getCollection('1h').aggregate([])"), "1h aggregate[[]]");
        assert_eq!(
            shell("db.page.views\n  .find( { path: /^\\/a.b/i } )\n  .sort({a: -1}).limit(3)"),
            r#"page.views find[{"path":{"$regex":"^/a.b","$options":"i"}}] sort[{"a":-1}] limit[3]"#
        );
        // The form in which articles print updates.
        assert_eq!(
            shell(
                "db.metrics.update({type: \u{201c}memory_used\u{201d}}, { {$set: {a: 1}}, {$inc: {b: 2}} })"
            ),
            r#"metrics update[{"type":"memory_used"},{"$set":{"a":1},"$inc":{"b":2}}]"#
        );
    }

    #[test]
    fn statements_are_parsed_one_after_the_other() {
        let mut reader = Reader::new("db.a.find();\n// next\n{x: 1}\ndb.b.find({})\noops(");
        assert!(matches!(reader.next().unwrap(), Statement::Calls { .. }));
        assert!(!reader.is_at_end());
        assert!(matches!(reader.next().unwrap(), Statement::Value(_)));
        assert!(matches!(reader.next().unwrap(), Statement::Calls { .. }));
        assert!(!reader.is_at_end());
        assert!(reader.next().unwrap_err().contains("line 5"));
        assert!(Reader::new(" // nothing").is_at_end());
    }

    #[test]
    fn errors_name_the_line() {
        let fault = |text: &str| read(text).unwrap_err();
        assert_eq!(fault("[1,\n 2"), "line 2: expected ] at \"\"");
        assert_eq!(fault("{a 1}"), "line 1: expected : at \"1}\"");
        assert_eq!(fault("[1] x"), "line 1: expected the end at \"x\"");
        assert_eq!(
            fault("db.test"),
            "line 1: expected NAME.METHOD(...), such as 1h.find({}) at \"test\""
        );
        assert!(fault(&format!("db.a.find(){}", ".find()".repeat(100))).contains("fewer calls"));
        assert!(fault("db.a.find(1,1,1,1,1,1,1,1,1,1)").contains("fewer arguments"));
        assert!(fault("/open").contains("the end of a pattern"));
        assert!(fault(&"{".repeat(100_000)).contains("deeper than 32"));
        assert_eq!(fault("{a: 1, a: 2}"), "\"a\" occurs twice in a document");
        assert!(fault("ISODate('soon')").contains("expected a date"));
        assert!(fault("'open").contains("the end of a string"));
        assert!(fault("1e999").contains("a number"));
        assert!(fault("forEach").contains("a value"));
        assert!(fault(&"[".repeat(100_000)).contains("deeper than 32"));
        assert!(fault(&"{a:".repeat(100_000)).contains("deeper than 32"));
        assert!(fault(&"new ".repeat(100_000)).contains("Date after new"));
    }
}
