//! The checkpoint: moves frozen cells into documents and the head, exactly once.
//!
//! Documents whose period is over are written first, granularity by granularity. One transaction
//! per partition writes the documents and the mark of their extent. Then one transaction of the
//! head adds the remaining cells, removes the cells that documents now contain, and stores the last
//! record's number. A checkpoint that continues after an interruption skips what a mark or the head
//! covers. The journal is truncated last.
//!
//! Must never know: when a checkpoint is due.

mod granularity;

use std::{ops::Range, sync::atomic::Ordering};

use super::{
    catalog::{cell_map::CellMap, fan_out::FanOut, frozen::Frozen},
    classes::Classes,
    documents::{Documents, local::LocalDocuments},
    due::checkpoint_after,
    error::StoreError,
    file::{holes::Holes, names::JOURNAL_FILE, watched::written_by_this_thread},
    followed::Followed,
    handle::{Counters, Store},
    head::Head,
    histograms::map::HistogramsOfLevel,
    journal::CutPart,
};
use crate::model::{GranularityIndex, Moment, UnixMillis};
use granularity::GranularityStep;

/// Number of rows of states, of 64 series each, that are encoded at a time under the catalog's
/// lock.
const ROWS_AT_ONCE: usize = 128;
/// Number of rows of states that are searched for idle counters while the catalog is locked.
const IDLE_ROWS_AT_ONCE: u32 = 8;
/// Number of coarser levels for which the cells of a level are merged only once. With fewer, the
/// merged cells would take more memory than their merges take time.
const MERGED_FOR: usize = 3;
/// Number of senders whose windows are stored at a time.
const SENDERS_AT_ONCE: usize = 1024;

/// The outcome of a checkpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckpointReport {
    /// The last journal record whose cells are now in the head or in documents.
    pub through: u64,
    /// Documents written, patched and created.
    pub documents: u64,
    /// Cells merged, into the head and into documents.
    pub cells: u64,
    /// Bytes written to the files of the head and of documents.
    pub bytes_written: u64,
}

impl Store {
    /// Moves accepted samples out of the journal into the head, and complete periods into
    /// documents. When it fails, nothing is lost, and the next call continues.
    ///
    /// # Errors
    /// When a partition, the head or the journal cannot be written. A partition that cannot be
    /// written does not block the rest: its cells stay in the head, the other partitions and
    /// granularities are written, and the journal is truncated.
    pub fn checkpoint(&self, now: impl Into<Moment>) -> Result<CheckpointReport, StoreError> {
        let _one_at_a_time = self.inner.checkpointing.lock();
        self.checkpoint_held(now.into())
    }

    /// Returns the milliseconds from `now` until a checkpoint that runs at least once in an
    /// interval.
    pub fn checkpoint_after(&self, now: UnixMillis, interval_ms: i64) -> i64 {
        let finest = &self.inner.granularities[GranularityIndex::FINEST];
        checkpoint_after(finest, now, interval_ms)
    }

