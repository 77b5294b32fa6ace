//! Reads of the tiles of a segment: heads, cells and histograms.
//!
//! Must never know: the index of a segment, the bytes of blocks.

use std::{
    ops::{ControlFlow, Range},
    sync::{Arc, atomic::Ordering},
};

use super::Segment;
use crate::{
    model::Cell,
    store::{
        documents::segment::{
            Columns, Misfit, Scratch,
            column::{SealedColumn, Wanted},
            histograms::CellVisitor,
            tile::TileHead,
            values::Values,
        },
        error::StoreError,
    },
};

/// The maximum number of bytes of a tile that are read together.
const RUN_BYTES_MAX: u64 = 16 << 10;

impl Segment {
    /// Returns the head of a tile.
    pub(crate) fn head(
        &self,
        tile: usize,
        scratch: &mut Scratch,
    ) -> Result<Arc<TileHead>, StoreError> {
        if let Some((recent, head)) = &*self.recent.lock()
            && *recent == tile
        {
            return Ok(head.clone());
        }
        if let Some(head) = scratch.cache.as_ref().and_then(|cache| cache.head(self.number, tile)) {
            *self.recent.lock() = Some((tile, head.clone()));
            return Ok(head);
        }
        let entry = self.entries[tile];
        let end = self.entries.get(tile + 1).map_or(self.index_at, |next| next.offset);
        let length = entry.head as usize;
        if entry.offset.checked_add(length as u64).is_none_or(|head_end| head_end > end) {
            return Err(self.corrupt(Misfit(0), entry.id));
        }
        let mut bytes = std::mem::take(&mut scratch.bytes);
        self.read(entry.offset, length, &mut bytes)?;
        let (key, span) = (entry.id.key(), (entry.slots as usize, self.width_ms));
        let head = TileHead::read(&bytes, length, key, span, &mut scratch.buffers);
        scratch.bytes = bytes;
        let head = Arc::new(head.map_err(|misfit| self.corrupt(misfit, entry.id))?);
        if entry.offset + (length + head.blocks_bytes()) as u64 != end {
            return Err(self.corrupt(Misfit(length), entry.id));
        }
        *self.recent.lock() = Some((tile, head.clone()));
        if let Some(cache) = &scratch.cache {
            cache.keep_head(self.number, tile, head.clone());
        }
        Ok(head)
    }

    /// Visits the cells of a series of a tile within a range of slots. Caches the columns of a
    /// series that is read again.
    pub(crate) fn cells(
        &self,
        (tile, head): (usize, &TileHead),
        lane: usize,
        slots: &Range<usize>,
        columns: Columns,
        scratch: &mut Scratch,
        visit: impl FnMut(usize, Cell),
    ) -> Result<(), StoreError> {
        let wanted = head.wanted(lane, slots, columns);
        let Some((wanted, block)) = wanted.filter(|(wanted, _)| !wanted.cells.is_empty()) else {
            return Ok(());
        };
        let repeats = scratch.cache.is_some() && self.repeats((tile, lane), columns);
        let cache = scratch.cache.as_ref().filter(|_| repeats);
        let known = cache.and_then(|cache| cache.column(self.number, tile, lane as u8));
        if let Some(column) = known.as_ref().filter(|column| column.has(&wanted)) {
            wanted.visit(column.columns(&wanted.cells), visit);
            return Ok(());
        }
        let all = known.map_or_else(|| wanted.clone(), |column| wanted.with(&column));
        let values = self.values((tile, head), (lane, block), &all, scratch)?;
        wanted.visit_values(&values, visit);
        if let Some(cache) = scratch.cache.as_ref().filter(|_| repeats) {
            let column = SealedColumn::of(&values, &all, &mut scratch.buffers);
            cache.keep_column(self.number, (tile, lane as u8), column);
        }
        values.recycle(&mut scratch.buffers);
        Ok(())
    }

    /// Returns whether queries have read a series of a tile before. Reads of all columns, which are
    /// those of scans in the background, do not count.
    fn repeats(&self, (tile, lane): (usize, usize), columns: Columns) -> bool {
        let (read, bit) = (&self.read_lanes[tile], 1 << lane);
        columns != Columns::ALL
            && (read.load(Ordering::Relaxed) & bit != 0
                || read.fetch_or(bit, Ordering::Relaxed) & bit != 0)
    }

    /// Reads and decodes the block of a series of a tile.
    fn values(
        &self,
        (tile, head): (usize, &TileHead),
        (lane, (at, length)): (usize, (usize, usize)),
        wanted: &Wanted<'_>,
        scratch: &mut Scratch,
    ) -> Result<Values, StoreError> {
        let entry = self.entries[tile];
        let at = entry.offset + u64::from(entry.head) + at as u64;
        let end = self.entries.get(tile + 1).map_or(self.index_at, |next| next.offset);
        let Scratch { run, bytes, buffers, .. } = scratch;
        let block = if run.begin((self.number, tile)) {
            // A query that reads a second series of a tile usually reads more of them.
            let rest = end.saturating_sub(at).min(RUN_BYTES_MAX).max(length as u64) as usize;
            if run.get(at, length).is_none() {
                run.fill(at, |bytes| self.read(at, rest, bytes))?;
            }
            run.get(at, length).unwrap_or_default()
        } else {
            self.read(at, length, bytes)?;
            bytes
        };
        let values = head.values(lane, block, wanted, buffers);
        values.map_err(|misfit| self.corrupt(misfit, entry.id))
    }

    /// Visits the histograms of a series of a tile in a range of slots until the visitor breaks.
    pub(crate) fn histograms(
        &self,
        (tile, head): (usize, &TileHead),
        lane: usize,
        slots: &Range<usize>,
        scratch: &mut Scratch,
        visit: &mut CellVisitor<'_>,
    ) -> Result<ControlFlow<()>, StoreError> {
        let Some((at, length)) = head.block(lane) else { return Ok(ControlFlow::Continue(())) };
        let (entry, Scratch { bytes, buffers, .. }) = (self.entries[tile], scratch);
        self.read(entry.offset + u64::from(entry.head) + at as u64, length, bytes)?;
        let outcome = head.histograms(lane, bytes, slots, buffers, visit);
        outcome.map_err(|misfit| self.corrupt(misfit, entry.id))
    }

    /// Returns the bytes of the block of a series, with its checksum.
    pub(crate) fn block(
        &self,
        (tile, head): (usize, &TileHead),
        lane: usize,
    ) -> Result<Vec<u8>, StoreError> {
        let Some((at, length)) = head.block(lane) else { return Ok(Vec::new()) };
        let entry = self.entries[tile];
        let mut block = Vec::new();
        self.read(entry.offset + u64::from(entry.head) + at as u64, length, &mut block)?;
        block.truncate(length);
        Ok(block)
    }
}
