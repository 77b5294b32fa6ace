//! The store as all roles hold it: its parts, and those of its operations that have no room of
//! their own.
//!
//! Must never know: when anything is due; its callers decide that.

mod counters;
mod sealing;
mod status;
mod unused;

use std::{
    ops::{ControlFlow, Range},
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize},
    },
};

use parking_lot::{Mutex, RwLock, RwLockReadGuard};

use super::{
    catalog::Catalog,
    dictionary::Dictionary,
    documents::{Documents, local::LocalDocuments},
    error::StoreError,
    file::medium::Medium,
    head::Head,
    journal::{Journal, register::Register},
    objects::{ListedObject, Object, ObjectKind, ObjectRefusal, Objects},
};
use crate::model::{
    Gaps, Granularity, GranularityIndex, GranularitySet, HostChanges, KeptHosts, PartitionId,
    SeriesId, SeriesState, UnixMillis,
};
pub use counters::{Count, Counters};
pub use sealing::SealReport;
pub(crate) use unused::CHUNK;
use unused::KnownLong;

/// Series that are looked at under the catalog's lock: batches wait meanwhile.
const SERIES_AT_ONCE: usize = 4096;

/// The store, shared by all roles. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Store {
    pub(crate) inner: Arc<Inner>,
}

/// The parts that all handles share.
#[derive(Debug)]
pub(crate) struct Inner {
    pub(crate) granularities: Arc<GranularitySet>,
    pub(crate) medium: Arc<dyn Medium>,
    pub(crate) journal: Arc<Journal>,
    pub(crate) register: Arc<Register>,
    pub(crate) head: Head,
    pub(crate) documents: LocalDocuments,
    pub(crate) objects: Objects,
    /// The gaps of each granularity.
    pub(crate) gaps: RwLock<Vec<Gaps>>,
    pub(crate) dictionary: RwLock<Dictionary>,
    pub(crate) catalog: RwLock<Catalog>,
    /// Bytes of cells in memory, readable without waiting for the writer.
    pub(crate) catalog_bytes: AtomicUsize,
    /// Bytes of journal records, before they were packed, that no checkpoint has taken up yet.
    pub(crate) journal_pending: AtomicUsize,
    /// Series that are not deleted.
    pub(crate) living_series: AtomicUsize,
    /// The series that have been known for long.
    pub(super) known_long: Mutex<KnownLong>,
    /// Batches were refused for want of room: a checkpoint is due.
    pub(crate) room_wanted: AtomicBool,
    /// Held through a checkpoint: there is one at a time.
    pub(crate) checkpointing: Mutex<()>,
    /// Held while a partition is sealed.
    pub(crate) sealing: Mutex<()>,
    pub(crate) counters: Counters,
}

/// The latest sample of a series.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LastSample {
    /// The time of the sample.
    pub at: UnixMillis,
    /// The time since which its sender has no more for now.
    pub ended_at: Option<UnixMillis>,
}

impl Store {
    /// The granularities of the settings, finest first.
    pub fn granularities(&self) -> &GranularitySet {
        &self.inner.granularities
    }

    /// The granularities of the settings, then the retired ones, which take no samples.
    pub fn all_granularities(&self) -> &[Granularity] {
        self.inner.documents.granularities()
    }

    /// A granularity by its index.
    pub fn granularity(&self, index: GranularityIndex) -> &Granularity {
        &self.all_granularities()[index.0]
    }

    /// The times that each granularity lacks of those that it keeps.
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

