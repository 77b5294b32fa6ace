//! A start after the loss of the head, or of the journal's number of the last checkpoint: the
//! records whose cells are in other files, and the slots that are holes from now on.
//!
//! Must never know: the replay of the journal, the use of the holes.

use std::sync::Arc;

use crate::{
    model::{AcceptedBatch, SeriesId, UnixMillis},
    store::{
        documents::{Documents, local::LocalDocuments},
        error::StoreError,
        file::{
            holes::{Holes, stretch_key, width_of_key},
            medium::Medium,
        },
        handle::Store,
        head,
        journal::{
            Journal, granularities::StoredGranularity, in_head::InHead, numbers::RecordsInFiles,
            register::Register,
        },
    },
};

/// Returns the records whose cells are in the head and the partitions; `None` when the head cannot
/// be read.
pub(super) fn records_in_files(
    medium: &Arc<dyn Medium>,
    journal: &Arc<Journal>,
    known: &[StoredGranularity],
) -> Result<Option<RecordsInFiles>, StoreError> {
    let living = known.iter().filter(|stored| stored.retired.is_none());
    let living = living.map(|stored| stored.granularity.clone());
    let Some(heads) = head::records_of(medium, living)? else { return Ok(None) };
    let all = known.iter().map(|stored| stored.granularity.clone()).collect();
    let register = Arc::new(Register::open(medium.clone(), journal.clone())?);
    let documents = LocalDocuments::open(medium.clone(), all, register)?;
    let in_documents = documents.last_record()?.map_or(0, |(record, _)| record);
    let last = heads.iter().copied().fold(in_documents, u64::max);
    Ok(Some(RecordsInFiles { heads, last }))
}

/// The slots, by level, whose cells were in a lost head and are skipped in a replay, because
/// the states already include their records.
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
