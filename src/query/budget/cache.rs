//! A cache of parsed queries, compiled patterns and selected series, by text. Rules and dashboards
//! repeat the same queries.
//!
//! Every entry can be computed again; the least recently used entries are evicted. Must never know:
//! query languages, how entries are computed, the caller.

use std::{any::Any, fmt, sync::Arc, time::Duration};

use parking_lot::Mutex;
// The cache without shards: a shard could not store entries larger than its share of the capacity.
use quick_cache::{Weighter, unsync::Cache};
use regex::Regex;

use crate::{clock::Stopwatch, model::SeriesId};

/// Capacity for the texts of parsed queries, in bytes. A parsed query takes about fifty times its
/// text.
const QUERY_BYTES: u64 = 512 << 10;
/// Maximum number of patterns. A pattern takes at most 400 KiB.
const PATTERNS_MAX: usize = 32;
/// Minimum capacity for the series and texts of selections, in bytes.
const SELECTION_BYTES: u64 = 8 << 20;
/// Capacity for selections per series of the store: one selection of all series takes half of it.
const SELECTION_BYTES_PER_SERIES: u64 = 2 * (size_of::<SeriesId>() + size_of::<u32>()) as u64;
/// Capacity for the hashes of series of shards, in bytes: 8 for each series of an aggregation. It
/// is used with several shards only.
const SHARDS_BYTES: u64 = 32 << 20;
/// The time for which an aggregation asks for cells, after its states could not be merged.
const CELLS_FOR: Duration = Duration::from_secs(60);
/// Approximate overhead of an entry.
const ENTRY_BYTES: usize = 128;
/// Expected number of entries.
const ENTRIES: usize = 1024;

/// The series that matched a text.
#[derive(Debug, Clone)]
pub(crate) struct Selection {
    /// The dictionary's generation at the time of the selection.
    pub(crate) generation: u64,
    /// Series with IDs below this number were compared.
    pub(crate) compared: usize,
    pub(crate) matched: MatchingSeries,
}

/// Series that matched. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct MatchingSeries {
    /// The IDs in ascending order.
    pub(crate) ids: Arc<[SeriesId]>,
    /// The position of each series in label order.
    pub(crate) positions: Arc<[u32]>,
}

/// A parsed query of any query language.
type CachedQuery = Arc<dyn Any + Send + Sync>;

/// The cache of one store. Cheap to clone.
#[derive(Clone)]
pub(crate) struct QueryCache(Arc<Caches>);

struct Caches {
    queries: Mutex<Cache<Box<str>, CachedQuery, TextSize>>,
    patterns: Mutex<Cache<Box<str>, Arc<Regex>>>,
    selections: Mutex<Cache<Box<str>, Selection, SelectionSize>>,
    shards: Mutex<Cache<Box<str>, Arc<SeriesOfShards>, ShardsSize>>,
}

/// The series that the shards of a store aggregated, as lists of hashes.
#[derive(Debug)]
pub(crate) struct SeriesOfShards {
    /// The hash of the list of each shard, and the list in ascending order.
    lists: Vec<(u64, Arc<[u64]>)>,
    /// True when no series is in two lists.
    is_distinct: bool,
    /// The time since when the aggregation needs cells.
    cells_since: Option<Stopwatch>,
}

impl SeriesOfShards {
    /// Compares the lists of all shards, unless earlier ones were the same.
    pub(crate) fn new(lists: Vec<(u64, Arc<[u64]>)>, known: Option<&Self>) -> Self {
        let same = known.filter(|known| known.hashes().eq(&hashes_of(&lists)));
        let is_distinct = same.map_or_else(|| are_distinct(&lists), |known| known.is_distinct);
        Self { lists, is_distinct, cells_since: (!is_distinct).then(Stopwatch::start) }
    }

    /// Describes series with native histograms, whose states cannot be merged.
    pub(crate) fn with_histograms() -> Self {
        Self { lists: Vec::new(), is_distinct: true, cells_since: Some(Stopwatch::start()) }
    }

