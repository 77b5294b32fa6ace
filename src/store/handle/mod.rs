//! The store as all roles use it: its parts, and the operations that have no folder of their own.
//!
//! Must never know: when an operation is due; the callers decide.

mod audit;
mod checking;
mod class_counts;
mod classes;
mod closing;
mod counters;
mod following;
mod retention;
mod sealing;
mod shells;
mod space;
mod status;
mod unused;

pub use audit::append_audit;
use std::{
    ops::{ControlFlow, Range},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicI64, AtomicU64, AtomicUsize, Ordering},
    },
};

use parking_lot::{Mutex, RwLock, RwLockReadGuard};

use super::{
    audit::AuditLog,
    catalog::Catalog,
    classes::{Classes, series_classes::RuleBook},
    dictionary::{Dictionary, ProjectDictionary},
    documents::{Documents, local::LocalDocuments},
    error::StoreError,
    file::{medium::Medium, names::JOURNAL_FILE},
    followed::Followed,
    head::Head,
    journal::{Journal, erasure_row::Pending, register::Register},
    objects::{ListedObject, Object, ObjectKind, ObjectRefusal, Objects},
};
use crate::model::{
    Gaps, Granularity, GranularityIndex, GranularitySet, HostChanges, Moment, PartitionId,
    ProjectName, SeriesId, SeriesState, StoredHosts, UnixMillis,
};
pub use checking::CheckedFile;
pub(crate) use class_counts::ClassCounts;
pub use closing::ClosedStore;
pub(crate) use closing::OpenStore;
pub use counters::{Count, Counters};
pub use sealing::SealReport;
pub(crate) use unused::CHUNK;
use unused::KnownLong;

/// The store, shared by all roles, as one project sees it: series, senders, hosts and objects of
/// other projects do not exist. Work on the whole store ignores the project. Clones are cheap.
#[derive(Debug, Clone)]
pub struct Store {
    pub(crate) inner: Arc<Inner>,
    pub(crate) project: ProjectName,
}

/// The parts that all handles share.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) granularities: Arc<GranularitySet>,
    /// The classes of series with their levels; the first has the granularities.
    pub(crate) classes: Arc<Classes>,
    /// The rules that determine the classes of new series.
    pub(crate) rules: Arc<RuleBook>,
    pub(crate) medium: Arc<dyn Medium>,
    pub(crate) journal: Arc<Journal>,
    pub(crate) register: Arc<Register>,
    pub(crate) head: Head,
    pub(crate) documents: LocalDocuments,
    pub(crate) objects: Objects,
    pub(crate) audit: AuditLog,
    /// The gaps of each level.
    pub(crate) gaps: RwLock<Vec<Gaps>>,
    pub(crate) dictionary: RwLock<Dictionary>,
    pub(crate) catalog: RwLock<Catalog>,
    /// Bytes of cells in memory, readable without waiting for the writer.
    pub(crate) catalog_bytes: AtomicUsize,
    /// Bytes of the journal records, before compression, that no checkpoint covers yet.
    pub(crate) journal_pending: AtomicUsize,
    /// The number of series that are not deleted.
    pub(crate) living_series: AtomicUsize,
    /// The number of series of each class.
    pub(crate) class_counts: Mutex<ClassCounts>,
    /// The series that have been known for long.
    pub(super) known_long: Mutex<KnownLong>,
    /// True when batches were refused because of lacking room: a checkpoint is due.
    pub(crate) room_wanted: AtomicBool,
    /// Held during a checkpoint: one runs at a time.
    pub(crate) checkpointing: Mutex<()>,
    /// The changed documents, for a role that follows them.
    pub(crate) followed: Followed,
    /// The last record that the files contained when the store was opened. A replica may have
    /// applied fewer records since.
    pub(crate) files_through: AtomicU64,
    /// The time of the last record of a replica, Unix ms: a replica's clock deletes nothing that the
    /// records still keep. `i64::MAX` for an embedded store.
    pub(crate) record_time: AtomicI64,
    /// The erasure since the last truncation of the journal.
    pub(crate) erasure: Mutex<Pending>,
    /// Held while a partition is sealed.
    pub(crate) sealing: Mutex<()>,
    pub(crate) counters: Counters,
    /// Dropped after all files.
    pub(crate) open: OpenStore,
}

/// The latest sample of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastSample {
    /// The time of the sample.
    pub at: UnixMillis,
    /// The time at which the sender ended the series for now, if it did.
    pub ended_at: Option<UnixMillis>,
}

impl Store {
    pub(crate) fn new(inner: Inner) -> Self {
        Self { inner: Arc::new(inner), project: ProjectName::default() }
    }

    /// Returns the store as a project sees it.
    pub fn for_project(&self, project: &ProjectName) -> Self {
        Self { inner: self.inner.clone(), project: project.clone() }
    }

