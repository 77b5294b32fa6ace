//! Changes of the documents of one partition within one transaction.
//!
//! Must never know: when it is committed, and with which mark.

use std::{ops::Range, sync::Arc};

use redb::{ReadableTable, ReadableTableMetadata, Table, WriteTransaction};

use super::fresh::{Fresh, FreshDocument};
use crate::{
    model::{Cell, HistogramCell, SeriesId, UnixMillis},
    store::{
        documents::{
            CellSink, Merged, Slot,
            partition::{
                DOCUMENTS, Partition,
                rows::layout::DocumentLayout,
                segments::{
                    Named,
                    parts::{SealedPart, Source},
                },
            },
            segment::{Columns, Scratch, file::Segment},
        },
        error::StoreError,
        file::holes::Holes,
    },
};

/// The number of segments above which late cells are written to open rows. A partition with a lost
/// segment is never folded, so its number of segments never decreases.
const SEGMENTS_MAX: usize = 128;

/// The documents of one partition within a transaction.
pub(crate) struct DocumentWriter<'p, 't> {
    partition: &'p Partition,
    txn: &'t WriteTransaction,
    table: Table<'t, u64, &'static [u8]>,
    /// The segments that the transaction names.
    segments: &'p [Arc<Segment>],
    /// New documents.
    fresh: Fresh<'p>,
    /// Late cells of documents that are in segments.
    late: Fresh<'p>,
    /// True when the table has rows.
    has_rows: bool,
    /// True when another segment for late cells is allowed.
    has_room: bool,
    cells: Cells,
    buffer: Vec<u8>,
    /// The locations of a sealed document's parts.
    parts: Vec<Source>,
    scratch: Scratch,
    /// The number of cells and documents so far.
    merged: Merged,
    /// The times of damaged documents that were replaced.
    lost: Holes,
}

/// The effect of the new cells on the stored cells.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cells {
    Merge,
    Replace,
}

/// The state of a document in segments.
enum SealedState {
    /// Segments contain parts of the document, which are now in [`DocumentWriter::parts`].
    Parts,
    Nothing,
    /// The head of a tile is damaged, or damage was found earlier.
    Damaged,
}

/// The destination of a document's cells.
enum Target {
    /// The row in the buffer.
    Row,
    Fresh,
    Late,
}

impl<'p, 't> DocumentWriter<'p, 't> {
    pub(crate) fn new(
        partition: &'p Partition,
        txn: &'t WriteTransaction,
        segments: &'p [Arc<Segment>],
        sealed_min: usize,
        cells: Cells,
    ) -> Result<Self, StoreError> {
        let table = txn.open_table(DOCUMENTS).map_err(partition.fail("write"))?;
        let has_rows = !table.is_empty().map_err(partition.fail("read"))?;
        Ok(Self {
            partition,
            txn,
            table,
            has_rows,
            segments,
            fresh: Fresh::new(partition, sealed_min, true),
            late: Fresh::new(partition, sealed_min, false),
            // The cells of a segment are merged with other cells, so replaced cells are written to
            // open rows.
            has_room: segments.len() < SEGMENTS_MAX && cells == Cells::Merge,
            cells,
            buffer: Vec::new(),
            parts: Vec::new(),
            scratch: Scratch::default(),
            merged: Merged::default(),
            lost: Holes::default(),
        })
    }

    /// Copies an open document into the buffer; returns false when there is none.
    fn load(&mut self, key: u64) -> Result<bool, StoreError> {
        self.buffer.clear();
        if !self.has_rows {
            return Ok(false);
        }
        let found = self.table.get(key).map_err(self.partition.fail("read"))?;
        self.buffer.extend_from_slice(found.as_ref().map_or(&[], |guard| guard.value()));
        Ok(found.is_some())
    }

    /// Returns the sealed state of a document without an open row.
    fn sealed(&mut self, start: UnixMillis, series: SeriesId) -> Result<SealedState, StoreError> {
        let partition = self.partition;
        if partition.damage.has(partition.key(start, series)) {
            return Ok(SealedState::Damaged);
        }
        let (scratch, parts) = (&mut self.scratch, &mut self.parts);
        let sealed = SealedPart::new(partition, self.segments);
        match sealed.find(start, series, scratch, parts) {
            Ok(()) if parts.is_empty() => Ok(SealedState::Nothing),
            Ok(()) => Ok(SealedState::Parts),
            // This transaction replaces the damaged document, so the error is ignored.
            Err(StoreError::DamagedPart { .. }) => Ok(SealedState::Damaged),
            Err(fault) => Err(fault),
        }
    }

    /// Writes a document without an open row into the buffer, with its cells from segments unless
    /// these are damaged.
    fn open_sealed(
        &mut self,
        layout: &DocumentLayout,
        start: UnixMillis,
        series: SeriesId,
    ) -> Result<(), StoreError> {
        let grid = &{ self.partition }.grid;
        layout.write_shell(series, start, &mut self.buffer);
        let range = start..grid.next_document(start);
        match self.sealed(start, series)? {
            SealedState::Parts => {}
            SealedState::Nothing => return Ok(()),
            SealedState::Damaged => {
                self.lost.add(range);
                return Ok(());
            }
        }
        let sealed = SealedPart::new(self.partition, self.segments);
        let mut slots = Vec::new();
        let (all, scratch) = (Columns::ALL, &mut self.scratch);
        match sealed.slots(&self.parts, series, &range, all, scratch, &mut slots) {
            Ok(()) => {}
            Err(fault) => match sealed.meet(&[start], series, fault) {
                Ok(()) | Err(StoreError::DamagedPart { .. }) => self.lost.add(range),
                Err(fault) => return Err(fault),
            },
        }
        for Slot { start: at, cell } in &slots {
            layout.write_cell(&mut self.buffer, grid.slot_index(start, *at), cell);
        }
        Ok(())
    }

