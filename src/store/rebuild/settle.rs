//! The move of all cells into documents, so that a rebuild only changes documents.
//!
//! Must never know: which cells are missing.

use crate::{
    model::{GranularityIndex, Moment, UnixMillis},
    store::{documents::Documents, error::StoreError, handle::Store},
};

/// The maximum time after now for which samples may exist, because of senders' clocks.
const AHEAD_MS: i64 = 2 * 86_400_000;

impl Store {
    /// Writes the documents of all periods, including periods that are not over, and empties the
    /// head. Later samples are merged into these documents like late samples.
    pub(super) fn settle(&self, now: UnixMillis) -> Result<(), StoreError> {
        let lengths = self.all_granularities().iter().map(|level| level.document.longest_ms());
        let ahead_ms = lengths.max().unwrap_or(0) + AHEAD_MS;
        // At the later time, all periods are over; at the earlier time, nothing expires.
        self.checkpoint(Moment { clock: now.plus(ahead_ms), believed: now })?;
        for index in (0..self.all_granularities().len()).map(GranularityIndex) {
            self.forget_absorbed(index)?;
        }
        Ok(())
    }

    /// Removes the slots of the head whose cells are in documents.
    fn forget_absorbed(&self, index: GranularityIndex) -> Result<(), StoreError> {
        let (head, documents) = (&self.inner.head, &self.inner.documents);
        let (through, slots) = {
            let reader = head.read(index)?;
            (reader.through, reader.slots(0..i64::MAX)?)
        };
        let mut absorbed = Vec::new();
        for slot in slots {
            let mark = documents.mark(&documents.grid(index, UnixMillis(slot)))?;
            if mark.has_absorbed(through, slot) {
                absorbed.push(slot);
            }
        }
        if absorbed.is_empty() {
            return Ok(());
        }
        head.write(index, through, |rows| {
            absorbed.iter().try_for_each(|slot| rows.remove_slot(*slot))
        })
    }
}
