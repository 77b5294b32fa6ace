//! Search for metrics by words in their names.
//!
//! Must never know: HTTP. A word may occur anywhere in a name, so every name is compared. The
//! dictionary is locked for one chunk of names at a time, and the number of results is limited.

use std::collections::{BTreeMap, BinaryHeap};

use serde::{Deserialize, Serialize};

use crate::{
    model::{Kind, METRIC_TAG},
    query::{Budget, QueryError},
    store::Store,
};

/// Number of names compared while the dictionary is locked. Registration of new series waits for
/// the lock.
const CHUNK: usize = 2048;
/// Maximum number of metrics in an answer.
const METRICS_MAX: usize = 1000;
/// Default number of metrics in an answer.
const METRICS_DEFAULT: usize = 50;
/// Approximate memory of a metric that is found without a maximum number.
const METRIC_BYTES: usize = 256;
/// Maximum length of the search text in bytes. By default, no name is longer.
const TEXT_BYTES_MAX: usize = 256;

/// A search for metrics whose names contain all words.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FindRequest {
    /// The words in lower case.
    words: Vec<String>,
    count: usize,
}

/// A metric that matches a search.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FoundMetric {
    /// The name of the metric.
    pub metric: String,
    /// The kind of the first series.
    pub kind: Kind,
    /// The unit of the first series; empty when it has none.
    pub unit: String,
    /// Number of series of the metric.
    pub series: usize,
}

/// The result of a search.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct FindAnswer {
    /// Number of matching metrics.
    pub total: usize,
    /// The best matches, best first.
    pub metrics: Vec<FoundMetric>,
}

/// The position of a word in a name, best first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum WordPosition {
    Beginning,
    WordBoundary,
    Within,
}

/// The rank of a name; lower is better.
type NameRank = (usize, usize);

