//! The bytes that may wait for a checkpoint, and the bytes that may still be accepted before one.
//!
//! Must never know: who runs the checkpoint, and who refuses batches.

use std::sync::atomic::Ordering;

use crate::{
    model::{AcceptedBatch, UnixMillis},
    store::{catalog::cell_map::LONE_SAMPLE_BYTES, handle::Store},
};

/// The bounds of the bytes that wait for a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckpointBounds {
    /// Bytes of cells in memory; the bound is at least 96 bytes for each series.
    pub cell_bytes_max: usize,
    /// Bytes of journal records before compression.
    pub journal_bytes_max: usize,
}

/// The minimum of bytes per series that may wait for a checkpoint: three slots with one sample
/// each, or one and a half with more. Each checkpoint rewrites the rows of all coarser
/// granularities, so it should include several slots.
const SERIES_BYTES: usize = 96;

/// Batches are refused when the waiting bytes exceed a bound by this factor: checkpoints do not
/// keep up.
const REFUSE_FACTOR: usize = 2;

impl Store {
    /// Returns whether a checkpoint is due before its timer.
    pub fn needs_checkpoint(&self, bounds: &CheckpointBounds) -> bool {
        self.inner.journal_pending.load(Ordering::Relaxed) > bounds.journal_bytes_max
            || self.inner.room_wanted.load(Ordering::Relaxed)
            || self.inner.catalog.read().active_bytes() > self.cell_bytes_due(bounds)
    }

    /// The bytes of cells from which a checkpoint is due.
    pub fn cell_bytes_due(&self, bounds: &CheckpointBounds) -> usize {
        let series = self.inner.living_series.load(Ordering::Relaxed);
        bounds.cell_bytes_max.max(series.saturating_mul(SERIES_BYTES))
    }

    fn cell_bytes_full(&self, bounds: &CheckpointBounds) -> usize {
        self.cell_bytes_due(bounds).saturating_mul(REFUSE_FACTOR)
    }

    /// Returns the room for batches at `now` before a checkpoint.
    pub fn room(&self, bounds: &CheckpointBounds, now: UnixMillis) -> Room<'_> {
        let (due, full) = (self.cell_bytes_due(bounds), self.cell_bytes_full(bounds));
        Room { store: self, now, due, full, waiting: self.catalog_bytes() }
    }

    /// Returns whether batches must be refused because too many bytes wait for a checkpoint.
    pub fn is_full(&self, bounds: &CheckpointBounds) -> bool {
        self.inner.journal_pending.load(Ordering::Relaxed)
            > bounds.journal_bytes_max.saturating_mul(REFUSE_FACTOR)
            || self.catalog_bytes() > self.cell_bytes_full(bounds)
    }
}

/// Room for the cells of batches that are not durable yet. A batch in the journal must be applied,
/// now and at each start, so a batch without room must be refused before it is written.
#[derive(Debug)]
pub struct Room<'a> {
    store: &'a Store,
    now: UnixMillis,
    due: usize,
    full: usize,
    /// Bytes in memory once all batches that took room are applied.
    waiting: usize,
}

impl Room<'_> {
    /// Takes room for batches when a rough estimate shows that they fit. Histograms have no rough
    /// estimate.
    pub fn take_easily(&mut self, batches: &[AcceptedBatch]) -> bool {
        if batches.iter().any(|batch| !batch.histograms.is_empty()) {
            return false;
        }
        let samples: usize = batches.iter().map(|batch| batch.values.len()).sum();
        let rough = self.waiting.saturating_add(samples * LONE_SAMPLE_BYTES);
        let fits = rough <= self.due;
        if fits {
            self.waiting = rough;
        }
        fits
    }

    /// Takes room for batches if there is enough; otherwise requests a checkpoint. While no
    /// checkpoint is due, a batch of any size gets room, so that no batch is refused for ever.
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
