//! Unused series: all of their samples were dropped, or they never had a sample.
//!
//! Must never know: when unused series are searched, and that they are forgotten.

use super::Store;
use crate::model::{SeriesId, UnixMillis};

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

impl Store {
    /// Returns at most `count` unused series; samples from `kept_since` on are still kept. A series
    /// that never had a sample is unused one to two days after its definition, because its first
    /// sample may be on its way.
    pub fn series_without_samples(
        &self,
        now: UnixMillis,
        kept_since: UnixMillis,
        count: usize,
    ) -> Vec<SeriesId> {
        let before = self.samples_since(kept_since);
        let id_count = self.dictionary().id_count() as u32;
        self.inner.known_long.lock().observe(now, id_count);
        let mut found = Vec::new();
        for first in (0..id_count).step_by(CHUNK) {
            let ids = (first..id_count.min(first + CHUNK as u32)).map(SeriesId);
            self.add_without_samples(ids, before, &mut found);
            if found.len() >= count {
                found.truncate(count);
                break;
            }
        }
        found
    }

    /// Returns the earliest time of samples that are kept or that a partition may still contain.
    pub(crate) fn samples_since(&self, kept_since: UnixMillis) -> UnixMillis {
        let partitions = self.partitions().into_iter().map(|partition| partition.id.start);
        partitions.fold(kept_since, UnixMillis::min)
    }

    /// Adds the series to `out` whose last sample is before a time, or which never had one and have
    /// been known for long.
    pub(crate) fn add_without_samples(
        &self,
        ids: impl Iterator<Item = SeriesId>,
        before: UnixMillis,
        out: &mut Vec<SeriesId>,
    ) {
        let known_long = self.inner.known_long.lock().below;
        let catalog = self.inner.catalog.read();
        let is_unused = |id: &SeriesId| {
            catalog.state(*id).is_some_and(|state| {
                if state.is_fresh() { id.0 < known_long } else { state.last_at < before }
            })
        };
        let unused: Vec<_> = ids.filter(is_unused).collect();
        drop(catalog);
        let dictionary = self.dictionary();
        let known: Vec<_> = unused.into_iter().filter(|id| dictionary.key(*id).is_some()).collect();
        let parts: Vec<_> = known.iter().map(|id| dictionary.parts(*id).to_vec()).collect();
        drop(dictionary);
        // After a change of kind, only the parts may have samples.
        let has_none = |parts: &Vec<SeriesId>| !self.have_samples_since(parts, before);
        let unused = known.into_iter().zip(&parts).filter(|(_, parts)| has_none(parts));
        out.extend(unused.map(|(id, _)| id));
    }
}
