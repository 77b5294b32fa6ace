//! Changes of the documents of one partition in one transaction.
//!
//! Must never know: what the mark means.

use std::sync::Arc;

use redb::{ReadableTable, Table, WriteTransaction};

use super::{
    fresh::{Fresh, FreshDocument, Placed},
    layout::DocumentLayout,
    partition::{CHECK_KEY, DOCUMENTS, META, Partition, SEGMENTS, THROUGH_KEY, UNTIL_KEY},
    sealed_part::SealedPart,
    segments::Named,
};
use crate::{
    model::{Cell, SeriesId, UnixMillis},
    store::{
        documents::{
            CellSink, CellSource, Merged,
            mark::Mark,
            sealed::{Columns, Scratch, segment::Segment},
        },
        error::StoreError,
    },
};

/// The documents of one partition within a transaction.
pub(super) struct DocumentWriter<'p, 't> {
    partition: &'p Partition,
    table: Table<'t, u64, &'static [u8]>,
    /// Those that the transaction names.
    segments: &'p [Arc<Segment>],
    fresh: Fresh<'p>,
    buffer: Vec<u8>,
    scratch: Scratch,
    /// What was merged so far.
    merged: Merged,
}

impl Partition {
    /// Merges cells into documents and stores the mark, in one transaction. New documents are
    /// sealed at once when there are at least `sealed_min`.
    pub(super) fn merge(
        &self,
        mark: Mark,
        sealed_min: usize,
        cells: &mut CellSource<'_>,
    ) -> Result<Merged, StoreError> {
        let mut begun = None;
        let outcome = self.file.transact("write", |txn| {
            let segments = self.segments_of(txn)?;
            let mut writer = DocumentWriter::new(self, txn, &segments, sealed_min)?;
            cells(&mut writer)?;
            let (merged, named) = writer.finish()?;
            if let Some(named) = named {
                begun = Some(named.number);
                let mut table = txn.open_table(SEGMENTS).map_err(self.fail("write"))?;
                table.insert(named.number, named.span()).map_err(self.fail("write"))?;
            }
            let mut meta = txn.open_table(META).map_err(self.fail("write"))?;
            meta.insert(THROUGH_KEY, mark.through as i64).map_err(self.fail("write"))?;
            meta.insert(UNTIL_KEY, mark.until.0).map_err(self.fail("write"))?;
            let check = mark.checksum() as i64;
            meta.insert(CHECK_KEY, check).map_err(self.fail("write"))?;
            Ok(merged)
        });
        if let (Err(_), Some(number)) = (&outcome, begun) {
            self.remove_unnamed(number);
        }
        outcome
    }

    /// Inserts empty documents for series, ascending, that have none yet; returns how many.
    pub(super) fn add_shells(
        &self,
        document: UnixMillis,
        series: &[SeriesId],
    ) -> Result<usize, StoreError> {
        self.file.transact("write", |txn| {
            let segments = self.segments_of(txn)?;
            DocumentWriter::new(self, txn, &segments, usize::MAX)?.add_shells(document, series)
        })
    }

    /// Removes a segment whose naming failed, unless it was named all the same.
    pub(super) fn remove_unnamed(&self, number: u32) {
        let is_named = |named: Vec<Named>| named.iter().any(|own| own.number == number);
        let named = self.file.read().and_then(|txn| self.named(&txn));
        if !named.is_ok_and(|named| !is_named(named)) {
            return;
        }
        if let Err(cause) = self.segments.remove(number) {
            let cause: &dyn std::error::Error = &cause;
            tracing::warn!(cause, "cannot remove a segment that was not taken in; a start does");
        }
    }
}

impl<'p, 't> DocumentWriter<'p, 't> {
    fn new(
        partition: &'p Partition,
        txn: &'t WriteTransaction,
        segments: &'p [Arc<Segment>],
        sealed_min: usize,
    ) -> Result<Self, StoreError> {
        let table = txn.open_table(DOCUMENTS).map_err(partition.fail("write"))?;
        Ok(Self {
            partition,
            table,
            segments,
            fresh: Fresh::new(partition, sealed_min),
            buffer: Vec::new(),
            scratch: Scratch::default(),
            merged: Merged::default(),
        })
    }

    /// Copies a document into the buffer; false when there is none.
    fn load(&mut self, key: u64) -> Result<bool, StoreError> {
        let found = self.table.get(key).map_err(self.partition.fail("read"))?;
        self.buffer.clear();
        self.buffer.extend_from_slice(found.as_ref().map_or(&[], |guard| guard.value()));
        Ok(found.is_some())
    }

