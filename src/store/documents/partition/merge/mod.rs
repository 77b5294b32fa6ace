//! Transactions that change the documents of one partition.
//!
//! Must never know: what the mark means.

mod fresh;
pub(super) mod writer;

use redb::WriteTransaction;

use super::{CHECK_KEY, META, Partition, SEGMENTS, THROUGH_KEY, UNTIL_KEY, segments::Named};
use crate::store::{
    documents::{CellSource, Merged, mark::Mark},
    error::StoreError,
    file::holes::Holes,
};
use writer::{Cells, DocumentWriter};

const OPERATION: &str = "write";

impl Partition {
    /// Merges cells into documents and stores the mark, in one transaction. New documents are
    /// sealed at once when there are at least `sealed_min` of them; so are late cells of sealed
    /// documents.
    pub(crate) fn merge(
        &self,
        mark: Mark,
        sealed_min: usize,
        cells: &mut CellSource<'_>,
    ) -> Result<Merged, StoreError> {
        self.write_cells(Cells::Merge, sealed_min, cells, |txn, lost| {
            let mut meta = txn.open_table(META).map_err(self.fail(OPERATION))?;
            meta.insert(THROUGH_KEY, mark.through as i64).map_err(self.fail(OPERATION))?;
            meta.insert(UNTIL_KEY, mark.until.0).map_err(self.fail(OPERATION))?;
            let check = mark.checksum() as i64;
            meta.insert(CHECK_KEY, check).map_err(self.fail(OPERATION))?;
            if lost.is_empty() {
                return Ok(None);
            }
            let add = |holes: &mut Holes| holes.add_all(lost);
            self.damage.change_holes(&self.file, txn, self.grid.width_ms, add).map(Some)
        })
    }

    /// Writes cells into documents in one transaction. At its end, `complete` receives the times of
    /// lost documents, and returns the holes if it changes them. After a failure, the written
    /// segments are removed.
    pub(super) fn write_cells(
        &self,
        mode: Cells,
        sealed_min: usize,
        cells: &mut CellSource<'_>,
        complete: impl FnOnce(&WriteTransaction, &Holes) -> Result<Option<Holes>, StoreError>,
    ) -> Result<Merged, StoreError> {
        let mut named = Vec::new();
        let outcome = self.file.transact(OPERATION, |txn| {
            let segments = self.segments_of(txn)?;
            let mut writer = DocumentWriter::new(self, txn, &segments, sealed_min, mode)?;
            cells(&mut writer)?;
            let (merged, lost) = writer.finish(&mut named)?;
            let mut table = txn.open_table(SEGMENTS).map_err(self.fail(OPERATION))?;
            for entry in &named {
                table.insert(entry.number, entry.span()).map_err(self.fail(OPERATION))?;
            }
            drop(table);
            Ok((merged, complete(txn, &lost)?))
        });
        match outcome {
            Ok((merged, holes)) => {
                if let Some(holes) = holes {
                    self.damage.put_holes(holes);
                }
                Ok(merged)
            }
            Err(fault) => {
                for entry in &named {
                    self.remove_unnamed(entry.number);
                }
                Err(fault)
            }
        }
    }

    /// Removes a segment after a failed transaction, unless the partition's file names it.
    pub(crate) fn remove_unnamed(&self, number: u32) {
        let is_named = |named: Vec<Named>| named.iter().any(|entry| entry.number == number);
        let named = self.file.read().and_then(|txn| self.named(&txn));
        if !named.is_ok_and(|named| !is_named(named)) {
            return;
        }
        if let Err(cause) = self.segments.remove(number) {
            let cause: &dyn std::error::Error = &cause;
            tracing::warn!(cause, "cannot remove an unused segment; the next start removes it");
        }
    }
}
