//! A parsed query: the tree, and the text that errors refer to.
//!
//! Must never know: how a query is evaluated.

use super::{parser::parse, span::TextSpan, tree::Expr};

/// A query after parsing.
#[derive(Debug)]
pub(crate) struct ParsedQuery {
    pub(crate) tree: Expr,
    /// The text that the spans of the tree refer to.
    text: Box<str>,
}

impl ParsedQuery {
    /// Parses a query.
    ///
    /// # Errors
    /// When the text has more than `bytes_max` bytes, nests too deep, or is not an expression.
    pub(crate) fn new(text: &str, bytes_max: usize) -> Result<Self, String> {
        let tree = parse(text, bytes_max).map_err(|error| error.in_text(text))?;
        Ok(Self { tree, text: text.into() })
    }

    /// Returns the text of the query.
    pub(crate) fn text(&self) -> &str {
        &self.text
    }

    /// Returns `line:column` of a span of the query.
    pub(crate) fn location(&self, span: TextSpan) -> String {
        span.location(&self.text)
    }
}
