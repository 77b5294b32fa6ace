//! Tiles of histograms: their heads are those of other tiles, their blocks contain histograms.
//!
//! Must never know: files, IDs of series.

use std::ops::{ControlFlow, Range};

use super::{
    super::{
        bits::PADDING,
        buffers::Buffers,
        cursor::Misfit,
        tile::{TileHead, TileWriter},
        times::Times,
    },
    CellVisitor, put, read,
};
use crate::model::{Cell, Histogram, HistogramCell};

/// The outcome of adding a series to a tile of histograms. Only an added series is in the tile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AddOutcome {
    Added,
    /// The blocks of the tile would be larger than the limit.
    TooLarge,
    /// Decoding would not restore the cells exactly.
    Inexact,
}

impl TileWriter {
    /// Adds the histograms of a series, ascending by slot, while all blocks without their checksums
    /// have at most `bytes_max` bytes. The lane must be higher than all previous lanes.
    ///
    /// # Panics
    /// When the lane is too large, or not higher than the previous lane.
    pub(crate) fn add_histograms(
        &mut self,
        tile: u64,
        lane: usize,
        cells: &[(u16, HistogramCell)],
        bytes_max: usize,
    ) -> AddOutcome {
        if cells.is_empty() {
            return AddOutcome::Added;
        }
        let times = |(slot, cell): &(u16, HistogramCell)| {
            let HistogramCell { n, first_at, last_at, .. } = *cell;
            (*slot, Cell { n, first_at, last_at, ..Cell::EMPTY })
        };
        let times: Vec<_> = cells.iter().map(times).collect();
        let times = Times::of(times.iter().map(|(slot, cell)| (*slot, cell)));
        let mut block = Vec::new();
        put(cells, &mut block);
        let length = block.len();
        if self.blocks_bytes() + length > bytes_max {
            return AddOutcome::TooLarge;
        }
        block.resize(length + PADDING, 0);
        let mut left = cells.iter();
        let mut is_next = |slot: usize, cell: HistogramCell| {
            let next = left.next();
            let is_same =
                next.is_some_and(|(at, next)| usize::from(*at) == slot && same(next, &cell));
            if is_same { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        };
        let all = 0..usize::MAX;
        let outcome = read(&block, &times, &all, &mut self.buffers, &mut is_next);
        let is_exact = outcome.is_ok_and(|outcome| outcome.is_continue()) && left.next().is_none();
        if !is_exact {
            return AddOutcome::Inexact;
        }
        self.add_block(tile, lane, times, &block[..length]);
        AddOutcome::Added
    }
}

impl TileHead {
    /// Visits the histograms of a series in a range of slots until the visitor breaks. [`PADDING`]
    /// bytes must follow the block.
    pub(crate) fn histograms(
        &self,
        lane: usize,
        block: &[u8],
        slots: &Range<usize>,
        buffers: &mut Buffers,
        visit: &mut CellVisitor<'_>,
    ) -> Result<ControlFlow<()>, Misfit> {
        match self.checked(lane, block)? {
            Some((times, block)) => read(block, times, slots, buffers, visit),
            None => Ok(ControlFlow::Continue(())),
        }
    }
}

/// Returns whether two cells have the same content, bit by bit. A bucket without observations has
/// no effect.
fn same(cell: &HistogramCell, other: &HistogramCell) -> bool {
    let numbers = |cell: &HistogramCell| (cell.n, cell.first_at, cell.last_at);
    let parts = |cell: &HistogramCell| [&cell.total, &cell.first, &cell.last].map(bytes);
    if cell.n == 0 && other.n == 0 {
        return bytes(&cell.total) == bytes(&other.total);
    }
    numbers(cell) == numbers(other) && parts(cell) == parts(other)
}

/// Returns the bytes of a histogram without empty buckets.
fn bytes(histogram: &Histogram) -> Vec<u8> {
    let (mut histogram, mut out) = (histogram.clone(), Vec::new());
    for side in [&mut histogram.positive, &mut histogram.negative] {
        side.retain(|bucket| bucket.count != 0.0);
    }
    histogram.encode(&mut out);
    out
}