    /// The dictionary of all series. Hold it only briefly: new series wait meanwhile.
    pub fn dictionary(&self) -> RwLockReadGuard<'_, Dictionary> {
        self.inner.dictionary.read()
    }

    /// Remembers what the time is; each checkpoint does.
    ///
    /// # Errors
    /// When the journal cannot be written.
    pub fn remember_time(&self, now: UnixMillis) -> Result<(), StoreError> {
        self.inner.journal.set_last_run(now)
    }

    /// A damaged head is replaced, so that the next attempt finds a new one.
    pub(crate) fn or_replace_head<T>(
        &self,
        outcome: Result<T, StoreError>,
    ) -> Result<T, StoreError> {
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
        index: GranularityIndex,
        document: UnixMillis,
        series: &[SeriesId],
    ) -> Result<usize, StoreError> {
        let living: Vec<_> = {
            let dictionary = self.dictionary();
            series.iter().copied().filter(|id| dictionary.key(*id).is_some()).collect()
        };
        let added = self.inner.documents.add_shells(index, document, &living)?;
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
                |id: &&SeriesId| catalog.state(**id).is_some_and(|state| state.last_at >= since);
            live.extend(chunk.iter().filter(is_live).copied());
        }
        live
    }

    /// Returns whether any of the series has a sample at or after a time.
    pub fn have_samples_since(&self, series: &[SeriesId], since: UnixMillis) -> bool {
        let catalog = self.inner.catalog.read();
        let is_live =
            |id: &SeriesId| catalog.state(*id).is_some_and(|state| state.last_at >= since);
        // The newest are the likeliest.
        series.iter().rev().any(is_live)
    }

    /// The number of times that the series are named which never had a sample, or none since they
    /// were made anew.
    pub fn count_of_empty_series(&self, series: &[SeriesId]) -> u64 {
        let catalog = self.inner.catalog.read();
        let is_empty = |id: &&SeriesId| catalog.state(**id).is_some_and(SeriesState::is_fresh);
        series.iter().filter(is_empty).count() as u64
    }

    /// Returns the last sample of each series; `None` without any. After a change of kind, the last
    /// sample of the parts counts until the next sample.
    pub fn last_samples(&self, series: &[SeriesId]) -> Vec<Option<LastSample>> {
        let last_of = |catalog: &Catalog, id: &SeriesId| {
            let state = catalog.state(*id).filter(|state| !state.is_fresh())?;
            Some(LastSample { at: state.last_at, ended_at: state.ended_at() })
        };
        let catalog = self.inner.catalog.read();
        let mut last: Vec<_> = series.iter().map(|id| last_of(&catalog, id)).collect();
        drop(catalog);
        if last.contains(&None) {
            // The caller may hold the dictionary.
            let dictionary = self.inner.dictionary.read_recursive();
            let none = series.iter().zip(&last).filter(|(_, last)| last.is_none());
            let parts: Vec<_> = none.map(|(id, _)| dictionary.parts(*id).to_vec()).collect();
            drop(dictionary);
            let catalog = self.inner.catalog.read();
            for (last, parts) in last.iter_mut().filter(|last| last.is_none()).zip(&parts) {
                let of_parts = parts.iter().filter_map(|id| last_of(&catalog, id));
                *last = of_parts.max_by_key(|last| last.at);
            }
        }
        last
    }

    /// Remembers, durably, that slots of a granularity that begin before a time lack samples,
    /// because it did not keep them: the clock may be set back.
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
    /// When the file cannot be removed.
    pub fn drop_partition(&self, id: PartitionId) -> Result<bool, StoreError> {
        let range = id.start.0..id.start.0 + 1;
        if let Some(place) = self.inner.documents.places(id.granularity, range).pop()
            && place.id == id
        {
            self.note_lacking(id.granularity, place.end)?;
        }
        let dropped = self.inner.documents.drop_partition(id)?;
        self.inner.counters.partitions_dropped.add(u64::from(dropped));
        Ok(dropped)
    }

    /// An object; `None` when there is none.
    ///
    /// # Errors
    /// When it cannot be read, or is damaged.
    pub fn object(&self, kind: ObjectKind, name: &str) -> Result<Option<Object>, StoreError> {
        self.inner.objects.get(kind, name)
    }

    /// The objects of a kind, by name.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn objects(&self, kind: ObjectKind) -> Result<Vec<ListedObject>, StoreError> {
        self.inner.objects.list(kind)
    }

    /// Visits the objects of a kind whose names are in a range, by name from the last to the first,
    /// until `visit` has enough; `None` stands for a damaged one.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn visit_objects_backwards(
        &self,
        kind: ObjectKind,
        names: Range<&str>,
        visit: &mut dyn FnMut(&str, Option<Object>) -> ControlFlow<()>,
    ) -> Result<(), StoreError> {
        self.inner.objects.visit_backwards(kind, names, visit)
    }

    /// Makes an object (`expected` is `None`), or changes the one that has the version `expected`;
    /// returns its new version, durable.
    ///
    /// # Errors
    /// When the file cannot be written: the change may be there or not.
    pub fn put_object(
        &self,
        kind: ObjectKind,
        name: &str,
        expected: Option<u64>,
        bytes: &[u8],
        now: UnixMillis,
    ) -> Result<Result<u64, ObjectRefusal>, StoreError> {
        self.inner.objects.put(kind, name, expected, bytes, now)
    }

    /// Deletes an object that has the version `expected`, durably; a damaged one has none.
    ///
    /// # Errors
    /// When the file cannot be written: the object may be there or not.
    pub fn delete_object(
        &self,
        kind: ObjectKind,
        name: &str,
        expected: Option<u64>,
    ) -> Result<Result<(), ObjectRefusal>, StoreError> {
        self.inner.objects.delete(kind, name, expected)
    }

    /// The hosts as they were kept last; damaged ones are left out.
    ///
    /// # Errors
    /// When they cannot be read.
    pub fn hosts(&self) -> Result<KeptHosts, StoreError> {
        self.inner.objects.hosts()
    }

    /// Keeps what changed of hosts, durably.
    ///
    /// # Errors
    /// When the file cannot be written: the changes may be there or not.
    pub fn keep_hosts(&self, changes: &HostChanges) -> Result<(), StoreError> {
        self.inner.objects.keep_hosts(changes)
    }
}
