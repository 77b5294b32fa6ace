//! Rows of the head that were read lately, checked and ready.
//!
//! A query of one metric over many hosts takes one cell out of each of many rows: to find, copy and
//! check the page of each was most of its work. A row is kept under the slot's version, the last
//! journal record with which its slot was changed. So nothing is ever taken out when a row changes:
//! what was of the version before is asked for no more. Must never know what rows hold.

use std::{collections::HashMap, sync::Arc};

use foldhash::fast::FixedState;
use parking_lot::RwLock;
use quick_cache::{Weighter, sync::Cache};

/// Bytes of rows that there is room for, unless told otherwise.
const BYTES_MAX: usize = 64 << 20;
/// Bytes of a full row, about, for the number of rows that there is room for.
const ROW_BYTES: usize = 600;
/// Bytes that a row takes in the cache besides its own.
const ENTRY_BYTES: usize = 96;
/// Slots whose versions are remembered, at most.
const SLOTS_MAX: usize = 10_000;

/// The cache of rows.
#[derive(Debug)]
pub(crate) struct RowCache {
    rows: Cache<RowName, Arc<[u8]>, Bytes>,
    /// The versions of each granularity.
    versions: Vec<RwLock<Versions>>,
}

/// A row as it was from one change of its slot to the next.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
struct RowName {
    granularity: usize,
    key: u64,
    version: u64,
}

/// The journal records with which slots were last changed.
#[derive(Debug, Default)]
struct Versions {
    by_slot: HashMap<i64, u64, FixedState>,
    /// The highest version of the other slots.
    others: u64,
}

#[derive(Debug, Clone)]
struct Bytes;

impl Weighter<RowName, Arc<[u8]>> for Bytes {
    fn weight(&self, _: &RowName, row: &Arc<[u8]>) -> u64 {
        (row.len() + ENTRY_BYTES) as u64
    }
}

impl RowCache {
    /// A cache of a number of granularities.
    pub(crate) fn new(granularities: usize) -> Self {
        let rows = Cache::with_weighter(BYTES_MAX / ROW_BYTES, BYTES_MAX as u64, Bytes);
        Self { rows, versions: (0..granularities).map(|_| RwLock::default()).collect() }
    }

    /// Sets the bytes that the cache may take.
    pub(crate) fn set_bytes_max(&self, bytes_max: usize) {
        self.rows.set_capacity(bytes_max as u64);
    }

    /// Bytes that are taken.
    pub(crate) fn bytes(&self) -> usize {
        self.rows.weight() as usize
    }

    /// Notes that a transaction which takes the head up to a record changes a slot: before it is
    /// committed, so that nobody takes the row that was for the one that is.
    pub(super) fn note_change(&self, granularity: usize, slot: i64, through: u64) {
        let mut versions = self.versions[granularity].write();
        if versions.by_slot.len() >= SLOTS_MAX {
            versions.by_slot.clear();
            versions.others = through;
        }
        versions.by_slot.insert(slot, through);
    }

    /// The rows of a slot for who sees the head as of a record; `None` when it was changed since.
    pub(super) fn slot(&self, granularity: usize, slot: i64, through: u64) -> Option<SlotRows<'_>> {
        let versions = self.versions[granularity].read();
        let version = versions.by_slot.get(&slot).copied().unwrap_or(versions.others);
        (version <= through).then_some(SlotRows { cache: self, granularity, version })
    }
}

/// The rows of one slot.
pub(super) struct SlotRows<'a> {
    cache: &'a RowCache,
    granularity: usize,
    version: u64,
}

impl SlotRows<'_> {
    /// The row under a key, when it was read before.
    pub(super) fn get(&self, key: u64) -> Option<Arc<[u8]>> {
        self.cache.rows.get(&self.name(key))
    }

    /// Keeps a row that is sound.
    pub(super) fn keep(&self, key: u64, row: &[u8]) {
        self.cache.rows.insert(self.name(key), row.into());
    }

    fn name(&self, key: u64) -> RowName {
        RowName { granularity: self.granularity, key, version: self.version }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SLOT: i64 = 3_600_000;

    #[test]
    fn a_row_is_found_by_those_who_see_its_slot_as_it_was_read() {
        let cache = RowCache::new(1);
        let keep = |through, row: &[u8]| cache.slot(0, SLOT, through).unwrap().keep(7, row);
        let found = |through| cache.slot(0, SLOT, through)?.get(7).map(|row| row.to_vec());
        keep(3, b"three");
        assert_eq!(found(4), Some(b"three".to_vec()));
        cache.note_change(0, SLOT, 5);
        // A reader of the head's state before the change gets no row, before the commit or after
        // it.
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
    fn rows_make_room_for_others() {
        let cache = RowCache::new(1);
        cache.set_bytes_max(100_000);
        let rows = cache.slot(0, SLOT, 1).unwrap();
        (0..1000).for_each(|key| rows.keep(key, &[0; 3000]));
        assert!((1..=100_000).contains(&cache.bytes()), "{}", cache.bytes());
    }
}
