//! Label matchers with Alertmanager's meaning: `=`, `!=`, `=~`, `!~`. Patterns match whole values,
//! and a missing label is empty.
//!
//! Must never know: what matchers are used for.

use std::{fmt, sync::Arc};

use regex::Regex;
use serde::{Deserialize, Serialize};

use super::LabelSet;
use crate::query::{Budget, ExpressionLimits, whole_pattern};

/// The maximum size of a label's name, and of a value or pattern, in bytes.
const NAME_BYTES_MAX: usize = 256;
const VALUE_BYTES_MAX: usize = 4096;
/// The maximum size of a compiled pattern, in bytes.
const PATTERN_BYTES_MAX: usize = 64 << 10;
/// The limits of a pattern.
const LIMITS: ExpressionLimits<'static> = ExpressionLimits {
    series_max: 0,
    points_max: 0,
    steps_max: 0,
    query_bytes_max: VALUE_BYTES_MAX,
    regex_bytes_max: PATTERN_BYTES_MAX,
    budget: &Budget::UNLIMITED,
};
/// The operators, longer ones first: their text, whether the value is a pattern, and whether it
/// must be equal or match.
const OPERATORS: [(&str, bool, bool); 4] =
    [("=~", true, true), ("!~", true, false), ("!=", false, false), ("=", false, true)];

/// A matcher: a label and the condition on its value.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(try_from = "RawMatcher", into = "RawMatcher")]
pub struct LabelMatcher {
    name: String,
    value: String,
    is_equal: bool,
    pattern: Option<Arc<Regex>>,
}

/// A matcher in the form of Alertmanager's API.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
struct RawMatcher {
    name: String,
    value: String,
    is_regex: bool,
    #[serde(default = "yes")]
    is_equal: bool,
}

fn yes() -> bool {
    true
}

impl TryFrom<RawMatcher> for LabelMatcher {
    type Error = String;

    fn try_from(written: RawMatcher) -> Result<Self, String> {
        let RawMatcher { name, value, is_regex, is_equal } = written;
        Self::new(&name, &value, is_regex, is_equal)
    }
}

impl From<LabelMatcher> for RawMatcher {
    fn from(matcher: LabelMatcher) -> Self {
        let (is_regex, is_equal) = (matcher.is_pattern(), matcher.is_equal);
        Self { name: matcher.name, value: matcher.value, is_regex, is_equal }
    }
}

impl PartialEq for LabelMatcher {
    fn eq(&self, other: &Self) -> bool {
        let operator = |matcher: &Self| (matcher.is_pattern(), matcher.is_equal);
        operator(self) == operator(other) && self.name == other.name && self.value == other.value
    }
}

impl LabelMatcher {
    /// Creates a matcher of a label; a pattern must match the whole value.
    ///
    /// # Errors
    /// When the name or the pattern is invalid.
    pub fn new(name: &str, value: &str, is_regex: bool, is_equal: bool) -> Result<Self, String> {
        let is_word = |(at, c): (usize, char)| {
            c == '_' || c.is_ascii_alphabetic() || (at > 0 && c.is_ascii_digit())
        };
        let is_name = !name.is_empty() && name.len() <= NAME_BYTES_MAX;
        if !is_name || !name.char_indices().all(is_word) {
            return Err(format!("invalid label name {name:?}"));
        }
        if value.len() > VALUE_BYTES_MAX {
            let message = format!("{} bytes exceed the limit of {VALUE_BYTES_MAX}", value.len());
            return Err(format!("the matcher of {name}: {message}"));
        }
        let pattern = is_regex.then(|| whole_pattern(value, &LIMITS)).transpose();
        let pattern = pattern.map_err(|cause| format!("the matcher of {name}: {cause}"))?;
        Ok(Self { name: name.to_owned(), value: value.to_owned(), is_equal, pattern })
    }

    /// Parses one matcher such as `host=~"web.*"`; the quotes may be omitted.
    ///
    /// # Errors
    /// When the text is not a matcher.
    pub fn parse(text: &str) -> Result<Self, String> {
        let invalid = || format!("{text:?} is not a matcher; write host=web1 or host=~\"web.*\"");
        let text = text.trim();
        let at = text.find(['=', '!']).ok_or_else(invalid)?;
        let (name, rest) = text.split_at_checked(at).ok_or_else(invalid)?;
        let mut all = OPERATORS.iter();
        let found = all.find_map(|operator| Some((operator, rest.strip_prefix(operator.0)?)));
        let ((_, is_regex, is_equal), value) = found.ok_or_else(invalid)?;
        let value = unquoted(value.trim()).ok_or_else(invalid)?;
        Self::new(name.trim(), &value, *is_regex, *is_equal)
    }

