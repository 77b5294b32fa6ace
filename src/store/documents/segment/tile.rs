//! A tile: neighbouring series over one span of slots. A head with their common data precedes a
//! block for each series.
//!
//! The head contains the list of series, the lengths of their blocks, and the times of their
//! samples, so that reading one series takes the head and one block. A series' position in the tile
//! is its lane. Must never know: files, IDs of series.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::{
    bits::PADDING,
    buffers::Buffers,
    cursor::{Cursor, Misfit, put_varint},
    times::Times,
    values::{self, Columns, Values},
};
use crate::{model::Cell, store::encoding::moment};

/// The maximum number of series of a tile.
pub(crate) const LANES: usize = 64;
/// The bit of a row in the index that marks a tile of histograms.
pub(crate) const HISTOGRAMS: u32 = 1 << 31;
/// The maximum number of slots of a span.
pub(crate) const SLOTS_MAX: usize = 1024;
/// The values of a column that is not read.
static NO_VALUES: [f64; SLOTS_MAX] = [0.0; SLOTS_MAX];
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

/// Writes tiles one after the other, and reuses their memory.
#[derive(Debug, Default)]
pub(crate) struct TileWriter {
    lanes: u64,
    times: Vec<Times>,
    /// The index in `times` of each series.
    shared: Vec<u8>,
    blocks: Vec<u8>,
    lengths: Vec<usize>,
    cells: Vec<Cell>,
    /// The lane of each series, and the index of its first cell.
    ranges: Vec<(usize, usize)>,
    /// The times of the series that is being added.
    added: Times,
    values: Values,
    pub(super) buffers: Buffers,
}

impl TileWriter {
    /// Begins a new tile.
    pub(crate) fn clear(&mut self) {
        self.lanes = 0;
        self.times.clear();
        self.shared.clear();
        self.blocks.clear();
        self.lengths.clear();
        self.cells.clear();
        self.ranges.clear();
    }

    /// Adds the cells of a series, ascending by slot. The lane must be higher than all previous
    /// lanes. Empty cells are left out; a series that has only empty cells is not added.
    ///
    /// # Panics
    /// When the lane is too large, or not higher than the previous lane.
    pub(crate) fn add<'a>(
        &mut self,
        tile: u64,
        lane: usize,
        width_ms: i64,
        cells: impl Iterator<Item = (u16, &'a Cell)> + Clone,
    ) {
        assert!(lane < LANES && self.lanes >> lane == 0, "series ascend");
        let filled = cells.filter(|(_, cell)| !cell.is_empty());
        self.added.fill(filled.clone());
        if self.added.count() == 0 {
            return;
        }
        self.ranges.push((lane, self.cells.len()));
        self.cells.extend(filled.map(|(_, cell)| *cell));
        self.lanes |= 1 << lane;
        let from = self.blocks.len();
        let own = self.cells.len() - self.added.count();
        let cells = &mut self.cells[own..];
        let is_counter = values::fill(&mut self.values, cells);
        let (buffers, blocks) = (&mut self.buffers, &mut self.blocks);
        values::write(is_counter, &self.values, &self.added, width_ms, buffers, blocks);
        self.end_block(tile, lane, from);
    }

    /// Adds the block of a series with its times. The lane must be higher than all previous lanes.
    ///
    /// # Panics
    /// When the lane is too large, or not higher than the previous lane.
    pub(super) fn add_block(&mut self, tile: u64, lane: usize, times: Times, block: &[u8]) {
        assert!(lane < LANES && self.lanes >> lane == 0, "series ascend");
        self.lanes |= 1 << lane;
        self.added = times;
        let from = self.blocks.len();
        self.blocks.extend_from_slice(block);
        self.end_block(tile, lane, from);
    }

    /// Completes the last block, which begins at `from`.
    fn end_block(&mut self, tile: u64, lane: usize, from: usize) {
        let check = checksum(&self.blocks[from..], tile, lane);
        self.blocks.extend(check);
        self.lengths.push(self.blocks.len() - from);
        let position = self.share();
        self.shared.push(position);
    }

    /// Returns the size of all blocks in bytes.
    pub(super) fn blocks_bytes(&self) -> usize {
        self.blocks.len()
    }

    /// Returns the index of the series' times, which are usually equal to the times of the previous
    /// series.
    fn share(&mut self) -> u8 {
        if let Some(last) = self.shared.last()
            && self.times[usize::from(*last)] == self.added
        {
            return *last;
        }
        let next = self.times.len() as u8;
        if let Some(known) = self.times.iter().position(|times| *times == self.added) {
            return known as u8;
        }
        self.times.push(self.added.clone());
        next
    }

    /// Returns whether no series was added.
    pub(crate) fn is_empty(&self) -> bool {
        self.lanes == 0
    }

    /// Appends the tile; returns the length of its head.
    pub(crate) fn finish(&mut self, tile: u64, slots: usize, out: &mut Vec<u8>) -> usize {
        let from = out.len();
        out.extend_from_slice(&self.lanes.to_le_bytes());
        out.push(self.times.len() as u8);
        for (index, times) in self.times.iter().enumerate() {
            let first = (index > 0).then(|| &self.times[0]);
            times.write(slots, first, out);
        }
        for (shared, length) in self.shared.iter().zip(&self.lengths) {
            if self.times.len() > 1 {
                out.push(*shared);
            }
            put_varint(*length as u64, out);
        }
        let check = checksum(&out[from..], tile, LANES);
        out.extend(check);
        let head = out.len() - from;
        out.extend_from_slice(&self.blocks);
        head
    }
}

