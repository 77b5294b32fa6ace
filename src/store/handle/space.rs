//! The measured sizes from which disk space is forecast, and the space that is reserved.
//!
//! Must never know: the free space, who needs the forecast, and when space is reserved.

use super::Store;
use crate::{
    model::{GranularityIndex, UnixMillis},
    store::{documents::DocumentSpace, due::due_before, error::StoreError},
};

impl Store {
    /// Returns the sealed bytes of the last document periods of a granularity that ended by a time,
    /// the latest first, at most `count`. Periods without sealed documents are left out.
    pub fn last_periods(&self, index: GranularityIndex, by: UnixMillis, count: usize) -> Vec<u64> {
        self.inner.documents.last_periods(index, by, count)
    }

    /// Reserves space for each granularity's next documents, for the checkpoint that writes
    /// them. `checkpoint` is the time of the last complete checkpoint, which wrote all documents
    /// that were due. Returns the reserved bytes.
    ///
    /// # Errors
    /// When the file system has no space, or cannot reserve any; the daemon works without it.
    pub fn reserve_documents(
        &self,
        checkpoint: UnixMillis,
        needed: &[DocumentSpace],
    ) -> (Vec<u64>, Result<(), StoreError>) {
        let (mut reserved, mut outcome) = (Vec::new(), Ok(()));
        for ((index, granularity), space) in self.granularities().indexed().zip(needed) {
            let document = due_before(granularity, checkpoint);
            let rooms = &self.inner.documents;
            let done = rooms.reserve(index, document, *space);
            // What was reserved before a failure still is.
            let failed = |_: &StoreError| rooms.reserved(index, document);
            reserved.push(done.as_ref().map_or_else(failed, |bytes| *bytes));
            outcome = outcome.and(done.map(drop));
        }
        let others = GranularityIndex(self.granularities().count());
        let released = self.inner.documents.release_rooms(others);
        (reserved, outcome.and(released))
    }

    /// Prepares spare files of the journal's log, and allocates the blocks of the files of head and
    /// journal.
    ///
    /// # Errors
    /// When the file system has no space, or cannot reserve any; the daemon works without it.
    pub fn reserve_journal(&self) -> Result<(), StoreError> {
        self.inner.journal.reserve().and(self.inner.head.reserve())
    }
}
