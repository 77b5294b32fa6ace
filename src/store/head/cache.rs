//! A cache of verified rows of the head, and of decoded columns.
//!
//! A query of one metric over many hosts reads one cell of each of many rows. Without the cache, it
//! spends most of its time on finding, copying and verifying the page of each row. The key of a row
//! contains the slot's version: the last journal record with which the slot was changed; a column
//! contains the versions of its slots. Therefore a change invalidates no entry: no reader uses the
//! rows of an earlier version. Must never know: the content of rows.

use std::{collections::HashMap, sync::Arc};

use foldhash::fast::FixedState;
use parking_lot::RwLock;
use quick_cache::{Weighter, sync::Cache};

use super::columns::HeadColumn;
use crate::model::SeriesId;

/// The default size of the cache in bytes.
const BYTES_MAX: usize = 64 << 20;
/// The approximate size of a full row in bytes, to estimate the number of rows.
const ROW_BYTES: usize = 600;
/// The size of a cache entry in bytes, without its row.
const ENTRY_BYTES: usize = 96;
/// The maximum number of slots whose versions are remembered.
const SLOTS_MAX: usize = 10_000;

/// The cache of rows and columns.
#[derive(Debug)]
pub(crate) struct RowCache {
    entries: Cache<Name, Entry, Bytes>,
    /// The versions of each granularity.
    versions: Vec<RwLock<Versions>>,
}

/// The key of an entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Name {
    /// A row between two changes of its slot.
    Row { granularity: usize, key: u64, version: u64 },
    /// The column of a series.
    Column { granularity: usize, series: SeriesId },
}

#[derive(Debug, Clone)]
enum Entry {
    Row(Arc<[u8]>),
    Column(Arc<HeadColumn>),
}

/// The journal records with which slots were last changed.
#[derive(Debug, Default)]
struct Versions {
    by_slot: HashMap<i64, u64, FixedState>,
    /// The highest version of the slots that are not in `by_slot`.
    others: u64,
}

#[derive(Debug, Clone)]
struct Bytes;

impl Weighter<Name, Entry> for Bytes {
    fn weight(&self, _: &Name, entry: &Entry) -> u64 {
        let bytes = match entry {
            Entry::Row(row) => row.len(),
            Entry::Column(column) => column.bytes(),
        };
        (bytes + ENTRY_BYTES) as u64
    }
}

impl RowCache {
    /// Creates a cache for a number of granularities.
    pub(crate) fn new(granularities: usize) -> Self {
        let entries = Cache::with_weighter(BYTES_MAX / ROW_BYTES, BYTES_MAX as u64, Bytes);
        Self { entries, versions: (0..granularities).map(|_| RwLock::default()).collect() }
    }

    /// Sets the maximum size in bytes.
    pub(crate) fn set_bytes_max(&self, bytes_max: usize) {
        self.entries.set_capacity(bytes_max as u64);
    }

    /// Returns the size in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.entries.weight() as usize
    }

    /// Notes that a transaction changes a slot and raises the head's record to `through`. Call it
    /// before the commit, so that no reader after the commit gets an old row.
    pub(super) fn note_change(&self, granularity: usize, slot: i64, through: u64) {
        let mut versions = self.versions[granularity].write();
        if versions.by_slot.len() >= SLOTS_MAX {
            versions.by_slot.clear();
            versions.others = through;
        }
        versions.by_slot.insert(slot, through);
    }

    /// Returns the rows of a slot for a reader of the head as of the record `through`; `None` when
    /// the slot was changed since.
    pub(super) fn slot(&self, granularity: usize, slot: i64, through: u64) -> Option<SlotRows<'_>> {
        let version = self.version(granularity, slot, through)?;
        Some(SlotRows { cache: self, granularity, version })
    }

    /// Returns the version of a slot for a reader of the head as of the record `through`; `None`
    /// when the slot was changed since.
    pub(super) fn version(&self, granularity: usize, slot: i64, through: u64) -> Option<u64> {
        let versions = self.versions[granularity].read();
        let version = versions.by_slot.get(&slot).copied().unwrap_or(versions.others);
        (version <= through).then_some(version)
    }

    /// Returns the column of a series, if it is in the cache.
    pub(super) fn column(&self, granularity: usize, series: SeriesId) -> Option<Arc<HeadColumn>> {
        match self.entries.get(&Name::Column { granularity, series })? {
            Entry::Column(column) => Some(column),
            Entry::Row(_) => None,
        }
    }

    /// Caches the column of a series, in place of an earlier one.
    pub(super) fn keep_column(
        &self,
        granularity: usize,
        series: SeriesId,
        column: Arc<HeadColumn>,
    ) {
        self.entries.insert(Name::Column { granularity, series }, Entry::Column(column));
    }
}

/// The rows of one slot.
pub(super) struct SlotRows<'a> {
    cache: &'a RowCache,
    granularity: usize,
    version: u64,
}

impl SlotRows<'_> {
    /// Returns the row under a key, if it is in the cache.
    pub(super) fn get(&self, key: u64) -> Option<Arc<[u8]>> {
        match self.cache.entries.get(&self.name(key))? {
            Entry::Row(row) => Some(row),
            Entry::Column(_) => None,
        }
    }

    /// Caches a verified row.
    pub(super) fn keep(&self, key: u64, row: &[u8]) {
        self.cache.entries.insert(self.name(key), Entry::Row(row.into()));
    }

    fn name(&self, key: u64) -> Name {
        Name::Row { granularity: self.granularity, key, version: self.version }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLOT: i64 = 3_600_000;

    #[test]
    fn a_row_is_found_only_by_readers_of_the_same_version() {
        let cache = RowCache::new(1);
        let keep = |through, row: &[u8]| cache.slot(0, SLOT, through).unwrap().keep(7, row);
        let found = |through| cache.slot(0, SLOT, through)?.get(7).map(|row| row.to_vec());
        keep(3, b"three");
        assert_eq!(found(4), Some(b"three".to_vec()));
        cache.note_change(0, SLOT, 5);
        // A reader with a view from before the change finds no row, either before or after the
        // commit.
        assert!(cache.slot(0, SLOT, 4).is_none());
        assert_eq!(found(5), None);
        keep(5, b"five");
        assert_eq!(found(9), Some(b"five".to_vec()));
    }

    #[test]
    fn when_versions_are_forgotten_rows_are_read_again() {
        let cache = RowCache::new(1);
        cache.note_change(0, SLOT, 5);
        cache.slot(0, SLOT, 5).unwrap().keep(7, b"five");
        (0..SLOTS_MAX as i64).for_each(|slot| cache.note_change(0, slot, 10));
        assert!(cache.slot(0, SLOT, 9).is_none());
        assert!(cache.slot(0, SLOT, 10).unwrap().get(7).is_none());
    }

    #[test]
    fn the_cache_stays_within_its_size() {
        let cache = RowCache::new(1);
        cache.set_bytes_max(100_000);
        let rows = cache.slot(0, SLOT, 1).unwrap();
        (0..1000).for_each(|key| rows.keep(key, &[0; 3000]));
        assert!((1..=100_000).contains(&cache.bytes()), "{}", cache.bytes());
    }
}
