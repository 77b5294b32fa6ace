//! The documents of one partition, read within a view of it and changed within a transaction.
//!
//! Must never know: the mark's meaning, and when transactions begin and end.

use std::sync::Arc;

use redb::{ReadOnlyTable, ReadableTable, Table};

use super::partition::Partition;
use crate::{
    model::{DocumentLayout, SeriesId, UnixMillis},
    store::{documents::mark::Mark, error::StoreError},
};

/// A consistent view of a partition and of its mark.
pub(crate) struct PartitionReader {
    pub(crate) partition: Arc<Partition>,
    /// What the documents have.
    pub(crate) mark: Mark,
    pub(super) documents: ReadOnlyTable<u64, &'static [u8]>,
}

impl PartitionReader {
    /// Hands a document's bytes to `read`; `None` when there is no such document, or a damaged one.
    pub(crate) fn document<T>(
        &self,
        start: UnixMillis,
        series: SeriesId,
        read: impl FnOnce(&DocumentLayout, &[u8]) -> T,
    ) -> Result<Option<T>, StoreError> {
        let partition = &self.partition;
        partition.file.guard("read", || {
            let key = partition.key(start, series);
            let found = self.documents.get(key).map_err(partition.fail("read"))?;
            let Some(guard) = found else { return Ok(None) };
            let layout = partition.layout(start);
            let is_sound = partition.is_sound(layout, guard.value(), start, series)?;
            Ok(is_sound.then(|| read(layout, guard.value())))
        })
    }

    /// Hands out every document with what its key says: its start and series.
    pub(crate) fn for_each_document(
        &self,
        mut visit: impl FnMut(UnixMillis, SeriesId, &[u8]),
    ) -> Result<(), StoreError> {
        let partition = &self.partition;
        partition.file.guard("read", || {
            for entry in self.documents.iter().map_err(partition.fail("read"))? {
                let (key, doc) = entry.map_err(partition.fail("read"))?;
                let (start, series) = partition.place(key.value());
                visit(start, series, doc.value());
            }
            Ok(())
        })
    }
}

/// What became of a document that was to be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    /// It was there and was patched in place.
    Patched,
    /// It was not there, or damaged; it was made as a shell in the same step.
    Created,
}

/// Changes the documents of one partition in one transaction.
pub(crate) struct DocumentWriter<'p, 't> {
    pub(super) partition: &'p Partition,
    pub(super) table: Table<'t, u64, &'static [u8]>,
    pub(super) buffer: Vec<u8>,
}

impl DocumentWriter<'_, '_> {
    /// Changes a document in place, or a new shell when there is none.
    pub(crate) fn patch(
        &mut self,
        document: UnixMillis,
        series: SeriesId,
        change: impl FnOnce(&DocumentLayout, &mut [u8]),
    ) -> Result<Written, StoreError> {
        let partition = self.partition;
        let layout = partition.layout(document);
        let key = partition.key(document, series);
        // Who writes goes on: there is nothing to ask again.
        let is_sound = self.load(key)?
            && partition.is_sound(layout, &self.buffer, document, series).unwrap_or(false);
        let written = if is_sound {
            layout.raise(&mut self.buffer);
            Written::Patched
        } else {
            layout.write_shell(series, document, &mut self.buffer);
            Written::Created
        };
        change(layout, &mut self.buffer);
        layout.seal(&mut self.buffer);
        self.table.insert(key, &*self.buffer).map_err(partition.fail("write"))?;
        Ok(written)
    }

    /// Copies a document into the buffer; false when there is none.
    fn load(&mut self, key: u64) -> Result<bool, StoreError> {
        let found = self.table.get(key).map_err(self.partition.fail("read"))?;
        self.buffer.clear();
        self.buffer.extend_from_slice(found.as_ref().map_or(&[], |guard| guard.value()));
        Ok(found.is_some())
    }

    /// Inserts empty documents for series, ascending, that have none yet; returns how many.
    pub(crate) fn add_shells(
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