    fn add_shells(
        &mut self,
        document: UnixMillis,
        series: &[SeriesId],
    ) -> Result<usize, StoreError> {
        let partition = self.partition;
        let layout = partition.layout(document);
        let sealed = SealedPart::new(partition, self.segments);
        let mut added = 0;
        for series in series {
            let key = partition.key(document, *series);
            if self.table.get(key).map_err(partition.fail("preallocate"))?.is_some() {
                continue;
            }
            match sealed.find(document, *series, &mut self.scratch) {
                Ok(None) => {}
                // What is damaged begins anew when something comes.
                Ok(Some(_)) | Err(StoreError::DamagedPart { .. }) => continue,
                Err(fault) => return Err(fault),
            }
            layout.write_shell(*series, document, &mut self.buffer);
            layout.seal(&mut self.buffer);
            self.table.insert(key, &*self.buffer).map_err(partition.fail("preallocate"))?;
            added += 1;
        }
        Ok(added)
    }

    /// Writes a sealed document into the buffer as an open one; false when there is none, or it is
    /// damaged.
    fn open_sealed(
        &mut self,
        layout: &DocumentLayout,
        start: UnixMillis,
        series: SeriesId,
    ) -> Result<Found, StoreError> {
        let (partition, scratch) = (self.partition, &mut self.scratch);
        let sealed = SealedPart::new(partition, self.segments);
        let source = match sealed.find(start, series, scratch) {
            Ok(Some(source)) => source,
            Ok(None) => return Ok(Found::Nothing),
            Err(StoreError::DamagedPart { .. }) => return Ok(Found::Damaged),
            Err(fault) => return Err(fault),
        };
        layout.write_shell(series, start, &mut self.buffer);
        let (place, buffer) = (&partition.place, &mut self.buffer);
        let times = start..place.next_document(start);
        let read = sealed.cells(&source, series, &times, Columns::ALL, scratch, |at, cell| {
            layout.write_cell(buffer, place.slot_index(start, at), &cell);
        });
        match read {
            Ok(()) => Ok(Found::Sealed),
            // Who writes goes on: there is nothing to ask again.
            Err(fault) => match sealed.meet(&[start], series, fault) {
                Ok(()) | Err(StoreError::DamagedPart { .. }) => Ok(Found::Damaged),
                Err(fault) => Err(fault),
            },
        }
    }

    /// Stores what the buffer holds.
    fn store(&mut self, layout: &DocumentLayout, key: u64) -> Result<(), StoreError> {
        layout.seal(&mut self.buffer);
        self.merged.grown += u64::from(self.buffer.len() != layout.length());
        self.table.insert(key, &*self.buffer).map_err(self.partition.fail("write"))?;
        Ok(())
    }

    /// Places the new documents.
    fn finish(self) -> Result<(Merged, Option<Named>), StoreError> {
        let Self { partition, mut table, fresh, mut buffer, mut merged, .. } = self;
        let Placed { segment, open, refused } = fresh.finish()?;
        merged.refused = refused;
        for FreshDocument { start, series, cells } in &open {
            let layout = partition.layout(*start);
            layout.write_shell(*series, *start, &mut buffer);
            for (slot, cell) in cells {
                layout.write_cell(&mut buffer, usize::from(*slot), cell);
            }
            layout.seal(&mut buffer);
            let key = partition.key(*start, *series);
            table.insert(key, &*buffer).map_err(partition.fail("write"))?;
        }
        let named = segment.map(|(named, segment)| {
            partition.segments.put(named.number, segment);
            named
        });
        Ok((merged, named))
    }
}

/// What there is of a document that has no open row.
enum Found {
    Sealed,
    Damaged,
    Nothing,
}

impl CellSink for DocumentWriter<'_, '_> {
    fn document(
        &mut self,
        start: UnixMillis,
        series: SeriesId,
        cells: &[(usize, &Cell)],
    ) -> Result<(), StoreError> {
        let partition = self.partition;
        let layout = partition.layout(start);
        let key = partition.key(start, series);
        self.merged.cells += cells.len() as u64;
        if self.load(key)? {
            // Who writes goes on: there is nothing to ask again.
            if partition.is_sound(layout, &self.buffer, start, series).unwrap_or(false) {
                if layout.is_shell(&self.buffer) {
                    self.table.remove(key).map_err(partition.fail("write"))?;
                    self.merged.patched += 1;
                    let slots = layout.slots();
                    return self.fresh.push(FreshDocument::new(start, series, slots, cells));
                }
                layout.raise(&mut self.buffer);
                self.merged.patched += 1;
            } else {
                layout.write_shell(series, start, &mut self.buffer);
                self.merged.created += 1;
            }
        } else {
            match self.open_sealed(layout, start, series)? {
                Found::Sealed => self.merged.patched += 1,
                Found::Damaged => {
                    layout.write_shell(series, start, &mut self.buffer);
                    self.merged.created += 1;
                }
                Found::Nothing => {
                    self.merged.created += 1;
                    let slots = layout.slots();
                    return self.fresh.push(FreshDocument::new(start, series, slots, cells));
                }
            }
        }
        for (slot, cell) in cells {
            layout.merge_cell(&mut self.buffer, *slot, cell);
        }
        self.store(layout, key)
    }
}
