//! Conditions on labels in questions between nodes.
//!
//! Must never know: the questions.

use crate::query::{ExpressionLimits, MatchOperator, QueryError, SeriesMatcher, whole_pattern};

/// A condition as text: a tag, an operator, and a value or pattern.
pub(crate) type SentMatcher = (String, String, String);

/// Returns a condition as text.
pub(crate) fn sent(matcher: &SeriesMatcher) -> SentMatcher {
    let (operator, value) = match &matcher.operator {
        MatchOperator::Equal(value) => ("=", value.as_str()),
        MatchOperator::NotEqual(value) => ("!=", value.as_str()),
        MatchOperator::Pattern(pattern) => ("=~", unanchored(pattern.as_str())),
        MatchOperator::NotPattern(pattern) => ("!~", unanchored(pattern.as_str())),
    };
    (matcher.tag.clone(), operator.to_owned(), value.to_owned())
}

/// Returns a pattern without the anchors of [`whole_pattern`].
fn unanchored(pattern: &str) -> &str {
    let inner = pattern.strip_prefix("^(?s:").and_then(|rest| rest.strip_suffix(")$"));
    inner.unwrap_or(pattern)
}

/// Reads a condition.
///
/// # Errors
/// When the operator is unknown, or the pattern is invalid or too large.
pub(crate) fn compiled(
    (tag, operator, value): &SentMatcher,
    limits: &ExpressionLimits<'_>,
) -> Result<SeriesMatcher, QueryError> {
    let operator = match operator.as_str() {
        "=" => MatchOperator::Equal(value.clone()),
        "!=" => MatchOperator::NotEqual(value.clone()),
        "=~" => MatchOperator::Pattern(whole_pattern(value, limits)?),
        "!~" => MatchOperator::NotPattern(whole_pattern(value, limits)?),
        other => return Err(QueryError::Invalid(format!("unknown operator {other}"))),
    };
    Ok(SeriesMatcher { tag: tag.clone(), operator })
}
