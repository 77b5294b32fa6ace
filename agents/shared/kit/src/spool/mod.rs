//! Batches until the daemon has acknowledged them: in a file, and before that in memory.
//!
//! The sampler appends, the sender reads the oldest and removes what was acknowledged. With a linger,
//! rounds that the daemon takes at once never touch the disk; what waits longer, or after a failed
//! delivery, is written. A file that cannot be written leaves batches in memory, where the oldest make
//! room. The refs live as long as the file, the epoch until the daemon does not take its numbers any
//! more. It knows nothing of HTTP or of what is measured.

mod disk;
mod error;
mod front;
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
pub(crate) use self::tables::{SERIES_BYTES_MAX, SERIES_MAX, StoredBatch, Usage};
use self::{
    disk::{Disk, Opened},
    error::panics_are_damage,
    state::State,
};

const FILE: &str = "spool.redb";
const DAMAGED: &str = "spool.redb.damaged";
/// Refused batches kept for the operator; when full the oldest is forgotten.
const REJECTED_BATCHES_MAX: u64 = 64;
/// Steps of the clock that are remembered; when full the oldest is forgotten.
const STEPS_MAX: usize = 1_000;
/// A clock that moved by less has not stepped.
const STEP_MS: u64 = 200;

/// What an append did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Appended {
    pub(crate) seq: u64,
    pub(crate) dropped_batches: u64,
    pub(crate) dropped_samples: u64,
}

/// The spool.
#[derive(Debug)]
pub(crate) struct Spool {
    state: Mutex<State>,
    /// All that waits is of this epoch, whatever is written in it.
    epoch: AtomicI64,
    /// The newest batch that was here when it was opened.
    newest_at_open: u64,
}

