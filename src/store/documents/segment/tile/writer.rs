//! The writer of tiles, which checks that they read back.
//!
//! Must never know: files, IDs of series.

use super::{LANES, TileHead, checksum};
use crate::{
    model::Cell,
    store::{
        documents::segment::{
            buffers::Buffers,
            cursor::put_varint,
            times::Times,
            values::{self, Columns, Values},
        },
        encoding::moment,
    },
};

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
    pub(in crate::documents::segment) buffers: Buffers,
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
    pub(in crate::documents::segment) fn add_block(
        &mut self,
        tile: u64,
        lane: usize,
        times: Times,
        block: &[u8],
    ) {
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
    pub(in crate::documents::segment) fn blocks_bytes(&self) -> usize {
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
                read.cells(*lane, block, &(0..slots), Columns::ALL, buffers, |slot, cell| {
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
