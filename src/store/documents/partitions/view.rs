//! A consistent view of the documents of one granularity over a range.
//!
//! Must never know: cells outside of documents.

use std::{
    ops::{ControlFlow, Range},
    sync::Arc,
};

use parking_lot::Mutex;

use super::Partitions;
use crate::{
    model::{GranularityIndex, SeriesId, UnixMillis},
    store::{
        documents::{
            DocumentsView, Slot,
            mark::Mark,
            partition::{reader::PartitionReader, rows::layout::DocumentLayout},
            segment::{Columns, Scratch},
            stored::{DocumentState, StoredDocument, StoredSlot},
        },
        error::StoreError,
        histograms::map::HistogramVisitor,
    },
};

/// Readers of the partitions that overlap a range.
pub(crate) struct PartitionsView {
    partitions: Arc<Partitions>,
    range: Range<i64>,
    /// Readers in order of time.
    readers: Vec<PartitionReader>,
    marks: Vec<(Range<i64>, Mark)>,
    /// Memory that is reused from series to series.
    scratch: Mutex<Scratch>,
}

impl PartitionsView {
    pub(crate) fn new(
        partitions: Arc<Partitions>,
        granularity: GranularityIndex,
        range: Range<i64>,
    ) -> Result<Self, StoreError> {
        let mut readers = Vec::new();
        for partition in partitions.overlapping(granularity, range.clone()) {
            readers.push(partitions.or_replace(&partition, partition.read())?);
        }
        let marks = readers.iter().map(|reader| (reader.partition.grid.range(), reader.mark));
        let marks = marks.collect();
        let scratch = Mutex::new(Scratch::with_cache(partitions.cache.clone()));
        Ok(Self { partitions, range, readers, marks, scratch })
    }
}

impl DocumentsView for PartitionsView {
    fn marks(&self) -> &[(Range<i64>, Mark)] {
        &self.marks
    }

    fn slots(
        &self,
        series: SeriesId,
        wanted: Columns,
        out: &mut Vec<Slot>,
    ) -> Result<(), StoreError> {
        let mut scratch = self.scratch.lock();
        for reader in &self.readers {
            let outcome = reader.slots(series, &self.range, wanted, &mut scratch, out);
            self.partitions.or_replace(&reader.partition, outcome)?;
        }
        Ok(())
    }

    fn histograms(
        &self,
        series: SeriesId,
        visit: &mut HistogramVisitor<'_>,
    ) -> Result<ControlFlow<()>, StoreError> {
        let mut scratch = Scratch::with_cache(self.partitions.cache.clone());
        for reader in &self.readers {
            let outcome = reader.histograms(series, &self.range, &mut scratch, visit);
            if self.partitions.or_replace(&reader.partition, outcome)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        Ok(ControlFlow::Continue(()))
    }

    fn shells(&self, series: SeriesId, out: &mut Vec<Range<UnixMillis>>) -> Result<(), StoreError> {
        for reader in &self.readers {
            let outcome = reader.shells(series, &self.range, out);
            self.partitions.or_replace(&reader.partition, outcome)?;
        }
        Ok(())
    }

    fn stored(
        &self,
        start: UnixMillis,
        series: SeriesId,
    ) -> Result<Option<StoredDocument>, StoreError> {
        let holds = |reader: &&PartitionReader| reader.partition.grid.range().contains(&start.0);
        let Some(reader) = self.readers.iter().find(holds) else { return Ok(None) };
        let width_ms = reader.partition.grid.width_ms;
        let shown = |layout: &DocumentLayout, doc: &[u8]| show(layout, doc, start, width_ms);
        let open = reader.document(start, series, shown);
        let outcome = open.and_then(|open| match open {
            // A damaged row hides the sealed document that it replaced.
            None if reader.row(start, series)?.is_none() => {
                match reader.stored_sealed(start, series)? {
                    None => reader.stored_shell(start, series, shown),
                    sealed => Ok(sealed),
                }
            }
            open => Ok(open),
        });
        self.partitions.or_replace(&reader.partition, outcome)
    }
}

/// Returns the bytes of an intact open document, with a description of its parts.
fn show(layout: &DocumentLayout, doc: &[u8], start: UnixMillis, width_ms: i64) -> StoredDocument {
    let slot = |index: usize| StoredSlot {
        start: start.plus(index as i64 * width_ms),
        cell: layout.cell(doc, index),
        parts: layout.cell_parts(doc, index),
    };
    let slots: Vec<_> = (0..layout.slots()).map(slot).collect();
    let is_shell = slots.iter().all(|slot| slot.cell.is_empty());
    let state = if is_shell { DocumentState::Shell } else { DocumentState::Open };
    StoredDocument { state, bytes: doc.to_vec(), header: layout.header_parts(doc), slots }
}
