//! The spool's state behind its lock: the file, the pending changes, and the rules for writing and
//! dropping.
//!
//! Must never know: the sampler and the sender.

use std::time::Duration;

use granary_protocol::decode_batch;
use tracing::{info, warn};

use super::{
    SpoolUsage, StoredBatch,
    disk::{Counters, Disk},
    error::SpoolError,
    pending::PendingFileChanges,
};

/// The maximum size of batches in memory while the file cannot be written; beyond it, the oldest
/// batches are dropped.
pub(super) const MEMORY_BYTES_MAX: usize = 8 << 20;
/// The count of numbers that are reserved in the file in advance, so that no number is used twice
/// after a crash. The reserve is smaller than the daemon's window.
const RESERVED_NUMBERS: u64 = 256;
/// The maximum number of delivered batches that the file still contains; after a crash they are
/// sent again.
const REMOVED_MAX: usize = 64;
/// Space for rewritten pages, in addition to the size of batches.
const ROOM_BYTES: usize = 64 << 10;

/// The state of the spool.
#[derive(Debug)]
pub(super) struct State {
    pub(super) disk: Disk,
    pub(super) pending: PendingFileChanges,
    pub(super) usage: SpoolUsage,
    pub(super) next_seq: u64,
    /// The next number as stored in the file.
    pub(super) written_next_seq: u64,
    pub(super) bytes_max: u64,
    /// The maximum age of a batch's newest sample; older batches are dropped.
    pub(super) age_max_ms: Option<i64>,
    pub(super) linger: Duration,
    /// Batches up to this number are part of the current request and are not dropped.
    pub(super) in_flight_through: u64,
    /// True after a failed delivery: batches are written at once.
    pub(super) is_failing: bool,
    /// True while the file cannot be written.
    pub(super) is_unwritable: bool,
    /// Dropped batches and samples since the last query.
    pub(super) dropped: (u64, u64),
    /// The offsets of the wall clock from the steady clock, each with the first batch number for
    /// which it is valid.
    pub(super) clock_steps: Vec<(u64, i64)>,
}

impl State {
    pub(super) fn new(disk: Disk, usage: SpoolUsage, next_seq: u64, bytes_max: u64) -> Self {
        Self {
            disk,
            pending: PendingFileChanges::default(),
            usage,
            next_seq,
            written_next_seq: next_seq,
            bytes_max,
            age_max_ms: None,
            linger: Duration::ZERO,
            in_flight_through: 0,
            is_failing: false,
            is_unwritable: false,
            dropped: (0, 0),
            clock_steps: Vec::new(),
        }
    }

    /// Returns true when a write is due.
    pub(super) fn is_due(&self) -> bool {
        let Some(since) = self.pending.since() else { return false };
        since.left_of(self.linger).is_zero()
            || !self.pending.definitions.is_empty()
            || (self.is_failing && !self.pending.added.is_empty())
            || self.next_seq > self.written_next_seq
            || self.pending.removed.len() >= REMOVED_MAX
    }

    /// Writes the pending changes. When the disk is full or broken, the changes stay in memory, and
    /// the next batch triggers another attempt.
    pub(super) fn write(&mut self, epoch: i64) -> Result<(), SpoolError> {
        let reserved = if self.linger.is_zero() { 0 } else { RESERVED_NUMBERS };
        let next_seq = self.next_seq + reserved;
        let counters = Counters { epoch, next_seq, bytes: self.usage.bytes };
        let mut written = self.disk.write(&self.pending, counters);
        if written.as_ref().is_err_and(SpoolError::is_full) && self.drop_oldest_of_disk(counters)? {
            let counters = Counters { bytes: self.usage.bytes, ..counters };
            written = self.disk.write(&self.pending, counters);
        }
        match written {
            Ok(()) => {
                self.pending.clear();
                self.written_next_seq = next_seq;
                if std::mem::replace(&mut self.is_unwritable, false) {
                    info!("the spool can be written again");
                }
                Ok(())
            }
            Err(fault) if fault.is_write_obstacle() => {
                if !std::mem::replace(&mut self.is_unwritable, true) {
                    let cause = &fault as &dyn std::error::Error;
                    warn!(cause, "the spool cannot be written; batches wait in memory");
                }
                Ok(())
            }
            Err(fault) => Err(fault),
        }
    }

    /// Drops the oldest batches of the file to make room for the batches in memory. Returns false
    /// when the file has no batches or cannot be written at all.
    fn drop_oldest_of_disk(&mut self, counters: Counters) -> Result<bool, SpoolError> {
        let mut oldest = Vec::new();
        let (mut bytes, needed) = (0, self.pending.bytes * 2 + ROOM_BYTES);
        let (pending, in_flight_through) = (&self.pending, self.in_flight_through);
        self.disk.visit_from(in_flight_through + 1, false, |seq, row| {
            if !pending.removed.contains(&seq) {
                bytes += row.len();
                oldest.push(seq);
            }
            bytes < needed
        })?;
        let mut removals = PendingFileChanges::default();
        pending.removed.iter().chain(&oldest).for_each(|seq| removals.remove(*seq));
        // redb frees a released page only with the next transaction.
        let is_written = !removals.removed.is_empty()
            && self.disk.write(&removals, counters).is_ok()
            && self.disk.write(&PendingFileChanges::default(), counters).is_ok();
        if is_written {
            for seq in oldest {
                let batch = self.remove(seq)?;
                self.count_dropped(batch.as_ref());
            }
        }
        Ok(is_written)
    }

