//! A tile: neighbouring series over one span of slots. A head with their common data precedes a
//! block for each series.
//!
//! The head contains the list of series, the lengths of their blocks, and the times of their
//! samples, so that reading one series takes the head and one block. A series' position in the tile
//! is its lane. Must never know: files, IDs of series.

use std::ops::Range;

use xxhash_rust::xxh3::xxh3_64_with_seed;

mod writer;

pub(crate) use super::times::SLOTS_MAX;
pub(crate) use writer::TileWriter;

use super::{
    bits::PADDING,
    buffers::Buffers,
    column::Wanted,
    cursor::{Cursor, Misfit},
    times::Times,
    values::{self, Columns, Values},
};
use crate::model::Cell;

/// The maximum number of series of a tile.
pub(crate) const LANES: usize = 64;
/// The bit of a row in the index that marks a tile of histograms.
pub(crate) const HISTOGRAMS: u32 = 1 << 31;
/// The size of a checksum in bytes.
const CHECK_BYTES: usize = 4;

/// Returns the seed of a checksum, which differs for each series, so that blocks cannot be
/// confused.
fn seed(tile: u64, lane: usize) -> u64 {
    tile.wrapping_mul(LANES as u64 + 1).wrapping_add(lane as u64)
}

fn checksum(bytes: &[u8], tile: u64, lane: usize) -> [u8; CHECK_BYTES] {
    (xxh3_64_with_seed(bytes, seed(tile, lane)) as u32).to_le_bytes()
}

/// The decoded head of a tile.
#[derive(Debug)]
pub(crate) struct TileHead {
    /// The key of the tile, which seeds its checksums.
    tile: u64,
    /// The slot width.
    width_ms: i64,
    times: Vec<Times>,
    /// The lanes of the series, as bits.
    present: u64,
    /// A range of slots in which every series has cells.
    filled: Range<usize>,
    /// The lane of each series, the index of its times, the offset of its block from the end of the
    /// head, and the block's length.
    series: Vec<(u8, u8, usize, usize)>,
}

impl TileHead {
    /// Reads a head of `length` bytes, which [`PADDING`] bytes must follow. `span` is the number of
    /// slots and their width.
    pub(crate) fn read(
        bytes: &[u8],
        length: usize,
        tile: u64,
        span: (usize, i64),
        buffers: &mut Buffers,
    ) -> Result<Self, Misfit> {
        let end = length.checked_sub(CHECK_BYTES).ok_or(Misfit(0))?;
        if bytes.len() < length || bytes[end..length] != checksum(&bytes[..end], tile, LANES) {
            return Err(Misfit(end));
        }
        Self::parse(bytes, end, tile, span, buffers)
    }

    /// Reads a head whose checksum was verified.
    pub(crate) fn parse(
        bytes: &[u8],
        end: usize,
        tile: u64,
        (slots, width_ms): (usize, i64),
        buffers: &mut Buffers,
    ) -> Result<Self, Misfit> {
        let mut from = Cursor::new(bytes, end)?;
        if slots > SLOTS_MAX {
            return Err(from.misfit());
        }
        let lanes = from.word()?;
        let count = usize::from(from.byte()?);
        if count > LANES {
            return Err(from.misfit());
        }
        let mut times: Vec<Times> = Vec::with_capacity(count);
        for _ in 0..count {
            let read = Times::read(&mut from, slots, times.first(), buffers)?;
            times.push(read);
        }
        let is_of_histograms = tile as u32 & HISTOGRAMS != 0;
        let longest =
            if is_of_histograms { HISTOGRAM_BYTES_MAX + CHECK_BYTES } else { BLOCK_BYTES_MAX };
        let (mut series, mut at) = (Vec::with_capacity(lanes.count_ones() as usize), 0_usize);
        for lane in (0..LANES).filter(|lane| lanes >> lane & 1 == 1) {
            let shared = if count > 1 { from.byte()? } else { 0 };
            let length = usize::try_from(from.varint()?).map_err(|_| from.misfit())?;
            if usize::from(shared) >= count || length > longest {
                return Err(from.misfit());
            }
            series.push((lane as u8, shared, at, length));
            at += length;
        }
        if from.at() == end {
            let filled = filled_by_all(&times);
            Ok(Self { tile, width_ms, times, present: lanes, filled, series })
        } else {
            Err(from.misfit())
        }
    }

    /// Returns the approximate size in memory.
    pub(super) fn bytes(&self) -> usize {
        let slots: usize = self.times.iter().map(Times::count).sum();
        size_of::<Self>()
            + size_of_val(&self.times[..])
            + size_of_val(&self.series[..])
            + slots * Times::SLOT_BYTES
    }

