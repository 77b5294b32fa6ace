//! A start whose head, or whose journal's number of the last checkpoint, was lost: the records that
//! other files hold, and the slots that are holes from now on.
//!
//! Must never know: what is read from the journal, and what becomes of the holes.

use std::sync::Arc;

use crate::{
    model::{AcceptedBatch, SeriesId, UnixMillis},
    store::{
        documents::{Documents, local::LocalDocuments},
        error::StoreError,
        file::{holes::Holes, medium::Medium},
        handle::Store,
        head,
        journal::{
            Journal, granularities::StoredGranularity, in_head::InHead, numbers::RecordsInFiles,
            register::Register,
        },
    },
};

/// The records that the head and the partitions hold; `None` when the head does not say.
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

/// The slots of which a lost head had cells of records that states have, by slot width.
pub(super) struct LostCells {
    pub(super) slots: Vec<InHead>,
}

impl LostCells {
    /// Notes the samples of some series.
    pub(super) fn note(&mut self, batch: &AcceptedBatch, is_known: impl Fn(SeriesId) -> bool) {
        for InHead { width_ms, slots } in &mut self.slots {
            let known = batch.series.iter().enumerate().filter(|(_, series)| is_known(**series));
            for (index, _) in known {
                let start = UnixMillis(batch.time(index).0.div_euclid(*width_ms) * *width_ms);
                slots.add(start..start.plus(*width_ms));
            }
        }
    }
}

impl Store {
    /// Granularities of which the head lacks what states have by the record `through`: it was lost.
    pub(super) fn cells_of_lost_head(&self, through: u64) -> Result<LostCells, StoreError> {
        let mut slots = Vec::new();
        for (index, granularity) in self.inner.granularities.indexed() {
            if self.inner.head.read(index)?.through < through {
                slots.push(InHead { width_ms: granularity.width_ms, slots: Holes::default() });
            }
        }
        Ok(LostCells { slots })
    }
}
