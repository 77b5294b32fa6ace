//! What queries found out that later ones of the same text need again: queries as they were parsed,
//! compiled patterns, and which series match. Rules and dashboards ask the same again and again.
//!
//! Everything here can be found out anew; what was not used lately is forgotten. Must never know: how
//! it is found out, who asks.

use std::{fmt, sync::Arc};

use parking_lot::Mutex;
// One without parts: each would have a share of the room, and keep nothing larger than that.
use quick_cache::{Weighter, unsync::Cache};
use regex::Regex;

use crate::model::SeriesId;
use crate::query::promql::Parsed;

/// Bytes of the queries that are kept: one that is parsed takes some fifty times its text.
const QUERY_BYTES: u64 = 512 << 10;
/// Patterns that are kept: each takes some 400 KiB at most.
const PATTERNS_MAX: usize = 32;
/// Bytes of the series and texts of selections that are kept.
const SELECTION_BYTES: u64 = 8 << 20;
/// What an entry takes besides, about.
const ENTRY_BYTES: usize = 128;
/// Entries that room is made for.
const ENTRIES: usize = 1024;

/// Which series of a store matched.
#[derive(Debug, Clone)]
pub(crate) struct Selection {
    /// The dictionary's generation then.
    pub(crate) generation: u64,
    /// The series with ids below this were looked at.
    pub(crate) looked_at: usize,
    pub(crate) matched: Matched,
}

/// Series that matched. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Matched {
    /// Ascending.
    pub(crate) ids: Arc<[SeriesId]>,
    /// Of each its place in the order of labels.
    pub(crate) places: Arc<[u32]>,
}

/// See the file's head; of one store. Cheap to clone.
#[derive(Clone)]
pub(crate) struct Remembered(Arc<Inner>);

struct Inner {
    queries: Mutex<Cache<Box<str>, Arc<Parsed>, Texts>>,
    patterns: Mutex<Cache<Box<str>, Arc<Regex>>>,
    selections: Mutex<Cache<Box<str>, Selection, Ids>>,
}

#[derive(Clone)]
struct Texts;

impl Weighter<Box<str>, Arc<Parsed>> for Texts {
    fn weight(&self, text: &Box<str>, _: &Arc<Parsed>) -> u64 {
        (text.len() + ENTRY_BYTES) as u64
    }
}

#[derive(Clone)]
struct Ids;

impl Weighter<Box<str>, Selection> for Ids {
    fn weight(&self, text: &Box<str>, selection: &Selection) -> u64 {
        let Matched { ids, places } = &selection.matched;
        (text.len() + size_of_val(&**ids) + size_of_val(&**places) + ENTRY_BYTES) as u64
    }
}

impl fmt::Debug for Remembered {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Remembered").field("selections", &self.0.selections.lock().len()).finish()
    }
}

impl Remembered {
    /// Nothing yet.
    pub(crate) fn new() -> Self {
        Self(Arc::new(Inner {
            queries: Mutex::new(Cache::with_weighter(ENTRIES, QUERY_BYTES, Texts)),
            patterns: Mutex::new(Cache::new(PATTERNS_MAX)),
            selections: Mutex::new(Cache::with_weighter(ENTRIES, SELECTION_BYTES, Ids)),
        }))
    }

    /// A query, parsed.
    pub(crate) fn query(&self, text: &str) -> Option<Arc<Parsed>> {
        self.0.queries.lock().get(text).cloned()
    }

    /// Keeps a query that was parsed.
    pub(crate) fn keep_query(&self, text: &str, parsed: Arc<Parsed>) {
        self.0.queries.lock().insert(text.into(), parsed);
    }

    /// A pattern, compiled.
    pub(crate) fn pattern(&self, text: &str) -> Option<Arc<Regex>> {
        self.0.patterns.lock().get(text).cloned()
    }

    /// Keeps a pattern; a large one is none to be kept.
    pub(crate) fn keep_pattern(&self, text: &str, pattern: Arc<Regex>) {
        self.0.patterns.lock().insert(text.into(), pattern);
    }

    /// Which series matched a text.
    pub(crate) fn selection(&self, text: &str) -> Option<Selection> {
        self.0.selections.lock().get(text).cloned()
    }

    /// Keeps which series match a text.
    pub(crate) fn keep_selection(&self, text: &str, selection: Selection) {
        self.0.selections.lock().insert(text.into(), selection);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query::{Budget, PromqlLimits};

    #[test]
    fn what_is_remembered_is_bounded() {
        let remembered = Remembered::new();
        let (ids, places) = ((0..100_000).map(SeriesId).collect(), (0..100_000).collect());
        let matched = Matched { ids, places };
        let limits = PromqlLimits {
            series_max: 1,
            points_max: 1,
            steps_max: 1,
            query_bytes_max: 100,
            regex_bytes_max: 1,
            budget: &Budget::UNLIMITED,
        };
        let parsed = Arc::new(Parsed::new("up", &limits).unwrap());
        let pattern = Arc::new(Regex::new("a").unwrap());
        for number in 0..100 {
            let selection = Selection { generation: 1, looked_at: 9, matched: matched.clone() };
            remembered.keep_selection(&number.to_string(), selection);
            remembered.keep_pattern(&number.to_string(), pattern.clone());
            remembered.keep_query(&format!("{number:20000}"), parsed.clone());
        }
        assert!(remembered.0.patterns.lock().len() <= PATTERNS_MAX);
        assert!(remembered.pattern("99").is_some());
        assert!((1..=QUERY_BYTES).contains(&remembered.0.queries.lock().weight()));
        assert!(remembered.0.selections.lock().weight() <= SELECTION_BYTES);
        assert!(remembered.selection("99").is_some());
        let kept = (0..100).filter(|number| remembered.selection(&number.to_string()).is_some());
        assert!((1..=10).contains(&kept.count()));
    }
}
