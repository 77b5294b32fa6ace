//! The view of several series at one level: the cells in memory and in the head that are in no
//! document, and the documents.
//!
//! Must never know: parts of series, other levels.

use std::{
    ops::{ControlFlow, Range},
    sync::Arc,
};

use super::{
    SLOTS_AT_ONCE,
    gathered::{BySeries, Gathered},
    head_cells::HeadCells,
};
use crate::{
    model::{GranularityIndex, SeriesId, UnixMillis},
    store::{
        catalog::frozen::{self, Frozen},
        documents::{Columns, Documents, DocumentsView, Slot, merge_equal},
        error::StoreError,
        handle::Store,
        head::HeadReader,
        histograms::map::{HistogramVisitor, HistogramsOfLevel, merge_into},
    },
};

/// A consistent view of several series at one level.
pub(crate) struct LevelView {
    pub(super) store: Store,
    pub(super) index: GranularityIndex,
    pub(super) range: Range<i64>,
    /// The series, ascending.
    pub(super) series: Vec<SeriesId>,
    /// The cells in memory that are neither in documents nor in the head.
    pub(super) memory: BySeries,
    /// The cells of the head that are not in documents.
    pub(super) head: HeadCells,
    pub(super) documents: Box<dyn DocumentsView>,
    /// The histograms in memory that are neither in documents nor in the head.
    pub(super) histograms: HistogramsOfLevel,
    /// The head, if it has histograms.
    pub(super) head_reader: Option<HeadReader>,
}

impl Store {
    /// Takes a consistent view of one level; `series` are ascending.
    pub(crate) fn view_level(
        &self,
        index: GranularityIndex,
        range: Range<UnixMillis>,
        series: Vec<SeriesId>,
    ) -> Result<LevelView, StoreError> {
        let range = self.whole_slots(index, &range);
        let MemoryCopy { cells: mut memory, mut histograms, frozen, through } =
            self.copy_memory(index, &range, &series);
        // The head is read before the partitions, so that cells that leave the head in the meantime
        // are found in documents.
        let head = self.or_replace_head(self.inner.head.read(index))?;
        let documents = self.inner.documents.view(index, range.clone())?;
        let mut view = LevelView {
            store: self.clone(),
            index,
            range,
            series,
            memory: BySeries::default(),
            head: HeadCells::Rows(BySeries::default()),
            documents,
            histograms: HistogramsOfLevel::new(),
            head_reader: None,
        };
        memory.retain(|slot| head.through < through && !view.has_absorbed(through, slot));
        if let Some(frozen) = frozen.filter(|frozen| frozen.through > head.through) {
            view.take_frozen(&frozen, &mut memory);
            view.take_frozen_histograms(&frozen);
        }
        histograms
            .retain(|(_, slot), _| head.through < through && !view.has_absorbed(through, *slot));
        for (key, cell) in histograms {
            merge_into(&mut view.histograms, key, cell);
        }
        view.memory = memory.by_series(view.series.len());
        view.head = self.or_replace_head(view.read_head(&head))?;
        view.head_reader = head.has_histograms.then_some(head);
        Ok(view)
    }

    /// Copies the active cells of the series from the catalog. Returns them with the frozen cells
    /// and the last record that both include.
    fn copy_memory(
        &self,
        index: GranularityIndex,
        range: &Range<i64>,
        series: &[SeriesId],
    ) -> MemoryCopy {
        let catalog = self.inner.catalog.read();
        let (mut cells, mut histograms) = (Gathered::default(), HistogramsOfLevel::new());
        let through = catalog.applied();
        if index.0 >= self.inner.classes.levels().len() {
            return MemoryCopy { cells, histograms, frozen: None, through };
        }
        catalog.active_cells(index, series, range.clone(), |position, start, cell| {
            cells.push(position, start, cell);
        });
        let classes = &self.inner.classes;
        if !catalog.histograms().is_empty() {
            for id in series {
                catalog.histograms().copy_into(classes, index, (*id, range), &mut histograms);
            }
        }
        MemoryCopy { cells, histograms, frozen: catalog.frozen().cloned(), through }
    }
}

/// The cells in memory at one moment.
struct MemoryCopy {
    cells: Gathered,
    histograms: HistogramsOfLevel,
    frozen: Option<Arc<Frozen>>,
    /// The last record that the cells include.
    through: u64,
}

impl LevelView {
    /// Returns the cells of the head that are not in documents.
    fn read_head(&self, head: &HeadReader) -> Result<HeadCells, StoreError> {
        let mut slots = head.slots(self.range.clone())?;
        slots.retain(|slot| !self.has_absorbed(head.through, *slot));
        HeadCells::read(head, &self.series, &slots)
    }

