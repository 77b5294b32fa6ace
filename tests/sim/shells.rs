//! Shells: an inserted document survives every fault until its partition is dropped, unless its
//! time is in a gap.

use granary::{
    model::{GranularityIndex, SeriesId, UnixMillis},
    store::{Store, StoreError},
};

use crate::history::History;

/// The number of insertions that are remembered, and the series of each that are looked up.
const REMEMBERED_MAX: usize = 16;
const SERIES_MAX: usize = 8;

/// Documents that were inserted, at one time of one granularity.
#[derive(Debug, Clone)]
pub(crate) struct Inserted {
    /// The name of the granularity, which may have another index after a restart.
    level: String,
    at: UnixMillis,
    series: Vec<SeriesId>,
}

impl Inserted {
    /// Returns the granularity; `None` when the settings do not contain it any more.
    fn index(&self, store: &Store) -> Option<GranularityIndex> {
        let all = store.granularities();
        let found = all.indexed().find(|(_, granularity)| granularity.name == self.level);
        found.map(|(index, _)| index)
    }

    /// Returns the series whose document is missing.
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
        // The partition may be dropped meanwhile.
        Ok(if self.has_partition(store) { missing } else { Vec::new() })
    }

    /// Returns whether the partition of the documents has gaps. A document in a gap does not count
    /// as a shell, because its samples may be lost.
    fn may_be_lost(&self, store: &Store, index: GranularityIndex) -> bool {
        let gaps = &store.gaps()[index.0];
        let holds = |start: UnixMillis, end: UnixMillis| start <= self.at && self.at < end;
        let mut partitions = store.partitions().into_iter();
        partitions.any(|info| {
            let overlaps = gaps.complete_since > info.id.start
                || gaps.holes.iter().any(|hole| hole.start < info.end && info.id.start < hole.end);
            info.id.granularity == index && holds(info.id.start, info.end) && overlaps
        })
    }

    /// Returns whether the partition of the documents exists.
    fn has_partition(&self, store: &Store) -> bool {
        let Some(index) = self.index(store) else { return false };
        let holds = |start: UnixMillis, end: UnixMillis| start <= self.at && self.at < end;
        let mut partitions = store.partitions().into_iter();
        partitions.any(|info| info.id.granularity == index && holds(info.id.start, info.end))
    }
}

impl History {
    /// Remembers documents whose insertion succeeded while nothing else ran.
    pub(crate) fn remember_shells(&mut self, level: usize, at: UnixMillis) {
        let store = self.store();
        let mut series = store.dictionary().select(&[]);
        series.truncate(SERIES_MAX);
        let level = store.granularities().as_slice()[level].name.clone();
        if self.inserted.len() == REMEMBERED_MAX {
            self.inserted.remove(0);
        }
        self.inserted.push(Inserted { level, at, series });
    }

    /// Forgets documents whose partition was dropped.
    pub(crate) fn forget_dropped_shells(&mut self) {
        let store = self.store();
        self.inserted.retain(|inserted| inserted.has_partition(&store));
    }

    /// Every remembered document exists, unless files were damaged.
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
