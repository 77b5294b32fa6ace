//! The second and the third step of an operation: its record becomes durable, and is applied.
//!
//! An embedded store has batches in the journal's log, and all other changes in its tables; only
//! records of the log have numbers. A replica that leads its shard appends every record to the
//! shared log, and then applies what a follower reads there. Must never know: what was decided.

use std::{borrow::Borrow, sync::Arc};

use parking_lot::MutexGuard;

use super::{Appender, shared::Leading};
use crate::{
    model::{AcceptedBatch, GranularitySet, Moment, RetentionRule, TimesTally, UnixMillis},
    store::{
        apply::{Step, replicated::Replicated},
        error::StoreError,
        file::names::JOURNAL_FILE,
        journal::{
            erasure_row::Pending,
            record::{Record, batches},
            record_log::RecordLog,
        },
        objects::ChangeLog,
    },
};

impl Appender {
    /// Returns an appender that writes to a shared log.
    pub(crate) fn leading(replicated: Replicated, log: Box<dyn RecordLog>) -> Self {
        let mut this = Self::new(replicated.store.clone());
        let leading = Arc::new(Leading::new(replicated, log));
        let of_objects: Arc<dyn ChangeLog> = leading.clone();
        this.store.inner.objects.lead(&of_objects);
        this.shared = Some(leading);
        this
    }

    /// Ends the writing to a shared log; `None` for an embedded store.
    pub(crate) fn into_replicated(self) -> Option<Replicated> {
        self.shared?.end()
    }

    /// Returns the time of the next record.
    pub(super) fn time_of_record(&self, now: UnixMillis) -> UnixMillis {
        self.shared.as_ref().map_or(now, |shared| shared.time_of_record(now))
    }

    /// Makes a record durable, then applies it. `held` is the lock of checkpoints, if the caller
    /// holds it. Returns the tally of each batch.
    pub(super) fn write<B: Borrow<AcceptedBatch>>(
        &mut self,
        record: Record<B>,
        held: Option<&MutexGuard<'_, ()>>,
    ) -> Result<Vec<TimesTally>, StoreError> {
        let samples = record.samples();
        let written = match &self.shared {
            None => {
                let number = self.store(&record)?;
                let step = Step { number, ..Step::default() };
                (self.store.apply_record(step, record), self.record.len())
            }
            Some(shared) => shared.write(record, held)?,
        };
        self.store.count_written(&written, samples);
        Ok(written.0.tallies)
    }

    /// Appends the record whose outcome is unknown, or which could not be applied, to the shared log
    /// again, at the same number, and applies it. Returns false when there is none: another thread
    /// may have appended a record of objects again.
    ///
    /// # Errors
    /// When the outcome is still unknown, or another record is at this number: [`Self::follow`]
    /// then.
    pub fn retry(&mut self) -> Result<bool, StoreError> {
        let Some(shared) = &self.shared else { return Ok(false) };
        let Some((samples, written)) = shared.retry()? else { return Ok(false) };
        self.store.count_written(&written, samples);
        Ok(true)
    }

    /// Makes a record durable in the journal. Returns its number if it is in the log.
    fn store<B: Borrow<AcceptedBatch>>(
        &mut self,
        record: &Record<B>,
    ) -> Result<Option<u64>, StoreError> {
        let inner = &*self.store.inner;
        self.record.clear();
        if !has_one_table(record) {
            let problem = "a record has changes that the journal cannot store together".to_owned();
            return Err(StoreError::Mismatch { file: JOURNAL_FILE.to_owned(), problem });
        }
        let series_count = inner.dictionary.read().id_count() as u32;
        if let Some(erasure) = &record.erasure {
            // A failed transaction may be on the disk.
            *inner.erasure.lock() = Pending::Unsure;
            inner.journal.set_erasure(erasure)?;
            return Ok(None);
        }
        if !record.updates.is_empty() {
            inner.journal.change_series(series_count, &record.new_series, &record.updates)?;
            return Ok(None);
        }
        batches::encode(record.now, record.batches(), &mut self.record);
        let number = inner.catalog.read().applied() + 1;
        inner.journal.append(number, &self.record, series_count, &record.new_series)?;
        Ok(Some(number))
    }

    /// Applies the retentions of a set of the same granularities, and of the same rules, from now
    /// on; see [`crate::store::Store::change_retentions`]. Returns the number of changed levels.
    ///
    /// # Errors
    /// When the journal or the shared log cannot be written; the old retentions apply.
    ///
    /// # Panics
    /// When the granularities or the rules differ in more, so that the store must be opened again.
    pub fn change_retentions(
        &mut self,
        set: &GranularitySet,
        rules: &[RetentionRule],
        now: impl Into<Moment>,
    ) -> Result<usize, StoreError> {
        let now = now.into();
        if self.shared.is_none() {
            return self.store.change_retentions(set, rules, now);
        }
        let retentions = self.store.wanted_retentions(set, rules);
        let count = retentions.len();
        if count > 0 {
            let now = self.time_of_record(now.earliest());
            self.write(Record { retentions, ..Record::of_changes(now) }, None)?;
        }
        Ok(count)
    }
}

/// Returns true when one transaction of an embedded store's journal, or one record of its log,
/// contains all parts of a record.
fn has_one_table<B>(record: &Record<B>) -> bool {
    let Record { new_series, batches, updates, forgotten, erasure, retentions, .. } = record;
    let is_of_replica = record.founding.is_some() || record.changes_objects();
    let has_batches = !batches.is_empty();
    let is_erasure = erasure.is_some();
    let has_series = !new_series.is_empty() || !updates.is_empty() || !forgotten.is_empty();
    retentions.is_empty()
        && !is_of_replica
        && !(is_erasure && (has_batches || has_series))
        && (!has_batches || updates.is_empty())
        && (forgotten.is_empty() || !updates.is_empty())
}
