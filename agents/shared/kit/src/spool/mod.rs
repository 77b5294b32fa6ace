//! The spool: it keeps batches until the daemon has acknowledged them, in memory first and then in
//! a file.
//!
//! The sampler appends batches; the sender reads the oldest batches and removes acknowledged
//! batches. With a linger time, rounds that the daemon accepts at once never touch the disk.
//! Batches that wait longer are written, and all batches are written after a failed delivery. While
//! the file cannot be written, batches stay in memory, where the oldest are dropped first. Refs are
//! valid as long as the file exists; an epoch is valid until the daemon rejects its numbers. Must
//! never know: HTTP, and what is measured.

mod disk;
mod error;
mod pending;
mod state;
mod tables;

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    ops::Range,
    path::Path,
    sync::{
        Mutex, MutexGuard, PoisonError,
        atomic::{AtomicI64, Ordering},
    },
    time::Duration,
};

use granary_protocol::{Batch, SeriesDefinition, encode_batch};
use tracing::{error, warn};

pub use self::error::SpoolError;
pub(crate) use self::tables::{SERIES_BYTES_MAX, SERIES_MAX, SpoolUsage, StoredBatch};
use self::{
    disk::{Disk, SpoolContent},
    error::panics_are_damage,
    state::State,
};

const FILE: &str = "spool.redb";
const DAMAGED: &str = "spool.redb.damaged";
/// The maximum number of rejected batches that are kept for the operator; beyond it, the oldest
/// batch is removed.
const REJECTED_BATCHES_MAX: u64 = 64;
/// The maximum number of remembered clock steps; beyond it, the oldest step is removed.
const CLOCK_STEPS_MAX: usize = 1_000;
/// The smallest change that counts as a clock step.
const CLOCK_STEP_MIN_MS: u64 = 200;

/// The effect of an append.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct AppendOutcome {
    pub(crate) seq: u64,
    pub(crate) dropped_batches: u64,
    pub(crate) dropped_samples: u64,
}

/// The spool of an agent.
#[derive(Debug)]
pub(crate) struct Spool {
    state: Mutex<State>,
    /// The epoch of all waiting batches. It replaces the epochs that are stored in the batches.
    epoch: AtomicI64,
    /// The number of the newest batch when the spool was opened.
    newest_at_open: u64,
}

impl Spool {
    /// Opens the spool in `folder`, or creates one with the epoch `now_ms`. A damaged file is
    /// renamed, and a new file is created.
    pub(crate) fn open(
        folder: &Path,
        agent: &str,
        bytes_max: u64,
        now_ms: i64,
    ) -> Result<Self, SpoolError> {
        fs::create_dir_all(folder)
            .map_err(|cause| SpoolError::Folder { path: folder.to_owned(), cause })?;
        let opened = match panics_are_damage("open", || Disk::open(folder, agent, now_ms)) {
            Err(error) if error.is_damage() => {
                set_aside(folder, &error)?;
                Disk::open(folder, agent, now_ms)
            }
            result => result,
        };
        let SpoolContent { disk, epoch, usage, next_seq } = opened?;
        let state = State::new(disk, usage, next_seq, bytes_max);
        let newest_at_open = next_seq.saturating_sub(1);
        Ok(Self { state: Mutex::new(state), epoch: AtomicI64::new(epoch), newest_at_open })
    }

    /// Sets the maximum age of batches.
    #[must_use]
    pub(crate) fn with_age_max(self, age: Option<Duration>) -> Self {
        let age_max_ms = age.map(|age| i64::try_from(age.as_millis()).unwrap_or(i64::MAX));
        self.state().age_max_ms = age_max_ms;
        self
    }

    /// Sets the time for which batches stay in memory only, while the daemon accepts them.
    #[must_use]
    pub(crate) fn with_linger(self, linger: Duration) -> Self {
        self.state().linger = linger;
        self
    }

    /// Returns the number of the newest batch when the spool was opened; later batches belong to
    /// this process.
    pub(crate) fn newest_at_open(&self) -> u64 {
        self.newest_at_open
    }

