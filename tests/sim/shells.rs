//! Shells survive every fault until their partition is dropped, except in gaps.

use granary::{
    model::{GranularityIndex, SeriesId, UnixMillis},
    store::{Store, StoreError},
};

use crate::history::History;

/// The maximum number of remembered preallocations, and the number of series that are checked for
/// each.
const REMEMBERED_MAX: usize = 16;
const SERIES_MAX: usize = 8;

/// The shells of one preallocation: one granularity and one document time.
#[derive(Debug, Clone)]
pub(crate) struct InsertedDocuments {
    /// The name of the granularity, which may have another index after a restart.
    level: String,
    at: UnixMillis,
    series: Vec<SeriesId>,
}

impl InsertedDocuments {
    /// Returns the granularity, or `None` if the settings no longer contain it.
    fn index(&self, store: &Store) -> Option<GranularityIndex> {
        let all = store.granularities();
        let found = all.indexed().find(|(_, granularity)| granularity.name == self.level);
        found.map(|(index, _)| index)
    }

    /// Returns the series whose shell is missing.
    fn missing(&self, store: &Store) -> Result<Vec<SeriesId>, StoreError> {
        let Some(index) = self.index(store) else { return Ok(Vec::new()) };
        if self.may_be_lost(store, index) {
            return Ok(Vec::new());
        }
        let mut missing = Vec::new();
        for id in &self.series {
            if store.sample_locations(index, *id, self.at)?.document.is_none() {
                missing.push(*id);
            }
        }
        // The partition may have been dropped since.
        Ok(if self.has_partition(store) { missing } else { Vec::new() })
    }

    /// Returns true if the partition of the shells has gaps. A document in a gap does not count as
    /// a shell, because its samples may be lost.
    fn may_be_lost(&self, store: &Store, index: GranularityIndex) -> bool {
        let gaps = &store.gaps()[index.0];
        let contains_time = |start: UnixMillis, end: UnixMillis| start <= self.at && self.at < end;
        let mut partitions = store.partitions().into_iter();
        partitions.any(|info| {
            let overlaps = gaps.complete_since > info.id.start
                || gaps.holes.iter().any(|hole| hole.start < info.end && info.id.start < hole.end);
            info.id.granularity == index && contains_time(info.id.start, info.end) && overlaps
        })
    }

    /// Returns true if the partition of the shells exists.
    fn has_partition(&self, store: &Store) -> bool {
        let Some(index) = self.index(store) else { return false };
        let contains_time = |start: UnixMillis, end: UnixMillis| start <= self.at && self.at < end;
        let mut partitions = store.partitions().into_iter();
        partitions
            .any(|info| info.id.granularity == index && contains_time(info.id.start, info.end))
    }
}

impl History {
    /// Remembers shells that were created while nothing else ran.
    pub(crate) fn remember_shells(&mut self, level: usize, at: UnixMillis) {
        let store = self.store();
        let mut series = store.dictionary().select(&[]);
        series.truncate(SERIES_MAX);
        let level = store.granularities().as_slice()[level].name.clone();
        if self.inserted.len() == REMEMBERED_MAX {
            self.inserted.remove(0);
        }
        self.inserted.push(InsertedDocuments { level, at, series });
    }

    /// Forgets shells whose partition was dropped.
    pub(crate) fn forget_dropped_shells(&mut self) {
        let store = self.store();
        self.inserted.retain(|inserted| inserted.has_partition(&store));
    }

    /// Checks that every remembered shell exists, unless files were damaged.
    pub(crate) fn check_shells(&mut self) {
        if self.is_damaged || self.open.is_none() {
            return;
        }
        let store = self.store();
        for inserted in self.inserted.clone() {
            match inserted.missing(&store) {
                Ok(missing) => {
                    assert_eq!(missing, [], "{inserted:?}");
                    self.tally.note("shells checked");
                }
                Err(cause) => self.expect_fault(&cause, "failed views"),
            }
        }
    }
}
