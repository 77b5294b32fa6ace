//! Matchers as Prometheus has them, and the series that they select.
//!
//! Must never know: expressions, values. A tag that a series lacks counts as an empty one.

use regex::{Regex, RegexBuilder};

use super::{PromqlError, PromqlLimits, go_regex};
use crate::{
    model::{METRIC_TAG, SeriesId, SeriesInfo, SeriesKey},
    store::{Matcher, Store},
};

/// Series or values looked at in one hold of the dictionary's lock.
const CHUNK: usize = 512;
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
    Pattern(Regex),
    /// `!~`, the whole value
    NotPattern(Regex),
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

    fn matches_key(&self, key: &SeriesKey) -> bool {
        if self.tag == METRIC_TAG {
            return self.matches(key.metric());
        }
        self.matches(key.tag(&self.tag).unwrap_or_default())
    }
}

/// Compiles a pattern that must match whole values. It takes memory before it is built: as little
/// as it needs, up to the bound of one pattern.
///
/// # Errors
/// When it is no pattern, too large, or there is no memory left for it.
pub fn whole_pattern(pattern: &str, limits: &PromqlLimits<'_>) -> Result<Regex, PromqlError> {
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
                     a simpler one or raise promql.regex_bytes_max"
                )));
            }
            other => {
                return other.map_err(|cause| {
                    PromqlError::BadData(format!("error parsing regexp: {cause}"))
                });
            }
        }
    }
}

/// The series that match all matchers, in order of their ids, with what is known of them.
///
/// The dictionary is held for a few hundred series at a time.
///
/// # Errors
/// When more than the limits' `series_max` match, the time is over, or there is no memory left.
pub fn select_series(
    store: &Store,
    matchers: &[SeriesMatcher],
    limits: &PromqlLimits<'_>,
) -> Result<Vec<(SeriesId, SeriesInfo)>, PromqlError> {
    let candidates = candidates(store, matchers, limits)?;
    let series_max = limits.series_max;
    let mut found = Vec::new();
    for chunk in candidates.chunks(CHUNK) {
        check_time(limits)?;
        let before = found.len();
        let dictionary = store.dictionary();
        for id in chunk {
            let matches = |key| matchers.iter().all(|matcher| matcher.matches_key(key));
            if dictionary.key(*id).is_some_and(matches) {
                found.extend(dictionary.info(*id).map(|info| (*id, info)));
            }
        }
        drop(dictionary);
        if found.len() > series_max {
            return Err(PromqlError::TooMuch(format!(
                "more than {series_max} series match: name more labels or raise \
                 promql.series_max"
            )));
        }
        limits.take((found.len() - before) * size_of::<(SeriesId, SeriesInfo)>())?;
    }
    Ok(found)
}

/// Series that may match: by the index where a matcher names a value, else by the values of one
/// tag that must be there, else all.
fn candidates(
    store: &Store,
    matchers: &[SeriesMatcher],
    limits: &PromqlLimits<'_>,
) -> Result<Vec<SeriesId>, PromqlError> {
    let equal: Vec<_> = matchers
        .iter()
        .filter_map(|matcher| match &matcher.operator {
            MatchOperator::Equal(value) if !value.is_empty() => {
                Some(Matcher { tag: matcher.tag.clone(), value: value.clone() })
            }
            MatchOperator::Equal(_)
            | MatchOperator::NotEqual(_)
            | MatchOperator::Pattern(_)
            | MatchOperator::NotPattern(_) => None,
        })
        .collect();
    let present = matchers.iter().filter(|matcher| !matcher.matches(""));
    let by_values = present.min_by_key(|matcher| matcher.tag != METRIC_TAG);
    let Some(matcher) = by_values.filter(|_| equal.is_empty()) else {
        return Ok(store.dictionary().select(&equal));
    };
    let mut ids = Vec::new();
    let mut after: Option<Box<str>> = None;
    loop {
        check_time(limits)?;
        let values = store.dictionary().values_after(&matcher.tag, after.as_deref(), CHUNK);
        let matching: Vec<_> = values.iter().filter(|value| matcher.matches(value)).collect();
        let dictionary = store.dictionary();
        for value in matching {
            ids.extend(dictionary.with_tag(&matcher.tag, value));
        }
        drop(dictionary);
        let Some(last) = values.into_iter().next_back() else { break };
        after = Some(last);
    }
    ids.sort_unstable();
    Ok(ids)
}

fn check_time(limits: &PromqlLimits<'_>) -> Result<(), PromqlError> {
    if limits.budget.check().is_err() {
        return Err(PromqlError::Timeout(
            "query timed out in series selection: name more labels or raise \
             promql.timeout"
                .to_owned(),
        ));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::Budget;

    /// Patterns of this bound.
    fn compiled(pattern: &str, budget: &Budget) -> Result<Regex, PromqlError> {
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
        assert!(bomb.contains("promql.regex_bytes_max"), "{bomb}");
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