    /// Returns true when the states of shards could not be merged a short time ago.
    pub(crate) fn needs_cells(&self) -> bool {
        self.cells_since.as_ref().is_some_and(|since| since.elapsed() < CELLS_FOR)
    }

    /// Returns the hash of the list of each shard.
    pub(crate) fn hashes(&self) -> Vec<u64> {
        hashes_of(&self.lists)
    }

    /// Returns the list with a hash.
    pub(crate) fn list(&self, hash: u64) -> Option<Arc<[u64]>> {
        self.lists.iter().find(|(known, _)| *known == hash).map(|(_, list)| list.clone())
    }

    /// Returns true when no series is in two shards.
    pub(crate) fn is_distinct(&self) -> bool {
        self.is_distinct
    }

    /// Returns the approximate memory in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.lists.iter().map(|(_, list)| size_of_val(&**list)).sum()
    }
}

fn hashes_of(lists: &[(u64, Arc<[u64]>)]) -> Vec<u64> {
    lists.iter().map(|(hash, _)| *hash).collect()
}

fn are_distinct(lists: &[(u64, Arc<[u64]>)]) -> bool {
    let mut all: Vec<u64> = lists.iter().flat_map(|(_, list)| list.iter().copied()).collect();
    all.sort_unstable();
    all.windows(2).all(|pair| pair[0] != pair[1])
}

/// The weight of the series of shards: the size of the text and the lists.
#[derive(Clone)]
struct ShardsSize;

impl Weighter<Box<str>, Arc<SeriesOfShards>> for ShardsSize {
    fn weight(&self, text: &Box<str>, series: &Arc<SeriesOfShards>) -> u64 {
        (text.len() + series.bytes() + ENTRY_BYTES) as u64
    }
}

/// The weight of a parsed query: the size of its text.
#[derive(Clone)]
struct TextSize;

impl Weighter<Box<str>, CachedQuery> for TextSize {
    fn weight(&self, text: &Box<str>, _: &CachedQuery) -> u64 {
        (text.len() + ENTRY_BYTES) as u64
    }
}

/// The weight of a selection: the size of its text and series.
#[derive(Clone)]
struct SelectionSize;

impl Weighter<Box<str>, Selection> for SelectionSize {
    fn weight(&self, text: &Box<str>, selection: &Selection) -> u64 {
        let MatchingSeries { ids, positions } = &selection.matched;
        (text.len() + size_of_val(&**ids) + size_of_val(&**positions) + ENTRY_BYTES) as u64
    }
}

impl fmt::Debug for QueryCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueryCache").field("selections", &self.0.selections.lock().len()).finish()
    }
}

impl QueryCache {
    pub(crate) fn new() -> Self {
        Self(Arc::new(Caches {
            queries: Mutex::new(Cache::with_weighter(ENTRIES, QUERY_BYTES, TextSize)),
            patterns: Mutex::new(Cache::new(PATTERNS_MAX)),
            selections: Mutex::new(Cache::with_weighter(ENTRIES, SELECTION_BYTES, SelectionSize)),
            shards: Mutex::new(Cache::with_weighter(0, SHARDS_BYTES, ShardsSize)),
        }))
    }

    /// Returns the parsed query of a text, if it was stored as this type.
    pub(crate) fn query<Q: Any + Send + Sync>(&self, text: &str) -> Option<Arc<Q>> {
        self.0.queries.lock().get(text).cloned()?.downcast().ok()
    }

    /// Stores a parsed query.
    pub(crate) fn keep_query<Q: Any + Send + Sync>(&self, text: &str, parsed: Arc<Q>) {
        self.0.queries.lock().insert(text.into(), parsed);
    }

    /// Returns a compiled pattern.
    pub(crate) fn pattern(&self, text: &str) -> Option<Arc<Regex>> {
        self.0.patterns.lock().get(text).cloned()
    }

    /// Stores a compiled pattern. Patterns larger than the cache are not stored.
    pub(crate) fn keep_pattern(&self, text: &str, pattern: Arc<Regex>) {
        self.0.patterns.lock().insert(text.into(), pattern);
    }