impl FindRequest {
    /// Creates a search from a text and a maximum number of results.
    ///
    /// # Errors
    /// When the text is too long, or the number exceeds the limit.
    pub fn new(text: &str, count: Option<usize>) -> Result<Self, QueryError> {
        if text.len() > TEXT_BYTES_MAX {
            return Err(QueryError::Invalid(format!(
                "q has {} bytes, more than {TEXT_BYTES_MAX}: use fewer words",
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

    /// Returns the same search without a maximum number of results, for one of several shards.
    #[must_use]
    pub fn of_shard(&self) -> Self {
        Self { words: self.words.clone(), count: usize::MAX }
    }

    /// Joins the results of all shards, each of which has all its matches. The number of series of
    /// a metric is that of all shards.
    pub fn join(&self, answers: Vec<FindAnswer>) -> FindAnswer {
        let (mut metrics, mut lower) = (BTreeMap::<String, FoundMetric>::new(), String::new());
        for found in answers.into_iter().flat_map(|answer| answer.metrics) {
            match metrics.get_mut(&found.metric) {
                Some(known) => known.series += found.series,
                None => drop(metrics.insert(found.metric.clone(), found)),
            }
        }
        let ranked =
            metrics.into_values().map(|found| (self.rank(&found.metric, &mut lower), found));
        let mut ranked: Vec<_> = ranked.collect();
        // The sort is stable: names of equal rank are in order.
        ranked.sort_by_key(|(rank, _)| *rank);
        let total = ranked.len();
        let metrics = ranked.into_iter().map(|(_, found)| found).take(self.count).collect();
        FindAnswer { total, metrics }
    }

    /// Returns the rank of a name; `None` when a word is missing. `lower` is a buffer for the name
    /// in lower case.
    fn rank(&self, name: &str, lower: &mut String) -> Option<NameRank> {
        lower.clear();
        if name.is_ascii() {
            lower.push_str(name);
            lower.make_ascii_lowercase();
        } else {
            lower.extend(name.chars().flat_map(char::to_lowercase));
        }
        let positions =
            self.words.iter().map(|word| Some(word_position(name, lower, word)? as usize));
        let position_sum = positions.sum::<Option<usize>>()?;
        // Without words, the order is alphabetical.
        Some((position_sum, if self.words.is_empty() { 0 } else { name.len() }))
    }
}

/// Returns the best position of a word in a name; `lower` is the name in lower case.
fn word_position(name: &str, lower: &str, word: &str) -> Option<WordPosition> {
    let (bytes, word) = (lower.as_bytes(), word.as_bytes());
    // When lower case changes the length of a letter, the positions do not match, so capitals are
    // ignored.
    let original = if name.len() == lower.len() { name.as_bytes() } else { bytes };
    let found = bytes.windows(word.len()).enumerate().filter(|(_, part)| *part == word);
    let positions = found.map(|(at, _)| {
        let Some(before) = at.checked_sub(1) else { return WordPosition::Beginning };
        let begins_word = !original[before].is_ascii_alphanumeric() && original[before].is_ascii()
            || original[at].is_ascii_uppercase() && original[before].is_ascii_lowercase();
        if begins_word { WordPosition::WordBoundary } else { WordPosition::Within }
    });
    positions.min()
}

/// Searches for metrics.
///
/// # Errors
/// When the budget is used up.
pub fn find(
    store: &Store,
    budget: &Budget,
    request: &FindRequest,
) -> Result<FindAnswer, QueryError> {
    let (mut total, mut lower) = (0, String::new());
    // A heap of the best matches, with the worst match on top.
    let mut best: BinaryHeap<(NameRank, Box<str>)> = BinaryHeap::new();
    let (mut after, mut reserved) = (None, 0);
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
        if request.count > METRICS_MAX {
            budget.reserve((best.len() - reserved) * METRIC_BYTES)?;
            reserved = best.len();
        }
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
    fn names_that_begin_with_a_word_come_before_names_that_contain_the_word() {
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
        // Regression: the lower case of "Ⱥ" has more bytes, and the search read beyond the name.
        let request = FindRequest::new("x", None).unwrap();
        assert!(request.rank("ȺȺȺx", &mut String::new()).is_some());
        assert_eq!(word_position("ȺȺ_x", "ⱥⱥ_x", "x"), Some(WordPosition::WordBoundary));
        check(
            "  ",
            &["cpu_load", "memory", "systemCpuIdle", "system_cpu_user", "système.CPU", "vcpu"],
        );
    }

    #[test]
    fn results_of_shards_are_joined_in_the_order_of_one_store() {
        let found = |metric: &str, series: usize| {
            let (kind, unit) = (Kind::Gauge, String::new());
            FoundMetric { metric: metric.to_owned(), kind, unit, series }
        };
        let request = FindRequest::new("cpu", Some(2)).unwrap();
        let answers = [[("vcpu", 1), ("cpu_b", 2)], [("cpu_b", 3), ("cpu_a", 4)]].map(|metrics| {
            let metrics: Vec<_> = metrics.iter().map(|(name, count)| found(name, *count)).collect();
            FindAnswer { total: metrics.len(), metrics }
        });
        let joined = request.join(answers.to_vec());
        assert_eq!((joined.total, joined.metrics), (3, vec![found("cpu_a", 4), found("cpu_b", 5)]));
        assert_eq!(request.of_shard().count, usize::MAX);
    }

    #[test]
    fn the_text_and_the_number_of_results_are_limited() {
        let is_invalid = |text: &str, count| {
            matches!(FindRequest::new(text, count), Err(QueryError::Invalid(_)))
        };
        assert!(is_invalid(&"x".repeat(TEXT_BYTES_MAX + 1), None));
        assert!(is_invalid("", Some(0)) && is_invalid("", Some(METRICS_MAX + 1)));
        assert!(!is_invalid(&"x".repeat(TEXT_BYTES_MAX), Some(METRICS_MAX)));
    }
}