    /// Returns the bytes of the partitions that contain only series of the project: those of its
    /// rules of retention.
    pub fn bytes_of_project(&self) -> u64 {
        let own = self.inner.rules.classes_of(self.project.as_str());
        let levels: Vec<_> =
            own.iter().map(|class| self.inner.classes.get(*class).range()).collect();
        let is_own = |level: usize| levels.iter().any(|levels| levels.contains(&level));
        let all = self.partitions().into_iter();
        all.filter(|partition| is_own(partition.id.granularity.0)).map(|own| own.bytes).sum()
    }

    /// Returns the project of this handle.
    pub fn project(&self) -> &ProjectName {
        &self.project
    }

    /// Returns the granularities of the settings, finest first.
    pub fn granularities(&self) -> &GranularitySet {
        &self.inner.granularities
    }

    /// Returns the granularities of the settings, then the levels of other classes, then the retired
    /// granularities, which accept no samples.
    pub fn all_granularities(&self) -> &[Granularity] {
        self.inner.documents.granularities()
    }

    /// Returns a granularity by its index.
    pub fn granularity(&self, index: GranularityIndex) -> &Granularity {
        &self.all_granularities()[index.0]
    }

    /// Returns the gaps of each granularity.
    pub fn gaps(&self) -> Vec<Gaps> {
        let mut gaps = self.inner.gaps.read().clone();
        let lacks_before = self.inner.catalog.read().lacks_before().to_vec();
        for (gaps, lacks_before) in gaps.iter_mut().zip(lacks_before) {
            gaps.complete_since = gaps.complete_since.max(lacks_before);
        }
        for (index, gaps) in gaps.iter_mut().enumerate() {
            let index = GranularityIndex(index);
            gaps.holes.extend(self.inner.documents.holes(index));
            gaps.holes.extend(self.inner.head.holes(index));
        }
        gaps
    }

    /// Returns the locked dictionary of the project's series. Hold the lock only briefly, because
    /// new series wait for it.
    pub fn dictionary(&self) -> ProjectDictionary<'_, RwLockReadGuard<'_, Dictionary>> {
        ProjectDictionary::new(self.inner.dictionary.read(), &self.project)
    }

