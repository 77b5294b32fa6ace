//! The slots that are holes because a head was lost with their cells.
//!
//! Must never know: the replay of the journal, the use of the holes.

use crate::{
    model::{AcceptedBatch, SeriesId, UnixMillis},
    store::{
        error::StoreError,
        file::holes::{Holes, stretch_key, width_of_key},
        handle::Store,
        journal::in_head::InHead,
    },
};

/// The slots, by level, whose cells were in a lost head and are skipped in a replay, because
/// the states already include their records.
#[derive(Debug)]
pub(super) struct LostCells {
    pub(super) slots: Vec<InHead>,
}

impl LostCells {
    /// Notes the slots of a batch's samples of the series whose states include them.
    pub(super) fn note(&mut self, batch: &AcceptedBatch, is_included: impl Fn(SeriesId) -> bool) {
        for InHead { key, slots } in &mut self.slots {
            let width_ms = width_of_key(*key);
            let included =
                batch.series.iter().enumerate().filter(|(_, series)| is_included(**series));
            for (index, _) in included {
                let start = UnixMillis(batch.time(index).0.div_euclid(width_ms) * width_ms);
                slots.add(start..start.plus(width_ms));
            }
        }
    }
}

impl Store {
    /// Returns an empty entry for each granularity of the head that is older than the states of the
    /// record `through`: such a head replaces a lost one.
    pub(super) fn cells_of_lost_head(&self, through: u64) -> Result<LostCells, StoreError> {
        let mut slots = Vec::new();
        let classes = &self.inner.classes;
        for (index, level) in classes.indexes().zip(classes.levels()) {
            if self.inner.head.read(index)?.through < through {
                let key = stretch_key(&level.name, level.width_ms);
                slots.push(InHead { key, slots: Holes::default() });
            }
        }
        Ok(LostCells { slots })
    }
}
