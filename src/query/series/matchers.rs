//! Matchers as Prometheus has them.
//!
//! Must never know: expressions, values, the store. A tag that a series lacks counts as an empty one.

use std::sync::Arc;

use regex::{Regex, RegexBuilder};

use crate::model::{METRIC_TAG, SeriesKey};
use crate::query::{PromqlError, PromqlLimits, series::go_regex};

/// Bytes that most compiled patterns stay below.
const PATTERN_BYTES: usize = 128 << 10;
/// What a pattern remembers of texts that it was tried on takes so many times what it takes itself.
const CACHES: usize = 2;

/// How a tag's value is compared.
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

/// What a series must fulfil. The metric's name is the tag `__name__`.
#[derive(Debug, Clone)]
pub struct SeriesMatcher {
    /// The tag's name.
    pub tag: String,
    /// What its value must be.
    pub operator: MatchOperator,
}

impl SeriesMatcher {
    /// A matcher for one value.
    pub fn equal(tag: &str, value: &str) -> Self {
        Self { tag: tag.to_owned(), operator: MatchOperator::Equal(value.to_owned()) }
    }

    /// Whether a value fulfils it.
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

/// Compiles a pattern that must match whole values. It takes memory before it is built: as little
/// as it needs, up to the bound of one pattern. One that was compiled lately is taken as it is.
///
/// # Errors
/// When it is no pattern, too large, or there is no memory left for it.
pub fn whole_pattern(pattern: &str, limits: &PromqlLimits<'_>) -> Result<Arc<Regex>, PromqlError> {
    let remembered = limits.budget.remembered();
    if let Some(known) = remembered.and_then(|own| own.pattern(pattern)) {
        return Ok(known);
    }
    let (compiled, bytes) = compile(pattern, limits)?;
    let compiled = Arc::new(compiled);
    if let Some(remembered) = remembered.filter(|_| bytes <= PATTERN_BYTES) {
        remembered.keep_pattern(pattern, compiled.clone());
    }
    Ok(compiled)
}

/// Compiles a pattern; says what it may take.
fn compile(pattern: &str, limits: &PromqlLimits<'_>) -> Result<(Regex, usize), PromqlError> {
    let whole = format!("^(?s:{})$", go_regex::translated(pattern));
    let bytes_max = limits.regex_bytes_max;
    let mut bytes = PATTERN_BYTES.min(bytes_max);
    loop {
        limits.take(bytes.saturating_mul(1 + CACHES))?;
        let compiled = RegexBuilder::new(&whole)
            .size_limit(bytes)
            .dfa_size_limit(bytes.saturating_mul(CACHES))
            .nest_limit(100)
            .build();
        match compiled {
            Err(regex::Error::CompiledTooBig(_)) if bytes < bytes_max => {
                bytes = bytes.saturating_mul(4).min(bytes_max);
            }
            Err(regex::Error::CompiledTooBig(_)) => {
                return Err(PromqlError::BadData(format!(
                    "the pattern {pattern:?} takes more than {bytes_max} bytes when compiled: use \
                     a simpler one"
                )));
            }
            other => {
                return other.map(|compiled| (compiled, bytes)).map_err(|cause| {
                    PromqlError::BadData(format!("error parsing regexp: {cause}"))
                });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::Budget;

    /// Patterns of this bound.
    fn compiled(pattern: &str, budget: &Budget) -> Result<Arc<Regex>, PromqlError> {
        let limits = PromqlLimits {
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
            let found = compiled(pattern, &plenty).unwrap().is_match(value);
            assert_eq!(found, expected, "{pattern} {value}");
        }
        assert!(matches!(compiled("(", &plenty), Err(PromqlError::BadData(_))));
        let bomb = compiled("((a{1000}){1000}){1000}", &plenty).unwrap_err().to_string();
        assert!(bomb.contains("when compiled: use a simpler one"), "{bomb}");
    }

    #[test]
    fn patterns_take_memory_before_they_are_built() {
        let memory = Budget::of_memory(4 << 20);
        let built = (0..100).take_while(|i| compiled(&format!("a{i}.*"), &memory).is_ok()).count();
        assert!((8..=12).contains(&built), "{built}");
        let refused = compiled("a", &memory).unwrap_err();
        assert!(matches!(refused, PromqlError::Busy(_)), "{refused}");
        // A large one takes more.
        let memory = Budget::of_memory(64 << 20);
        assert!(compiled("(a|bc){3000}", &memory).is_ok());
        assert!(memory.taken() > 1 << 20, "{}", memory.taken());
    }
}
