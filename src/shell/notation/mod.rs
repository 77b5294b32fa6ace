//! Parsing of statements: values, and calls such as `db.views.find({...})`.
//!
//! `values` parses values and documents, `lexical` parses single tokens. Must never know: what the
//! values mean.

mod lexical;
mod values;

use super::value::Value;
use crate::model::UnixMillis;

/// The maximum number of chained calls, and of arguments of a call.
const CALLS_MAX: usize = 8;
/// A parsed statement.
#[derive(Debug, Clone, PartialEq)]
pub enum Statement {
    /// A value.
    Value(Value),
    /// The calls `db.NAME.METHOD(...)` and the calls on its result.
    Calls {
        /// The name of the collection.
        collection: String,
        /// The calls in order.
        calls: Vec<Call>,
    },
}

/// A method call with its arguments.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// The name of the method.
    pub method: String,
    /// The arguments in order.
    pub arguments: Vec<Value>,
}

/// Parses a text that contains exactly one statement.
///
/// # Errors
/// When the text is invalid; the message names the line.
pub fn read(text: &str) -> Result<Statement, String> {
    let mut reader = Reader::new(text);
    let read = reader.next_statement()?;
    if reader.is_at_end() { Ok(read) } else { Err(reader.fault("the end")) }
}

/// Parses a date in RFC 3339, or a day.
pub fn date(text: &str) -> Option<UnixMillis> {
    let instant = text.parse().ok().map(|at: jiff::Timestamp| UnixMillis(at.as_millisecond()));
    instant.or_else(|| text.parse().ok().map(UnixMillis::from_date))
}

/// A parser of consecutive statements.
pub struct Reader<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Reader<'t> {
    /// Returns a parser at the start of a text.
    pub fn new(text: &'t str) -> Self {
        Self { text, at: 0 }
    }

    /// Returns true when no statement is left.
    pub fn is_at_end(&mut self) -> bool {
        self.skip();
        self.at >= self.text.len()
    }

    /// Parses a value, or calls up to a semicolon.
    ///
    /// # Errors
    /// When the text is invalid; the message names the line.
    pub fn next_statement(&mut self) -> Result<Statement, String> {
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
        assert!(matches!(reader.next_statement().unwrap(), Statement::Calls { .. }));
        assert!(!reader.is_at_end());
        assert!(matches!(reader.next_statement().unwrap(), Statement::Value(_)));
        assert!(matches!(reader.next_statement().unwrap(), Statement::Calls { .. }));
        assert!(!reader.is_at_end());
        assert!(reader.next_statement().unwrap_err().contains("line 5"));
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
