//! Sealing: the documents of finished partitions are compressed in segments, and segments are
//! folded.
//!
//! Must never know: who seals, and how often.

use super::Store;
use crate::{
    model::Moment,
    store::{documents::Documents, error::StoreError},
};

/// The outcome of sealing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SealReport {
    /// Partitions of which all or some segments were folded into one.
    pub partitions: u64,
    /// Open documents that were sealed.
    pub documents: u64,
    /// Bytes of the new segments.
    pub bytes: u64,
    /// Partitions that were given up, because some cells would not decode to the same bytes.
    pub refused: u64,
    /// Documents whose histograms stay open, because they are too large for a segment.
    pub left_open: u64,
}

impl Store {
    /// Folds each partition that did not change for `after_ms`, as far as earlier calls have
    /// observed: into one segment when it ended longer ago than `after_ms`, or when its open
    /// documents take much space. Segments that overlap are folded into one when they are many, or
    /// contain many late samples.
    ///
    /// `go_on` is called repeatedly with the bytes written since its last call; it may block, and
    /// returns false to stop.
    ///
    /// # Errors
    /// When a file cannot be read or written; every cell is still in its old or its new file
    pub fn seal(
        &self,
        now: impl Into<Moment>,
        after_ms: i64,
        go_on: &dyn Fn(u64) -> bool,
    ) -> Result<SealReport, StoreError> {
        let (inner, now) = (&*self.inner, now.into().earliest());
        let go_on = |bytes| {
            inner.counters.sealed_bytes.add(bytes);
            go_on(bytes)
        };
        let mut report = SealReport::default();
        let before = now.minus(after_ms);
        for (grid, stage) in inner.documents.stages(now, before) {
            // A snapshot holds this lock while the files must not change.
            let _one_at_a_time = inner.sealing.lock();
            if !go_on(0) {
                break;
            }
            let Some(folded) = inner.documents.seal(&grid, stage, &go_on)? else { continue };
            report.refused += u64::from(folded.refused);
            report.partitions += u64::from(!folded.refused);
            report.documents += folded.documents;
            report.left_open += folded.left_open;
            report.bytes += folded.bytes;
        }
        let counters = &inner.counters;
        counters.partitions_sealed.add(report.partitions);
        counters.documents_sealed.add(report.documents);
        counters.sealing_refused.add(report.refused);
        counters.histograms_left_open.add(report.left_open);
        Ok(report)
    }

    /// Sets the minimum number of new documents that a checkpoint seals at once; fewer documents
    /// stay open until the partition is over.
    pub fn set_segment_documents_min(&self, count: usize) {
        self.inner.documents.set_sealed_min(count);
    }

    /// Sets the free bytes, in addition to twice the bytes in use, from which the journal releases
    /// space after a checkpoint.
    pub fn set_journal_free_bytes_max(&self, bytes: u64) {
        self.inner.journal.set_free_bytes_max(bytes);
    }

    /// Sets the size in bytes, at most 4 MiB, from which the journal's log continues in a new file.
    pub fn set_log_file_bytes(&self, bytes: u64) {
        self.inner.journal.set_log_file_bytes(bytes);
    }
}
