//! Series whose samples are all dropped leave the dictionary, and those that never had one.
//!
//! Must never know: when that is looked for.

use std::sync::atomic::Ordering;

use super::{Appender, Store, dictionary::changes::SeriesUpdate, error::StoreError};
use crate::model::{AcceptedBatch, SeriesId, UnixMillis};

/// Series looked at in one hold of the catalog's lock.
const CHUNK: usize = 4096;

/// A series of which there was no sample for so long since it was made known is forgotten; what is
/// found at the second of two looks was there at the first. Ids are not given again, and a sender whose
/// samples are all refused makes its series known again: so it is long.
const UNUSED_MS: i64 = 86_400_000;

/// Which series have been known for long.
#[derive(Debug, Default)]
pub(super) struct KnownLong {
    looked_at: Option<UnixMillis>,
    /// Ids that were given then.
    seen: u32,
    /// Those below were given long ago.
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

/// The series that were forgotten since the start, a bit each: batches that were resolved before may
/// still name them.
#[derive(Debug, Default)]
pub(super) struct Forgotten(Vec<u64>);

impl Forgotten {
    fn place(id: SeriesId) -> (usize, u64) {
        (id.0 as usize / u64::BITS as usize, 1 << (id.0 % u64::BITS))
    }

    fn add(&mut self, id: SeriesId) {
        let (word, bit) = Self::place(id);
        if word >= self.0.len() {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= bit;
    }

    fn has(&self, id: SeriesId) -> bool {
        let (word, bit) = Self::place(id);
        self.0.get(word).is_some_and(|bits| bits & bit > 0)
    }
}

impl Store {
    /// Series of which no sample is left anywhere, at most `count`; samples from `kept_since` on have
    /// a living partition. Those that never had one are among them a day after they were first
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

    /// Since when samples may still be in some partition, or are kept.
    fn samples_since(&self, kept_since: UnixMillis) -> UnixMillis {
        let partitions = self.partitions().into_iter().map(|own| own.id.start);
        partitions.fold(kept_since, UnixMillis::min)
    }

    /// Adds those of some series that have their last sample before a time, or none for long.
    fn add_without_samples(
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
        out.extend(over.into_iter().filter(|id| dictionary.key(*id).is_some()));
    }
}

impl Appender {
    /// Forgets those of some series, ascending, of which no sample is left, durably; returns how many
    /// there were. A sample of the same key begins a new series.
    ///
    /// # Errors
    /// When the journal cannot be written; nothing has changed then.
    pub fn forget_series(
        &mut self,
        series: &[SeriesId],
        kept_since: UnixMillis,
    ) -> Result<usize, StoreError> {
        let before = self.store.samples_since(kept_since);
        let mut gone = Vec::new();
        for series in series.chunks(CHUNK) {
            self.store.add_without_samples(series.iter().copied(), before, &mut gone);
        }
        if gone.is_empty() {
            return Ok(0);
        }
        let updates: Vec<_> = gone.iter().copied().map(SeriesUpdate::delete).collect();
        self.write_updates(&updates)?;
        self.store.inner.catalog.write().forget(&gone);
        self.store.inner.counters.series_forgotten.add(gone.len() as u64);
        for id in &gone {
            self.forgotten.add(*id);
        }
        Ok(gone.len())
    }

    /// Whether a batch names a series that was forgotten: it was resolved before, and its samples
    /// would vanish. Its sender is to send it again.
    pub fn names_forgotten(&self, batches: &[AcceptedBatch]) -> bool {
        let is_forgotten = |id: &SeriesId| self.forgotten.has(*id);
        !self.forgotten.0.is_empty()
            && batches.iter().any(|batch| batch.series.iter().any(is_forgotten))
    }

    /// Makes changes of known series durable, then makes them.
    pub(super) fn write_updates(&self, updates: &[SeriesUpdate]) -> Result<(), StoreError> {
        let inner = &*self.store.inner;
        let series_count = inner.dictionary.read().id_count() as u32;
        inner.journal.change_series(series_count, updates)?;
        let mut dictionary = inner.dictionary.write();
        dictionary.update(updates);
        inner.living_series.store(dictionary.len(), Ordering::Relaxed);
        Ok(())
    }
}
