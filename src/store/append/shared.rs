//! The shared log of a shard, as the replica that leads the shard uses it.
//!
//! The appender decides all changes of samples and series, other threads decide changes of objects.
//! Each of them holds the lock until its record is applied, so that it decides by the versions and
//! quotas of all earlier records. Must never know: who calls.

use std::{borrow::Borrow, sync::Arc};

use parking_lot::{Mutex, MutexGuard};

use crate::{
    model::{AcceptedBatch, UnixMillis},
    store::{
        apply::{Effect, replicated::Replicated},
        error::{LogFault, SHARED_LOG, StoreError},
        handle::Store,
        journal::{
            erasure_row::Erasure,
            record::Record,
            record_log::{RECORD_BYTES_MAX, RecordSink},
        },
        objects::{ChangeLog, Decided, not_leading},
    },
};

/// The lock of a shared log; `None` inside after the replica has ended to lead.
#[derive(Debug)]
pub(super) struct Leading(Mutex<Option<Shared>>);

/// The shared log of a shard, and the replica that leads the shard.
#[derive(Debug)]
struct Shared {
    log: Box<dyn RecordSink>,
    replicated: Replicated,
    /// The record that may be in the log and is not applied.
    unsettled: Option<Unsettled>,
}

#[derive(Debug)]
struct Unsettled {
    number: u64,
    bytes: Vec<u8>,
    /// True for a record without changes other than those of objects. Nothing that the appender
    /// decides depends on it, so any thread may append it again.
    is_of_objects: bool,
}

impl Unsettled {
    fn record(&self) -> Result<Record, StoreError> {
        let problem = || refused(format!("record {} cannot be read again", self.number));
        Record::from_bytes(&self.bytes).ok_or_else(problem)
    }
}

/// The effect of a record of the log, and the size of the record in bytes.
type Written = (Effect, usize);

impl Leading {
    pub(super) fn new(replicated: Replicated, log: Box<dyn RecordSink>) -> Self {
        Self(Mutex::new(Some(Shared { log, replicated, unsettled: None })))
    }

    /// Ends the leading; `None` when it had ended before.
    pub(super) fn end(&self) -> Option<Replicated> {
        Some(self.0.lock().take()?.replicated)
    }

    /// Returns the time of the next record: the times of records never decrease, whichever node's
    /// clock they come from.
    pub(super) fn time_of_record(&self, now: UnixMillis) -> UnixMillis {
        self.0.lock().as_ref().map_or(now, |shared| shared.replicated.last_now.max(now))
    }

    /// Appends a record, and applies it as a follower does. `held` is the lock of checkpoints, if
    /// the caller holds it.
    pub(super) fn write<B: Borrow<AcceptedBatch>>(
        &self,
        record: Record<B>,
        held: Option<&MutexGuard<'_, ()>>,
    ) -> Result<Written, StoreError> {
        let mut shared = self.0.lock();
        let shared = shared.as_mut().ok_or_else(not_leading)?;
        shared.settle_objects()?;
        shared.write(record, held)
    }

    /// Appends the unsettled record again; returns its samples and its effect, `None` without one.
    pub(super) fn retry(&self) -> Result<Option<(u64, Written)>, StoreError> {
        let mut shared = self.0.lock();
        let shared = shared.as_mut().ok_or_else(not_leading)?;
        let Some(unsettled) = &shared.unsettled else { return Ok(None) };
        let record = unsettled.record()?;
        let samples = record.samples();
        Ok(Some((samples, shared.settle(record, true, None)?)))
    }
}

impl ChangeLog for Leading {
    fn append(
        &self,
        decide: &mut dyn FnMut() -> Result<Option<Decided>, StoreError>,
    ) -> Result<(), StoreError> {
        let mut shared = self.0.lock();
        let shared = shared.as_mut().ok_or_else(not_leading)?;
        shared.settle_objects()?;
        shared.refuse_unsettled()?;
        let mut record = Record::of_changes(shared.replicated.last_now);
        match decide()? {
            Some(Decided::Object(row)) => record.objects.push(row),
            Some(Decided::Hosts(rows)) => record.hosts = Some(Arc::new(rows)),
            None => return Ok(()),
        }
        let written = shared.write(record, None)?;
        shared.replicated.store.count_written(&written, 0);
        Ok(())
    }
}

impl Shared {
    fn write<B: Borrow<AcceptedBatch>>(
        &mut self,
        mut record: Record<B>,
        held: Option<&MutexGuard<'_, ()>>,
    ) -> Result<Written, StoreError> {
        self.refuse_unsettled()?;
        let number = self.replicated.applied() + 1;
        if let Some(erasure) = &mut record.erasure {
            // Changes of objects may have been appended since the erasure was planned.
            *erasure = Arc::new(Erasure { through: number - 1, ..Erasure::clone(erasure) });
        }
        let (is_of_objects, bytes) = (record.changes_objects(), record.to_bytes());
        if bytes.len() > RECORD_BYTES_MAX {
            return Err(refused(format!(
                "the change takes {} bytes, more than the {RECORD_BYTES_MAX} bytes of a record: \
                 divide the request",
                bytes.len()
            )));
        }
        let unsettled = Unsettled { number, bytes, is_of_objects };
        let record = unsettled.record()?;
        // No follower applies a record that its check refuses, and the log keeps each record.
        self.replicated.check(number, &record).map_err(|error| {
            if let StoreError::Corrupt { problem, .. } = error { refused(problem) } else { error }
        })?;
        self.unsettled = Some(unsettled);
        self.settle(record, false, held)
    }

    /// Appends an unsettled record of objects again.
    fn settle_objects(&mut self) -> Result<(), StoreError> {
        let of_objects = self.unsettled.as_ref().filter(|unsettled| unsettled.is_of_objects);
        if let Some(unsettled) = of_objects {
            let written = self.settle(unsettled.record()?, true, None)?;
            self.replicated.store.count_written(&written, 0);
        }
        Ok(())
    }

    fn refuse_unsettled(&self) -> Result<(), StoreError> {
        let Some(Unsettled { number, .. }) = &self.unsettled else { return Ok(()) };
        Err(refused(format!(
            "record {number} may be there and is not applied: append it again, or follow the log"
        )))
    }

    /// Appends the unsettled record, which is `record`, perhaps again, and applies it.
    fn settle(
        &mut self,
        record: Record,
        is_again: bool,
        held: Option<&MutexGuard<'_, ()>>,
    ) -> Result<Written, StoreError> {
        let Some(Unsettled { number, bytes, .. }) = &self.unsettled else {
            return Err(refused("no record is to be appended".to_owned()));
        };
        let (number, length) = (*number, bytes.len());
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
        let changes_objects = record.changes_objects();
        let applied = self.replicated.apply(number, record, held);
        if changes_objects && applied.is_err() {
            // No later record can be appended before this one is applied.
            self.log.give_up();
        }
        let effect = applied?;
        self.unsettled = None;
        Ok((effect, length))
    }
}

impl Store {
    /// Counts a record: its effect, its size in bytes and its samples.
    pub(super) fn count_written(&self, (effect, bytes): &Written, samples: u64) {
        let counters = &self.inner.counters;
        counters.commits.add(u64::from(*bytes > 0));
        counters.journal_bytes.add(*bytes as u64);
        counters.samples.add(samples);
        counters.samples_not_kept.add(effect.not_kept);
    }
}

fn refused(problem: String) -> StoreError {
    StoreError::Mismatch { file: SHARED_LOG.to_owned(), problem }
}
