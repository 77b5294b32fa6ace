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
mod series_row;
mod snapshot;
mod states;
mod verify;

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use parking_lot::{Mutex, RwLock, RwLockReadGuard};

pub use appender::{
    Appender, BatchVerdict, Definition, DefinitionVerdict, GroupVerdict, StoreLimits,
};
pub use catalog::TimesTally;
pub use changes::{ChangeAction, ChangeRefusal, Renaming, SeriesChange, SeriesUpdate};
pub use counters::{Count, Counters};
pub use dictionary::{Dictionary, METRIC_TAG, Matcher, SeriesInfo};
pub use error::StoreError;
pub use medium::{Folder, Medium};
pub use partition::PartitionId;
pub use partitions::PartitionInfo;
pub use reader::{Slot, View};
pub use record::{AcceptedBatch, BatchNumber};
pub use snapshot::{SnapshotReport, restore};
pub use verify::{Fault, VerifyProgress, VerifyReport, verify};

use crate::model::{GranularitySet, SeriesId, UnixMillis};
use catalog::Catalog;
use checkpoint::Files;
use head::Head;
use journal::Journal;
use partitions::Partitions;

/// The store, shared by all roles. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Store {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    granularities: Arc<GranularitySet>,
    medium: Arc<dyn Medium>,
    journal: Journal,
    head: Head,
    partitions: Partitions,
    dictionary: RwLock<Dictionary>,
    catalog: RwLock<Catalog>,
    /// Bytes of cells in memory, readable without waiting for the writer.
    catalog_bytes: AtomicUsize,
    /// Bytes of journal records that no checkpoint has taken up yet.
    journal_pending: AtomicUsize,
    /// Held through a checkpoint: there is one at a time.
    checkpointing: Mutex<()>,
    counters: Counters,
}

/// For fuzzing: reads bytes as rows of the journal's tables.
pub(crate) fn fuzz_rows(bytes: &[u8]) {
    if let Some(batches) = record::decode(bytes) {
        let mut again = Vec::new();
        record::encode(batches.iter(), &mut again);
        assert_eq!(record::decode(&again).map(|read| read.len()), Some(batches.len()));
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

/// What a checkpoint did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CheckpointReport {
    /// The last journal record that is now in documents.
    pub through: u64,
    /// Documents written, patched and created.
    pub documents: u64,
}

/// What was found when the store was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RecoveryReport {
    /// Journal records applied to the catalog.
    pub records: u64,
    /// Samples in them.
    pub samples: u64,
    /// Whether a checkpoint was cut short when the store was closed; the next one finishes it.
    pub resumes_checkpoint: bool,
}

/// The latest sample of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastSample {
    /// When it was taken.
    pub at: UnixMillis,
    /// Whether its sender said since that there are no more for now.
    pub is_end: bool,
}

impl Store {
    /// Opens the store and recovers what was accepted but not yet in documents.
    ///
    /// # Errors
    /// When a file cannot be read or is of another format.
    pub fn open(
        medium: Arc<dyn Medium>,
        granularities: GranularitySet,
        now: UnixMillis,
    ) -> Result<(Self, Appender, RecoveryReport), StoreError> {
        let granularities = Arc::new(granularities);
        let journal = Journal::open(&medium)?;
        let known = journal.levels()?;
        levels::check(&known, &granularities, journal::JOURNAL_FILE)?;
        let partitions = Partitions::open(medium.clone(), granularities.clone())?;
        let head = Head::open(medium.clone(), &granularities, &partitions)?;
        let mut dictionary = Dictionary::default();
        let mut catalog = Catalog::new(granularities.clone(), journal.checkpointed_through()?);
        changes::load(&journal, &mut dictionary, &mut catalog)?;
        journal.restore(catalog.states_mut())?;
        catalog.restore_senders(journal.senders()?);
        let levels = levels::reconcile(&known, &granularities, catalog.latest(), now);
        if levels != known {
            journal.set_levels(&levels)?;
        }
        let inner = Inner {
            granularities,
            medium,
            journal,
            head,
            partitions,
            dictionary: RwLock::new(dictionary),
            catalog: RwLock::new(catalog),
            catalog_bytes: AtomicUsize::new(0),
            journal_pending: AtomicUsize::new(0),
            checkpointing: Mutex::new(()),
            counters: Counters::default(),
        };
        let store = Self { inner: Arc::new(inner) };
        let report = store.recover(now)?;
        Ok((store.clone(), Appender::new(store), report))
    }

    /// Replays the journal. What a checkpoint that was cut short had set aside is set aside again:
    /// some files hold its cells and some do not, and they tell.
    fn recover(&self, now: UnixMillis) -> Result<RecoveryReport, StoreError> {
        let mut report = RecoveryReport::default();
        let inner = &*self.inner;
        let after = inner.catalog.read().applied();
        let (begun_through, begun_in) = self.begun_through()?;
        inner.journal.replay(after, |sequence, batches| {
            let mut catalog = inner.catalog.write();
            if sequence == begun_through + 1 && sequence > after + 1 {
                catalog.freeze();
            }
            self.check_record(sequence, &batches)?;
            report.records += 1;
            let weight: usize = batches.iter().map(AcceptedBatch::weight).sum();
            inner.journal_pending.fetch_add(weight, Ordering::Relaxed);
            report.samples += batches.iter().map(|batch| batch.values.len() as u64).sum::<u64>();
            catalog.apply(sequence, batches.iter(), now);
            Ok(())
        })?;
        let mut catalog = inner.catalog.write();
        let applied = catalog.applied();
        if begun_through > applied {
            return Err(StoreError::Corrupt {
                file: journal::JOURNAL_FILE.to_owned(),
                problem: format!(
                    "it ends with record {applied}, but {begun_in} holds record \
                     {begun_through}: restore the journal that belongs to it"
                ),
            });
        }
        if begun_through > after && begun_through == applied {
            catalog.freeze();
        }
        report.resumes_checkpoint = catalog.frozen().is_some();
        inner.catalog_bytes.store(catalog.bytes(), Ordering::Relaxed);
        Ok(report)
    }