    fn count_dropped(&mut self, batch: Option<&StoredBatch>) {
        self.dropped.0 += u64::from(batch.is_some());
        self.dropped.1 += batch.map_or(0, StoredBatch::samples);
    }

    /// Removes a batch and returns it, if it exists.
    pub(super) fn remove(&mut self, seq: u64) -> Result<Option<StoredBatch>, SpoolError> {
        let in_memory = self.pending.take(seq);
        let batch = match in_memory {
            Some(batch) => Some(batch),
            None if self.pending.removed.contains(&seq) => None,
            None => self.disk.batch(seq)?.inspect(|_| self.pending.remove(seq)),
        };
        if let Some(batch) = &batch {
            self.usage.batches = self.usage.batches.saturating_sub(1);
            self.usage.bytes = self.usage.bytes.saturating_sub(batch.bytes.len() as u64);
        }
        Ok(batch)
    }

    /// Drops the oldest batches while the spool is too large or the batches are too old. Batches of
    /// the current request and the newest batch are kept.
    pub(super) fn make_room(
        &mut self,
        newest: u64,
        oldest_ms: Option<i64>,
    ) -> Result<(), SpoolError> {
        let mut from = self.in_flight_through + 1;
        while self.usage.bytes > self.bytes_max || oldest_ms.is_some() {
            let Some(seq) = self.oldest_from(from)?.filter(|seq| *seq < newest) else { break };
            from = seq + 1;
            if self.usage.bytes <= self.bytes_max && !self.is_older(seq, oldest_ms)? {
                break;
            }
            let batch = self.remove(seq)?;
            self.count_dropped(batch.as_ref());
        }
        Ok(())
    }

    /// Drops the oldest batches in memory while the batches in memory exceed their limit.
    pub(super) fn bound_memory(&mut self, newest: u64) {
        while self.pending.bytes > MEMORY_BYTES_MAX {
            let mut droppable = self.pending.added.range(self.in_flight_through + 1..newest);
            let Some(seq) = droppable.next().map(|(seq, _)| *seq) else { break };
            let Some(batch) = self.pending.take(seq) else { break };
            self.usage.batches = self.usage.batches.saturating_sub(1);
            self.usage.bytes = self.usage.bytes.saturating_sub(batch.bytes.len() as u64);
            self.count_dropped(Some(&batch));
        }
    }

    /// Returns the oldest batch from this number on.
    pub(super) fn oldest_from(&self, from: u64) -> Result<Option<u64>, SpoolError> {
        let mut first = None;
        let removed = &self.pending.removed;
        self.disk.visit_from(from, false, |seq, _| {
            first = Some(seq).filter(|seq| !removed.contains(seq));
            first.is_none()
        })?;
        let in_memory = || self.pending.added.range(from..).next().map(|(seq, _)| *seq);
        Ok(first.or_else(in_memory))
    }

    /// Returns true when all samples of a batch are older than a time.
    pub(super) fn is_older(&self, seq: u64, oldest_ms: Option<i64>) -> Result<bool, SpoolError> {
        let Some(oldest_ms) = oldest_ms else { return Ok(false) };
        let newest = |bytes: &[u8]| decode_batch(bytes).ok().and_then(|view| view.times().max());
        let newest = match self.pending.added.get(&seq) {
            Some(bytes) => newest(bytes),
            None => self.disk.batch(seq)?.and_then(|batch| newest(&batch.bytes)),
        };
        Ok(newest.is_some_and(|newest| newest < oldest_ms))
    }

    /// Returns the numbers of the oldest and the newest batch, or zeros.
    pub(super) fn first_and_last(&self) -> Result<(u64, u64), SpoolError> {
        let removed = &self.pending.removed;
        let mut ends = (None, None);
        for (is_newest_first, end) in [(false, &mut ends.0), (true, &mut ends.1)] {
            self.disk.visit(is_newest_first, |seq, _| {
                *end = Some(seq).filter(|seq| !removed.contains(seq));
                end.is_none()
            })?;
        }
        let in_memory = |row: Option<(&u64, &Vec<u8>)>| row.map(|(seq, _)| *seq);
        let first = ends.0.or_else(|| in_memory(self.pending.added.first_key_value()));
        let last = in_memory(self.pending.added.last_key_value()).or(ends.1);
        Ok((first.unwrap_or(0), last.unwrap_or(0)))
    }
}