    /// Numbers the batch, stores it with its new definitions, and drops the oldest batches if the
    /// spool exceeds its limit. Without a linger time, and for batches with definitions, the batch
    /// is on disk when this returns, unless the disk is full.
    pub(crate) fn append(&self, batch: &mut Batch) -> Result<AppendOutcome, SpoolError> {
        let mut state = self.state();
        let seq = state.next_seq;
        state.next_seq += 1;
        (batch.seq, batch.epoch) = (seq, self.epoch());
        let mut encoded = Vec::new();
        encode_batch(batch, &mut encoded);
        state.usage.batches += 1;
        state.usage.bytes += encoded.len() as u64;
        state.pending.add(seq, encoded);
        state.pending.definitions.extend_from_slice(&batch.series);
        let newest_ms = batch.times.iter().max().copied();
        let oldest_ms = state.age_max_ms.zip(newest_ms).map(|(age, now)| now.saturating_sub(age));
        state.make_room(seq, oldest_ms)?;
        if state.is_due() {
            state.write(self.epoch())?;
            state.bound_memory(seq);
        }
        let (dropped_batches, dropped_samples) = std::mem::take(&mut state.dropped);
        Ok(AppendOutcome { seq, dropped_batches, dropped_samples })
    }

    /// Returns the oldest batches that fit both limits, but at least one waiting batch. The batches
    /// are not dropped until [`Spool::release`] or [`Spool::acknowledge`].
    pub(crate) fn fetch(
        &self,
        batches_max: usize,
        bytes_max: usize,
    ) -> Result<Vec<StoredBatch>, SpoolError> {
        let mut state = self.state();
        let mut fetched = FetchedBatches { batches: Vec::new(), bytes: 0, batches_max, bytes_max };
        let State { disk, pending, .. } = &*state;
        let mut continues = true;
        disk.visit(false, |seq, bytes| {
            continues = pending.removed.contains(&seq) || fetched.take(seq, bytes);
            continues
        })?;
        if continues {
            for (seq, bytes) in &pending.added {
                if !fetched.take(*seq, bytes) {
                    break;
                }
            }
        }
        let last = fetched.batches.last().map(|batch| batch.seq);
        state.in_flight_through = last.unwrap_or(state.in_flight_through);
        Ok(fetched.batches)
    }

    /// Returns the newest batches that fit both limits, in ascending order, or none when the range
    /// of waiting numbers is outside of `span`. The batches are not dropped until
    /// [`Spool::release`] or [`Spool::acknowledge`].
    pub(crate) fn fetch_newest(
        &self,
        batches_max: usize,
        bytes_max: usize,
        span: Range<u64>,
    ) -> Result<Vec<StoredBatch>, SpoolError> {
        let mut state = self.state();
        let (first, last) = state.first_and_last()?;
        if !span.contains(&(last - first)) {
            return Ok(Vec::new());
        }
        let mut fetched = FetchedBatches { batches: Vec::new(), bytes: 0, batches_max, bytes_max };
        let State { disk, pending, .. } = &*state;
        let continues = pending.added.iter().rev().all(|(seq, bytes)| fetched.take(*seq, bytes));
        if continues {
            disk.visit(true, |seq, bytes| {
                pending.removed.contains(&seq) || fetched.take(seq, bytes)
            })?;
        }
        fetched.batches.reverse();
        state.in_flight_through = last;
        Ok(fetched.batches)
    }

    /// Ends the protection of fetched batches after a failed request. Batches in memory and new
    /// batches are written at once.
    pub(crate) fn release(&self) {
        let mut state = self.state();
        state.in_flight_through = 0;
        state.is_failing = true;
        let written = if state.is_due() { state.write(self.epoch()) } else { Ok(()) };
        if let Err(cause) = written {
            // If the file is damaged, the next round fails too, and ends the agent.
            error!(cause = &cause as &dyn std::error::Error, "the spool cannot be written");
        }
    }

    /// Removes acknowledged batches.
    pub(crate) fn acknowledge(&self, seqs: &[u64]) -> Result<(), SpoolError> {
        let mut state = self.state();
        state.in_flight_through = 0;
        state.is_failing = false;
        for seq in seqs {
            state.remove(*seq)?;
        }
        if state.is_due() {
            state.write(self.epoch())?;
        }
        Ok(())
    }

    /// Sets a rejected batch aside.
    pub(crate) fn reject(&self, seq: u64) -> Result<(), SpoolError> {
        let mut state = self.state();
        state.in_flight_through = 0;
        if let Some(batch) = state.remove(seq)? {
            state.pending.reject(batch);
        }
        state.write(self.epoch())
    }

    /// Writes the batches in memory, and releases reserved numbers.
    pub(crate) fn flush(&self) -> Result<(), SpoolError> {
        let mut state = self.state();
        let is_exact = state.written_next_seq == state.next_seq;
        if state.pending.since().is_none() && is_exact {
            return Ok(());
        }
        state.linger = Duration::ZERO;
        state.write(self.epoch())
    }

