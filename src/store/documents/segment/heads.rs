//! The cache of decoded heads of tiles.
//!
//! A query of a few series in each of many tiles would otherwise spend a quarter of its time on
//! decoding the times of all their series. Segments never change, so entries are only evicted. Must
//! never know: which segments count.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use quick_cache::{Weighter, sync::Cache};

use super::tile::TileHead;

/// The default of the maximum size of the cache in bytes.
const DEFAULT_BYTES_MAX: usize = 16 << 20;
/// The assumed size of a head in bytes, from which the cache derives the number of its shards: at
/// least 32 such heads each. It is a large one, so that each shard has room for any head.
const HEAD_BYTES: usize = 64 << 10;
/// The bytes of an entry without its head.
const ENTRY_BYTES: usize = 96;

/// The cache of heads.
pub(crate) struct TileHeads(Cache<HeadName, Arc<TileHead>, Bytes>);

/// The number of a segment, in the order of opening, and the index of the tile.
type HeadName = (u64, usize);

/// The number of segments that were opened.
static OPENED: AtomicU64 = AtomicU64::new(0);

/// Returns a number that no other segment has.
pub(super) fn next_number() -> u64 {
    OPENED.fetch_add(1, Ordering::Relaxed)
}

#[derive(Debug, Clone)]
struct Bytes;

impl Weighter<HeadName, Arc<TileHead>> for Bytes {
    fn weight(&self, _: &HeadName, head: &Arc<TileHead>) -> u64 {
        (head.bytes() + ENTRY_BYTES) as u64
    }
}

impl TileHeads {
    pub(crate) fn new() -> Self {
        Self(Cache::with_weighter(DEFAULT_BYTES_MAX / HEAD_BYTES, DEFAULT_BYTES_MAX as u64, Bytes))
    }

    /// Sets the maximum size of the cache in bytes.
    pub(crate) fn set_bytes_max(&self, bytes_max: usize) {
        self.0.set_capacity(bytes_max as u64);
    }

    /// Returns the bytes in use.
    pub(crate) fn bytes(&self) -> usize {
        self.0.weight() as usize
    }

    /// Returns the head of a tile, if it is in the cache.
    pub(super) fn get(&self, segment: u64, tile: usize) -> Option<Arc<TileHead>> {
        self.0.get(&(segment, tile))
    }

    /// Adds a head whose checksum was verified.
    pub(super) fn keep(&self, segment: u64, tile: usize, head: Arc<TileHead>) {
        self.0.insert((segment, tile), head);
    }
}

impl fmt::Debug for TileHeads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TileHeads").field("bytes", &self.bytes()).finish()
    }
}
