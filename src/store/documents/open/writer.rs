//! Changes of the documents of one partition in one transaction.
//!
//! Must never know: what the mark means.

use redb::{ReadableTable, Table};

use super::partition::{CHECK_KEY, DOCUMENTS, META, Partition, THROUGH_KEY, UNTIL_KEY};
use crate::{
    model::{Cell, SeriesId, UnixMillis},
    store::{
        documents::{CellSink, Merged, mark::Mark},
        error::StoreError,
    },
};

/// The documents of one partition within a transaction.
pub(super) struct DocumentWriter<'p, 't> {
    partition: &'p Partition,
    table: Table<'t, u64, &'static [u8]>,
    buffer: Vec<u8>,
    /// What was merged so far.
    pub(super) merged: Merged,
}

impl Partition {
    /// Changes documents in one transaction, which also stores the mark when one is given.
    pub(super) fn write<T>(
        &self,
        mark: Option<Mark>,
        change: impl FnOnce(&mut DocumentWriter<'_, '_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.file.transact("write", |txn| {
            let table = txn.open_table(DOCUMENTS).map_err(self.fail("write"))?;
            let mut writer = DocumentWriter::new(self, table);
            let out = change(&mut writer)?;
            if let Some(mark) = mark {
                let mut meta = txn.open_table(META).map_err(self.fail("write"))?;
                meta.insert(THROUGH_KEY, mark.through as i64).map_err(self.fail("write"))?;
                meta.insert(UNTIL_KEY, mark.until.0).map_err(self.fail("write"))?;
                let check = mark.checksum() as i64;
                meta.insert(CHECK_KEY, check).map_err(self.fail("write"))?;
            }
            Ok(out)
        })
    }
}

impl<'p, 't> DocumentWriter<'p, 't> {
    fn new(partition: &'p Partition, table: Table<'t, u64, &'static [u8]>) -> Self {
        Self { partition, table, buffer: Vec::new(), merged: Merged::default() }
    }

    /// Copies a document into the buffer; false when there is none.
    fn load(&mut self, key: u64) -> Result<bool, StoreError> {
        let found = self.table.get(key).map_err(self.partition.fail("read"))?;
        self.buffer.clear();
        self.buffer.extend_from_slice(found.as_ref().map_or(&[], |guard| guard.value()));
        Ok(found.is_some())
    }

    /// Inserts empty documents for series, ascending, that have none yet; returns how many.
    pub(super) fn add_shells(
        &mut self,
        document: UnixMillis,
        series: &[SeriesId],
    ) -> Result<usize, StoreError> {
        let partition = self.partition;
        let layout = partition.layout(document);
        let mut added = 0;
        for series in series {
            let key = partition.key(document, *series);
            if self.table.get(key).map_err(partition.fail("preallocate"))?.is_some() {
                continue;
            }
            layout.write_shell(*series, document, &mut self.buffer);
            layout.seal(&mut self.buffer);
            self.table.insert(key, &*self.buffer).map_err(partition.fail("preallocate"))?;
            added += 1;
        }
        Ok(added)
    }
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
        // Who writes goes on: there is nothing to ask again.
        let is_sound = self.load(key)?
            && partition.is_sound(layout, &self.buffer, start, series).unwrap_or(false);
        if is_sound {
            layout.raise(&mut self.buffer);
            self.merged.patched += 1;
        } else {
            layout.write_shell(series, start, &mut self.buffer);
            self.merged.created += 1;
        }
        for (slot, cell) in cells {
            layout.merge_cell(&mut self.buffer, *slot, cell);
        }
        layout.seal(&mut self.buffer);
        self.merged.cells += cells.len() as u64;
        self.merged.grown += u64::from(self.buffer.len() != layout.length());
        self.table.insert(key, &*self.buffer).map_err(partition.fail("write"))?;
        Ok(())
    }
}
