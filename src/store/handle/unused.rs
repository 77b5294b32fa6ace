//! Unused series: all of their samples were dropped, or they never had a sample.
//!
//! Must never know: when unused series are searched, and that they are forgotten.

use super::Store;
use crate::{
    model::{GranularityIndex, SeriesId, UnixMillis},
    store::{catalog::Catalog, classes::ClassIndex},
};

/// The number of series that are checked under one lock of the catalog.
pub(crate) const CHUNK: usize = 4096;

/// The minimum time from the definition of a series without samples until it is unused. It is long,
/// because ids are never reused, and a sender whose samples are all refused would define its series
/// again and again.
const UNUSED_MS: i64 = 86_400_000;

/// The series that were defined at least [`UNUSED_MS`] ago.
#[derive(Debug, Default)]
pub(crate) struct KnownLong {
    /// The time of the last observation.
    observed_at: Option<UnixMillis>,
    /// The number of ids at the last observation.
    observed_count: u32,
    /// The number of ids at the observation before; all of these are older than [`UNUSED_MS`].
    below: u32,
}

impl KnownLong {
    fn observe(&mut self, now: UnixMillis, id_count: u32) {
        // When the clock was set back, the wait begins again.
        let passed = self.observed_at.map(|at| now.0.saturating_sub(at.0));
        match passed {
            Some(0..UNUSED_MS) => return,
            Some(UNUSED_MS..) => self.below = self.observed_count,
            Some(_) | None => {}
        }
        (self.observed_at, self.observed_count) = (Some(now), id_count);
    }
}

/// The earliest time of samples of each class that are kept, or that a partition may still
/// contain.
pub(crate) struct KeptSince(Vec<UnixMillis>);

impl KeptSince {
    /// Returns true when no class of the series, in any of its epochs, can still have a sample up
    /// to the last one.
    fn has_none(&self, catalog: &Catalog, series: SeriesId, last_at: UnixMillis) -> bool {
        let before = |class: ClassIndex| self.0[usize::from(class.0)];
        let classes = catalog.series_classes();
        let Some(history) = classes.history_of(series) else {
            return last_at < before(ClassIndex::DEFAULT);
        };
        let mut last = last_at;
        classes.epochs_of(history).rev().all(|(from, class)| {
            let is_over = last_at < from || last < before(class);
            last = last_at.min(from.minus(1));
            is_over
        })
    }
}

impl Store {
    /// Returns at most `count` unused series. A series that never had a sample is unused one to two
    /// days after its definition, because its first sample may be on its way.
    pub fn series_without_samples(&self, now: UnixMillis, count: usize) -> Vec<SeriesId> {
        let kept_since = self.kept_since(now);
        let id_count = self.all_series().id_count() as u32;
        self.inner.known_long.lock().observe(now, id_count);
        let mut found = Vec::new();
        for first in (0..id_count).step_by(CHUNK) {
            let ids = (first..id_count.min(first + CHUNK as u32)).map(SeriesId);
            self.add_without_samples(ids, &kept_since, &mut found);
            if found.len() >= count {
                found.truncate(count);
                break;
            }
        }
        found
    }

    /// Returns the earliest times of samples at `now`. Retired granularities count for the series
    /// that no rule selects.
    pub(crate) fn kept_since(&self, now: UnixMillis) -> KeptSince {
        let classes = self.inner.classes.all();
        let class_of = |level: usize| {
            classes.iter().position(|class| class.range().contains(&level)).unwrap_or_default()
        };
        let mut since = vec![UnixMillis::LATEST; classes.len()];
        let mut add = |level: GranularityIndex, start: UnixMillis| {
            let of_class = &mut since[class_of(level.0)];
            *of_class = start.min(*of_class);
        };
        for (index, level) in self.all_granularities().iter().enumerate() {
            add(GranularityIndex(index), level.kept_since(now));
        }
        for partition in self.partitions() {
            add(partition.id.granularity, partition.id.start);
        }
        KeptSince(since)
    }

    /// Adds the series to `out` that have no sample any more, or that never had one and have been
    /// known for long.
    pub(crate) fn add_without_samples(
        &self,
        ids: impl Iterator<Item = SeriesId>,
        kept_since: &KeptSince,
        out: &mut Vec<SeriesId>,
    ) {
        let known_long = self.inner.known_long.lock().below;
        let catalog = self.inner.catalog.read();
        let has_none = |catalog: &Catalog, id: SeriesId| {
            let last = catalog.state(id).map(|state| state.last_at);
            last.is_none_or(|last_at| kept_since.has_none(catalog, id, last_at))
        };
        let is_unused = |id: &SeriesId| {
            catalog.state(*id).is_some_and(|state| {
                if state.is_fresh() { id.0 < known_long } else { has_none(&catalog, *id) }
            })
        };
        let unused: Vec<_> = ids.filter(is_unused).collect();
        drop(catalog);
        let dictionary = self.all_series();
        let known: Vec<_> = unused.into_iter().filter(|id| dictionary.key(*id).is_some()).collect();
        let parts: Vec<_> = known.iter().map(|id| dictionary.parts(*id).to_vec()).collect();
        drop(dictionary);
        // After a change of kind, only the parts may have samples.
        let catalog = self.inner.catalog.read();
        let unused = known
            .into_iter()
            .zip(&parts)
            .filter(|(_, parts)| parts.iter().all(|part| has_none(&catalog, *part)));
        out.extend(unused.map(|(id, _)| id));
    }
}