impl Spool {
    /// Opens the spool in `folder`, or begins one with the epoch `now_ms`. A damaged file is
    /// renamed and a new one begun.
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
        let Opened { disk, epoch, usage, next_seq } = opened?;
        let state = State::new(disk, usage, next_seq, bytes_max);
        let newest_at_open = next_seq.saturating_sub(1);
        Ok(Self { state: Mutex::new(state), epoch: AtomicI64::new(epoch), newest_at_open })
    }

    /// Bounds the age of what waits, too.
    #[must_use]
    pub(crate) fn with_age_max(self, age: Option<Duration>) -> Self {
        let age_max_ms = age.map(|age| i64::try_from(age.as_millis()).unwrap_or(i64::MAX));
        self.state().age_max_ms = age_max_ms;
        self
    }

    /// Leaves batches in memory for so long while the daemon takes them.
    #[must_use]
    pub(crate) fn with_linger(self, linger: Duration) -> Self {
        self.state().linger = linger;
        self
    }

    /// The newest batch that was here when it was opened; later ones are of this process.
    pub(crate) fn newest_at_open(&self) -> u64 {
        self.newest_at_open
    }

    /// Numbers the batch, stores it with the definitions it introduces, and drops the oldest
    /// batches if the spool is over its bound. Without a linger, and with definitions, it is on disk
    /// when this returns, unless the disk is full.
    pub(crate) fn append(&self, batch: &mut Batch) -> Result<Appended, SpoolError> {
        let mut state = self.state();
        let seq = state.next_seq;
        state.next_seq += 1;
        (batch.seq, batch.epoch) = (seq, self.epoch());
        let mut encoded = Vec::new();
        encode_batch(batch, &mut encoded);
        state.usage.batches += 1;
        state.usage.bytes += encoded.len() as u64;
        state.front.add(seq, encoded);
        state.front.definitions.extend_from_slice(&batch.series);
        let newest_ms = batch.times.iter().max().copied();
        let oldest_ms = state.age_max_ms.zip(newest_ms).map(|(age, now)| now.saturating_sub(age));
        state.make_room(seq, oldest_ms)?;
        if state.is_due() {
            state.write(self.epoch())?;
            state.bound_memory(seq);
        }
        let (dropped_batches, dropped_samples) = std::mem::take(&mut state.dropped);
        Ok(Appended { seq, dropped_batches, dropped_samples })
    }

    /// The oldest batches: at least one if there is any, else as many as fit both bounds. They
    /// are not dropped until [`Spool::release`] or [`Spool::acknowledge`].
    pub(crate) fn fetch(
        &self,
        batches_max: usize,
        bytes_max: usize,
    ) -> Result<Vec<StoredBatch>, SpoolError> {
        let mut state = self.state();
        let mut fetched = Fetched { batches: Vec::new(), bytes: 0, batches_max, bytes_max };
        let State { disk, front, .. } = &*state;
        let mut goes_on = true;
        disk.visit(false, |seq, bytes| {
            goes_on = front.removed.contains(&seq) || fetched.take(seq, bytes);
            goes_on
        })?;
        if goes_on {
            for (seq, bytes) in &front.added {
                if !fetched.take(*seq, bytes) {
                    break;
                }
            }
        }
        let last = fetched.batches.last().map(|batch| batch.seq);
        state.in_flight_through = last.unwrap_or(state.in_flight_through);
        Ok(fetched.batches)
    }

    /// The newest batches, oldest of them first, as many as fit both bounds; none when the numbers
    /// that wait span less or more than `span`. They are not dropped until [`Spool::release`] or
    /// [`Spool::acknowledge`].
    pub(crate) fn fetch_newest(
        &self,
        batches_max: usize,
        bytes_max: usize,
        span: Range<u64>,
    ) -> Result<Vec<StoredBatch>, SpoolError> {
        let mut state = self.state();
        let (first, last) = state.ends()?;
        if !span.contains(&(last - first)) {
            return Ok(Vec::new());
        }
        let mut fetched = Fetched { batches: Vec::new(), bytes: 0, batches_max, bytes_max };
        let State { disk, front, .. } = &*state;
        let goes_on = front.added.iter().rev().all(|(seq, bytes)| fetched.take(*seq, bytes));
        if goes_on {
            disk.visit(true, |seq, bytes| {
                front.removed.contains(&seq) || fetched.take(seq, bytes)
            })?;
        }
        fetched.batches.reverse();
        state.in_flight_through = last;
        Ok(fetched.batches)
    }

    /// Ends the protection of fetched batches: the request failed. What comes is written at once, and
    /// what is in memory now.
    pub(crate) fn release(&self) {
        let mut state = self.state();
        state.in_flight_through = 0;
        state.is_failing = true;
        let written = if state.is_due() { state.write(self.epoch()) } else { Ok(()) };
        if let Err(cause) = written {
            // What is damaged is found again with the next round, which ends the agent.
            error!(cause = &cause as &dyn std::error::Error, "the spool cannot be written");
        }
    }

    /// Removes batches that the daemon has.
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

    /// Moves a batch that the daemon will never take out of the queue.
    pub(crate) fn reject(&self, seq: u64) -> Result<(), SpoolError> {
        let mut state = self.state();
        state.in_flight_through = 0;
        if let Some(batch) = state.remove(seq)? {
            state.front.reject(batch);
        }
        state.write(self.epoch())
    }

    /// Writes what is in memory only. Numbers ahead of the last are given back.
    pub(crate) fn flush(&self) -> Result<(), SpoolError> {
        let mut state = self.state();
        let is_exact = state.written_next_seq == state.next_seq;
        if state.front.since().is_none() && is_exact {
            return Ok(());
        }
        state.linger = Duration::ZERO;
        state.write(self.epoch())
    }

    /// The definitions of these refs; one that is not known is left out.
    pub(crate) fn definitions(
        &self,
        refs: &BTreeSet<u32>,
    ) -> Result<BTreeMap<u32, SeriesDefinition>, SpoolError> {
        let state = self.state();
        let mut definitions = state.disk.definitions(refs)?;
        let in_memory = state.front.definitions.iter();
        let asked = in_memory.filter(|definition| refs.contains(&definition.reference));
        definitions.extend(asked.map(|definition| (definition.reference, definition.clone())));
        Ok(definitions)
    }

    /// Gives every definition of the epoch.
    pub(crate) fn each_definition(
        &self,
        mut take: impl FnMut(SeriesDefinition),
    ) -> Result<(), SpoolError> {
        let state = self.state();
        state.disk.each_definition(&mut take)?;
        state.front.definitions.iter().cloned().for_each(take);
        Ok(())
    }

    /// What is waiting.
    pub(crate) fn usage(&self) -> Usage {
        self.state().usage
    }

    /// When this spool began, or began to number anew, in Unix milliseconds.
    pub(crate) fn epoch(&self) -> i64 {
        self.epoch.load(Ordering::Relaxed)
    }

    /// Begins a new epoch, for all that waits and all that comes. Numbers go on counting, so that
    /// none is given twice whatever the clock says.
    pub(crate) fn begin_epoch(&self, epoch: i64) -> Result<(), SpoolError> {
        let mut state = self.state();
        self.epoch.store(epoch, Ordering::Relaxed);
        state.in_flight_through = 0;
        state.front.note();
        state.write(epoch)
    }

    /// Notes how far the wall clock is from the steady one, in milliseconds, for the batches that come.
    pub(crate) fn note_clock(&self, wall_base_ms: i64) {
        let mut state = self.state();
        let last = state.steps.last().map(|(_, base)| *base);
        if last.is_none_or(|last| last.abs_diff(wall_base_ms) >= STEP_MS) {
            // What was here before is taken to be of the clock as it was at the start.
            let from = if last.is_none() { 0 } else { state.next_seq };
            if state.steps.len() >= STEPS_MAX {
                state.steps.remove(0);
            }
            state.steps.push((from, wall_base_ms));
        }
    }

    /// How far the wall clock was from the steady one when a batch was stored.
    pub(crate) fn wall_base_of(&self, seq: u64) -> Option<i64> {
        let state = self.state();
        let until = state.steps.partition_point(|(from, _)| *from <= seq);
        state.steps.get(until.saturating_sub(1)).map(|(_, base)| *base)
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
        let lost = self.state().front.added.len();
        if lost > 0 {
            error!(lost, "batches were in memory only, and are lost");
        }
    }
}

/// What a request takes.
struct Fetched {
    batches: Vec<StoredBatch>,
    bytes: usize,
    batches_max: usize,
    bytes_max: usize,
}

impl Fetched {
    /// Takes a batch; false when it does not fit, which ends the fetching.
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

/// Renames the damaged file, so that its content can be looked at and a new spool can begin.
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
