//! Sealing: documents of partitions whose time is over are brought into the form in which they take
//! least.
//!
//! Must never know: who asks for it, and how often.

use super::Store;
use crate::{
    model::Moment,
    store::{documents::Documents, error::StoreError},
};

/// The outcome of sealing.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SealReport {
    /// Partitions that are one segment now, or of which some segments are.
    pub partitions: u64,
    /// Open documents that were sealed.
    pub documents: u64,
    /// Bytes of the new segments.
    pub bytes: u64,
    /// Partitions that were given up: some cells would not have come back as they are.
    pub refused: u64,
}

impl Store {
    /// Makes one segment of each partition that ended longer ago than `after_ms`, or of which much
    /// is open, if it did not change for that time, as far as earlier calls have seen; and one of
    /// segments that overlap, when they are many, or much is late there.
    ///
    /// `go_on` is called again and again with the bytes that were written, may take its time, and
    /// returns whether to go on.
    ///
    /// # Errors
    /// When a file cannot be read or written; every cell is where it was, or where it is to be.
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
        for (place, stage) in inner.documents.stages(now, before) {
            // A snapshot has the files stand still for a moment.
            let _one_at_a_time = inner.sealing.lock();
            if !go_on(0) {
                break;
            }
            let Some(folded) = inner.documents.seal(&place, stage, &go_on)? else { continue };
            report.refused += u64::from(folded.refused);
            report.partitions += u64::from(!folded.refused);
            report.documents += folded.documents;
            report.bytes += folded.bytes;
        }
        let counters = &inner.counters;
        counters.partitions_sealed.add(report.partitions);
        counters.documents_sealed.add(report.documents);
        counters.sealing_refused.add(report.refused);
        Ok(report)
    }

    /// Sets the number of new documents from which the checkpoint that writes them seals them;
    /// fewer stay open until the partition is over.
    pub fn set_segment_documents_min(&self, count: usize) {
        self.inner.documents.set_sealed_min(count);
    }

    /// Sets the free bytes from which the journal gives back space after a checkpoint, when as many
    /// are free as are not.
    pub fn set_journal_free_bytes_max(&self, bytes: u64) {
        self.inner.journal.set_free_bytes_max(bytes);
    }

    /// Sets the bytes of a file of the journal's log from which another one follows it, at most 4
    /// MiB.
    pub fn set_log_file_bytes(&self, bytes: u64) {
        self.inner.journal.set_log_file_bytes(bytes);
    }
}