    /// Runs a checkpoint. The caller holds the lock of checkpoints.
    pub(super) fn checkpoint_held(&self, now: Moment) -> Result<CheckpointReport, StoreError> {
        let (inner, now) = (&*self.inner, self.time_of_retention(now));
        // The erasure must be complete before files receive cells that were accepted after it.
        self.settle_erasure()?;
        let counters = &inner.counters;
        let documents = || counters.documents_patched.get() + counters.documents_created.get();
        let cells = || counters.cells_to_head.get() + counters.cells_written.get();
        let (documents_before, cells_before) = (documents(), cells());
        let written_before = written_by_this_thread();
        let frozen = {
            let mut catalog = inner.catalog.write();
            if catalog.is_half_changed() {
                let problem = "a thread panicked during a change in memory: restart the daemon; no \
                               batch is lost";
                let file = JOURNAL_FILE.to_owned();
                return Err(StoreError::Mismatch { file, problem: problem.to_owned() });
            }
            if catalog.applied() < inner.files_through.load(Ordering::Relaxed) {
                // A replica has not applied all records whose cells some of its files contain: the
                // interrupted checkpoint continues after these records.
                let through = inner.journal.checkpointed_through()?;
                return Ok(CheckpointReport { through, documents: 0, cells: 0, bytes_written: 0 });
            }
            // The cells of a checkpoint that failed earlier.
            let left_over = catalog.frozen().cloned();
            left_over.unwrap_or_else(|| {
                inner.journal_pending.store(0, Ordering::Relaxed);
                inner.room_wanted.store(false, Ordering::Relaxed);
                catalog.freeze()
            })
        };
        let to = Destinations {
            classes: &inner.classes,
            head: &inner.head,
            documents: &inner.documents,
            followed: &inner.followed,
            counters,
            note_lacking: &|index, before| self.note_lacking(index, before),
        };
        self.note_retired_holes(&frozen)?;
        inner.head.keep_lost()?;
        let postponed = self.or_replace_head(to.write(&frozen, now))?;
        let bytes_written = written_by_this_thread().wrapping_sub(written_before);
        self.cut(&frozen, now.believed)?;
        let thawed = {
            let mut catalog = inner.catalog.write();
            let thawed = catalog.thaw();
            inner.catalog_bytes.store(catalog.bytes(), Ordering::Relaxed);
            thawed
        };
        drop(thawed);
        if let Err(cause) = inner.journal.release_free_space() {
            let cause: &dyn std::error::Error = &cause;
            tracing::warn!(cause, "cannot free space of the journal; the next checkpoint retries");
        }
        if let Some(fault) = postponed {
            return Err(fault);
        }
        counters.checkpoints.add(1);
        Ok(CheckpointReport {
            through: frozen.through,
            documents: documents() - documents_before,
            cells: cells() - cells_before,
            bytes_written,
        })
    }

    /// Packs counters without a sample since a time. Only a few rows are packed at a time, so that
    /// batches are accepted in between.
    pub fn pack_idle(&self, before: UnixMillis) {
        let pack = |from: u32| {
            let mut catalog = self.inner.catalog.write();
            let rows = from..from + IDLE_ROWS_AT_ONCE;
            !catalog.is_half_changed() && catalog.pack_idle(rows, before)
        };
        let mut from = 0;
        while pack(from) {
            from += IDLE_ROWS_AT_ONCE;
        }
    }

    /// Stores the times of late samples that retired granularities do not receive. If such a
    /// granularity is added again, these times are holes in its data.
    fn note_retired_holes(&self, frozen: &Frozen) -> Result<(), StoreError> {
        let inner = &*self.inner;
        let all = inner.documents.granularities();
        for (index, granularity) in all.iter().enumerate().skip(inner.classes.levels().len()) {
            let known = inner.gaps.read()[index].clone();
            let until = known.complete_until;
            let mut late = Holes::default();
            for (map, living) in frozen.maps.iter().zip(&*inner.granularities) {
                for (start, _) in map.slots(i64::MIN..until.0) {
                    let (first, end) = (UnixMillis(start), UnixMillis(start).plus(living.width_ms));
                    let end = granularity.slot_start(end.minus(1)).plus(granularity.width_ms);
                    late.add(granularity.slot_start(first)..end);
                }
            }
            let is_known = |hole: &Range<UnixMillis>| {
                let holds =
                    |known: &Range<UnixMillis>| known.start <= hole.start && hole.end <= known.end;
                known.holes.iter().any(holds)
            };
            if !late.stretches().iter().all(is_known) {
                let holes = inner.journal.note_retired_holes(&granularity.name, &late)?;
                inner.gaps.write()[index].holes = holes.stretches().to_vec();
            }
        }
        Ok(())
    }

