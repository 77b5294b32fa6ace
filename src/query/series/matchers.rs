//! Label matchers with Prometheus' semantics.
//!
//! Must never know: expressions, values, the store. A missing tag matches like an empty tag.

use std::sync::Arc;

use regex::{Regex, RegexBuilder};

use crate::model::{METRIC_TAG, SeriesKey, go_regex};
use crate::query::{ExpressionLimits, QueryError};

/// Initial size limit of a compiled pattern. Most patterns stay below it.
const PATTERN_BYTES: usize = 128 << 10;
/// Size limit of a pattern's lazy DFA cache, as a multiple of the compiled pattern.
const CACHES: usize = 2;

/// A comparison with the value of a tag.
#[derive(Debug, Clone)]
pub enum MatchOperator {
    /// `=`
    Equal(String),
    /// `!=`
    NotEqual(String),
    /// `=~`, the whole value
    Pattern(Arc<Regex>),
    /// `!~`, the whole value
    NotPattern(Arc<Regex>),
}

/// A condition on a tag of a series. The metric's name is the tag `__name__`.
#[derive(Debug, Clone)]
pub struct SeriesMatcher {
    /// The name of the tag.
    pub tag: String,
    /// The comparison with the value of the tag.
    pub operator: MatchOperator,
}

impl SeriesMatcher {
    /// Creates a matcher for one value.
    pub fn equal(tag: &str, value: &str) -> Self {
        Self { tag: tag.to_owned(), operator: MatchOperator::Equal(value.to_owned()) }
    }

    /// Returns true when a value matches.
    pub fn matches(&self, value: &str) -> bool {
        match &self.operator {
            MatchOperator::Equal(wanted) => value == wanted,
            MatchOperator::NotEqual(unwanted) => value != unwanted,
            MatchOperator::Pattern(pattern) => pattern.is_match(value),
            MatchOperator::NotPattern(pattern) => !pattern.is_match(value),
        }
    }

    pub(crate) fn matches_key(&self, key: &SeriesKey) -> bool {
        if self.tag == METRIC_TAG {
            return self.matches(key.metric());
        }
        self.matches(key.tag(&self.tag).unwrap_or_default())
    }
}

/// Compiles a pattern that must match whole values, or returns a recently compiled pattern. Memory
/// is charged to the budget before the pattern is compiled: a small size first, then more, up to
/// the limit of one pattern.
///
/// # Errors
/// When the pattern is invalid or too large, or the query's memory is used up.
pub fn whole_pattern(
    pattern: &str,
    limits: &ExpressionLimits<'_>,
) -> Result<Arc<Regex>, QueryError> {
    let cache = limits.budget.cache();
    if let Some(known) = cache.and_then(|cache| cache.pattern(pattern)) {
        return Ok(known);
    }
    let (compiled, bytes) = compile(pattern, limits)?;
    let compiled = Arc::new(compiled);
    if let Some(cache) = cache.filter(|_| bytes <= PATTERN_BYTES) {
        cache.keep_pattern(pattern, compiled.clone());
    }
    Ok(compiled)
}

/// Compiles a pattern and returns it with its size limit.
fn compile(pattern: &str, limits: &ExpressionLimits<'_>) -> Result<(Regex, usize), QueryError> {
    let anchored = format!("^(?s:{})$", go_regex::translate_pattern(pattern));
    let bytes_max = limits.regex_bytes_max;
    let mut bytes = PATTERN_BYTES.min(bytes_max);
    loop {
        limits.reserve(bytes.saturating_mul(1 + CACHES))?;
        let compiled = RegexBuilder::new(&anchored)
            .size_limit(bytes)
            .dfa_size_limit(bytes.saturating_mul(CACHES))
            .nest_limit(100)
            .build();
        match compiled {
            Err(regex::Error::CompiledTooBig(_)) if bytes < bytes_max => {
                bytes = bytes.saturating_mul(4).min(bytes_max);
            }
            Err(regex::Error::CompiledTooBig(_)) => {
                return Err(QueryError::Invalid(format!(
                    "the pattern {pattern:?} takes more than {bytes_max} bytes when compiled: use \
                     a simpler pattern"
                )));
            }
            other => {
                return other.map(|compiled| (compiled, bytes)).map_err(|cause| {
                    QueryError::Invalid(format!("error parsing regexp: {cause}"))
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::Budget;

    /// Compiles a pattern with a size limit of 1 MiB.
    fn compile_pattern(pattern: &str, budget: &Budget) -> Result<Arc<Regex>, QueryError> {
        let limits = ExpressionLimits {
            series_max: 1,
            points_max: 1,
            steps_max: 1,
            query_bytes_max: 1,
            regex_bytes_max: 1 << 20,
            budget,
        };
        whole_pattern(pattern, &limits)
    }

    #[test]
    fn patterns_match_whole_values_and_braces_may_be_text() {
        let plenty = Budget::UNLIMITED;
        for (pattern, value, expected) in [
            ("a|b", "b", true),
            ("a|b", "ab", false),
            ("", "", true),
            ("a.c", "a\nc", true),
            ("a{2}", "aa", true),
            ("a{2,}", "aaa", true),
            ("a{b}c", "a{b}c", true),
            ("a{,2}", "a{,2}", true),
            ("x{", "x{", true),
            ("(?i:AB)", "ab", true),
        ] {
            let found = compile_pattern(pattern, &plenty).unwrap().is_match(value);
            assert_eq!(found, expected, "{pattern} {value}");
        }
        assert!(matches!(compile_pattern("(", &plenty), Err(QueryError::Invalid(_))));
        let bomb = compile_pattern("((a{1000}){1000}){1000}", &plenty).unwrap_err().to_string();
        assert!(bomb.contains("when compiled: use a simpler pattern"), "{bomb}");
    }

    #[test]
    fn memory_is_reserved_before_a_pattern_is_compiled() {
        let memory = Budget::of_memory(4 << 20);
        let built =
            (0..100).take_while(|i| compile_pattern(&format!("a{i}.*"), &memory).is_ok()).count();
        assert!((8..=12).contains(&built), "{built}");
        let refused = compile_pattern("a", &memory).unwrap_err();
        assert!(matches!(refused, QueryError::Busy(_)), "{refused}");
        // A large pattern needs more memory.
        let memory = Budget::of_memory(64 << 20);
        assert!(compile_pattern("(a|bc){3000}", &memory).is_ok());
        assert!(memory.reserved() > 1 << 20, "{}", memory.reserved());
    }
}
