//! Metrics by words of their names.
//!
//! Must never know: HTTP. Every name is looked at, because words may stand anywhere in it; the
//! dictionary's lock is held for a part of them at a time, and what is kept is bounded.

use std::collections::BinaryHeap;

use serde::{Deserialize, Serialize};

use crate::{
    model::{Kind, METRIC_TAG},
    query::{Budget, QueryError},
    store::Store,
};

/// Names looked at in one hold of the dictionary's lock: new series wait meanwhile.
const CHUNK: usize = 2048;
/// Metrics of an answer, at most.
const METRICS_MAX: usize = 1000;
/// Metrics of an answer when no number is given.
const METRICS_DEFAULT: usize = 50;
/// Bytes of what is looked for, at most: no name is longer by default.
const TEXT_BYTES_MAX: usize = 256;

/// Words that a metric's name must have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FindRequest {
    /// In lower case.
    words: Vec<String>,
    count: usize,
}

/// A metric that was found.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundMetric {
    /// Its name.
    pub metric: String,
    /// How the values of its first series are to be read.
    pub kind: Kind,
    /// Their unit; empty when there is none.
    pub unit: String,
    /// How many series it has.
    pub series: usize,
}

/// The metrics whose names have all words.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FindAnswer {
    /// How many there are.
    pub total: usize,
    /// The best of them, best first.
    pub metrics: Vec<FoundMetric>,
}

/// Where in a name a word stands; the first is the best.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Place {
    Beginning,
    WordBoundary,
    Within,
}

/// How well a name fits: a smaller one fits better.
type Rank = (usize, usize);

impl FindRequest {
    /// The words of a text, and how many metrics are wanted.
    ///
    /// # Errors
    /// When the text is too long, or more is wanted than an answer holds.
    pub fn new(text: &str, count: Option<usize>) -> Result<Self, QueryError> {
        if text.len() > TEXT_BYTES_MAX {
            return Err(QueryError::Invalid(format!(
                "q has {} bytes, more than {TEXT_BYTES_MAX}: give fewer words",
                text.len()
            )));
        }
        let count = count.unwrap_or(METRICS_DEFAULT);
        if !(1..=METRICS_MAX).contains(&count) {
            return Err(QueryError::Invalid(format!(
                "limit={count} must be between 1 and {METRICS_MAX}"
            )));
        }
        let words = text.to_lowercase().split_whitespace().map(str::to_owned).collect();
        Ok(Self { words, count })
    }

    /// How well a name fits; `None` when it lacks a word. `lower` is room for the name in lower case.
    fn rank(&self, name: &str, lower: &mut String) -> Option<Rank> {
        lower.clear();
        if name.is_ascii() {
            lower.push_str(name);
            lower.make_ascii_lowercase();
        } else {
            lower.extend(name.chars().flat_map(char::to_lowercase));
        }
        let places = self.words.iter().map(|word| Some(place(name, lower, word)? as usize));
        let worse = places.sum::<Option<usize>>()?;
        // Where nothing is looked for, the order is that of the names.
        Some((worse, if self.words.is_empty() { 0 } else { name.len() }))
    }
}

/// The best place of a word in a name; `lower` is the name in lower case.
fn place(name: &str, lower: &str, word: &str) -> Option<Place> {
    let (bytes, word) = (lower.as_bytes(), word.as_bytes());
    let is_camel_case = name.len() == lower.len();
    let found = bytes.windows(word.len()).enumerate().filter(|(_, part)| *part == word);
    let places = found.map(|(at, _)| {
        let Some(before) = at.checked_sub(1) else { return Place::Beginning };
        let own = name.as_bytes();
        let begins_word = !bytes[before].is_ascii_alphanumeric() && bytes[before].is_ascii()
            || is_camel_case && own[at].is_ascii_uppercase() && own[before].is_ascii_lowercase();
        if begins_word { Place::WordBoundary } else { Place::Within }
    });
    places.min()
}

/// Finds metrics.
///
/// # Errors
/// When the budget is used up.
pub fn find(
    store: &Store,
    budget: &Budget,
    request: &FindRequest,
) -> Result<FindAnswer, QueryError> {
    let (mut total, mut lower) = (0, String::new());
    // The best ones so far, the last of them on top.
    let mut best: BinaryHeap<(Rank, Box<str>)> = BinaryHeap::new();
    let mut after = None;
    loop {
        budget.check()?;
        let last = store.dictionary().visit_values(METRIC_TAG, after.as_deref(), CHUNK, |name| {
            let Some(rank) = request.rank(name, &mut lower) else { return };
            total += 1;
            if best.len() < request.count {
                best.push((rank, name.into()));
            } else if let Some(mut last) = best.peek_mut()
                && (rank, name) < (last.0, &*last.1)
            {
                *last = (rank, name.into());
            }
        });
        after = last;
        if after.is_none() {
            break;
        }
    }
    budget.check()?;
    let dictionary = store.dictionary();
    let metrics = best.into_sorted_vec().into_iter().filter_map(|(_, name)| {
        let ids = dictionary.with_tag(METRIC_TAG, &name);
        let info = dictionary.info(*ids.first()?)?;
        let (kind, unit) = (info.kind, info.unit.to_string());
        Some(FoundMetric { metric: name.into(), kind, unit, series: ids.len() })
    });
    Ok(FindAnswer { total, metrics: metrics.collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_that_begin_with_a_word_come_before_those_that_have_it_within() {
        let check = |text: &str, expected: &[&str]| {
            let names =
                ["cpu_load", "system_cpu_user", "systemCpuIdle", "vcpu", "système.CPU", "memory"];
            let request = FindRequest::new(text, None).unwrap();
            let mut lower = String::new();
            let ranked =
                names.iter().filter_map(|name| Some((request.rank(name, &mut lower)?, *name)));
            let mut ranked: Vec<_> = ranked.collect();
            ranked.sort_unstable();
            let found: Vec<_> = ranked.into_iter().map(|(_, name)| name).collect();
            assert_eq!(found, expected, "{text}");
        };
        check("CPU", &["cpu_load", "système.CPU", "systemCpuIdle", "system_cpu_user", "vcpu"]);
        check("user cpu", &["system_cpu_user"]);
        check("cpu sys", &["système.CPU", "systemCpuIdle", "system_cpu_user"]);
        check("SYSTÈME", &["système.CPU"]);
        check("m", &["memory", "système.CPU", "systemCpuIdle", "system_cpu_user"]);
        check("user user memory", &[]);
        check(
            "  ",
            &["cpu_load", "memory", "systemCpuIdle", "system_cpu_user", "système.CPU", "vcpu"],
        );
    }

    #[test]
    fn what_is_asked_is_bounded() {
        let is_invalid = |text: &str, count| {
            matches!(FindRequest::new(text, count), Err(QueryError::Invalid(_)))
        };
        assert!(is_invalid(&"x".repeat(TEXT_BYTES_MAX + 1), None));
        assert!(is_invalid("", Some(0)) && is_invalid("", Some(METRICS_MAX + 1)));
        assert!(!is_invalid(&"x".repeat(TEXT_BYTES_MAX), Some(METRICS_MAX)));
    }
}