impl TileWriter {
    /// Returns true when decoding the written tile, which padding must follow, results in exactly
    /// the added cells.
    pub(crate) fn reads_back(
        &self,
        bytes: &[u8],
        head: usize,
        tile: u64,
        slots: usize,
        width_ms: i64,
        buffers: &mut Buffers,
    ) -> bool {
        let Ok(read) = TileHead::read(bytes, head, tile, (slots, width_ms), buffers) else {
            return false;
        };
        let mut same = read.lanes().eq(self.ranges.iter().map(|(lane, _)| *lane));
        for (index, (lane, from)) in self.ranges.iter().enumerate() {
            let to = self.ranges.get(index + 1).map_or(self.cells.len(), |(_, next)| *next);
            let mut cells = self.cells[*from..to].iter();
            let (at, times) = (read.block(*lane), &self.times[usize::from(self.shared[index])]);
            let mut filled_slots = times.slots.iter();
            let Some(block) = at.and_then(|(at, _)| bytes.get(head + at..)) else { return false };
            let outcome =
                read.cells(*lane, block, 0..slots, Columns::ALL, buffers, |slot, cell| {
                    let is_next =
                        filled_slots.next().is_some_and(|next| usize::from(*next) == slot);
                    same &= is_next && cells.next().is_some_and(|next| is_same(next, &cell));
                });
            same &= outcome.is_ok() && cells.next().is_none();
        }
        same
    }

    /// Returns true when decoding the head of the written tile, which padding must follow, results
    /// in the added series and their times.
    pub(crate) fn head_reads_back(
        &self,
        bytes: &[u8],
        head: usize,
        tile: u64,
        span: (usize, i64),
        buffers: &mut Buffers,
    ) -> bool {
        TileHead::read(bytes, head, tile, span, buffers).is_ok_and(|read| {
            let shared = read.series.iter().map(|(_, shared, ..)| *shared);
            read.present == self.lanes
                && read.times == self.times
                && shared.eq(self.shared.iter().copied())
        })
    }
}

/// Returns whether two cells are equal bit by bit, except for rounding errors of their moments.
fn is_same(cell: &Cell, other: &Cell) -> bool {
    let differs = |value: fn(&Cell) -> f64| value(cell).to_bits() ^ value(other).to_bits();
    // A comparison of arrays would not be inlined.
    let values = differs(|cell| cell.sum)
        | differs(|cell| cell.min)
        | differs(|cell| cell.max)
        | differs(|cell| cell.first)
        | differs(|cell| cell.last);
    let numbers = cell.n ^ other.n | cell.first_at ^ other.first_at | cell.last_at ^ other.last_at;
    values == 0 && numbers == 0 && moment::is_same(cell.m2, other.m2)
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
        let longest = if is_of_histograms { HISTOGRAM_BYTES_MAX } else { BLOCK_BYTES_MAX };
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
            Ok(Self { tile, width_ms, times, present: lanes, series })
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
    pub(crate) fn has(&self, lane: usize, slots: std::ops::Range<usize>) -> bool {
        let Some((_, shared, ..)) = self.find(lane) else { return false };
        let filled = &self.times[usize::from(shared)].slots;
        // Usually no slot is empty.
        if slots.start < slots.end
            && filled.get(slots.start).is_some_and(|slot| usize::from(*slot) == slots.start)
        {
            return true;
        }
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

    /// Visits the cells of a series within a range of slots, decoded from its block, which
    /// [`PADDING`] bytes must follow. Only the wanted columns are decoded, unless a cell in the
    /// range has two samples.
    pub(crate) fn cells(
        &self,
        lane: usize,
        block: &[u8],
        slots: std::ops::Range<usize>,
        wanted: Columns,
        buffers: &mut Buffers,
        mut visit: impl FnMut(usize, Cell),
    ) -> Result<(), Misfit> {
        let Some((times, block)) = self.checked(lane, block)? else { return Ok(()) };
        let position =
            |slot: usize| times.slots.partition_point(|filled| usize::from(*filled) < slot);
        let (from, to) = (position(slots.start), position(slots.end));
        // Readers split a cell of two samples, which takes all columns of values.
        let has_pairs = times.n.get(from..to).is_some_and(|n| n.contains(&2));
        let wanted = if has_pairs { wanted.and(Columns::VALUES) } else { wanted };
        let values = values::read(block, times, self.width_ms, to, wanted, buffers)?;
        // Slices of equal length let the compiler omit bounds checks.
        let part = from..to.max(from);
        let column = |all| column_of(all, part.clone());
        let (sum, min, max) = (column(&values.sum), column(&values.min), column(&values.max));
        let (first, last) = (column(&values.first), column(&values.last));
        let m2 = column(&values.m2);
        let (n, slots) = (&times.n[part.clone()], &times.slots[part.clone()]);
        let (first_at, last_at) = (&times.first_at[part.clone()], &times.last_at[part.clone()]);
        for index in 0..part.len() {
            let cell = Cell {
                n: n[index],
                first_at: first_at[index],
                last_at: last_at[index],
                sum: sum[index],
                min: min[index],
                max: max[index],
                first: first[index],
                last: last[index],
                m2: m2[index],
            };
            visit(usize::from(slots[index]), cell);
        }
        values.recycle(buffers);
        Ok(())
    }
}

/// Returns a part of a column; zeros when the column was not read.
fn column_of(column: &[f64], part: std::ops::Range<usize>) -> &[f64] {
    let length = part.len();
    column.get(part).unwrap_or(&NO_VALUES[..length])
}

/// The maximum size of a block, whose streams are no longer than their numbers and patches.
const BLOCK_BYTES_MAX: usize = SLOTS_MAX * 256;
/// The maximum size of a block of histograms. A reader allocates no more bytes than the file has.
const HISTOGRAM_BYTES_MAX: usize = 128 << 20;
