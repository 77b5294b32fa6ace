//! Changes of retention while the store is open.
//!
//! Must never know: who changes a retention, and when partitions are dropped.

use super::Store;
use crate::{
    model::{GranularitySet, Moment},
    store::error::StoreError,
};

impl Store {
    /// Applies the retentions of a set of the same granularities from now on. Returns the number
    /// of changed granularities.
    ///
    /// Slots that the store no longer kept may be kept again; they count as incomplete.
    ///
    /// # Errors
    /// When the journal cannot be written; the store may then use some of the new retentions.
    ///
    /// # Panics
    /// When the set has other granularities, which need a restart.
    pub fn change_retentions(
        &self,
        set: &GranularitySet,
        now: impl Into<Moment>,
    ) -> Result<usize, StoreError> {
        let (inner, now) = (&*self.inner, now.into().earliest());
        assert!(inner.granularities.differs_in_retention_only(set), "a restart is needed");
        let (_no_checkpoint, _no_sealing) = (inner.checkpointing.lock(), inner.sealing.lock());
        let mut changed = 0;
        for ((index, ours), wanted) in inner.granularities.indexed().zip(set) {
            let retention = wanted.retention();
            if ours.retention() == retention {
                continue;
            }
            let kept_since = ours.retention().before(now).plus(1);
            inner.journal.note_retention(&ours.name, retention, kept_since)?;
            // A record is applied under this lock, with one retention.
            let _no_batch = inner.catalog.write();
            let since = &mut inner.gaps.write()[index.0].complete_since;
            *since = kept_since.max(*since);
            ours.change_retention(retention);
            changed += 1;
        }
        Ok(changed)
    }
}
