//! The documents and the mark of one partition, read within a view of it.
//!
//! Must never know: what the mark means.

use std::sync::Arc;

use redb::{ReadOnlyTable, ReadableTable, ReadableTableMetadata};

use super::{
    layout::DocumentLayout,
    partition::{CHECK_KEY, DOCUMENTS, META, Partition, THROUGH_KEY, UNTIL_KEY},
};
use crate::{
    model::{SeriesId, UnixMillis},
    store::{
        documents::{DocumentVisitor, mark::Mark},
        error::StoreError,
    },
};

/// A consistent view of a partition and of its mark.
pub(super) struct PartitionReader {
    pub(super) partition: Arc<Partition>,
    /// What the documents have.
    pub(super) mark: Mark,
    pub(super) documents: ReadOnlyTable<u64, &'static [u8]>,
}

impl Partition {
    /// A consistent view of the partition.
    pub(super) fn read(self: &Arc<Self>) -> Result<PartitionReader, StoreError> {
        let txn = self.file.read()?;
        self.file.guard("read", || {
            let meta = txn.open_table(META).map_err(self.fail("read"))?;
            let value = |key| {
                let found = meta.get(key).map_err(self.fail("read"))?;
                Ok::<_, StoreError>(found.map(|guard| guard.value()))
            };
            let mark = Mark {
                through: value(THROUGH_KEY)?.unwrap_or(0) as u64,
                // The first format knew no such time: it wrote all slots.
                until: UnixMillis(value(UNTIL_KEY)?.unwrap_or(i64::MAX)),
            };
            // Older releases wrote none, and a new partition has none.
            if value(CHECK_KEY)?.is_some_and(|check| check as u64 != mark.checksum()) {
                let problem = "its mark is not as it was written".to_owned();
                return Err(StoreError::Corrupt { file: self.file.name().to_owned(), problem });
            }
            let documents = txn.open_table(DOCUMENTS).map_err(self.fail("read"))?;
            Ok(PartitionReader { partition: self.clone(), mark, documents })
        })
    }
}

impl PartitionReader {
    /// Hands a document's bytes to `read`; `None` when there is no such document, or a damaged one.
    pub(super) fn document<T>(
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

    /// How many documents there are.
    pub(super) fn count(&self) -> Result<u64, StoreError> {
        let partition = &self.partition;
        partition.file.guard("read", || self.documents.len().map_err(partition.fail("read")))
    }

    /// Visits every document; what is damaged is noted as such.
    pub(super) fn check(&self, visit: &mut DocumentVisitor<'_>) -> Result<(), StoreError> {
        let partition = &self.partition;
        let mut cells = Vec::new();
        partition.file.guard("read", || {
            for entry in self.documents.iter().map_err(partition.fail("read"))? {
                let (key, doc) = entry.map_err(partition.fail("read"))?;
                let (start, series) = partition.place_of(key.value());
                let layout = partition.layout(start);
                if let Err(fault) = layout.check(doc.value(), series, start) {
                    // What is compared later goes round it.
                    partition.note_damage(start, series);
                    visit(start, series, Err(fault.to_string()));
                    continue;
                }
                cells.clear();
                cells.extend((0..layout.slots()).map(|slot| layout.cell(doc.value(), slot)));
                visit(start, series, Ok(&cells));
            }
            Ok(())
        })
    }
}
