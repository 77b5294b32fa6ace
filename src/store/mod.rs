//! The files: journal, dictionary, catalog, partitions. FORMAT.md describes the bytes.
//!
//! The only user of redb and of BSON documents. Must never know: HTTP, actors, settings files.
//! The writer thread calls [`Appender`]; everybody else holds a [`Store`].

mod appender;
mod assertion;
mod catalog;
mod changes;
mod checkpoint;
mod counters;
mod damage;
mod database_file;
mod dictionary;
mod error;
mod head;
mod head_row;
mod journal;
mod layer;
mod layouts;
mod levels;
mod medium;
mod overlay;
mod partition;
mod partitions;
mod reader;
mod record;
mod recovery;
mod register;
mod reports;
mod senders;
mod series_row;
mod snapshot;
mod snapshot_folder;
mod state_row;
mod states;
mod verify;
mod version;
mod watched;

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use parking_lot::{Mutex, RwLock, RwLockReadGuard};

pub use appender::{Appender, StoreLimits};
pub use changes::{ChangeAction, ChangeRefusal, Renaming, SeriesChange, SeriesUpdate};
pub use counters::{Count, Counters};
pub use dictionary::{Dictionary, Matcher};
pub use error::StoreError;
pub use medium::{Folder, Medium};
pub use partitions::PartitionInfo;
pub use reader::{Slot, View};
pub use recovery::RecoveryReport;
pub use reports::{CheckpointBounds, Room};
pub use senders::SenderInfo;
pub use snapshot::{SnapshotReport, restore};
pub use snapshot_folder::SnapshotFolder;
pub use verify::{Fault, VerifyProgress, VerifyReport, verify};

use crate::model::{Gaps, Granularity, GranularitySet, Moment, PartitionId, SeriesId, UnixMillis};
use catalog::{Catalog, Frozen};
use checkpoint::Files;
use head::Head;
use journal::{CutPart, JOURNAL_FILE, Journal};
use partitions::Partitions;
use register::Register;

/// Rows of states, 64 series each, that are encoded under the catalog's lock and stored at once.
const ROWS_AT_ONCE: usize = 128;
/// Senders whose windows are.
const SENDERS_AT_ONCE: usize = 1024;
/// Series that are looked at under the catalog's lock: batches wait meanwhile.
const SERIES_AT_ONCE: usize = 4096;

/// The store, shared by all roles. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    granularities: Arc<GranularitySet>,
    medium: Arc<dyn Medium>,
    journal: Arc<Journal>,
    register: Arc<Register>,
    head: Head,
    partitions: Partitions,
    /// Of each granularity.
    gaps: RwLock<Vec<Gaps>>,
    dictionary: RwLock<Dictionary>,
    catalog: RwLock<Catalog>,
    /// Bytes of cells in memory, readable without waiting for the writer.
    catalog_bytes: AtomicUsize,
    /// Bytes of journal records that no checkpoint has taken up yet.
    journal_pending: AtomicUsize,
    /// Series that are not deleted.
    living_series: AtomicUsize,
    /// Batches were refused for want of room: a checkpoint is due.
    room_wanted: AtomicBool,
    /// Held through a checkpoint: there is one at a time.
    checkpointing: Mutex<()>,
    counters: Counters,
}

/// For fuzzing: reads bytes as rows of the journal's tables.
pub(crate) fn fuzz_rows(bytes: &[u8]) {
    if let Some(record) = record::decode(bytes) {
        let (now, mut again) = (record.now.unwrap_or(UnixMillis(0)), Vec::new());
        record::encode(now, record.batches.iter(), &mut again);
        let read = record::decode(&again);
        assert_eq!(read.map(|read| read.batches.len()), Some(record.batches.len()));
    }
    series_row::fuzz_rows(bytes);
    states::fuzz_rows(bytes);
    changes::fuzz_rows(bytes);
    if let Ok(text) = std::str::from_utf8(bytes)
        && let Some(level) = levels::StoredLevel::from_text("1m", text)
    {
        assert_eq!(levels::StoredLevel::from_text("1m", &level.to_text()), Some(level));
    }
}

/// What a checkpoint did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckpointReport {
    /// The last journal record that is now in documents.
    pub through: u64,
    /// Documents written, patched and created.
    pub documents: u64,
}

/// The latest sample of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastSample {
    /// When it was taken.
    pub at: UnixMillis,
    /// Since when there are no more for now, as its sender said.
    pub ended_at: Option<UnixMillis>,
}

impl Store {
    /// The levels of pre-aggregation, finest first.
    pub fn granularities(&self) -> &GranularitySet {
        &self.inner.granularities
    }

    /// The granularity of a partition: those of the settings come first, then those that are not in
    /// the settings any more, and take no samples.
    pub fn levels(&self) -> &[Granularity] {
        self.inner.partitions.levels()
    }

    /// What each of them lacks of the time that it keeps.
    pub fn gaps(&self) -> Vec<Gaps> {
        let mut gaps = self.inner.gaps.read().clone();
        for (level, gaps) in gaps.iter_mut().enumerate() {
            let width_ms = self.levels()[level].width_ms;
            let slots = self.inner.head.damaged_slots(level).into_iter();
            gaps.holes.extend(self.inner.partitions.holes(level));
            gaps.holes.extend(slots.map(|slot| slot..slot.plus(width_ms)));
        }
        gaps
    }

