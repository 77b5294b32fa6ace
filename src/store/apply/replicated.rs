//! The application of records of a log that is elsewhere: their changes go into the tables and the
//! file of objects, then into memory. A follower and the leader of a shard use the same code.
//!
//! The log is the copy of record, so a crash loses no record: a start continues after the last
//! checkpoint, and the log still has the records after it. Must never know: who reads the log.

use std::sync::atomic::Ordering;

use parking_lot::MutexGuard;

use super::{Effect, replay::Replay};
use crate::{
    model::UnixMillis,
    store::{
        error::StoreError,
        file::names::JOURNAL_FILE,
        handle::Store,
        journal::{erasure_row::Pending, record::Record},
        objects::check_rows,
    },
};

/// Applies the records of a shared log to a replica.
#[derive(Debug)]
pub(crate) struct Replicated {
    pub(crate) store: Store,
    replay: Replay,
    /// The last record whose changes are in the tables.
    changes_through: u64,
    /// The latest time of a record, or of a checkpoint before the start.
    pub(crate) last_now: UnixMillis,
}

impl Replicated {
    /// Continues at `last_now`, the time of the last checkpoint.
    pub(crate) fn new(
        store: Store,
        replay: Replay,
        changes_through: u64,
        last_now: UnixMillis,
    ) -> Self {
        store.inner.files_through.store(replay.files_through(), Ordering::Relaxed);
        store.inner.record_time.store(last_now.0, Ordering::Relaxed);
        store.inner.objects.follow();
        Self { store, replay, changes_through, last_now }
    }

    /// Returns the last applied record.
    pub(crate) fn applied(&self) -> u64 {
        self.store.inner.catalog.read().applied()
    }

    /// Returns true while some files contain later records than those that are applied.
    pub(crate) fn is_behind_files(&self) -> bool {
        self.applied() < self.replay.files_through()
    }

    /// Checks that the next record fits the store.
    ///
    /// # Errors
    /// When it does not.
    pub(crate) fn check(&self, number: u64, record: &Record) -> Result<(), StoreError> {
        if record.founding.is_some() != (number == 1) {
            let problem = "only record 1 of a log has the granularities of a new replica";
            let file = JOURNAL_FILE.to_owned();
            return Err(StoreError::Corrupt { file, problem: problem.to_owned() });
        }
        check_rows(number, &record.objects, record.hosts.as_deref())?;
        self.store.check_record(number, record, number <= self.changes_through)
    }

    /// Applies the next record, which [`Self::check`] accepts. `held` is the lock of checkpoints, if
    /// the caller holds it.
    ///
    /// # Errors
    /// When the record does not fit the store, or a file cannot be written: the record is not
    /// applied, and the call can be repeated.
    pub(crate) fn apply(
        &mut self,
        number: u64,
        mut record: Record,
        held: Option<&MutexGuard<'_, ()>>,
    ) -> Result<Effect, StoreError> {
        let store = self.store.clone();
        let is_in_tables = number <= self.changes_through;
        if record.erasure.is_some() && self.has_erasure(number)? {
            // The start has restored it.
            record.erasure = None;
        }
        let is_barrier = record.erasure.is_some() || !is_in_tables && record.is_barrier();
        // In this order, as in a snapshot. The caller that holds the lock of checkpoints erases.
        let sets_retentions = is_barrier && !record.retentions.is_empty();
        let _no_sealing = sets_retentions.then(|| store.inner.sealing.lock());
        let _no_checkpoint =
            (is_barrier && held.is_none()).then(|| store.inner.checkpointing.lock());
        if is_barrier {
            let is_frozen = store.inner.catalog.read().frozen().is_some();
            if is_frozen || store.inner.journal.checkpointed_through()? + 1 != number {
                store.empty_memory(record.now.into())?;
            }
        }
        if !is_in_tables && record.changes_tables() || record.erasure.is_some() {
            self.store_changes(number, &record)?;
        }
        if record.changes_objects() {
            store.inner.objects.apply(number, &record.objects, record.hosts.as_deref())?;
        }
        self.last_now = self.last_now.max(record.now);
        store.inner.record_time.store(self.last_now.0, Ordering::Relaxed);
        self.replay.apply(&store, number, record, is_in_tables)
    }

    fn has_erasure(&self, number: u64) -> Result<bool, StoreError> {
        let stored = self.store.inner.journal.erasure()?;
        Ok(stored.is_some_and(|stored| stored.through.checked_add(1) == Some(number)))
    }

    fn store_changes(&mut self, number: u64, record: &Record) -> Result<(), StoreError> {
        let (store, inner) = (&self.store, &*self.store.inner);
        let changes = store.changed_retentions(&record.retentions, record.now);
        let retentions: Vec<_> = store.rows_of(&changes).collect();
        if record.erasure.is_some() {
            // A failed transaction may be on the disk; the next checkpoint then removes the row.
            *inner.erasure.lock() = Pending::Unsure;
        }
        let number = number.max(self.changes_through);
        inner.journal.store_changes(number, record, &retentions)?;
        self.changes_through = number;
        Ok(())
    }
}
