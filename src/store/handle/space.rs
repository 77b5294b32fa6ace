//! The measured sizes from which disk space is forecast, and the space that is reserved.
//!
//! Must never know: the free space, who needs the forecast, and when space is reserved.

use super::Store;
use crate::{
    model::{Granularity, GranularityIndex, UnixMillis},
    store::{documents::DocumentSpace, due::due_before, error::StoreError},
};

impl Store {
    /// Returns the sealed bytes of the last document periods of a granularity that ended by a time,
    /// the latest first, at most `count`. Periods without sealed documents are left out.
    pub fn last_periods(&self, index: GranularityIndex, by: UnixMillis, count: usize) -> Vec<u64> {
        self.inner.documents.last_periods(index, by, count)
    }

    /// Reserves space for the next documents of each level, for the checkpoint that writes them.
    /// `checkpoint` is the time of the last complete checkpoint, which wrote all documents that were
    /// due. Returns the reserved bytes.
    ///
    /// # Errors
    /// When the file system has no space, or cannot reserve any; the daemon works without it.
    pub fn reserve_documents(
        &self,
        checkpoint: UnixMillis,
        needed: &[DocumentSpace],
    ) -> (Vec<u64>, Result<(), StoreError>) {
        let (mut reserved, mut outcome) = (Vec::new(), Ok(()));
        let levels = self.inner.classes.indexes().zip(self.levels());
        for ((index, level), space) in levels.zip(needed) {
            let document = due_before(level, checkpoint);
            let rooms = &self.inner.documents;
            let done = rooms.reserve(index, document, *space);
            // The space that was reserved before a failure stays reserved.
            let failed = |_: &StoreError| rooms.reserved(index, document);
            reserved.push(done.as_ref().map_or_else(failed, |bytes| *bytes));
            outcome = outcome.and(done.map(drop));
        }
        let retired = GranularityIndex(self.levels().len());
        let released = self.inner.documents.release_rooms(retired);
        (reserved, outcome.and(released))
    }

    /// Returns, for each level, how many series have a document of the current period.
    pub fn series_by_level(&self, now: UnixMillis) -> Vec<usize> {
        let mut counts = Vec::new();
        for (position, class) in self.inner.classes.all().iter().enumerate() {
            let of_class = |level: &Granularity| {
                self.series_by_class(level.document_start(now)..now.plus(1))[position]
            };
            counts.extend(class.levels.iter().map(of_class));
        }
        counts
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
