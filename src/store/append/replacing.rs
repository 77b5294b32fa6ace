//! Replacement of readings: a checkpoint, the plan, its row in the journal, and the added readings.
//!
//! The row contains the new cells, so a crash leaves the stored reading or the new one. Readings of
//! times without a stored one are committed as a batch afterwards; when that fails, the repeated
//! request finds the others replaced, and replaces them with the same values.
//!
//! Must never know: how files are changed.

use super::Appender;
use crate::{
    model::{AcceptedBatch, Moment, UnixMillis},
    store::{
        erasure::replace::{NewReading, ReplaceVerdict},
        error::StoreError,
    },
};

impl Appender {
    /// Replaces the stored readings of the same series and times, durably, or adds the readings
    /// where none is stored. The change of files is complete after
    /// [`crate::store::Store::complete_erasure`]. Returns one verdict per reading; `None` while a
    /// checkpoint or a snapshot is under way.
    ///
    /// # Errors
    /// When a file cannot be read or written: some readings are replaced or not, and a later
    /// checkpoint or start completes them. A repetition has the same effect as one request.
    pub fn replace(
        &mut self,
        readings: &[NewReading],
        now: impl Into<Moment>,
    ) -> Result<Option<Vec<ReplaceVerdict>>, StoreError> {
        let (store, now) = (self.store.clone(), now.into());
        let Some(no_checkpoint) = store.inner.checkpointing.try_lock() else { return Ok(None) };
        store.empty_memory(now)?;
        let plan = store.plan_replacement(readings, now.earliest())?;
        let (series, cut) = plan.changes(&store);
        if !series.is_empty() {
            let no_times = UnixMillis(0)..UnixMillis(0);
            self.write_erasure(no_times, (series, cut), now.earliest(), &no_checkpoint)?;
        }
        let mut batch = AcceptedBatch::default();
        for NewReading { series, at, value } in plan.added.into_values() {
            batch.series.push(series);
            batch.times.push(at.0);
            batch.values.push(value);
        }
        if !batch.series.is_empty() {
            self.commit(&[], &[batch], now.earliest())?;
        }
        Ok(Some(plan.verdicts))
    }
}
