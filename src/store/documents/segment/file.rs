//! A segment: an immutable flat file of tiles, with their index and a footer at the end.
//!
//! Must never know: which segments count.

mod index;
mod tiles;

use std::{
    io,
    ops::Range,
    sync::{Arc, atomic::AtomicU64},
};

use parking_lot::Mutex;
use redb::StorageBackend;
use xxhash_rust::xxh3::xxh3_64;

use index::{directory, seconds_of};

use super::{
    Misfit,
    bits::PADDING,
    cache::next_number,
    tile::{HISTOGRAMS, TileHead},
};
use crate::{
    model::UnixMillis,
    store::{error::StoreError, file::medium::Medium},
};

/// The first bytes of a footer.
pub(super) const MAGIC: &[u8; 8] = b"granseal";
/// The version of the layout without histograms.
pub(super) const VERSION: u64 = 1;
/// The version of the layout with tiles of histograms.
pub(super) const HISTOGRAMS_VERSION: u64 = 2;
/// The size of the footer: magic, version, start of the partition, slot width, offset of the index,
/// number of its entries, checksum of the index, checksum of the footer.
const FOOTER_BYTES: usize = 64;
const ENTRY_BYTES: usize = 24;
/// The maximum number of tiles of a segment: an index of 1.5 GB.
const ENTRIES_MAX: u64 = 1 << 26;

/// The position of a tile in time and among the series.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct TileId {
    /// Seconds from the partition's start to the first slot.
    pub(crate) seconds: u32,
    /// The row of its series, plus [`HISTOGRAMS`] in a tile of histograms.
    pub(crate) row: u32,
}

impl TileId {
    /// Returns the position of a tile of histograms.
    pub(crate) fn of_histograms(seconds: u32, row: u32) -> Self {
        Self { seconds, row: row | HISTOGRAMS }
    }

    /// Returns true for a tile of histograms.
    fn is_of_histograms(self) -> bool {
        self.row & HISTOGRAMS != 0
    }

    /// Returns the key of the tile in checksums.
    pub(crate) fn key(self) -> u64 {
        u64::from(self.seconds) << 32 | u64::from(self.row)
    }
}

/// A tile in the index.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub(super) id: TileId,
    pub(super) offset: u64,
    /// The size of the tile's head in bytes.
    pub(super) head: u32,
    pub(super) slots: u32,
}

pub(super) fn fault<'a>(
    operation: &'static str,
    file: &'a str,
) -> impl FnOnce(io::Error) -> StoreError + 'a {
    move |cause| StoreError::Io { operation, file: file.to_owned(), cause }
}

/// An existing segment.
#[derive(Debug)]
pub(crate) struct Segment {
    name: String,
    /// The number of the segment, in the order of opening.
    number: u64,
    file: Box<dyn StorageBackend>,
    width_ms: i64,
    bytes: u64,
    entries: Vec<Entry>,
    /// The start times of tiles of cells, ascending, each with its entries in the index.
    starts: Vec<(u32, Range<usize>)>,
    /// The entries of tiles of histograms, by row and start.
    histograms: Vec<usize>,
    /// The range of the slots, in seconds from the partition's start.
    span: Range<i64>,
    /// The offset of the index, where the last tile ends.
    index_at: u64,
    /// The last tile that was read: queries usually read the series of one tile in a row.
    recent: Mutex<Option<(usize, Arc<TileHead>)>>,
    /// The lanes of each tile that queries have read, as bits: the cache keeps the columns of a
    /// series from its second read on, so that a query that is made only once costs no more.
    read_lanes: Vec<AtomicU64>,
}

