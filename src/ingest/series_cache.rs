//! A cache from the fingerprints of recent series to their IDs.

use std::{
    collections::HashMap,
    hash::{BuildHasher, RandomState},
    sync::LazyLock,
};

use foldhash::fast::FixedState;
use xxhash_rust::xxh3::xxh3_128_with_seed;

use crate::{
    model::{Kind, SeriesId},
    policy::RefusalReason,
};

/// A random seed, so that nobody can construct two series with equal fingerprints.
static SEED: LazyLock<u64> = LazyLock::new(|| RandomState::new().hash_one(0));

/// The identity of a series: a hash of the bytes with which a sender writes it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Fingerprint(u128);

impl Fingerprint {
    /// Hashes the received bytes. `protocol` separates equal bytes of two protocols.
    pub fn new(protocol: u8, bytes: &[u8]) -> Self {
        Self(xxh3_128_with_seed(bytes, *SEED) ^ u128::from(protocol))
    }

    /// Separates equal series that are declared with different kinds.
    pub(super) fn with_kind(self, kind: Kind) -> Self {
        Self(self.0 ^ u128::from(kind as u8) << 8)
    }

    /// Extends the hash by more bytes without hashing the first ones again.
    pub(super) fn and(self, bytes: &[u8]) -> Self {
        let hash = xxh3_128_with_seed(bytes, *SEED ^ self.0 as u64);
        Self(hash ^ self.0.rotate_left(64))
    }
}

/// The value of a fingerprint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CachedSeries {
    Series(SeriesId),
    Refused(RefusalReason),
}

/// The recent series, by fingerprint.
///
/// Senders send their series in nearly the same order each time, so each entry remembers its
/// successor: usually the successor is looked up next again, and it is adjacent in memory.
#[derive(Debug, Default)]
pub struct SeriesCache {
    /// The generation of the dictionary that contains the IDs of all entries.
    generation: u64,
    entries: Vec<Entry>,
    index: HashMap<Fingerprint, u32, FixedState>,
    /// The entry of the last lookup.
    last: u32,
}

#[derive(Debug, Clone, Copy)]
struct Entry {
    fingerprint: Fingerprint,
    resolved: CachedSeries,
    /// The entry of the following lookup.
    next: u32,
}

impl SeriesCache {
    /// Empties the cache when it contains more than `series_max` series; they are looked up again.
    pub fn trim(&mut self, series_max: usize) {
        if self.entries.len() > series_max {
            self.clear();
        }
    }

    /// Empties the cache when series were deleted or renamed, or got another kind; they are looked
    /// up again.
    pub fn renew(&mut self, generation: u64) {
        if self.generation != generation {
            self.generation = generation;
            self.clear();
        }
    }

    /// Empties the cache; all series are looked up again.
    pub fn clear(&mut self) {
        *self = Self { generation: self.generation, ..Self::default() };
    }

    pub(super) fn generation(&self) -> u64 {
        self.generation
    }

    pub(super) fn find(&mut self, fingerprint: Fingerprint) -> Option<CachedSeries> {
        let guess = self.entries.get(self.last as usize)?.next;
        if let Some(entry) = self.entries.get(guess as usize)
            && entry.fingerprint == fingerprint
        {
            self.last = guess;
            return Some(entry.resolved);
        }
        let found = *self.index.get(&fingerprint)?;
        self.link_from_last(found);
        Some(self.entries[found as usize].resolved)
    }

    pub(super) fn insert(&mut self, fingerprint: Fingerprint, resolved: CachedSeries) {
        let entry = self.entries.len() as u32;
        // The initial guess is the next entry in memory.
        self.entries.push(Entry { fingerprint, resolved, next: entry + 1 });
        self.index.insert(fingerprint, entry);
        self.link_from_last(entry);
    }

    fn link_from_last(&mut self, entry: u32) {
        self.entries[self.last as usize].next = entry;
        self.last = entry;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_cache_finds_series_in_any_order() {
        let mut cache = SeriesCache::default();
        let fingerprint = |n: u32| Fingerprint::new(0, &n.to_le_bytes());
        let series = |n: u32| CachedSeries::Series(SeriesId(n));
        let mut rng = fastrand::Rng::with_seed(3);
        assert_eq!(cache.find(fingerprint(0)), None);
        (0..100).for_each(|n| cache.insert(fingerprint(n), series(n)));
        for _ in 0..3 {
            for n in (0..100).chain((0..300).map(|_| rng.u32(0..120))) {
                let expected = (n < 100).then_some(series(n));
                assert_eq!(cache.find(fingerprint(n)), expected, "{n}");
            }
        }
        cache.renew(0);
        assert_eq!(cache.find(fingerprint(1)), Some(series(1)));
        cache.trim(99);
        assert_eq!(cache.find(fingerprint(1)), None);
        cache.insert(fingerprint(1), series(1));
        cache.renew(1);
        assert_eq!(cache.find(fingerprint(1)), None);
    }
}
