//! Parsing of single tokens: marks, names, numbers and quoted texts.
//!
//! Must never know: documents, calls.

use std::sync::Arc;

use super::Reader;
use crate::shell::value::Value;

impl<'t> Reader<'t> {
    pub(super) fn rest(&self) -> &'t str {
        self.text.get(self.at..).unwrap_or_default()
    }

    pub(super) fn fault(&self, wanted: &str) -> String {
        let line = self.text.get(..self.at).unwrap_or_default().split('\n').count();
        let found: String = self.rest().chars().take(20).collect();
        format!("line {line}: expected {wanted} at {found:?}")
    }

    /// Skips white space and comments.
    pub(super) fn skip(&mut self) {
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

    pub(super) fn take(&mut self, mark: &str) -> bool {
        self.skip();
        let is_next = self.rest().starts_with(mark);
        self.at += if is_next { mark.len() } else { 0 };
        is_next
    }

    pub(super) fn expect(&mut self, mark: &str) -> Result<(), String> {
        if self.take(mark) { Ok(()) } else { Err(self.fault(mark)) }
    }

    /// Parses an unquoted name.
    pub(super) fn name(&mut self) -> Result<&'t str, String> {
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

    pub(super) fn number(&mut self) -> Result<Value, String> {
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
    pub(super) fn quoted(&mut self, quote: char) -> Result<Arc<str>, String> {
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
        // The escapes are those of JSON; only the quotes may differ.
        let json = if quote == '"' { format!("\"{inner}\"") } else { escape_double_quotes(inner) };
        let text: Result<String, _> = serde_json::from_str(&json);
        text.map(Into::into).map_err(|cause| format!("invalid string: {cause}"))
    }
}

pub(super) fn is_quote(c: char) -> bool {
    matches!(c, '"' | '\'' | '\u{201c}')
}

/// Returns the index of the quote that ends a text.
pub(super) fn end_of_quoted(text: &str, closing: char) -> Option<usize> {
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