    /// Returns the locked dictionary of the series of all projects.
    pub fn all_series(&self) -> RwLockReadGuard<'_, Dictionary> {
        self.inner.dictionary.read()
    }

    /// Stores the time as that of the last run; each checkpoint does this, too.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub fn remember_time(&self, now: UnixMillis) -> Result<(), StoreError> {
        self.inner.journal.set_last_run(self.time_of_retention(now).believed)
    }

    /// Returns the time of the last record of a replica; `None` for an embedded store.
    pub(crate) fn record_time(&self) -> Option<UnixMillis> {
        let time = UnixMillis(self.inner.record_time.load(Ordering::Relaxed));
        (time < UnixMillis::LATEST).then_some(time)
    }

    /// Returns the time at which the store may end periods and delete what is beyond the retention.
    /// For a replica, this is at most the time of its last record, because a later record may extend
    /// the retention.
    pub fn time_of_retention(&self, now: impl Into<Moment>) -> Moment {
        let (now, last) = (now.into(), self.record_time().unwrap_or(UnixMillis::LATEST));
        Moment { clock: now.clock.min(last), believed: now.believed.min(last) }
    }

    /// Passes on an outcome. When a damaged head caused an error, the head is replaced, so that the
    /// next attempt uses a new one.
    pub(crate) fn or_replace_head<T>(
        &self,
        outcome: Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        if let Err(fault) = &outcome {
            self.inner.head.replace_if_damaged(fault)?;
        }
        outcome
    }

    /// Returns whether any of the series has a sample at or after a time.
    pub fn have_samples_since(&self, series: &[SeriesId], since: UnixMillis) -> bool {
        let catalog = self.inner.catalog.read();
        let is_live =
            |id: &SeriesId| catalog.state(*id).is_some_and(|state| state.last_at >= since);
        // The newest series are most likely to have such samples.
        series.iter().rev().any(is_live)
    }

    /// Returns the number of entries whose series never had a sample, or none since it was created
    /// again.
    pub fn count_of_empty_series(&self, series: &[SeriesId]) -> u64 {
        let catalog = self.inner.catalog.read();
        let is_empty = |id: &&SeriesId| catalog.state(**id).is_some_and(SeriesState::is_fresh);
        series.iter().filter(is_empty).count() as u64
    }

    /// Returns the last sample of each series; `None` for a series without samples. After a change
    /// of kind, the last sample of its parts counts until the next sample.
    pub fn last_samples(&self, series: &[SeriesId]) -> Vec<Option<LastSample>> {
        let last_in = |catalog: &Catalog, id: &SeriesId| {
            let state = catalog.state(*id).filter(|state| !state.is_fresh())?;
            Some(LastSample { at: state.last_at, ended_at: state.ended_at() })
        };
        let catalog = self.inner.catalog.read();
        let mut last: Vec<_> = series.iter().map(|id| last_in(&catalog, id)).collect();
        drop(catalog);
        if last.contains(&None) {
            // The caller may hold the dictionary.
            let dictionary = self.inner.dictionary.read_recursive();
            let without = series.iter().zip(&last).filter(|(_, last)| last.is_none());
            let parts: Vec<_> = without.map(|(id, _)| dictionary.parts(*id).to_vec()).collect();
            drop(dictionary);
            let catalog = self.inner.catalog.read();
            for (last, parts) in last.iter_mut().filter(|last| last.is_none()).zip(&parts) {
                let last_of_parts = parts.iter().filter_map(|id| last_in(&catalog, id));
                *last = last_of_parts.max_by_key(|last| last.at);
            }
        }
        last
    }

    /// Stores durably that slots of a granularity that begin before a time lack samples that the
    /// granularity did not keep: the slots may be kept again when the clock is set back.
    pub(crate) fn note_lacking(
        &self,
        index: GranularityIndex,
        before: UnixMillis,
    ) -> Result<(), StoreError> {
        let inner = &*self.inner;
        if inner.gaps.read()[index.0].complete_since < before {
            inner.journal.note_lacking(&self.granularity(index).name, before)?;
            let since = &mut inner.gaps.write()[index.0].complete_since;
            *since = before.max(*since);
        }
        Ok(())
    }

    /// Removes a partition and its file.
    ///
    /// # Errors
    /// When the file cannot be removed, or when a replica still keeps the partition.
    pub fn drop_partition(&self, id: PartitionId) -> Result<bool, StoreError> {
        if let Some(now) = self.record_time()
            && self.granularity(id.granularity).keeps_partition(id.start, now)
        {
            return Err(Self::of_all_replicas("delete samples before their retention ends"));
        }
        let range = id.start.0..id.start.0 + 1;
        if let Some(grid) = self.inner.documents.grids(id.granularity, range).pop()
            && grid.id == id
        {
            self.note_lacking(id.granularity, grid.end)?;
        }
        let dropped = self.inner.documents.drop_partition(id)?;
        self.inner.counters.partitions_dropped.add(u64::from(dropped));
        Ok(dropped)
    }

    /// Returns the error of a change that every replica must apply from a record.
    pub(crate) fn of_all_replicas(change: &str) -> StoreError {
        let problem =
            format!("a replica cannot {change} alone: the leader changes all replicas together");
        StoreError::Mismatch { file: JOURNAL_FILE.to_owned(), problem }
    }

    /// Returns an object; `None` when there is no object with this kind and name.
    ///
    /// # Errors
    /// When the object cannot be read, or is damaged.
    pub fn object(&self, kind: ObjectKind, name: &str) -> Result<Option<Object>, StoreError> {
        self.inner.objects.get(&self.project, kind, name)
    }

    /// Returns the objects of a kind, by name.
    ///
    /// # Errors
    /// When the objects cannot be read.
    pub fn objects(&self, kind: ObjectKind) -> Result<Vec<ListedObject>, StoreError> {
        self.inner.objects.list(&self.project, kind)
    }

    /// Visits the objects of a kind whose names are in a range, by name from the last to the first,
    /// until `visit` breaks; `None` stands for a damaged object.
    ///
    /// # Errors
    /// When the objects cannot be read.
    pub fn visit_objects_backwards(
        &self,
        kind: ObjectKind,
        names: Range<&str>,
        visit: &mut dyn FnMut(&str, Option<Object>) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.inner.objects.visit_backwards(&self.project, kind, names, visit)
    }

    /// Creates an object (`expected` is `None`), or changes the object that has the version
    /// `expected`, durably; returns its new version.
    ///
    /// # Errors
    /// When the file cannot be written: the change may be stored or not.
    pub fn put_object(
        &self,
        kind: ObjectKind,
        name: &str,
        expected: Option<u64>,
        bytes: &[u8],
        now: UnixMillis,
    ) -> Result<Result<u64, ObjectRefusal>, StoreError> {
        self.inner.objects.put((&self.project, kind, name), expected, bytes, now)
    }

    /// Deletes an object that has the version `expected`, durably; a damaged object has no version.
    ///
    /// # Errors
    /// When the file cannot be written: the object may be deleted or not.
    pub fn delete_object(
        &self,
        kind: ObjectKind,
        name: &str,
        expected: Option<u64>,
    ) -> Result<Result<(), ObjectRefusal>, StoreError> {
        self.inner.objects.delete(&self.project, kind, name, expected)
    }

    /// Appends the changes of objects again whose outcome is unknown, so that objects show all
    /// earlier changes.
    ///
    /// # Errors
    /// When the log fails, or this store no longer leads: the outcome stays unknown.
    pub fn settle_objects(&self) -> Result<(), StoreError> {
        self.inner.objects.settle()
    }

    /// Returns the stored hosts, without damaged ones.
    ///
    /// # Errors
    /// When the hosts cannot be read.
    pub fn hosts(&self) -> Result<StoredHosts, StoreError> {
        self.inner.objects.hosts(&self.project)
    }

    /// Stores changes of hosts durably.
    ///
    /// # Errors
    /// When the file cannot be written: the changes may be stored or not.
    pub fn keep_hosts(&self, changes: &HostChanges) -> Result<(), StoreError> {
        self.inner.objects.keep_hosts(&self.project, changes)
    }
}
