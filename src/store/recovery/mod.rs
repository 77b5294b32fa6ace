//! Opening of the store: restores the state in memory from the files and from the later records of
//! the journal.
//!
//! Must never know: who opens the store, how batches are received.

mod dictionary;
mod epochs;
mod lost_head;

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize},
};

use parking_lot::{Mutex, RwLock};

use super::{
    append::Appender,
    apply::replay::Replay,
    audit::AuditLog,
    catalog::Catalog,
    classes::series_classes::SeriesClasses,
    documents::local::LocalDocuments,
    error::StoreError,
    file::{
        medium::Medium,
        names::{JOURNAL_FILE, granularities_with_files},
    },
    followed::Followed,
    handle::{Counters, Inner, OpenStore, Store},
    head::Head,
    journal::{
        Journal,
        epoch_row::Epoch,
        granularities::{self, StoredGranularity},
        register::Register,
    },
    objects::Objects,
};
use crate::model::{GranularitySet, RetentionRule, SeriesId, UnixMillis};
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

/// The files of a store as of the last checkpoint.
pub(crate) struct Opened {
    pub(crate) store: Store,
    /// The epochs of the rules of this run.
    pub(crate) epochs: Vec<Epoch>,
    /// True when the last epoch is new.
    pub(crate) has_new_epoch: bool,
    /// The time of the last run; `None` for a new store.
    pub(crate) last_run: Option<UnixMillis>,
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
        refuse_replica(&journal)?;
        let Opened { store, epochs, has_new_epoch, last_run } =
            Self::open_files(medium, journal, &known, (granularities, rules), now)?;
        // A clock that is ahead now must not end periods that the last run did not end.
        let run_end = last_run.or(store.inner.catalog.read().latest());
        let checkpoint_now = run_end.map_or(now, |end| now.min(end));
        store.restore_erasure()?;
        let (report, latest) = store.recover()?;
        store.resume_erasure();
        store.begin_epoch(epochs, has_new_epoch, latest, now)?;
        if store.inner.journal.is_through_damaged()? {
            // Without this checkpoint, later damage of the head could not be detected.
            store.checkpoint(checkpoint_now)?;
        }
        let last_run = last_run.or(store.inner.catalog.read().latest());
        let report = RecoveryReport { last_run, ..report };
        Ok((store.clone(), Appender::new(store), report))
    }

    /// Opens all files as of the last checkpoint.
    pub(crate) fn open_files(
        medium: Arc<dyn Medium>,
        journal: Arc<Journal>,
        known: &[StoredGranularity],
        (granularities, rules): (Arc<GranularitySet>, Option<&[RetentionRule]>),
        now: UnixMillis,
    ) -> Result<Opened, StoreError> {
        let register = Arc::new(Register::open(medium.clone(), journal.clone())?);
        let with_files = granularities_with_files(&medium)?;
        let last_run = journal.last_run()?;
        let resolved = Self::resolve(&journal, (&granularities, rules), (known, &with_files), now)?;
        let classes = Arc::new(resolved.classes);
        let (epochs, has_new_epoch) = (resolved.epochs, resolved.has_new_epoch);
        let series_classes = SeriesClasses::new(&epochs, &classes);
        let rules = series_classes.rules().clone();
        let through = journal.checkpointed_through()?;
        let mut catalog = Catalog::new(classes.clone(), series_classes, through);
        let dictionary = load(&journal, catalog.series_mut())?;
        let run_end = last_run.or(catalog.latest());
        catalog.senders_mut().restore(journal.senders()?, run_end.unwrap_or(now), now);
        // Partitions that retention dropped were dropped before this time.
        let dropped_by = run_end.map_or(now, |end| now.min(end.plus(LAST_RUN_LATE_MS)));
        let latest = catalog.latest();
        let stored = StoredLevels { known, settings: &granularities, with_files: &with_files };
        let Reconciled { stored, gaps, retired } =
            stored.reconcile(resolved.rows, latest, dropped_by);
        let all = [classes.levels(), &retired].concat();
        let (living, run_end_or_now) = (classes.levels().len(), run_end.unwrap_or(now));
        let head = Head::open(medium.clone(), &all, living, register.clone(), run_end_or_now)?;
        let objects = Objects::open(medium.clone(), register.clone())?;
        let documents = LocalDocuments::open(medium.clone(), all, register.clone())?;
        if stored != known {
            journal.set_granularities(&stored)?;
        }
        let store = Self::new(Inner {
            granularities,
            classes,
            rules,
            audit: AuditLog::open(medium.clone())?,
            medium,
            journal,
            register,
            head,
            documents,
            objects,
            gaps: RwLock::new(gaps),
            living_series: AtomicUsize::new(dictionary.len()),
            dictionary: RwLock::new(dictionary),
            catalog: RwLock::new(catalog),
            catalog_bytes: AtomicUsize::new(0),
            journal_pending: AtomicUsize::new(0),
            class_counts: Mutex::default(),
            known_long: Mutex::default(),
            room_wanted: AtomicBool::new(false),
            checkpointing: Mutex::new(()),
            followed: Followed::default(),
            files_through: AtomicU64::new(0),
            record_time: AtomicI64::new(i64::MAX),
            erasure: Mutex::default(),
            sealing: Mutex::new(()),
            counters: Counters::default(),
            open: OpenStore::default(),
        });
        Ok(Opened { store, epochs, has_new_epoch, last_run })
    }

    /// Opens the journal. Before the new settings take effect, accepted samples of removed
    /// granularities are written to their files.
    fn open_journal(
        medium: &Arc<dyn Medium>,
        settings: &GranularitySet,
        now: UnixMillis,
    ) -> Result<(Arc<Journal>, Vec<StoredGranularity>), StoreError> {
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

    /// Replays the journal. The second result is the time of the latest sample of all records and
    /// states.
    fn recover(&self) -> Result<(RecoveryReport, Option<UnixMillis>), StoreError> {
        let inner = &*self.inner;
        let mut replay = Replay::begin(self)?;
        inner.journal.replay(replay.after(), |number, record| {
            replay.apply(self, number, record, false).map(drop)
        })?;
        inner.head.add_lost(replay.lost());
        replay.check_end(self)?;
        let mut catalog = inner.catalog.write();
        let latest = replay.latest().max(catalog.latest());
        self.forget_deleted(&mut catalog);
        let report = RecoveryReport {
            records: replay.records(),
            samples: replay.samples(),
            resumes_checkpoint: catalog.frozen().is_some(),
            last_run: None,
        };
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
}

/// Refuses a replica, whose records are in a log elsewhere.
fn refuse_replica(journal: &Journal) -> Result<(), StoreError> {
    if journal.changes_through()?.is_none() {
        return Ok(());
    }
    let problem = "it belongs to a replica, whose log is in a database: start it as a member of its \
                   cluster";
    Err(StoreError::Mismatch { file: JOURNAL_FILE.to_owned(), problem: problem.to_owned() })
}
