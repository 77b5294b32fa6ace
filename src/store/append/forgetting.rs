//! Deletion of series without samples: in the journal first, then in the dictionary.
//!
//! Must never know: who proposes the series, and when.

use super::Appender;
use crate::{
    model::{AcceptedBatch, SeriesId, UnixMillis},
    store::{
        dictionary::changes::SeriesUpdate, error::StoreError, handle::CHUNK,
        journal::record::Record,
    },
};

impl Appender {
    /// Forgets, durably, the series among `series` (ascending) that have no sample left; returns
    /// their number. A later sample with the key of a forgotten series begins a new series.
    ///
    /// # Errors
    /// When the journal cannot be written; nothing has changed then.
    pub fn forget_series(
        &mut self,
        series: &[SeriesId],
        now: UnixMillis,
    ) -> Result<usize, StoreError> {
        let kept_since = self.store.kept_since(now);
        let mut gone = Vec::new();
        for series in series.chunks(CHUNK) {
            self.store.add_without_samples(series.iter().copied(), &kept_since, &mut gone);
        }
        if gone.is_empty() {
            return Ok(0);
        }
        let updates = gone.iter().copied().map(SeriesUpdate::delete).collect();
        let (forgotten, now) = (gone.clone(), self.time_of_record(now));
        self.write(Record { updates, forgotten, ..Record::of_changes(now) }, None)?;
        self.store.inner.counters.series_forgotten.add(gone.len() as u64);
        for id in &gone {
            self.forgotten.add(*id);
        }
        Ok(gone.len())
    }

    /// Returns whether a batch names a series that was forgotten after the batch was resolved. Its
    /// samples would be lost, so the sender must send the batch again.
    pub fn names_forgotten(&self, batches: &[AcceptedBatch]) -> bool {
        let is_forgotten = |id: &SeriesId| self.forgotten.has(*id);
        !self.forgotten.is_empty()
            && batches.iter().any(|batch| batch.series.iter().any(is_forgotten))
    }
}
