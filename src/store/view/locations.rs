//! The locations of the cells of one document: memory, the head, and documents.
//!
//! Must never know: the use of the locations.

use std::ops::Range;

use crate::{
    model::{GranularityIndex, SeriesId, Span, UnixMillis},
    store::{
        documents::{Documents, PartitionInfo, Slot, merge_equal, stored::StoredDocument},
        error::StoreError,
        handle::Store,
    },
};

/// The locations of the cells of a series that belong to one document.
#[derive(Debug, Clone, PartialEq)]
pub struct SampleLocations {
    /// The time that the document covers, or would cover if it existed.
    pub range: Range<UnixMillis>,
    /// The length of the document.
    pub span: Span,
    /// The partition, if it exists.
    pub partition: Option<PartitionInfo>,
    /// The document, if it exists.
    pub document: Option<StoredDocument>,
    /// The cells that are only in the head, ascending.
    pub head: Vec<Slot>,
    /// The cells that are only in memory and in the journal, ascending.
    pub memory: Vec<Slot>,
}

impl Store {
    /// Returns the locations of a series' cells that belong to the document of a time, as of one
    /// moment. Each sample is in one location.
    ///
    /// # Errors
    /// When the document, or the head, cannot be read.
    pub fn sample_locations(
        &self,
        index: GranularityIndex,
        series: SeriesId,
        at: UnixMillis,
    ) -> Result<SampleLocations, StoreError> {
        let documents = &self.inner.documents;
        let index = self.level_of(index, series, at).unwrap_or(index);
        let grid = documents.grid(index, at);
        let start = grid.document_start(at);
        let range = start..grid.next_document(start);
        let view = self.view_level(index, range.clone(), vec![series])?;
        let document = view.documents.stored(start, series)?;
        let (mut memory, mut head) = (view.memory.of(0).to_vec(), view.head.of(0).to_vec());
        merge_equal(&mut memory);
        merge_equal(&mut head);
        let partitions = documents.partitions();
        let partition = partitions.into_iter().find(|partition| partition.id == grid.id);
        Ok(SampleLocations { range, span: grid.document, partition, document, head, memory })
    }
}
