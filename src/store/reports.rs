//! What the store says of itself: sizes and counts, and whether a checkpoint is due.
//!
//! Must never know: what is done about it.

use std::sync::{Arc, atomic::Ordering};

use super::{Counters, PartitionInfo, SenderInfo, Store, journal, layer::LONE_SAMPLE_BYTES};
use crate::model::{AcceptedBatch, Cell, UnixMillis};

/// How much may wait for a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckpointBounds {
    /// Bytes of cells in memory, or two slots of all series if those are more.
    pub cell_bytes_max: usize,
    /// Bytes of journal records.
    pub journal_bytes_max: usize,
}

/// Slots of all series that may wait in any case: one is filled while the next one begins.
const FULL_SLOTS: usize = 2;
/// Bytes that a cell takes among those of its neighbours.
const CELL_BYTES: usize = size_of::<Cell>() + 8;

/// Batches are refused when this many times a bound waits: checkpoints do not keep up.
const REFUSE_FACTOR: usize = 2;

impl Store {
    /// The number of the last journal record that queries see.
    pub fn last_record(&self) -> u64 {
        self.inner.catalog.read().applied()
    }

    /// What the store counted of its own work.
    pub fn counters(&self) -> &Counters {
        &self.inner.counters
    }

    /// Bytes of cells in memory.
    pub fn catalog_bytes(&self) -> usize {
        self.inner.catalog_bytes.load(Ordering::Relaxed)
    }

    /// Whether a checkpoint is due before its timer.
    pub fn needs_checkpoint(&self, bounds: &CheckpointBounds) -> bool {
        self.inner.journal_pending.load(Ordering::Relaxed) > bounds.journal_bytes_max
            || self.inner.room_wanted.load(Ordering::Relaxed)
            || self.inner.catalog.read().active_bytes() > self.cell_bytes_due(bounds)
    }

    /// With so many bytes of cells a checkpoint is due.
    fn cell_bytes_due(&self, bounds: &CheckpointBounds) -> usize {
        let series = self.inner.living_series.load(Ordering::Relaxed);
        bounds.cell_bytes_max.max(series.saturating_mul(FULL_SLOTS * CELL_BYTES))
    }

    fn cell_bytes_full(&self, bounds: &CheckpointBounds) -> usize {
        self.cell_bytes_due(bounds).saturating_mul(REFUSE_FACTOR)
    }

    /// What may still be accepted at `now` before a checkpoint.
    pub fn room(&self, bounds: &CheckpointBounds, now: UnixMillis) -> Room<'_> {
        let (due, full) = (self.cell_bytes_due(bounds), self.cell_bytes_full(bounds));
        Room { store: self, now, due, full, waiting: self.catalog_bytes() }
    }

    /// Whether so much waits for a checkpoint that batches are to be refused.
    pub fn is_full(&self, bounds: &CheckpointBounds) -> bool {
        self.inner.journal_pending.load(Ordering::Relaxed)
            > bounds.journal_bytes_max.saturating_mul(REFUSE_FACTOR)
            || self.catalog_bytes() > self.cell_bytes_full(bounds)
    }

    /// Senders that number their batches.
    pub fn sender_count(&self) -> usize {
        self.inner.catalog.read().senders().len()
    }

    /// All of them, by name.
    pub fn senders(&self) -> Vec<SenderInfo> {
        let catalog = self.inner.catalog.read();
        let all = catalog.senders().iter().map(|(agent, window)| (agent.clone(), window.clone()));
        let mut all: Vec<_> = all.collect();
        drop(catalog);
        all.sort_unstable_by(|one, other| one.0.cmp(&other.0));
        let dictionary = self.dictionary();
        let info = |(agent, window): (Arc<str>, _)| {
            let series = dictionary.count_of_sender(&agent);
            SenderInfo { agent, window, series }
        };
        all.into_iter().map(info).collect()
    }

    /// All partitions with their sizes.
    pub fn partitions(&self) -> Vec<PartitionInfo> {
        self.inner.partitions.infos()
    }

    /// Files that were set aside because they are damaged, and marks of missing ones.
    pub fn damaged_partitions(&self) -> Vec<String> {
        self.inner.register.damaged()
    }

    /// Documents and rows of the head that were found damaged since the start.
    pub fn damaged_documents(&self) -> u64 {
        let of_partitions = self.inner.partitions.all().into_iter();
        of_partitions.map(|partition| partition.damage.count()).sum::<u64>()
            + self.inner.head.damaged_rows()
    }

    /// Bytes that the head takes on the medium.
    pub fn head_bytes(&self) -> u64 {
        self.inner.head.bytes()
    }

    /// Bytes that the journal takes on the medium.
    pub fn journal_bytes(&self) -> u64 {
        self.inner.medium.allocated_bytes(journal::JOURNAL_FILE).unwrap_or(0)
    }

    /// Bytes that all files take on the medium.
    pub fn file_bytes(&self) -> u64 {
        let partitions: u64 = self.partitions().iter().map(|partition| partition.bytes).sum();
        partitions + self.head_bytes() + self.journal_bytes()
    }

    /// Whether a checkpoint was begun and not finished.
    pub fn is_checkpoint_cut_short(&self) -> bool {
        self.inner.checkpointing.try_lock().is_some()
            && self.inner.catalog.read().frozen().is_some()
    }
}

/// Room for the cells of batches that are not durable yet. What is in the journal must be applied,
/// now and at each start, so it is refused before.
#[derive(Debug)]
pub struct Room<'a> {
    store: &'a Store,
    now: UnixMillis,
    due: usize,
    full: usize,
    /// Bytes in memory when what was taken is applied.
    waiting: usize,
}

impl Room<'_> {
    /// Takes room for batches if that can be seen without a closer look.
    pub fn take_easily(&mut self, batches: &[AcceptedBatch]) -> bool {
        let samples: usize = batches.iter().map(|batch| batch.values.len()).sum();
        let rough = self.waiting.saturating_add(samples * LONE_SAMPLE_BYTES);
        let fits = rough <= self.due;
        if fits {
            self.waiting = rough;
        }
        fits
    }

    /// Takes room for batches if there is any: while no checkpoint is due whatever they need, so
    /// that no batch is refused for ever. When there is none, a checkpoint is due.
    pub fn take(&mut self, batches: &[AcceptedBatch]) -> bool {
        if self.take_easily(batches) {
            return true;
        }
        let inner = &self.store.inner;
        let grown = self.waiting + inner.catalog.read().growth(batches, self.now);
        let fits = self.waiting <= self.due || grown <= self.full;
        if fits {
            self.waiting = grown;
        } else {
            inner.room_wanted.store(true, Ordering::Relaxed);
        }
        fits
    }
}