    /// Stores the frozen states and sender windows and then the number of the last record in the
    /// journal, one part at a time.
    fn cut(&self, frozen: &Frozen, now: UnixMillis) -> Result<(), StoreError> {
        let (inner, through) = (&*self.inner, frozen.through);
        loop {
            let from = frozen.stored_rows.load(Ordering::Relaxed);
            let rows = inner.catalog.read().frozen_rows(from, ROWS_AT_ONCE);
            let Some(last) = rows.last() else { break };
            let end = last.row + 1;
            inner.journal.cut(&CutPart::States { through, rows, end })?;
            frozen.stored_rows.store(end, Ordering::Relaxed);
        }
        for senders in frozen.senders.chunks(SENDERS_AT_ONCE) {
            inner.journal.cut(&CutPart::Senders(senders.to_vec()))?;
        }
        // The truncation removes the records from which these times can be derived.
        let lacks_before = inner.catalog.read().lacks_before().to_vec();
        for (index, before) in (0..).map(GranularityIndex).zip(lacks_before) {
            self.note_lacking(index, before)?;
        }
        for (index, gaps) in (0..).map(GranularityIndex).zip(inner.gaps.read().clone()) {
            // A granularity may be incomplete before a time and still keep samples there.
            let kept_from = self.granularity(index).kept_from(now);
            inner.head.forget_lost(index, gaps.complete_since.min(kept_from));
        }
        let in_head = self.or_replace_head(inner.head.in_head())?;
        let (lost, record_time) = (inner.head.lost(), self.record_time());
        inner.journal.cut(&CutPart::End { through, now, record_time, in_head, lost })
    }
}

/// The head and the documents, into which a checkpoint moves cells, and its counters.
struct Destinations<'a> {
    pub(crate) classes: &'a Classes,
    pub(crate) head: &'a Head,
    pub(crate) documents: &'a LocalDocuments,
    pub(crate) followed: &'a Followed,
    pub(crate) counters: &'a Counters,
    /// Stores durably that a granularity lacks slots before a time. Called before cells are
    /// dropped.
    pub(crate) note_lacking: &'a dyn Fn(GranularityIndex, UnixMillis) -> Result<(), StoreError>,
}

impl Destinations<'_> {
    /// Writes the frozen cells of every granularity that still keeps them. Returns the first error
    /// of a document that could not be written; its cells stay in the head.
    ///
    /// # Errors
    /// When the head cannot be read or written.
    fn write(&self, frozen: &Frozen, now: Moment) -> Result<Option<StoreError>, StoreError> {
        let mut postponed = None;
        // The merged cells of the finest levels of a class, and the index after these levels.
        let mut merged = (CellMap::default(), 0);
        for index in self.classes.indexes() {
            let level = &self.classes.levels()[index.0];
            let levels = self.classes.up_to(index);
            if levels.len() == 1 {
                merged = (CellMap::default(), levels.start);
            } else if self.classes.coarser_count(index) >= MERGED_FOR {
                let finer = &frozen.maps[merged.1..levels.end];
                let cells = FanOut::new(level, [&merged.0].into_iter().chain(finer));
                merged = (cells.merged(), levels.end);
            }
            let finer = &frozen.maps[merged.1..levels.end];
            let cells = FanOut::new(level, [&merged.0].into_iter().chain(finer));
            let histograms = frozen.histograms.fan_out(self.classes, index);
            if !histograms.is_empty() {
                self.head.expect_histograms();
            }
            let frozen = (frozen.through, &cells, &histograms);
            let step = GranularityStep::new(self, index, frozen, now)?;
            postponed = postponed.or(step.run()?);
        }
        // Cells in the head of retired granularities go into their documents.
        let all = self.documents.granularities().len();
        for index in (self.classes.levels().len()..all).map(GranularityIndex) {
            let head = self.head.read(index)?;
            let is_empty = head.slots(0..i64::MAX)?.is_empty()
                && head.histogram_slots(0..i64::MAX)?.is_empty();
            if !is_empty {
                let (cells, histograms) = (FanOut::default(), HistogramsOfLevel::new());
                let frozen = (frozen.through, &cells, &histograms);
                let step = GranularityStep::new(self, index, frozen, now)?;
                postponed = postponed.or(step.run()?);
            }
        }
        Ok(postponed)
    }
}
