//! Opening of the store: restores the state in memory from the files and from the later records of
//! the journal.
//!
//! Must never know: who opens the store, how batches are received.

mod dictionary;
mod epochs;
mod lost_head;

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicUsize, Ordering},
};

use parking_lot::{Mutex, RwLock};

use super::{
    append::Appender,
    audit::AuditLog,
    catalog::Catalog,
    classes::series_classes::SeriesClasses,
    documents::{Documents, local::LocalDocuments},
    encoding::lanes::row_of,
    error::StoreError,
    file::{
        medium::Medium,
        names::{HEAD_FILE, JOURNAL_FILE, granularities_with_files},
    },
    handle::{Counters, Inner, OpenStore, Store},
    head::Head,
    journal::{Journal, granularities, register::Register},
    objects::Objects,
};
use crate::model::{AcceptedBatch, GranularitySet, RetentionRule, SeriesId, UnixMillis};
use dictionary::load;
use epochs::{Reconciled, StoredLevels};
use lost_head::records_in_files;

/// The maximum time between the last stored time of a run and its end.
const LAST_RUN_LATE_MS: i64 = 86_400_000;

/// The findings of opening a store.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RecoveryReport {
    /// Journal records that were applied to the catalog.
    pub records: u64,
    /// Samples in these records.
    pub samples: u64,
    /// True when a checkpoint was interrupted; the next checkpoint finishes it.
    pub resumes_checkpoint: bool,
    /// The earliest time at which the last run can have ended; `None` for a new store.
    pub last_run: Option<UnixMillis>,
}

impl Store {
    /// Opens the store and recovers the samples that were accepted and are not in files yet.
    ///
    /// # Errors
    /// When a file cannot be read or is of another format.
    pub fn open(
        medium: Arc<dyn Medium>,
        granularities: GranularitySet,
        now: UnixMillis,
    ) -> Result<(Self, Appender, RecoveryReport), StoreError> {
        Self::open_with_rules(medium, granularities, Some(&[]), now)
    }

    /// Opens the store with rules of retention; see [`Self::open`]. New rules apply to samples that
    /// are later than all samples so far; `None` keeps the rules of the last run.
    ///
    /// # Errors
    /// When a file cannot be read or is of another format, or the rules changed too often.
    pub fn open_with_rules(
        medium: Arc<dyn Medium>,
        granularities: GranularitySet,
        rules: Option<&[RetentionRule]>,
        now: UnixMillis,
    ) -> Result<(Self, Appender, RecoveryReport), StoreError> {
        let granularities = Arc::new(granularities.with_own_retentions());
        let (journal, known) = Self::open_journal(&medium, &granularities, now)?;
        let register = Arc::new(Register::open(medium.clone(), journal.clone())?);
        let with_files = granularities_with_files(&medium)?;
        let last_run = journal.last_run()?;
        let resolved =
            Self::resolve(&journal, (&granularities, rules), (&known, &with_files), now)?;
        let classes = Arc::new(resolved.classes);
        let series_classes = SeriesClasses::new(&resolved.epochs, &classes);
        let rules = series_classes.rules().clone();
        let through = journal.checkpointed_through()?;
        let mut catalog = Catalog::new(classes.clone(), series_classes, through);
        let dictionary = load(&journal, catalog.series_mut())?;
        let senders_idle_since = last_run.or(catalog.latest()).unwrap_or(now);
        catalog.senders_mut().restore(journal.senders()?, senders_idle_since, now);
        let run_end = last_run.or(catalog.latest());
        // Partitions that retention dropped were dropped before this time.
        let dropped_by = run_end.map_or(now, |end| now.min(end.plus(LAST_RUN_LATE_MS)));
        let latest = catalog.latest();
        let stored =
            StoredLevels { known: &known, settings: &granularities, with_files: &with_files };
        let Reconciled { stored, gaps, retired } =
            stored.reconcile(resolved.rows, latest, dropped_by);
        let all = [classes.levels(), &retired].concat();
        let (living, run_end_or_now) = (classes.levels().len(), run_end.unwrap_or(now));
        let head = Head::open(medium.clone(), &all, living, register.clone(), run_end_or_now)?;
        let objects = Objects::open(medium.clone(), register.clone())?;
        let audit = AuditLog::open(medium.clone())?;
        let documents = LocalDocuments::open(medium.clone(), all, register.clone())?;
        // A clock that is ahead now must not end periods that the last run did not end.
        let checkpoint_now = run_end.map_or(now, |end| now.min(end));
        if stored != known {
            journal.set_granularities(&stored)?;
        }
        let living_series = AtomicUsize::new(dictionary.len());
        let inner = Inner {
            granularities,
            classes,
            rules,
            medium,
            journal,
            register,
            head,
            documents,
            objects,
            audit,
            gaps: RwLock::new(gaps),
            dictionary: RwLock::new(dictionary),
            catalog: RwLock::new(catalog),
            catalog_bytes: AtomicUsize::new(0),
            journal_pending: AtomicUsize::new(0),
            living_series,
            class_counts: Mutex::default(),
            known_long: Mutex::default(),
            room_wanted: AtomicBool::new(false),
            checkpointing: Mutex::new(()),
            erasure: Mutex::default(),
            sealing: Mutex::new(()),
            counters: Counters::default(),
            open: OpenStore::default(),
        };
        let store = Self::new(inner);
        store.restore_erasure()?;
        let (report, latest) = store.recover()?;
        store.resume_erasure();
        store.begin_epoch(resolved.epochs, resolved.has_new_epoch, latest, now)?;
        if store.inner.journal.is_through_damaged()? {
            // Without this checkpoint, later damage of the head could not be detected.
            store.checkpoint(checkpoint_now)?;
        }
        let last_run = last_run.or(store.inner.catalog.read().latest());
        let report = RecoveryReport { last_run, ..report };
        Ok((store.clone(), Appender::new(store), report))
    }

