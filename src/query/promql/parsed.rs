//! Queries as the tree of their syntax: parsed within the limits, and remembered.
//!
//! Must never know: the store, how anything is evaluated.

use std::sync::Arc;

use serde_json::Value;

use super::{
    request::PromqlLimits,
    syntax::{
        self,
        span::{Span, SyntaxError},
        tree::Expr,
    },
    value::error::PromqlError,
};

/// A query that was parsed.
#[derive(Debug)]
pub(crate) struct Parsed {
    pub(crate) tree: Expr,
    /// The text that the spans of the tree belong to.
    text: Box<str>,
}

impl Parsed {
    /// Parses a query within bounds.
    pub(crate) fn new(text: &str, limits: &PromqlLimits<'_>) -> Result<Self, PromqlError> {
        let parsed = syntax::parse(text, limits.query_bytes_max);
        let tree = parsed.map_err(|error| PromqlError::BadData(error.in_text(text)))?;
        Ok(Self { tree, text: text.into() })
    }

    /// Parses a query, or finds it among those that were parsed lately.
    pub(crate) fn remembered(
        text: &str,
        limits: &PromqlLimits<'_>,
    ) -> Result<Arc<Self>, PromqlError> {
        let remembered = limits.budget.remembered();
        if let Some(known) = remembered.and_then(|remembered| remembered.query(text)) {
            return Ok(known);
        }
        let parsed = Arc::new(Self::new(text, limits)?);
        if let Some(remembered) = remembered {
            remembered.keep_query(text, parsed.clone());
        }
        Ok(parsed)
    }

    /// `line:column` of a part of the query.
    pub(crate) fn place(&self, span: Span) -> String {
        span.place(&self.text)
    }
}

impl From<SyntaxError> for PromqlError {
    /// A length of time that the times of a query make invalid; its place is not known here.
    fn from(error: SyntaxError) -> Self {
        Self::BadData(format!("parse error: {}", error.message))
    }
}

/// Parses an expression within the limits' bounds. The patterns of `=~` and `!~` are not compiled.
///
/// # Errors
/// When it is no expression.
pub fn check_promql(query: &str, limits: &PromqlLimits<'_>) -> Result<(), PromqlError> {
    Parsed::new(query, limits).map(drop)
}

/// An expression, formatted over several lines where it is long.
///
/// # Errors
/// When it is no expression.
pub fn format_promql(query: &str, limits: &PromqlLimits<'_>) -> Result<String, PromqlError> {
    Ok(syntax::formatted(&Parsed::new(query, limits)?.tree))
}

/// The tree of an expression as JSON, in the words of Prometheus' `parse_query`.
///
/// # Errors
/// When it is no expression.
pub fn promql_tree(query: &str, limits: &PromqlLimits<'_>) -> Result<Value, PromqlError> {
    Ok(syntax::json(&Parsed::new(query, limits)?.tree))
}
