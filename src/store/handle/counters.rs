//! Counters of the store's work, for telemetry.
//!
//! Must never know: the names of metrics.

use std::sync::atomic::{AtomicU64, Ordering};

/// A number that only grows.
#[derive(Debug, Default)]
pub struct Count(AtomicU64);

impl Count {
    /// Adds to the number.
    pub fn add(&self, more: u64) {
        self.0.fetch_add(more, Ordering::Relaxed);
    }

    /// Returns the number.
    pub fn get(&self) -> u64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Counts since the start.
#[derive(Debug, Default)]
pub struct Counters {
    /// Journal records written: group commits.
    pub commits: Count,
    /// Bytes of journal records written.
    pub journal_bytes: Count,
    /// Samples made durable.
    pub samples: Count,
    /// Accepted samples that are older than all levels of their series, and are not stored.
    pub samples_not_kept: Count,
    /// Samples that do not count because another sender of the same samples counts.
    pub samples_of_replicas: Count,
    /// Failovers between senders of the same samples, counted for each series.
    pub failovers: Count,
    /// Cells merged into documents by checkpoints.
    pub cells_written: Count,
    /// Cells merged into the head by checkpoints.
    pub cells_to_head: Count,
    /// Cells that erasures emptied or recomputed.
    pub cells_erased: Count,
    /// Documents that a checkpoint found and patched in place.
    pub documents_patched: Count,
    /// Documents that a checkpoint created, because none of their cells was stored.
    pub documents_created: Count,
    /// Shells inserted ahead of their time.
    pub shells_preallocated: Count,
    /// Live series without a shell when the period of the document began.
    pub shells_missed: Count,
    /// Finished checkpoints.
    pub checkpoints: Count,
    /// Senders forgotten to make room for new ones, or on request.
    pub senders_forgotten: Count,
    /// Series forgotten because they had no samples left.
    pub series_forgotten: Count,
    /// Changes of the kind of a series.
    pub kinds_changed: Count,
    /// Rejected definitions of series with another kind.
    pub kinds_refused: Count,
    /// Partitions of which all or some segments were folded into one.
    pub partitions_sealed: Count,
    /// Open documents sealed while partitions were folded.
    pub documents_sealed: Count,
    /// Bytes of segments written by sealing, not by checkpoints.
    pub sealed_bytes: Count,
    /// Seals that were given up because some cells would not decode to the same bytes; must stay 0.
    pub sealing_refused: Count,
    /// Times that the histograms of a document stayed open, because they are too large for a
    /// segment.
    pub histograms_left_open: Count,
    /// Partitions dropped by retention.
    pub partitions_dropped: Count,
    /// Files that the checker read.
    pub checked_files: Count,
    /// Bytes that the checker read.
    pub checked_bytes: Count,
    /// Passes of the checker over all files.
    pub checker_passes: Count,
    /// Damaged documents, rows and objects that the checker found.
    pub checker_faults: Count,
}