    /// Opens the journal. Before the new settings take effect, accepted samples of removed
    /// granularities are written to their files.
    fn open_journal(
        medium: &Arc<dyn Medium>,
        settings: &GranularitySet,
        now: UnixMillis,
    ) -> Result<(Arc<Journal>, Vec<granularities::StoredGranularity>), StoreError> {
        let mut journal = Arc::new(Journal::open(medium)?);
        let mut known = journal.granularities()?;
        journal.settle_through(|| records_in_files(medium, &journal, &known))?;
        let removed_granularities = granularities::removed_granularities(&known, settings);
        if !removed_granularities.is_empty()
            && let Ok(before) = granularities::as_set(&known, JOURNAL_FILE)
        {
            for removed in removed_granularities {
                let (granularity, kept) = (&removed.name, removed.retention().to_string());
                tracing::warn!(
                    granularity,
                    kept,
                    "a granularity was removed from the settings: it stores no new samples, and \
                     keeps stored ones for its retention"
                );
            }
            drop(journal);
            Self::write_removed(medium, before, now)?;
            journal = Arc::new(Journal::open(medium)?);
            known = journal.granularities()?;
        }
        Ok((journal, known))
    }

    /// Writes the accepted samples of granularities that will be removed to their files: opens the
    /// store with the granularities and rules of the last run, and runs a checkpoint.
    fn write_removed(
        medium: &Arc<dyn Medium>,
        before: GranularitySet,
        now: UnixMillis,
    ) -> Result<(), StoreError> {
        let (store, _appender, report) = Self::open_with_rules(medium.clone(), before, None, now)?;
        store.checkpoint(report.last_run.map_or(now, |last| last.min(now)))?;
        Ok(())
    }