impl Segment {
    /// Opens a segment of a partition.
    pub(crate) fn open(
        medium: &Arc<dyn Medium>,
        name: String,
        start: UnixMillis,
        width_ms: i64,
    ) -> Result<Self, StoreError> {
        let file = medium.open(&name).map_err(fault("open", &name))?;
        let corrupt =
            |problem: &str| StoreError::Corrupt { file: name.clone(), problem: problem.to_owned() };
        let bytes = file.len().map_err(fault("read", &name))?;
        let footer_at =
            bytes.checked_sub(FOOTER_BYTES as u64).ok_or_else(|| corrupt("it is too short"))?;
        let mut footer = [0; FOOTER_BYTES];
        file.read(footer_at, &mut footer).map_err(fault("read", &name))?;
        let [magic, version, footer_start, footer_width, index_at, count, check, footer_check] =
            footer.as_chunks::<8>().0
        else {
            return Err(corrupt("it has no footer"));
        };
        let number = |bytes: &[u8; 8]| u64::from_le_bytes(*bytes);
        if magic != MAGIC || number(footer_check) != xxh3_64(&footer[..FOOTER_BYTES - 8]) {
            return Err(corrupt("the magic or the checksum of its footer differs"));
        }
        if ![VERSION, HISTOGRAMS_VERSION].contains(&number(version)) {
            let problem =
                format!("it has version {} of segments: use a newer release", number(version));
            return Err(StoreError::Mismatch { file: name, problem });
        }
        let (index_at, count) = (number(index_at), number(count));
        let fits = number(footer_start) as i64 == start.0
            && number(footer_width) as i64 == width_ms
            && count <= ENTRIES_MAX
            && index_at.checked_add(count * ENTRY_BYTES as u64) == Some(footer_at);
        if !fits {
            return Err(corrupt("its footer belongs to another segment"));
        }
        let mut index = vec![0; count as usize * ENTRY_BYTES];
        file.read(index_at, &mut index).map_err(fault("read", &name))?;
        if xxh3_64(&index) != number(check) {
            return Err(corrupt("the checksum of its index differs"));
        }
        let entries: Vec<_> = index.as_chunks::<ENTRY_BYTES>().0.iter().map(read_entry).collect();
        let (starts, histograms) = directory(&entries);
        let end = |last: &Entry| i64::from(last.id.seconds) + seconds_of(last.slots, width_ms);
        let is_of_cells = |entry: &&Entry| !entry.id.is_of_histograms();
        let first = starts.first().map_or(0, |(first, _)| i64::from(*first));
        let span = first..entries.iter().rev().find(is_of_cells).map_or(0, end);
        let (recent, number) = (Mutex::default(), next_number());
        let read_lanes = entries.iter().map(|_| AtomicU64::default()).collect();
        Ok(Self {
            name,
            number,
            file,
            width_ms,
            bytes,
            entries,
            starts,
            histograms,
            span,
            index_at,
            recent,
            read_lanes,
        })
    }

    /// Returns the path of the file below the data directory.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns the size of the file in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Replaces the content of `out` with bytes of the file, followed by padding.
    fn read(&self, at: u64, length: usize, out: &mut Vec<u8>) -> Result<(), StoreError> {
        out.truncate(length);
        out.resize(length + PADDING, 0);
        self.file.read(at, &mut out[..length]).map_err(fault("read", &self.name))
    }

    fn corrupt(&self, misfit: Misfit, id: TileId) -> StoreError {
        let kind = if id.is_of_histograms() { "tile of histograms" } else { "tile" };
        let problem = format!("{kind} {} at {} s: {misfit}", id.row & !HISTOGRAMS, id.seconds);
        StoreError::Corrupt { file: self.name.clone(), problem }
    }
}

fn read_entry(bytes: &[u8; ENTRY_BYTES]) -> Entry {
    let number = |at: usize| {
        let mut number = [0; 4];
        number.copy_from_slice(&bytes[at..at + 4]);
        u32::from_le_bytes(number)
    };
    let offset = u64::from(number(8)) | u64::from(number(12)) << 32;
    let id = TileId { seconds: number(0), row: number(4) };
    Entry { id, offset, head: number(16), slots: number(20) }
}
