//! Matchers as Prometheus has them, and the series that they select.
//!
//! Must never know: expressions, values. A tag that a series lacks counts as an empty one.

use regex::{Regex, RegexBuilder};

use super::{PromqlError, dialect};
use crate::{
    model::{SeriesId, SeriesKey},
    store::{METRIC_TAG, Matcher, SeriesInfo, Store},
};

/// Series or values looked at in one hold of the dictionary's lock.
const CHUNK: usize = 512;

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

/// Compiles a pattern that must match whole values, within a bound of memory.
///
/// # Errors
/// When it is no pattern, or too large.
pub fn whole_pattern(pattern: &str, bytes_max: usize) -> Result<Regex, PromqlError> {
    let pattern_here = dialect::translated(pattern);
    let compiled = RegexBuilder::new(&format!("^(?s:{pattern_here})$"))
        .size_limit(bytes_max)
        .dfa_size_limit(bytes_max)
        .nest_limit(100)
        .build();
    compiled.map_err(|cause| {
        PromqlError::BadData(if matches!(cause, regex::Error::CompiledTooBig(_)) {
            format!(
                "the pattern {pattern:?} takes more than {bytes_max} bytes when compiled: use a \
                 simpler one or raise promql.regex_bytes_max"
            )
        } else {
            format!("error parsing regexp: {cause}")
        })
    })
}

/// The series that match all matchers, in order of their ids, with what is known of them.
///
/// The dictionary is held for a few hundred series at a time.
///
/// # Errors
/// When more than `series_max` match, or `expired` says that the time is over.
pub fn select_series(
    store: &Store,
    matchers: &[SeriesMatcher],
    series_max: usize,
    expired: &dyn Fn() -> bool,
) -> Result<Vec<(SeriesId, SeriesInfo)>, PromqlError> {
    let candidates = candidates(store, matchers, expired)?;
    let mut found = Vec::new();
    for chunk in candidates.chunks(CHUNK) {
        check_time(expired)?;
        let dictionary = store.dictionary();
        for id in chunk {
            let info = dictionary.info(*id);
            let matching =
                info.filter(|info| matchers.iter().all(|matcher| matcher.matches_key(&info.key)));
            found.extend(matching.map(|info| (*id, info.clone())));
        }
        if found.len() > series_max {
            return Err(PromqlError::TooMuch(format!(
                "more than {series_max} series match: name more labels or raise \
                 promql.series_max"
            )));
        }
    }
    Ok(found)
}

/// Series that may match: by the index where a matcher names a value, else by the values of one
/// tag that must be there, else all.
fn candidates(
    store: &Store,
    matchers: &[SeriesMatcher],
    expired: &dyn Fn() -> bool,
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
        check_time(expired)?;
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

fn check_time(expired: &dyn Fn() -> bool) -> Result<(), PromqlError> {
    if expired() {
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

    #[test]
    fn patterns_match_whole_values_and_braces_may_be_text() {
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
            let found = whole_pattern(pattern, 1 << 20).unwrap().is_match(value);
            assert_eq!(found, expected, "{pattern} {value}");
        }
        assert!(matches!(whole_pattern("(", 1 << 20), Err(PromqlError::BadData(_))));
        let bomb = whole_pattern("((a{1000}){1000}){1000}", 1 << 20).unwrap_err().to_string();
        assert!(bomb.contains("promql.regex_bytes_max"), "{bomb}");
    }
}
