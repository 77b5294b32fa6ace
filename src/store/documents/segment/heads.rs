//! Heads of tiles that queries read lately, checked and decoded.
//!
//! A query of a few series of each of many tiles decodes the times of all series of these tiles:
//! that was a quarter of its work. A segment never changes, so nothing is ever taken out but to
//! make room. Must never know: which segments count.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use quick_cache::{Weighter, sync::Cache};

use super::tile::TileHead;

/// Bytes of heads that there is room for, unless told otherwise.
const BYTES_MAX: usize = 16 << 20;
/// Bytes of a large head, for the number of heads that there is room for. The cache is cut into
/// parts of 32 of them or more, however many cores there are: a head must fit into one.
const HEAD_BYTES: usize = 64 << 10;
/// Bytes that a head takes in the cache besides its own.
const ENTRY_BYTES: usize = 96;

/// The cache of heads.
pub(crate) struct TileHeads(Cache<HeadName, Arc<TileHead>, Bytes>);

/// A segment by the order in which this process opened it, and the number of the tile there.
type HeadName = (u64, usize);

/// Segments opened so far.
static OPENED: AtomicU64 = AtomicU64::new(0);

/// A number that no other segment has.
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
        Self(Cache::with_weighter(BYTES_MAX / HEAD_BYTES, BYTES_MAX as u64, Bytes))
    }

    /// Sets the bytes that the cache may take.
    pub(crate) fn set_bytes_max(&self, bytes_max: usize) {
        self.0.set_capacity(bytes_max as u64);
    }

    /// Bytes that are taken.
    pub(crate) fn bytes(&self) -> usize {
        self.0.weight() as usize
    }

    /// The head of a tile, when it was read before.
    pub(super) fn get(&self, segment: u64, tile: usize) -> Option<Arc<TileHead>> {
        self.0.get(&(segment, tile))
    }

    /// Keeps a head that is sound.
    pub(super) fn keep(&self, segment: u64, tile: usize, head: Arc<TileHead>) {
        self.0.insert((segment, tile), head);
    }
}

impl fmt::Debug for TileHeads {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TileHeads").field("bytes", &self.bytes()).finish()
    }
}