    /// Returns the lanes of the series.
    pub(crate) fn lanes(&self) -> impl Iterator<Item = usize> + '_ {
        self.series.iter().map(|(lane, ..)| usize::from(*lane))
    }

    /// Returns the size of all blocks in bytes.
    pub(crate) fn blocks_bytes(&self) -> usize {
        self.series.last().map_or(0, |(_, _, at, length)| at + length)
    }

    /// Returns the offset of a series' block from the end of the head, and its length.
    pub(crate) fn block(&self, lane: usize) -> Option<(usize, usize)> {
        self.find(lane).map(|(_, _, at, length)| (at, length))
    }

    /// Returns whether a series has a cell in a range of slots.
    pub(crate) fn has(&self, lane: usize, slots: Range<usize>) -> bool {
        // Usually all series have cells in the same slots. The answer is then in the CPU's cache.
        if self.filled.start.max(slots.start) < self.filled.end.min(slots.end) {
            return self.present >> lane & 1 == 1;
        }
        let Some((_, shared, ..)) = self.find(lane) else { return false };
        let filled = &self.times[usize::from(shared)].slots;
        let next = filled.partition_point(|slot| usize::from(*slot) < slots.start);
        filled.get(next).is_some_and(|slot| usize::from(*slot) < slots.end)
    }

    fn find(&self, lane: usize) -> Option<(u8, u8, usize, usize)> {
        let bit = 1_u64.checked_shl(lane as u32)?;
        let before = self.present & (bit - 1);
        self.series.get(before.count_ones() as usize).copied().filter(|_| self.present & bit != 0)
    }

    /// Returns the times of a series, and its block without the checksum, which was verified, but
    /// with [`PADDING`] bytes that must follow it; `None` when the tile lacks the series.
    pub(super) fn checked<'a>(
        &self,
        lane: usize,
        block: &'a [u8],
    ) -> Result<Option<(&Times, &'a [u8])>, Misfit> {
        let Some((_, shared, _, length)) = self.find(lane) else { return Ok(None) };
        let end = length.checked_sub(CHECK_BYTES).ok_or(Misfit(0))?;
        if block.len() < length + PADDING {
            return Err(Misfit(block.len()));
        }
        if block[end..length] != checksum(&block[..end], self.tile, lane) {
            return Err(Misfit(end));
        }
        Ok(Some((&self.times[usize::from(shared)], &block[..end + PADDING])))
    }

    /// Returns the cells of a series within a range of slots, with the place of its block as
    /// [`Self::block`] returns it; `None` when the tile lacks the series.
    pub(super) fn wanted(
        &self,
        lane: usize,
        slots: &Range<usize>,
        columns: Columns,
    ) -> Option<(Wanted<'_>, (usize, usize))> {
        let (_, shared, at, length) = self.find(lane)?;
        let wanted = Wanted::within(&self.times[usize::from(shared)], slots, columns);
        Some((wanted, (at, length)))
    }

    /// Decodes the wanted columns of a series up to the last wanted cell from its block, which
    /// [`PADDING`] bytes must follow. Values of earlier cells that are not wanted can be anything.
    pub(super) fn values(
        &self,
        lane: usize,
        block: &[u8],
        wanted: &Wanted<'_>,
        buffers: &mut Buffers,
    ) -> Result<Values, Misfit> {
        let Some((times, block)) = self.checked(lane, block)? else { return Ok(Values::default()) };
        values::read(block, times, self.width_ms, wanted.cells.clone(), wanted.columns, buffers)
    }

    /// Visits the cells of a series within a range of slots, decoded from its block, which
    /// [`PADDING`] bytes must follow.
    pub(super) fn cells(
        &self,
        lane: usize,
        block: &[u8],
        slots: &Range<usize>,
        columns: Columns,
        buffers: &mut Buffers,
        visit: impl FnMut(usize, Cell),
    ) -> Result<(), Misfit> {
        let Some((wanted, _)) = self.wanted(lane, slots, columns) else { return Ok(()) };
        let values = self.values(lane, block, &wanted, buffers)?;
        wanted.visit_values(&values, visit);
        values.recycle(buffers);
        Ok(())
    }
}

/// Returns the slots in which all times have cells, as long as none of them has gaps.
fn filled_by_all(times: &[Times]) -> Range<usize> {
    let without_gaps = |times: &Times| match (times.slots.first(), times.slots.last()) {
        (Some(first), Some(last)) if usize::from(last - first) + 1 == times.count() => {
            usize::from(*first)..usize::from(*last) + 1
        }
        _ => 0..0,
    };
    let filled = times.iter().map(without_gaps);
    filled.reduce(|all, next| all.start.max(next.start)..all.end.min(next.end)).unwrap_or(0..0)
}

/// The maximum size of a block, whose streams are no longer than their numbers and patches.
const BLOCK_BYTES_MAX: usize = SLOTS_MAX * 256;
/// The maximum size of the blocks of a tile of histograms without their checksums. Only series with
/// thousands of buckets, whose counts have nothing in common, need more. Readers compare the sizes
/// in a head with that of the file before they allocate.
pub(crate) const HISTOGRAM_BYTES_MAX: usize = 128 << 20;