    /// Replays the journal. If a checkpoint was interrupted, the catalog is frozen again at the
    /// checkpoint's record: marks and the head show which files already have the frozen cells. The
    /// second result is the time of the latest sample of all records and states.
    fn recover(&self) -> Result<(RecoveryReport, Option<UnixMillis>), StoreError> {
        let mut report = RecoveryReport::default();
        let mut latest = None;
        let inner = &*self.inner;
        let after = inner.catalog.read().applied();
        let interrupted = self.last_record_in_files()?;
        let (states_through, states_rows) = inner.journal.states_ahead()?;
        let mut lost = self.cells_of_lost_head(states_through)?;
        let (interrupted_at, interrupted_file) =
            interrupted.max((states_through, JOURNAL_FILE.into()));
        inner.journal.replay(after, |sequence, record| {
            let mut batches = record.batches;
            let mut catalog = inner.catalog.write();
            if sequence == interrupted_at + 1 && sequence > after + 1 {
                catalog.freeze();
            }
            self.check_record(sequence, &batches)?;
            report.records += 1;
            let weight: usize = batches.iter().map(AcceptedBatch::weight).sum();
            inner.journal_pending.fetch_add(weight, Ordering::Relaxed);
            latest = latest.max(latest_of(&batches));
            report.samples += batches.iter().map(|batch| batch.values.len() as u64).sum::<u64>();
            if sequence <= states_through {
                // The states of series in earlier rows include the record, and its cells are in
                // files already.
                let is_missing = |id: SeriesId| row_of(id) >= states_rows;
                for batch in &mut batches {
                    lost.note(batch, |id| !is_missing(id));
                    batch.retain(is_missing);
                }
            }
            catalog.apply(sequence, batches.iter(), record.now);
            // These samples were counted when they were accepted.
            catalog.take_not_kept();
            Ok(())
        })?;
        inner.head.add_lost(&lost.slots);
        let mut catalog = inner.catalog.write();
        let applied = catalog.applied();
        if interrupted_at > applied {
            return Err(StoreError::Corrupt {
                file: JOURNAL_FILE.to_owned(),
                problem: format!(
                    "the journal ends with record {applied}, but {interrupted_file} contains \
                     record {interrupted_at}: restore the journal that belongs to \
                     {interrupted_file}"
                ),
            });
        }
        if interrupted_at > after && interrupted_at == applied {
            catalog.freeze();
        }
        latest = latest.max(catalog.latest());
        self.forget_deleted(&mut catalog);
        report.resumes_checkpoint = catalog.frozen().is_some();
        inner.catalog_bytes.store(catalog.bytes(), Ordering::Relaxed);
        Ok((report, latest))
    }

    /// Removes the states of deleted series, whose rows may be older than the deletion. Series that
    /// became parts of other series do not count as deleted.
    fn forget_deleted(&self, catalog: &mut Catalog) {
        let dictionary = self.inner.dictionary.read();
        let ids = (0..dictionary.id_count() as u32).map(SeriesId);
        let is_remembered = |id| catalog.state(id).is_some_and(|state| !state.is_fresh());
        let is_deleted = |id| dictionary.key(id).is_none() && dictionary.whole_of(id).is_none();
        let deleted: Vec<_> = ids.filter(|id| is_deleted(*id) && is_remembered(*id)).collect();
        catalog.forget(&deleted);
    }

    /// Returns the last record that any file contains, and the file.
    fn last_record_in_files(&self) -> Result<(u64, String), StoreError> {
        let inner = &*self.inner;
        let mut last = (0, String::new());
        for index in inner.classes.indexes() {
            let through = match inner.head.read(index) {
                Ok(head) => head.through,
                Err(fault) if inner.head.replace_if_damaged(&fault)? => 0,
                Err(fault) => return Err(fault),
            };
            last = last.max((through, HEAD_FILE.to_owned()));
        }
        last = last.max(inner.documents.last_record()?.unwrap_or_default());
        Ok(last)
    }

    /// Checks that all series of a record exist. In a damaged record, or in a record of another
    /// store, they may not.
    fn check_record(&self, sequence: u64, batches: &[AcceptedBatch]) -> Result<(), StoreError> {
        let count = self.inner.dictionary.read().id_count();
        let mut series = batches.iter().flat_map(|batch| &batch.series).copied();
        match series.find(|series| series.0 as usize >= count) {
            None => Ok(()),
            Some(series) => Err(StoreError::Corrupt {
                file: JOURNAL_FILE.to_owned(),
                problem: format!("record {sequence} names series {} of {count}", series.0),
            }),
        }
    }
}

/// Returns the time of the latest sample of some batches.
fn latest_of(batches: &[AcceptedBatch]) -> Option<UnixMillis> {
    let times =
        |batch: &AcceptedBatch| (0..batch.series.len()).map(|index| batch.time(index)).max();
    batches.iter().filter_map(times).max()
}