    /// Parses a list of matchers such as `{a="b", c!="d"}`; the braces may be omitted.
    ///
    /// # Errors
    /// When a part of the text is not a matcher.
    pub fn parse_all(text: &str) -> Result<Vec<Self>, String> {
        let text = text.trim();
        let list = text.strip_prefix('{').map_or(Some(text), |rest| rest.strip_suffix('}'));
        let list = list.ok_or_else(|| format!("{text:?} lacks a closing brace"))?;
        let (mut is_quoted, mut is_escaped) = (false, false);
        let is_separator = |c: char| {
            let is_end = c == ',' && !is_quoted;
            is_quoted ^= c == '"' && !is_escaped;
            is_escaped = c == '\\' && !is_escaped;
            is_end
        };
        let parts: Vec<_> = list.split(is_separator).map(str::trim).collect();
        parts.into_iter().filter(|part| !part.is_empty()).map(Self::parse).collect()
    }

    /// Returns the label's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the value or pattern.
    pub fn value(&self) -> &str {
        &self.value
    }

    /// Returns whether the value is a pattern.
    pub fn is_pattern(&self) -> bool {
        self.pattern.is_some()
    }

    /// Returns whether the value must be equal or match; false for the opposite.
    pub fn is_equal(&self) -> bool {
        self.is_equal
    }

    /// Returns whether a value meets the condition.
    pub fn accepts(&self, value: &str) -> bool {
        let is_same = match &self.pattern {
            Some(pattern) => pattern.is_match(value),
            None => self.value == value,
        };
        is_same == self.is_equal
    }

    /// Returns whether the labels meet the condition.
    pub fn matches(&self, labels: &LabelSet) -> bool {
        self.accepts(labels.get(&self.name).map_or("", String::as_str))
    }
}

impl fmt::Display for LabelMatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let kind = (self.is_pattern(), self.is_equal);
        let mut all = OPERATORS.iter();
        let operator = all
            .find(|operator| (operator.1, operator.2) == kind)
            .map_or("=", |operator| operator.0);
        write!(f, "{}{operator}{:?}", self.name, self.value)
    }
}

/// Removes the quotes of a value; `None` when a quote or an escape is wrong.
fn unquoted(text: &str) -> Option<String> {
    let Some(rest) = text.strip_prefix('"') else {
        return (!text.contains('"')).then(|| text.to_owned());
    };
    let (mut out, mut chars) = (String::new(), rest.chars());
    loop {
        match chars.next()? {
            '"' => return chars.as_str().is_empty().then_some(out),
            '\\' => match chars.next()? {
                'n' => out.push('\n'),
                c @ ('"' | '\\') => out.push(c),
                // Other escapes stay, because they may belong to a pattern.
                other => out.extend(['\\', other]),
            },
            c => out.push(c),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(pairs: &[(&str, &str)]) -> LabelSet {
        pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
    }

    #[test]
    fn patterns_match_whole_values_and_a_missing_label_is_empty() {
        let host = labels(&[("host", "web1"), ("alertname", "High")]);
        let check = |text: &str, expected: bool| {
            assert_eq!(LabelMatcher::parse(text).unwrap().matches(&host), expected, "{text}");
        };
        check("host=web1", true);
        check("host=web", false);
        check("host!=web", true);
        check("host=~web", false);
        check("host=~\"web.\"", true);
        check("host=~\"db1|web1\"", true);
        check("host!~\"web.*\"", false);
        check("job=\"\"", true);
        check("job!=\"\"", false);
        check("job=~\".+\"", false);
    }

    #[test]
    fn texts_are_read_as_alertmanager_reads_them() {
        let read = |text: &str| {
            let all = LabelMatcher::parse_all(text)?;
            Ok::<_, String>(all.iter().map(LabelMatcher::to_string).collect::<Vec<_>>())
        };
        assert_eq!(read("{ a = \"b,c\" , d=~e.* ,}").unwrap(), ["a=\"b,c\"", "d=~\"e.*\""]);
        assert_eq!(read("a!=\"q\\\"\\n\"").unwrap(), ["a!=\"q\\\"\\n\""]);
        assert_eq!(read("").unwrap(), [""; 0]);
        for text in ["a", "{a=b", "=b", "1a=b", "a=\"b", "a=b\"", "a=~\"(\"", "a-b=c"] {
            read(text).unwrap_err();
        }
        let long_value = format!("a={}", "x".repeat(VALUE_BYTES_MAX + 1));
        LabelMatcher::parse(&long_value).unwrap_err();
    }

    #[test]
    fn json_has_the_form_of_alertmanagers_api() {
        let read: LabelMatcher =
            serde_json::from_str(r#"{"name":"a","value":"b.*","isRegex":true}"#).unwrap();
        assert_eq!(read.to_string(), "a=~\"b.*\"");
        let text = serde_json::to_string(&read).unwrap();
        assert_eq!(text, r#"{"name":"a","value":"b.*","isRegex":true,"isEqual":true}"#);
        let bad = r#"{"name":"a","value":"(","isRegex":true}"#;
        serde_json::from_str::<LabelMatcher>(bad).unwrap_err();
    }
}
