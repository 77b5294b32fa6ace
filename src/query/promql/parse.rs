//! Entry points that parse a query: for evaluation, to check it, to format it, as a JSON tree.
//!
//! Must never know: the store, how a query is evaluated.

use std::sync::Arc;

use serde_json::Value;

use super::syntax::{self, ParsedQuery, span::SyntaxError, tree::Expr};
use crate::query::ExpressionLimits;
use crate::{
    model::{KeySelector, METRIC_TAG, TagComparison, TagMatcher},
    query::QueryError,
};

impl From<SyntaxError> for QueryError {
    /// Converts an error whose location in the query is not known here: an invalid duration that
    /// depends on the times of the query.
    fn from(error: SyntaxError) -> Self {
        Self::Invalid(format!("parse error: {}", error.message))
    }
}

/// Parses a query within the limits.
pub(super) fn parse(text: &str, limits: &ExpressionLimits<'_>) -> Result<ParsedQuery, QueryError> {
    ParsedQuery::new(text, limits.query_bytes_max).map_err(QueryError::Invalid)
}

/// Parses a query, or returns it from the cache of recently parsed queries.
pub(super) fn parse_cached(
    text: &str,
    limits: &ExpressionLimits<'_>,
) -> Result<Arc<ParsedQuery>, QueryError> {
    let cache = limits.budget.cache();
    if let Some(known) = cache.and_then(|cache| cache.query(text)) {
        return Ok(known);
    }
    let parsed = Arc::new(parse(text, limits)?);
    if let Some(cache) = cache {
        cache.keep_query(text, parsed.clone());
    }
    Ok(parsed)
}

/// Checks the syntax and types of an expression. The patterns of `=~` and `!~` are not compiled.
///
/// # Errors
/// When the expression is invalid.
pub fn check_promql(query: &str, limits: &ExpressionLimits<'_>) -> Result<(), QueryError> {
    parse(query, limits).map(drop)
}

/// Parses a selector of series by their keys, such as `{__name__=~"debug_.*", host="web1"}`; it has
/// neither a range nor alternatives.
///
/// # Errors
/// When the text is not a selector, or a pattern is invalid.
pub fn key_selector(text: &str) -> Result<KeySelector, String> {
    const BYTES_MAX: usize = 16 << 10;
    let parsed = ParsedQuery::new(text, BYTES_MAX)?;
    let Expr::Vector(selector) = &parsed.tree else {
        return Err(format!("{text} is not a series selector: use {{label=\"value\"}}"));
    };
    let [matchers] = selector.alternatives.as_slice() else {
        return Err(format!("{text} has alternatives: use one pattern, or one rule for each"));
    };
    let of_metric = selector.name.iter().map(|name| TagMatcher {
        tag: METRIC_TAG.to_owned(),
        comparison: TagComparison::Equal,
        value: name.clone(),
    });
    let of_labels = matchers.iter().map(|matcher| TagMatcher {
        tag: matcher.label.clone(),
        comparison: matcher.comparison,
        value: matcher.value.clone(),
    });
    KeySelector::new(of_metric.chain(of_labels).collect())
}

/// Formats an expression; long expressions span several lines.
///
/// # Errors
/// When the expression is invalid.
pub fn format_promql(query: &str, limits: &ExpressionLimits<'_>) -> Result<String, QueryError> {
    Ok(syntax::format_expression(&parse(query, limits)?.tree))
}

/// Returns the tree of an expression as JSON, in the format of Prometheus' `parse_query`.
///
/// # Errors
/// When the expression is invalid.
pub fn promql_tree(query: &str, limits: &ExpressionLimits<'_>) -> Result<Value, QueryError> {
    Ok(syntax::json(&parse(query, limits)?.tree))
}
