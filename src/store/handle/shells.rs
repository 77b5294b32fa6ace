//! Shells: documents that are inserted ahead of their time, for series that are live.
//!
//! Must never know: when a period begins, and for which series shells are due.

use super::Store;
use crate::{
    model::{GranularityIndex, SeriesId, UnixMillis},
    store::{
        documents::{Documents, ShellsOfSpan},
        error::StoreError,
    },
};

/// The number of series that are visited under a lock of the catalog or of the dictionary; batches
/// and new series wait meanwhile.
const SERIES_AT_ONCE: usize = 4096;

impl Store {
    /// Inserts a shell of the document that holds a time for each of the series that has no
    /// document there; returns how many are new. Series that were deleted are left out.
    ///
    /// # Errors
    /// When the partition cannot be read or written.
    pub fn preallocate(
        &self,
        index: GranularityIndex,
        at: UnixMillis,
        series: &[SeriesId],
    ) -> Result<usize, StoreError> {
        let mut living = Vec::with_capacity(series.len());
        for chunk in series.chunks(SERIES_AT_ONCE) {
            let dictionary = self.all_series();
            living.extend(chunk.iter().filter(|id| dictionary.key(**id).is_some()).copied());
        }
        if living.is_empty() {
            return Ok(0);
        }
        living.sort_unstable();
        living.dedup();
        let mut added = 0;
        for (level, series) in self.by_level(index, at, &living) {
            added += self.inner.documents.add_shells(level, at, &series)?;
        }
        self.inner.counters.shells_preallocated.add(added as u64);
        Ok(added)
    }

    /// Counts the series, ascending, that have neither a shell nor a document that holds a time, as
    /// missed shells; returns how many.
    ///
    /// # Errors
    /// When the partition cannot be read.
    pub fn note_missed_shells(
        &self,
        index: GranularityIndex,
        at: UnixMillis,
        series: &[SeriesId],
    ) -> Result<usize, StoreError> {
        let mut missed = 0;
        for (level, series) in self.by_level(index, at, series) {
            missed += self.inner.documents.count_absent(level, at, &series)?;
        }
        self.inner.counters.shells_missed.add(missed as u64);
        Ok(missed)
    }

    /// Returns the series whose latest sample is not older than `since`, ascending, without those
    /// that are deleted or that their senders ended.
    pub fn live_series(&self, since: UnixMillis) -> Vec<SeriesId> {
        let ids = self.all_series().living();
        let mut live = Vec::new();
        for chunk in ids.chunks(SERIES_AT_ONCE) {
            let catalog = self.inner.catalog.read();
            let is_live = |id: &&SeriesId| {
                let state = catalog.state(**id);
                state.is_some_and(|state| state.last_at >= since && state.ended_at().is_none())
            };
            live.extend(chunk.iter().filter(is_live).copied());
        }
        live
    }

    /// Returns the shells of the documents of a granularity that begin after a time, ascending.
    ///
    /// # Errors
    /// When a partition cannot be read.
    pub fn shells_after(
        &self,
        index: GranularityIndex,
        after: UnixMillis,
    ) -> Result<Vec<ShellsOfSpan>, StoreError> {
        self.inner.documents.shells_since(index, after.plus(1))
    }
}
