//! A start after the loss of the journal's number of the last checkpoint: the records whose cells
//! are in other files.
//!
//! Must never know: the replay of the journal.

use std::sync::Arc;

use crate::store::{
    documents::{Documents, local::LocalDocuments},
    error::StoreError,
    file::medium::Medium,
    head,
    journal::{
        Journal, granularities::StoredGranularity, numbers::RecordsInFiles, register::Register,
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