    /// Stores the document in the buffer.
    fn store(&mut self, layout: &DocumentLayout, key: u64) -> Result<(), StoreError> {
        layout.write_checksum(&mut self.buffer);
        self.table.insert(key, &*self.buffer).map_err(self.partition.fail("write"))?;
        self.has_rows = true;
        Ok(())
    }

    /// Writes the documents without an open row; adds the new segments to `named`. Returns the
    /// counts of the merge, and the times of lost documents.
    pub(crate) fn finish(mut self, named: &mut Vec<Named>) -> Result<(Merged, Holes), StoreError> {
        let mut open = Vec::new();
        for fresh in [&mut self.fresh, &mut self.late] {
            let placed = fresh.finish()?;
            self.merged.refused += placed.refused;
            open.extend(placed.open);
            if let Some((entry, segment)) = placed.segment {
                self.partition.segments.put(entry.number, segment);
                named.push(entry);
            }
        }
        for FreshDocument { start, series, cells } in &open {
            let layout = self.partition.layout(*start);
            self.open_sealed(layout, *start, *series)?;
            for (slot, cell) in cells {
                layout.merge_cell(&mut self.buffer, usize::from(*slot), cell);
            }
            self.store(layout, self.partition.key(*start, *series))?;
        }
        Ok((self.merged, self.lost))
    }

    /// Returns the destination of a document's cells, and counts the document.
    fn target(
        &mut self,
        layout: &DocumentLayout,
        start: UnixMillis,
        series: SeriesId,
    ) -> Result<Target, StoreError> {
        let partition = self.partition;
        let key = partition.key(start, series);
        if self.load(key)? {
            // This transaction replaces the damaged document, so the error is ignored.
            if !partition.is_sound(layout, &self.buffer, start, series).unwrap_or(false) {
                self.merged.created += 1;
                self.replace_damaged(layout, start, series);
                return Ok(Target::Row);
            }
            self.merged.patched += 1;
            // A row without samples that covers sealed parts hides erased cells.
            if layout.is_shell(&self.buffer)
                && matches!(self.sealed(start, series)?, SealedState::Nothing)
            {
                self.table.remove(key).map_err(partition.fail("write"))?;
                return Ok(Target::Fresh);
            }
            return Ok(Target::Row);
        }
        let sealed = self.sealed(start, series)?;
        let exists = matches!(sealed, SealedState::Parts);
        self.merged.patched += u64::from(exists);
        self.merged.created += u64::from(!exists);
        Ok(match sealed {
            SealedState::Parts if self.has_room => Target::Late,
            SealedState::Parts => {
                self.open_sealed(layout, start, series)?;
                Target::Row
            }
            SealedState::Nothing => Target::Fresh,
            SealedState::Damaged => {
                self.replace_damaged(layout, start, series);
                Target::Row
            }
        })
    }

    /// Replaces a damaged document by an empty one.
    fn replace_damaged(&mut self, layout: &DocumentLayout, start: UnixMillis, series: SeriesId) {
        layout.write_shell(series, start, &mut self.buffer);
        self.lost.add(start..self.partition.grid.next_document(start));
    }
}

impl CellSink for DocumentWriter<'_, '_> {
    fn histograms(
        &mut self,
        start: UnixMillis,
        series: SeriesId,
        cells: &[(usize, HistogramCell)],
    ) -> Result<(), StoreError> {
        let (partition, replaces) = (self.partition, self.cells == Cells::Replace);
        let (document, files) = ((start, series), (self.segments, &mut self.scratch));
        if !partition.write_histograms(self.txn, document, (cells, replaces), files)? {
            self.lost.add(start..partition.grid.next_document(start));
        }
        Ok(())
    }

    fn lost(&mut self, times: Range<UnixMillis>) {
        self.lost.add(times);
    }

    fn document(
        &mut self,
        start: UnixMillis,
        series: SeriesId,
        cells: &[(usize, Cell)],
    ) -> Result<(), StoreError> {
        let partition = self.partition;
        let layout = partition.layout(start);
        self.merged.cells += cells.len() as u64;
        let replaces = self.cells == Cells::Replace;
        let document = || FreshDocument::new(start, series, layout.slots(), cells);
        match self.target(layout, start, series)? {
            Target::Fresh => return self.fresh.push(document()),
            Target::Late => return self.late.push(document()),
            Target::Row => {}
        }
        for (slot, cell) in cells {
            if replaces {
                layout.write_cell(&mut self.buffer, *slot, cell);
            } else {
                layout.merge_cell(&mut self.buffer, *slot, cell);
            }
        }
        self.store(layout, partition.key(start, series))
    }
}
