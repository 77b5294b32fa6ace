//! The cache of decoded parts of segments: heads of tiles, and columns of series.
//!
//! A query of one metric over many hosts reads one series in each of many tiles, and a dashboard
//! repeats the query. Without the cache, it would spend most of its time on reading and decoding
//! heads and blocks. Segments never change, so entries are only evicted. Must never know: which
//! segments count.

use std::{
    fmt,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
};

use quick_cache::{
    DefaultHashBuilder, OptionsBuilder, Weighter,
    sync::{Cache, DefaultLifecycle},
};

use super::{column::SealedColumn, tile::TileHead};

/// The default of the maximum size of the cache in bytes.
const DEFAULT_BYTES_MAX: usize = 16 << 20;
/// The assumed size of an entry in bytes, from which the cache derives how many evicted names it
/// remembers.
const USUAL_BYTES: usize = 512;
/// The number of parts of the cache. With the default size, each part has room for any entry: the
/// largest head takes less than 1 MiB. A smaller cache does not keep entries larger than its parts.
const SHARDS: usize = 8;
/// The bytes of an entry without its content.
const ENTRY_BYTES: usize = 96;

/// The cache of heads and columns.
pub(crate) struct SealedCache(Cache<Name, Entry, Bytes>);

/// The key of an entry. Segments have numbers in the order of opening.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Name {
    Head { segment: u64, tile: usize },
    Column { segment: u64, tile: usize, lane: u8 },
}

#[derive(Debug, Clone)]
enum Entry {
    Head(Arc<TileHead>),
    Column(SealedColumn),
}

/// The number of segments that were opened.
static OPENED: AtomicU64 = AtomicU64::new(0);

/// Returns a number that no other segment has.
pub(super) fn next_number() -> u64 {
    OPENED.fetch_add(1, Ordering::Relaxed)
}

#[derive(Debug, Clone)]
struct Bytes;

impl Weighter<Name, Entry> for Bytes {
    fn weight(&self, _: &Name, entry: &Entry) -> u64 {
        let bytes = match entry {
            Entry::Head(head) => head.bytes(),
            Entry::Column(column) => column.bytes(),
        };
        (bytes + ENTRY_BYTES) as u64
    }
}

impl SealedCache {
    pub(crate) fn new() -> Self {
        let options = OptionsBuilder::new()
            .shards(SHARDS)
            .estimated_items_capacity(DEFAULT_BYTES_MAX / USUAL_BYTES)
            .weight_capacity(DEFAULT_BYTES_MAX as u64)
            .build();
        let Ok(options) = options else { unreachable!("both capacities are set") };
        let (hash, lifecycle) = (DefaultHashBuilder::default(), DefaultLifecycle::default());
        Self(Cache::with_options(options, Bytes, hash, lifecycle))
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
    pub(super) fn head(&self, segment: u64, tile: usize) -> Option<Arc<TileHead>> {
        match self.0.get(&Name::Head { segment, tile })? {
            Entry::Head(head) => Some(head),
            Entry::Column(_) => None,
        }
    }

    /// Adds a head whose checksum was verified.
    pub(super) fn keep_head(&self, segment: u64, tile: usize, head: Arc<TileHead>) {
        self.0.insert(Name::Head { segment, tile }, Entry::Head(head));
    }

    /// Returns the column of a series of a tile, if it is in the cache.
    pub(super) fn column(&self, segment: u64, tile: usize, lane: u8) -> Option<SealedColumn> {
        match self.0.get(&Name::Column { segment, tile, lane })? {
            Entry::Column(column) => Some(column),
            Entry::Head(_) => None,
        }
    }

    /// Adds the column of a series whose block was verified, in place of an earlier one.
    pub(super) fn keep_column(
        &self,
        segment: u64,
        (tile, lane): (usize, u8),
        column: SealedColumn,
    ) {
        self.0.insert(Name::Column { segment, tile, lane }, Entry::Column(column));
    }
}

impl fmt::Debug for SealedCache {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SealedCache").field("bytes", &self.bytes()).finish()
    }
}
