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
        error::{LogFault, SHARED_LOG, StoreError},
        file::names::JOURNAL_FILE,
        journal::{
            erasure_row::Pending,
            record::{Record, batches},
            record_log::{RECORD_BYTES_MAX, RecordSink},
        },
    },
};

/// The shared log of a shard, and the replica that leads the shard.
#[derive(Debug)]
pub(super) struct Shared {
    log: Box<dyn RecordSink>,
    replicated: Replicated,
    /// The record that may be in the log and is not applied.
    unsettled: Option<(u64, Vec<u8>)>,
}

impl Appender {
    /// Returns an appender that writes to a shared log.
    pub(crate) fn leading(replicated: Replicated, log: Box<dyn RecordSink>) -> Self {
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
            Some(shared) => shared.write(record.to_bytes(), held)?,
        };
        self.count(&effect, bytes, samples);
        Ok(effect.tallies)
    }

    /// Appends the record whose outcome is unknown, or which could not be applied, to the shared log
    /// again, at the same number, and applies it. Returns false when there is none.
    ///
    /// # Errors
    /// When the outcome is still unknown, or another record is at this number: [`Self::follow`]
    /// then.
    pub fn retry(&mut self) -> Result<bool, StoreError> {
        let Some(shared) = &mut self.shared else { return Ok(false) };
        let Some((_, bytes)) = &shared.unsettled else { return Ok(false) };
        let record = Record::from_bytes(bytes);
        let batches = record.iter().flat_map(Record::batches);
        let samples = batches.map(|batch| batch.values.len() as u64).sum();
        let (effect, bytes) = shared.settle(true, None)?;
        self.count(&effect, bytes, samples);
        Ok(true)
    }

    fn count(&self, effect: &Effect, bytes: usize, samples: u64) {
        let counters = &self.store.inner.counters;
        counters.commits.add(u64::from(bytes > 0));
        counters.journal_bytes.add(bytes as u64);
        counters.samples.add(samples);
        counters.samples_not_kept.add(effect.not_kept);
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

impl Shared {
    /// Appends a record to the log, and applies it as a follower does.
    fn write(
        &mut self,
        bytes: Vec<u8>,
        held: Option<&MutexGuard<'_, ()>>,
    ) -> Result<(Effect, usize), StoreError> {
        if let Some((number, _)) = &self.unsettled {
            return Err(refused(format!(
                "record {number} may be there and is not applied: append it again, or follow the log"
            )));
        }
        if bytes.len() > RECORD_BYTES_MAX {
            return Err(refused(format!(
                "the change takes {} bytes, more than the {RECORD_BYTES_MAX} bytes of a record: \
                 divide the request",
                bytes.len()
            )));
        }
        self.unsettled = Some((self.replicated.applied() + 1, bytes));
        self.settle(false, held)
    }

    /// Appends the unsettled record, perhaps again, and applies it.
    fn settle(
        &mut self,
        is_again: bool,
        held: Option<&MutexGuard<'_, ()>>,
    ) -> Result<(Effect, usize), StoreError> {
        let Some((number, bytes)) = &self.unsettled else {
            return Err(refused("no record is to be appended".to_owned()));
        };
        let (number, length) = (*number, bytes.len());
        let Some(record) = Record::from_bytes(bytes) else {
            return Err(refused(format!("record {number} cannot be read again")));
        };
        if let Err(fault) = self.log.append(number, bytes) {
            let may_exist = match fault {
                LogFault::Unknown { .. } => true,
                // Of an earlier attempt.
                LogFault::Store(_) | LogFault::Cut { .. } => is_again,
                LogFault::OutOfOrder { .. } | LogFault::Fenced { .. } => false,
            };
            if !may_exist {
                self.unsettled = None;
            }
            return Err(StoreError::Log(Box::new(fault)));
        }
        let effect = self.replicated.apply(number, record, held)?;
        self.unsettled = None;
        Ok((effect, length))
    }
}

/// Returns true when one transaction of an embedded store's journal, or one record of its log,
/// contains all parts of a record.
fn has_one_table<B>(record: &Record<B>) -> bool {
    let Record { new_series, batches, updates, forgotten, erasure, retentions, .. } = record;
    let has_batches = !batches.is_empty();
    let is_erasure = erasure.is_some();
    let has_series = !new_series.is_empty() || !updates.is_empty() || !forgotten.is_empty();
    retentions.is_empty()
        && record.founding.is_none()
        && !(is_erasure && (has_batches || has_series))
        && (!has_batches || updates.is_empty())
        && (forgotten.is_empty() || !updates.is_empty())
}

fn refused(problem: String) -> StoreError {
    StoreError::Mismatch { file: SHARED_LOG.to_owned(), problem }
}