    /// Returns the definitions of these refs; unknown refs are omitted.
    pub(crate) fn definitions(
        &self,
        refs: &BTreeSet<u32>,
    ) -> Result<BTreeMap<u32, SeriesDefinition>, SpoolError> {
        let state = self.state();
        let mut definitions = state.disk.definitions(refs)?;
        let in_memory = state.pending.definitions.iter();
        let wanted = in_memory.filter(|definition| refs.contains(&definition.reference));
        definitions.extend(wanted.map(|definition| (definition.reference, definition.clone())));
        Ok(definitions)
    }

    /// Visits all definitions of the epoch.
    pub(crate) fn each_definition(
        &self,
        mut take: impl FnMut(SeriesDefinition),
    ) -> Result<(), SpoolError> {
        let state = self.state();
        state.disk.each_definition(&mut take)?;
        state.pending.definitions.iter().cloned().for_each(take);
        Ok(())
    }

    /// Returns the number and size of waiting batches.
    pub(crate) fn usage(&self) -> SpoolUsage {
        self.state().usage
    }

    /// Returns the start of this spool or of its current numbering, in Unix milliseconds.
    pub(crate) fn epoch(&self) -> i64 {
        self.epoch.load(Ordering::Relaxed)
    }

    /// Starts a new epoch for all waiting and new batches. Numbers continue, so that no number
    /// is used twice, even after a step back of the clock.
    pub(crate) fn begin_epoch(&self, epoch: i64) -> Result<(), SpoolError> {
        let mut state = self.state();
        self.epoch.store(epoch, Ordering::Relaxed);
        state.in_flight_through = 0;
        state.pending.start_age();
        state.write(epoch)
    }

    /// Records the offset of the wall clock from the steady clock, in milliseconds, for new
    /// batches.
    pub(crate) fn note_clock(&self, wall_base_ms: i64) {
        let mut state = self.state();
        let last = state.clock_steps.last().map(|(_, base)| *base);
        if last.is_none_or(|last| last.abs_diff(wall_base_ms) >= CLOCK_STEP_MIN_MS) {
            // Older batches are assumed to have the clock of the start.
            let from = if last.is_none() { 0 } else { state.next_seq };
            if state.clock_steps.len() >= CLOCK_STEPS_MAX {
                state.clock_steps.remove(0);
            }
            state.clock_steps.push((from, wall_base_ms));
        }
    }

    /// Returns the offset of the wall clock from the steady clock when a batch was stored.
    pub(crate) fn wall_base_of(&self, seq: u64) -> Option<i64> {
        let state = self.state();
        let until = state.clock_steps.partition_point(|(from, _)| *from <= seq);
        state.clock_steps.get(until.saturating_sub(1)).map(|(_, base)| *base)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Spool {
    fn drop(&mut self) {
        if let Err(cause) = self.flush() {
            error!(cause = &cause as &dyn std::error::Error, "the spool cannot be written");
        }
        let lost = self.state().pending.added.len();
        if lost > 0 {
            error!(lost, "batches in memory could not be written and are lost");
        }
    }
}

/// The batches of a request, within its limits.
struct FetchedBatches {
    batches: Vec<StoredBatch>,
    bytes: usize,
    batches_max: usize,
    bytes_max: usize,
}

impl FetchedBatches {
    /// Adds a batch. Returns false when it does not fit, which ends the fetch.
    fn take(&mut self, seq: u64, bytes: &[u8]) -> bool {
        let sum = self.bytes + bytes.len();
        let fits = sum <= self.bytes_max && self.batches.len() < self.batches_max;
        if !self.batches.is_empty() && !fits {
            return false;
        }
        self.bytes = sum;
        self.batches.push(StoredBatch { seq, bytes: bytes.to_vec() });
        true
    }
}

/// Renames the damaged file, so that it can be inspected and a new spool can be created.
pub(crate) fn set_aside(folder: &Path, error: &SpoolError) -> Result<(), SpoolError> {
    let damaged = folder.join(DAMAGED);
    warn!(
        error = error as &dyn std::error::Error,
        kept_as = %damaged.display(),
        "the spool is damaged; its undelivered samples are lost and a new epoch begins"
    );
    fs::rename(folder.join(FILE), damaged)
        .map_err(|cause| SpoolError::Folder { path: folder.to_owned(), cause })
}

#[cfg(test)]
mod tests;