    /// Passes the histograms of a series at this level to `visit`, until it breaks. A slot may have
    /// several cells.
    pub(crate) fn each_histogram(
        &self,
        series: SeriesId,
        visit: &mut HistogramVisitor<'_>,
    ) -> Result<ControlFlow<()>, StoreError> {
        if self.documents.histograms(series, visit)?.is_break() {
            return Ok(ControlFlow::Break(()));
        }
        if let Some(head) = &self.head_reader {
            let mut slots = head.histogram_slots(self.range.clone())?;
            slots.retain(|slot| !self.has_absorbed(head.through, *slot));
            if head.histograms_of(series, &slots, visit)?.is_break() {
                return Ok(ControlFlow::Break(()));
            }
        }
        let mut in_memory = self.histograms.range((series, i64::MIN)..=(series, i64::MAX));
        Ok(in_memory.try_for_each(|((_, slot), cell)| visit(*slot, cell.clone())))
    }

    /// Adds the frozen histograms that documents do not have.
    fn take_frozen_histograms(&mut self, frozen: &Frozen) {
        if frozen.histograms.is_empty() {
            return;
        }
        let (classes, mut found) = (&self.store.inner.classes, HistogramsOfLevel::new());
        for id in &self.series {
            frozen.histograms.copy_into(classes, self.index, (*id, &self.range), &mut found);
        }
        found.retain(|(_, slot), _| !self.has_absorbed(frozen.through, *slot));
        self.histograms = found;
    }

    /// Adds the document spans of a series that were preallocated at this level. A document whose
    /// samples may be lost, or are only at coarser levels, is not a shell.
    pub(super) fn shells(
        &self,
        series: SeriesId,
        out: &mut Vec<Range<UnixMillis>>,
    ) -> Result<(), StoreError> {
        let mut spans = Vec::new();
        self.documents.shells(series, &mut spans)?;
        let all_gaps = if spans.is_empty() { Vec::new() } else { self.store.gaps() };
        if let Some(gaps) = all_gaps.get(self.index.0) {
            let overlaps = |hole: &Range<UnixMillis>, span: &Range<UnixMillis>| {
                hole.start < span.end && span.start < hole.end
            };
            spans.retain(|span| {
                gaps.complete_since <= span.start
                    && !gaps.holes.iter().any(|hole| overlaps(hole, span))
            });
        }
        out.append(&mut spans);
        Ok(())
    }

    /// Replaces `slots` with the slots of a series at this level; see [`View::slots_into`].
    pub(crate) fn slots_into(
        &self,
        series: SeriesId,
        wanted: Columns,
        slots: &mut Vec<Slot>,
    ) -> Result<(), StoreError> {
        slots.clear();
        let width = self.store.granularity(self.index).width_ms;
        let longest = ((self.range.end - self.range.start) / width) as usize;
        slots.reserve(longest.min(SLOTS_AT_ONCE));
        self.documents.slots(series, wanted, slots)?;
        let (in_documents, mut has_empty) = (slots.len(), false);
        if let Ok(position) = self.series.binary_search(&series) {
            let (head, memory) = (self.head.of(position), self.memory.of(position));
            let last = slots.last().map(|slot| slot.start);
            let is_late = |slot: &Slot| last.is_some_and(|last| slot.start <= last);
            let merged = wanted.and(Columns::VALUES);
            if wanted != merged && head.iter().chain(memory).any(is_late) {
                // Two cells of one sample are merged into a cell of two samples, which needs all
                // columns of values.
                slots.clear();
                self.documents.slots(series, merged, slots)?;
            }
            // Most of these slots are newer than all slots in documents; late slots are sorted
            // below.
            slots.extend_from_slice(head);
            slots.extend_from_slice(memory);
            // Corrections can cancel each other.
            has_empty = memory.iter().any(|slot| slot.cell.is_empty());
        }
        // Usually each slot has one cell.
        let is_merged = |slots: &[Slot]| slots.is_sorted_by(|slot, next| slot.start < next.start);
        if slots.len() > in_documents && (has_empty || !is_merged(slots)) {
            merge_equal(slots);
            slots.retain(|slot| !slot.cell.is_empty());
        }
        Ok(())
    }

    /// Adds the frozen cells that documents do not have.
    fn take_frozen(&self, frozen: &Frozen, out: &mut Gathered) {
        let (classes, range) = (&self.store.inner.classes, self.range.clone());
        let (index, series) = (self.index, &self.series);
        frozen::cells(&frozen.maps, classes, index, series, range, |position, at, cell| {
            if !self.has_absorbed(frozen.through, at) {
                out.push(position, at, cell);
            }
        });
    }

    /// Returns true when documents already contain the cells of a slot up to a record; see
    /// [`Mark::has_absorbed`].
    pub(super) fn has_absorbed(&self, through: u64, slot: i64) -> bool {
        let marks = self.documents.marks();
        let next = marks.partition_point(|(range, _)| range.start <= slot);
        let holder = next.checked_sub(1).and_then(|index| marks.get(index));
        holder.is_some_and(|(range, mark)| slot < range.end && mark.has_absorbed(through, slot))
    }
}
