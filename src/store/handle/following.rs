//! Changed documents, for a role that follows them.
//!
//! Must never know: who follows, and why.

use super::Store;
use crate::store::{error::StoreError, followed::FollowedPartition};

impl Store {
    /// Begins to note changed documents.
    pub fn follow_documents(&self) {
        self.inner.followed.turn_on();
    }

    /// Returns whether documents changed since [`Self::take_changed`] was last called.
    pub fn has_changed(&self) -> bool {
        self.inner.followed.has_notes()
    }

    /// Returns all partitions of levels that accept samples, with their marks and the documents
    /// that changed since the last call; `None` while documents are written.
    ///
    /// # Errors
    /// When a partition cannot be read; the notes stay.
    pub fn take_changed(&self) -> Result<Option<Vec<FollowedPartition>>, StoreError> {
        let inner = &*self.inner;
        let levels = inner.classes.levels().len();
        inner.followed.take(|| inner.documents.marks_of(levels))
    }
}