    /// All series. Held only briefly: new series wait meanwhile.
    pub fn dictionary(&self) -> RwLockReadGuard<'_, Dictionary> {
        self.inner.dictionary.read()
    }

    /// Moves what is accepted out of the journal into the head, and what is complete into
    /// documents. When it fails, nothing is lost, and the next call goes on with it.
    ///
    /// # Errors
    /// When a partition or the journal cannot be written.
    pub fn checkpoint(&self, now: impl Into<Moment>) -> Result<CheckpointReport, StoreError> {
        let now = now.into();
        let inner = &*self.inner;
        let _one_at_a_time = inner.checkpointing.lock();
        let counters = &inner.counters;
        let documents = || counters.documents_patched.get() + counters.shells_missed.get();
        let before = documents();
        let frozen = {
            let mut catalog = inner.catalog.write();
            if catalog.is_half_changed() {
                let problem = "a role died while it changed what is in memory; start again: the \
                               journal has every batch";
                let file = JOURNAL_FILE.to_owned();
                return Err(StoreError::Mismatch { file, problem: problem.to_owned() });
            }
            // One that failed before is taken up again.
            let left_over = catalog.frozen().cloned();
            left_over.unwrap_or_else(|| {
                inner.journal_pending.store(0, Ordering::Relaxed);
                inner.room_wanted.store(false, Ordering::Relaxed);
                catalog.freeze()
            })
        };
        let files = Files {
            granularities: &inner.granularities,
            head: &inner.head,
            partitions: &inner.partitions,
            counters,
        };
        self.or_replace_head(files.write(&frozen, now))?;
        self.cut(&frozen, now.believed)?;
        let thawed = {
            let mut catalog = inner.catalog.write();
            let thawed = catalog.thaw();
            inner.catalog_bytes.store(catalog.bytes(), Ordering::Relaxed);
            thawed
        };
        drop(thawed);
        counters.checkpoints.add(1);
        Ok(CheckpointReport { through: frozen.through, documents: documents() - before })
    }

    /// Stores what belongs to the frozen cells in the journal and removes their records, a part at a
    /// time.
    fn cut(&self, frozen: &Frozen, now: UnixMillis) -> Result<(), StoreError> {
        let (inner, through) = (&*self.inner, frozen.through);
        loop {
            let from = frozen.stored_rows.load(Ordering::Relaxed);
            let rows = inner.catalog.read().frozen_rows(from, ROWS_AT_ONCE);
            let Some(last) = rows.last() else { break };
            let end = last.row + 1;
            inner.journal.cut(CutPart::States { through, rows, end })?;
            frozen.stored_rows.store(end, Ordering::Relaxed);
        }
        for senders in frozen.senders.chunks(SENDERS_AT_ONCE) {
            inner.journal.cut(CutPart::Senders(senders.to_vec()))?;
        }
        inner.journal.cut(CutPart::End { through, now })
    }

    /// Remembers what the time is; each checkpoint does.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub fn remember_time(&self, now: UnixMillis) -> Result<(), StoreError> {
        self.inner.journal.set_last_run(now)
    }

    /// After damage of the head the next attempt finds a new one in its place.
    fn or_replace_head<T>(&self, outcome: Result<T, StoreError>) -> Result<T, StoreError> {
        if let Err(fault) = &outcome {
            self.inner.head.replace_if_damaged(fault)?;
        }
        outcome
    }

    /// Makes empty documents ahead of their time; returns how many were not there yet.
    ///
    /// # Errors
    /// When the partition cannot be written.
    pub fn preallocate(
        &self,
        level: usize,
        document: UnixMillis,
        series: &[SeriesId],
    ) -> Result<usize, StoreError> {
        let living: Vec<_> = {
            let dictionary = self.dictionary();
            series.iter().copied().filter(|id| dictionary.info(*id).is_some()).collect()
        };
        let added = self.inner.partitions.change(level, document, |partition| {
            // It may have documents of another span.
            let document = partition.place.layouts.start_of(document);
            partition.write(None, |writer| writer.add_shells(document, &living))
        })?;
        self.inner.counters.shells_preallocated.add(added as u64);
        Ok(added)
    }

    /// Series that are not deleted and whose latest sample is not older than `since`, ascending.
    pub fn live_series(&self, since: UnixMillis) -> Vec<SeriesId> {
        let ids = self.dictionary().select(&[]);
        let mut live = Vec::new();
        for chunk in ids.chunks(SERIES_AT_ONCE) {
            let catalog = self.inner.catalog.read();
            let is_live =
                |id: &&SeriesId| catalog.state(**id).is_some_and(|own| own.last_at >= since);
            live.extend(chunk.iter().filter(is_live).copied());
        }
        live
    }

    /// Whether any of the series has a sample at or after a time.
    pub fn have_samples_since(&self, series: &[SeriesId], since: UnixMillis) -> bool {
        let catalog = self.inner.catalog.read();
        let is_live =
            |id: &SeriesId| catalog.state(*id).is_some_and(|state| state.last_at >= since);
        // The newest are the likeliest.
        series.iter().rev().any(is_live)
    }

    /// The last sample of each series; `None` where there never was one.
    pub fn last_samples(&self, series: &[SeriesId]) -> Vec<Option<LastSample>> {
        let catalog = self.inner.catalog.read();
        let last = |id: &SeriesId| {
            let state = catalog.state(*id).filter(|state| !state.is_fresh())?;
            Some(LastSample { at: state.last_at, ended_at: state.ended_at() })
        };
        series.iter().map(last).collect()
    }

    /// Removes a partition and its file.
    ///
    /// # Errors
    /// When the file cannot be removed.
    pub fn drop_partition(&self, id: PartitionId) -> Result<bool, StoreError> {
        let dropped = self.inner.partitions.remove(id)?;
        self.inner.counters.partitions_dropped.add(u64::from(dropped));
        Ok(dropped)
    }
}
