//! Series whose samples are all dropped, and those that never had one.
//!
//! Must never know: when they are looked for, and what becomes of them.

use super::Store;
use crate::model::{SeriesId, UnixMillis};

/// Series looked at in one hold of the catalog's lock.
pub(crate) const CHUNK: usize = 4096;

/// A series without a sample for this long since its definition is forgotten; the series found at
/// the second of two looks existed at the first. Ids are not given again, and a sender whose
/// samples are all refused defines its series again: so this is long.
const UNUSED_MS: i64 = 86_400_000;

/// The ids that have been known for long.
#[derive(Debug, Default)]
pub(crate) struct KnownLong {
    looked_at: Option<UnixMillis>,
    /// Ids that were given then.
    seen: u32,
    /// Ids below were given long ago.
    below: u32,
}

impl KnownLong {
    fn look(&mut self, now: UnixMillis, id_count: u32) {
        // After a step back of the clock the time begins anew.
        let passed = self.looked_at.map(|at| now.0.saturating_sub(at.0));
        match passed {
            Some(0..UNUSED_MS) => return,
            Some(UNUSED_MS..) => self.below = self.seen,
            Some(_) | None => {}
        }
        (self.looked_at, self.seen) = (Some(now), id_count);
    }
}

impl Store {
    /// Series of which no sample is left anywhere, at most `count`; samples from `kept_since` on
    /// have a living partition. Those that never had one are among them a day after they were first
    /// seen here, or two, by `now`: theirs may be on its way.
    pub fn series_without_samples(
        &self,
        now: UnixMillis,
        kept_since: UnixMillis,
        count: usize,
    ) -> Vec<SeriesId> {
        let before = self.samples_since(kept_since);
        let id_count = self.dictionary().id_count() as u32;
        self.inner.known_long.lock().look(now, id_count);
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

    /// The earliest time of samples that some partition may still hold, or that are kept.
    pub(crate) fn samples_since(&self, kept_since: UnixMillis) -> UnixMillis {
        let partitions = self.partitions().into_iter().map(|partition| partition.id.start);
        partitions.fold(kept_since, UnixMillis::min)
    }

    /// Adds those of some series that have their last sample before a time, or none for long.
    pub(crate) fn add_without_samples(
        &self,
        ids: impl Iterator<Item = SeriesId>,
        before: UnixMillis,
        out: &mut Vec<SeriesId>,
    ) {
        let known_long = self.inner.known_long.lock().below;
        let catalog = self.inner.catalog.read();
        let is_over = |id: &SeriesId| {
            catalog.state(*id).is_some_and(|state| {
                if state.is_fresh() { id.0 < known_long } else { state.last_at < before }
            })
        };
        let over: Vec<_> = ids.filter(is_over).collect();
        drop(catalog);
        let dictionary = self.dictionary();
        let known: Vec<_> = over.into_iter().filter(|id| dictionary.key(*id).is_some()).collect();
        let parts: Vec<_> = known.iter().map(|id| dictionary.parts(*id).to_vec()).collect();
        drop(dictionary);
        // After a change of kind, only the parts may have samples.
        let has_none = |parts: &Vec<SeriesId>| !self.have_samples_since(parts, before);
        let over = known.into_iter().zip(&parts).filter(|(_, parts)| has_none(parts));
        out.extend(over.map(|(id, _)| id));
    }
}
