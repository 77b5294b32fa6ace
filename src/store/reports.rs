//! What the store says of itself: sizes and counts, and whether a checkpoint is due.
//!
//! Must never know: what is done about it.

use std::sync::atomic::Ordering;

use super::{Counters, PartitionInfo, Store, journal};

/// How much may wait for a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckpointBounds {
    /// Bytes of cells in memory.
    pub cell_bytes_max: usize,
    /// Bytes of journal records.
    pub journal_bytes_max: usize,
}

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
            || self.inner.catalog.read().active_bytes() > bounds.cell_bytes_max
    }

    /// Whether so much waits for a checkpoint that batches are to be refused.
    pub fn is_full(&self, bounds: &CheckpointBounds) -> bool {
        self.inner.journal_pending.load(Ordering::Relaxed)
            > bounds.journal_bytes_max.saturating_mul(REFUSE_FACTOR)
            || self.catalog_bytes() > bounds.cell_bytes_max.saturating_mul(REFUSE_FACTOR)
    }

    /// Senders that number their batches.
    pub fn sender_count(&self) -> usize {
        self.inner.catalog.read().sender_count()
    }

    /// All partitions with their sizes.
    pub fn partitions(&self) -> Vec<PartitionInfo> {
        self.inner.partitions.infos()
    }

    /// Files that were set aside because they are damaged, and marks of missing ones.
    pub fn damaged_partitions(&self) -> Vec<String> {
        self.inner.register.damaged()
    }

    /// Bytes that the head takes on the medium.
    pub fn head_bytes(&self) -> u64 {
        self.inner.head.bytes()
    }

    /// Bytes that the journal takes on the medium.
    pub fn journal_bytes(&self) -> u64 {
        self.inner.medium.allocated_bytes(journal::JOURNAL_FILE).unwrap_or(0)
    }

    /// Whether a checkpoint was begun and not finished.
    pub fn is_checkpoint_cut_short(&self) -> bool {
        self.inner.checkpointing.try_lock().is_some()
            && self.inner.catalog.read().frozen().is_some()
    }
}
