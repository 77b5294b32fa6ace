//! Pending changes of the spool's file: batches in memory, and removals.
//!
//! Must never know: the file, and when it is written.

use std::collections::{BTreeMap, BTreeSet};

use granary_protocol::SeriesDefinition;

use super::StoredBatch;
use crate::clock::Stopwatch;

/// The pending changes of the file.
#[derive(Debug, Default)]
pub(super) struct PendingFileChanges {
    /// Batches in memory by number, all newer than the batches in the file.
    pub(super) added: BTreeMap<u64, Vec<u8>>,
    /// The size of the batches in memory.
    pub(super) bytes: usize,
    /// Numbers of batches in the file that were delivered or dropped.
    pub(super) removed: BTreeSet<u64>,
    /// Rejected batches.
    pub(super) rejected: BTreeMap<u64, Vec<u8>>,
    /// New definitions.
    pub(super) definitions: Vec<SeriesDefinition>,
    /// The time since the oldest change.
    since: Option<Stopwatch>,
}

impl PendingFileChanges {
    pub(super) fn add(&mut self, seq: u64, bytes: Vec<u8>) {
        self.start_age();
        self.bytes += bytes.len();
        self.added.insert(seq, bytes);
    }

    /// Removes and returns a batch that is in memory only.
    pub(super) fn take(&mut self, seq: u64) -> Option<StoredBatch> {
        let bytes = self.added.remove(&seq)?;
        self.bytes -= bytes.len();
        let has_more = !(self.added.is_empty() && self.removed.is_empty());
        if !has_more && self.rejected.is_empty() && self.definitions.is_empty() {
            self.since = None;
        }
        Some(StoredBatch { seq, bytes })
    }

    /// Records the removal of a batch in the file.
    pub(super) fn remove(&mut self, seq: u64) {
        self.start_age();
        self.removed.insert(seq);
    }

    pub(super) fn reject(&mut self, batch: StoredBatch) {
        self.start_age();
        self.rejected.insert(batch.seq, batch.bytes);
    }

    /// Records that a write is needed even without other changes.
    pub(super) fn start_age(&mut self) {
        self.since.get_or_insert_with(Stopwatch::start);
    }

    /// Returns the time since the oldest pending change; `None` when no change is pending.
    pub(super) fn since(&self) -> Option<Stopwatch> {
        self.since
    }

    /// Clears the changes after they were written.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}