    /// The last record that any file holds, and the file.
    fn begun_through(&self) -> Result<(u64, String), StoreError> {
        let inner = &*self.inner;
        let mut last = (0, String::new());
        for level in 0..inner.granularities.count() {
            let through = match inner.head.read(level) {
                Ok(head) => head.through,
                Err(fault) if inner.head.replace_if_damaged(&fault, &inner.partitions)? => 0,
                Err(fault) => return Err(fault),
            };
            last = last.max((through, head::HEAD_FILE.to_owned()));
        }
        for partition in inner.partitions.all() {
            match partition.read() {
                Ok(reader) => {
                    last = last.max((reader.mark.through, partition.file_path().to_owned()));
                }
                Err(fault) if inner.partitions.replace_if_damaged(&partition, &fault)? => {}
                Err(fault) => return Err(fault),
            }
        }
        Ok(last)
    }

    /// A record of another store, or a damaged one, may name series that are not there.
    fn check_record(&self, sequence: u64, batches: &[AcceptedBatch]) -> Result<(), StoreError> {
        let count = self.inner.dictionary.read().id_count();
        let unknown = batches.iter().flat_map(|batch| &batch.series);
        match unknown.copied().find(|series| series.0 as usize >= count) {
            None => Ok(()),
            Some(series) => Err(StoreError::Corrupt {
                file: journal::JOURNAL_FILE.to_owned(),
                problem: format!("record {sequence} names series {} of {count}", series.0),
            }),
        }
    }

    /// The levels of pre-aggregation, finest first.
    pub fn granularities(&self) -> &GranularitySet {
        &self.inner.granularities
    }

    /// The number of the last journal record that queries see.
    pub fn last_record(&self) -> u64 {
        self.inner.catalog.read().applied()
    }

    /// What the store counted of its own work.
    pub fn counters(&self) -> &Counters {
        &self.inner.counters
    }

    /// All series. Held only briefly: new series wait meanwhile.
    pub fn dictionary(&self) -> RwLockReadGuard<'_, Dictionary> {
        self.inner.dictionary.read()
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

    /// Files of partitions that were set aside because they are damaged.
    pub fn damaged_partitions(&self) -> Vec<String> {
        self.inner.partitions.damaged()
    }

    /// Bytes that the head takes on the medium.
    pub fn head_bytes(&self) -> u64 {
        self.inner.head.bytes()
    }

    /// Bytes that the journal takes on the medium.
    pub fn journal_bytes(&self) -> u64 {
        self.inner.medium.allocated_bytes(journal::JOURNAL_FILE).unwrap_or(0)
    }

    /// Moves what is accepted out of the journal into the head, and what is complete into
    /// documents. When it fails, nothing is lost, and the next call goes on with it.
    ///
    /// # Errors
    /// When a partition or the journal cannot be written.
    pub fn checkpoint(&self, now: UnixMillis) -> Result<CheckpointReport, StoreError> {
        let inner = &*self.inner;
        let _one_at_a_time = inner.checkpointing.lock();
        let counters = &inner.counters;
        let documents = || counters.documents_patched.get() + counters.shells_missed.get();
        let before = documents();
        let frozen = {
            let mut catalog = inner.catalog.write();
            // One that failed before is taken up again.
            let left_over = catalog.frozen().cloned();
            left_over.unwrap_or_else(|| {
                inner.journal_pending.store(0, Ordering::Relaxed);
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
        inner.journal.cut(&frozen)?;
        {
            let mut catalog = inner.catalog.write();
            catalog.thaw();
            inner.catalog_bytes.store(catalog.bytes(), Ordering::Relaxed);
        }
        counters.checkpoints.add(1);
        Ok(CheckpointReport { through: frozen.through, documents: documents() - before })
    }

    /// After damage of the head the next attempt finds a new one in its place.
    fn or_replace_head<T>(&self, outcome: Result<T, StoreError>) -> Result<T, StoreError> {
        if let Err(fault) = &outcome {
            self.inner.head.replace_if_damaged(fault, &self.inner.partitions)?;
        }
        outcome
    }

    /// Whether a checkpoint was begun and not finished.
    pub fn is_checkpoint_cut_short(&self) -> bool {
        self.inner.checkpointing.try_lock().is_some()
            && self.inner.catalog.read().frozen().is_some()
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
        let start = self.granularities().levels()[level].partition_start(document);
        let living: Vec<_> = {
            let dictionary = self.dictionary();
            series.iter().copied().filter(|id| dictionary.info(*id).is_some()).collect()
        };
        let added = self.inner.partitions.change(PartitionId { level, start }, |partition| {
            partition.write(None, |writer| writer.add_shells(document, &living))
        })?;
        self.inner.counters.shells_preallocated.add(added as u64);
        Ok(added)
    }

    /// Series that are not deleted and whose latest sample is not older than `since`, ascending.
    pub fn live_series(&self, since: UnixMillis) -> Vec<SeriesId> {
        let ids = self.dictionary().select(&[]).into_iter();
        let catalog = self.inner.catalog.read();
        ids.filter(|id| catalog.state(*id).is_some_and(|state| state.last_at >= since)).collect()
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
            Some(LastSample { at: state.last_at, is_end: state.ended })
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