    /// Returns the selection for a text.
    pub(crate) fn selection(&self, text: &str) -> Option<Selection> {
        self.0.selections.lock().get(text).cloned()
    }

    /// Returns the series that shards aggregated for a text.
    pub(crate) fn series_of_shards(&self, text: &str) -> Option<Arc<SeriesOfShards>> {
        self.0.shards.lock().get(text).cloned()
    }

    /// Stores the series that shards aggregated for a text.
    pub(crate) fn keep_series_of_shards(&self, text: &str, series: Arc<SeriesOfShards>) {
        self.0.shards.lock().insert(text.into(), series);
    }

    /// Stores the selection for a text. The capacity grows with the number of series.
    pub(crate) fn keep_selection(&self, text: &str, selection: Selection) {
        let capacity = selection.compared as u64 * SELECTION_BYTES_PER_SERIES;
        let mut selections = self.0.selections.lock();
        if capacity > selections.capacity() {
            selections.set_capacity(capacity);
        }
        selections.insert(text.into(), selection);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_size_of_the_cache_is_limited() {
        let cache = QueryCache::new();
        let (ids, positions) = ((0..100_000).map(SeriesId).collect(), (0..100_000).collect());
        let matched = MatchingSeries { ids, positions };
        let parsed = Arc::new(7_u32);
        let pattern = Arc::new(Regex::new("a").unwrap());
        for number in 0..100 {
            let selection = Selection { generation: 1, compared: 9, matched: matched.clone() };
            cache.keep_selection(&number.to_string(), selection);
            cache.keep_pattern(&number.to_string(), pattern.clone());
            cache.keep_query(&format!("{number:20000}"), parsed.clone());
        }
        assert!(cache.0.patterns.lock().len() <= PATTERNS_MAX);
        assert!(cache.pattern("99").is_some());
        assert!((1..=QUERY_BYTES).contains(&cache.0.queries.lock().weight()));
        let newest = format!("{:20000}", 99);
        assert_eq!((cache.query(&newest), cache.query::<String>(&newest)), (Some(parsed), None));
        assert!(cache.0.selections.lock().weight() <= SELECTION_BYTES);
        assert!(cache.selection("99").is_some());
        let kept = (0..100).filter(|number| cache.selection(&number.to_string()).is_some());
        assert!((1..=10).contains(&kept.count()));
    }

    #[test]
    fn series_of_several_shards_are_found_and_lists_are_found_by_their_hash() {
        let list = |hash: u64, series: &[u64]| (hash, Arc::from(series));
        let apart = SeriesOfShards::new(vec![list(1, &[3, 5]), list(2, &[4])], None);
        assert!(apart.is_distinct() && !apart.needs_cells());
        assert_eq!(apart.list(2).as_deref(), Some(&[4][..]));
        assert!(apart.list(3).is_none());
        let lists = || vec![list(1, &[3, 5]), list(3, &[5])];
        let shared = SeriesOfShards::new(lists(), Some(&apart));
        assert!(!shared.is_distinct() && shared.needs_cells());
        assert!(!SeriesOfShards::new(lists(), Some(&shared)).is_distinct());
    }

    #[test]
    fn a_selection_of_all_series_leaves_other_selections_in_the_cache() {
        const SERIES: u32 = 2_500_000;
        let cache = QueryCache::new();
        let keep = |text: &str, count: u32| {
            let (ids, positions) = ((0..count).map(SeriesId).collect(), (0..count).collect());
            let matched = MatchingSeries { ids, positions };
            let compared = SERIES as usize;
            cache.keep_selection(text, Selection { generation: 1, compared, matched });
        };
        let texts: Vec<_> = (0..100).map(|number| number.to_string()).collect();
        for text in &texts {
            keep(text, 10_000);
        }
        let found = || texts.iter().filter(|text| cache.selection(text).is_some()).count();
        assert_eq!(found(), 100);
        keep("all", SERIES);
        assert!(cache.selection("all").is_some());
        assert_eq!(found(), 100);
        assert!(cache.0.selections.lock().weight() <= u64::from(SERIES) * 16);
    }
}
