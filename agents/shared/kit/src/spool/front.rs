//! What the spool's file does not have yet: batches in memory, and what is to be removed from it.
//!
//! Must never know: files, and when they are written.

use std::collections::{BTreeMap, BTreeSet};

use granary_protocol::SeriesDefinition;

use super::StoredBatch;
use crate::clock::Stopwatch;

/// See the module.
#[derive(Debug, Default)]
pub(super) struct Front {
    /// Batches by their number, all newer than those of the file.
    pub(super) added: BTreeMap<u64, Vec<u8>>,
    /// Of these.
    pub(super) bytes: usize,
    /// Numbers of the file's batches that are delivered or dropped.
    pub(super) removed: BTreeSet<u64>,
    /// Batches that are set aside.
    pub(super) rejected: BTreeMap<u64, Vec<u8>>,
    pub(super) definitions: Vec<SeriesDefinition>,
    /// Since the oldest of all of that.
    since: Option<Stopwatch>,
}

impl Front {
    pub(super) fn add(&mut self, seq: u64, bytes: Vec<u8>) {
        self.note();
        self.bytes += bytes.len();
        self.added.insert(seq, bytes);
    }

    /// Takes out a batch that the file does not have.
    pub(super) fn take(&mut self, seq: u64) -> Option<StoredBatch> {
        let bytes = self.added.remove(&seq)?;
        self.bytes -= bytes.len();
        let has_more = !(self.added.is_empty() && self.removed.is_empty());
        if !has_more && self.rejected.is_empty() && self.definitions.is_empty() {
            self.since = None;
        }
        Some(StoredBatch { seq, bytes })
    }

    /// Notes that a batch of the file is gone.
    pub(super) fn remove(&mut self, seq: u64) {
        self.note();
        self.removed.insert(seq);
    }

    pub(super) fn reject(&mut self, batch: StoredBatch) {
        self.note();
        self.rejected.insert(batch.seq, batch.bytes);
    }

    /// Notes that the file has to be written, if nothing else changed.
    pub(super) fn note(&mut self) {
        self.since.get_or_insert_with(Stopwatch::start);
    }

    /// Since when something is not in the file; none when it has all.
    pub(super) fn since(&self) -> Option<Stopwatch> {
        self.since
    }

    /// Forgets what is in the file now.
    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }
}
