//! Locations in the text of a query, and errors with a location.
//!
//! Must never know: tokens, the tree.

/// A range of bytes of a query's text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct TextSpan {
    /// The index of the first byte.
    pub(crate) start: u32,
    /// The index of the byte after the last byte.
    pub(crate) end: u32,
}

impl TextSpan {
    /// Returns the span from the start of this span to the end of another span.
    pub(crate) fn to(self, last: Self) -> Self {
        Self { start: self.start, end: last.end }
    }

    /// Returns the text of the span.
    pub(crate) fn text_in(self, text: &str) -> &str {
        text.get(self.start as usize..self.end as usize).unwrap_or_default()
    }

    /// Returns `line:column` of the first byte. Lines and columns count from 1, columns in bytes,
    /// as in Prometheus.
    pub(crate) fn location(self, text: &str) -> String {
        if text.is_empty() {
            return "unknown position".to_owned();
        }
        let at = self.start as usize;
        let before = text.as_bytes().get(..at).unwrap_or_default();
        let line = before.split(|byte| *byte == b'\n').count();
        let line_start = before.iter().rposition(|byte| *byte == b'\n').map_or(0, |end| end + 1);
        format!("{line}:{}", at - line_start + 1)
    }
}

/// A part of a query that breaks a rule of the language.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SyntaxError {
    /// The span of the part.
    pub(crate) span: TextSpan,
    /// The broken rule, in Prometheus' words.
    pub(crate) message: String,
}

impl SyntaxError {
    /// Creates an error with a span.
    pub(super) fn new(span: TextSpan, message: impl Into<String>) -> Self {
        Self { span, message: message.into() }
    }

    /// Returns the whole message, as in Prometheus: `1:5: parse error: ...`.
    pub(crate) fn in_text(&self, text: &str) -> String {
        format!("{}: parse error: {}", self.span.location(text), self.message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn locations_count_lines_and_bytes_from_one() {
        for (text, at, expected) in [
            ("", 0, "unknown position"),
            ("up", 0, "1:1"),
            ("é + x", 5, "1:6"),
            ("a +\n  b", 6, "2:3"),
            ("a\n", 2, "2:1"),
        ] {
            assert_eq!(TextSpan { start: at, end: at }.location(text), expected, "{text}");
        }
    }
}
