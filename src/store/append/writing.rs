//! The second and the third step of an operation: its record becomes durable, and is applied.
//!
//! An embedded store has batches in the journal's log, and all other changes in its tables; only
//! records of the log have numbers. A replica that leads its shard appends every record to the
//! shared log, and then applies what a follower reads there. Must never know: what was decided.

use std::borrow::Borrow;

use parking_lot::MutexGuard;

use super::Appender;
use crate::{
    model::{AcceptedBatch, GranularitySet, Moment, RetentionRule, TimesTally, UnixMillis},
    store::{
        apply::{Effect, Step, replicated::Replicated},
        error::StoreError,
        journal::{
            erasure_row::Pending,
            record::{Record, batches},
            record_log::{LogFault, RECORD_BYTES_MAX, RecordLog},
        },
    },
};

/// The name of the shared log in errors.
const SHARED_LOG: &str = "the shared log";

/// The shared log of a shard, and the replica that leads the shard.
#[derive(Debug)]
pub(super) struct Shared {
    log: Box<dyn RecordLog>,
    replicated: Replicated,
    /// The record that may be in the log and is not applied.
    unsettled: Option<u64>,
}

impl Appender {
    /// Returns an appender that writes to a shared log.
    pub(crate) fn leading(replicated: Replicated, log: Box<dyn RecordLog>) -> Self {
        let mut this = Self::new(replicated.store.clone());
        this.shared = Some(Shared { log, replicated, unsettled: None });
        this
    }

    /// Ends the writing to a shared log; `None` for an embedded store.
    pub(crate) fn into_replicated(self) -> Option<Replicated> {
        self.shared.map(|shared| shared.replicated)
    }

    /// Returns the time of the next record. In a shared log, the times of records never decrease,
    /// whichever node's clock they come from.
    pub(super) fn time_of_record(&self, now: UnixMillis) -> UnixMillis {
        self.shared.as_ref().map_or(now, |shared| shared.replicated.last_now.max(now))
    }

    /// Makes a record durable, then applies it. `held` is the lock of checkpoints, if the caller
    /// holds it. Returns the tally of each batch.
    pub(super) fn write<B: Borrow<AcceptedBatch>>(
        &mut self,
        record: Record<B>,
        held: Option<&MutexGuard<'_, ()>>,
    ) -> Result<Vec<TimesTally>, StoreError> {
        let samples = record.batches().map(|batch| batch.values.len() as u64).sum();
        let (effect, bytes) = match &mut self.shared {
            None => {
                let number = self.store(&record)?;
                let step = Step { number, ..Step::default() };
                (self.store.apply_record(step, record), self.record.len())
            }
            Some(shared) => shared.write(&record.to_bytes(), held)?,
        };
        let counters = &self.store.inner.counters;
        counters.commits.add(u64::from(bytes > 0));
        counters.journal_bytes.add(bytes as u64);
        counters.samples.add(samples);
        counters.samples_not_kept.add(effect.not_kept);
        Ok(effect.tallies)
    }

    /// Makes a record durable in the journal. Returns its number if it is in the log.
    fn store<B: Borrow<AcceptedBatch>>(
        &mut self,
        record: &Record<B>,
    ) -> Result<Option<u64>, StoreError> {
        let inner = &*self.store.inner;
        self.record.clear();
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

impl Shared {
    /// Appends a record to the log, and applies it as a follower does.
    fn write(
        &mut self,
        bytes: &[u8],
        held: Option<&MutexGuard<'_, ()>>,
    ) -> Result<(Effect, usize), StoreError> {
        if let Some(number) = self.unsettled {
            return Err(refused(format!(
                "record {number} may be there and is not applied: follow the log first"
            )));
        }
        if bytes.len() > RECORD_BYTES_MAX {
            return Err(refused(format!(
                "the change takes {} bytes, more than the {RECORD_BYTES_MAX} bytes of a record: \
                 divide the request",
                bytes.len()
            )));
        }
        let number = self.replicated.applied() + 1;
        let Some(record) = Record::from_bytes(bytes) else {
            return Err(refused(format!("record {number} cannot be read again")));
        };
        self.unsettled = Some(number);
        if let Err(fault) = self.log.append(number, bytes) {
            if let LogFault::Store(_) = fault {
                self.unsettled = None;
            }
            let (file, cause) = (SHARED_LOG.to_owned(), std::io::Error::other(fault));
            return Err(StoreError::Io { operation: "append to", file, cause });
        }
        let effect = self.replicated.apply(number, record, held)?;
        self.unsettled = None;
        Ok((effect, bytes.len()))
    }
}

fn refused(problem: String) -> StoreError {
    StoreError::Mismatch { file: SHARED_LOG.to_owned(), problem }
}
