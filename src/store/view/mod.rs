//! Views: documents merged with the cells that are not in documents yet, each sample exactly once.
//!
//! A view first copies the cells in memory, under the catalog's lock, then begins its read of the
//! head, and then of the partitions, without a lock. The copy has a number: the last journal record
//! that it includes. Cells move in one direction, from memory to the head and to documents, and the
//! number of their last record moves with them in the same transaction. Therefore a copied cell
//! counts unless the head or its documents include everything up to the copy's number, and a row of
//! the head counts unless its documents include the row. Checkpoints may begin and end meanwhile: a
//! view has all samples that were accepted before it, each once, and perhaps some later samples.
//!
//! Must never know: the use of the cells.

mod gathered;
mod kinds;

use std::{ops::Range, sync::Arc};

use super::{
    catalog::frozen::{self, Frozen},
    documents::{
        Columns, Documents, DocumentsView, PartitionInfo, Slot, merge_equal, stored::StoredDocument,
    },
    encoding::lanes::row_and_lane,
    error::StoreError,
    handle::Store,
    head::HeadReader,
};
use crate::model::{GranularityIndex, Kind, SeriesId, Span, UnixMillis};
use gathered::{BySeries, Gathered, rows};
use kinds::Parts;
pub use kinds::Stretch;

/// The maximum number of slots for which memory is reserved in advance.
const SLOTS_AT_ONCE: usize = 4096;

/// A consistent view of some series at one granularity over a range of time.
pub struct View {
    store: Store,
    index: GranularityIndex,
    range: Range<i64>,
    /// The series, ascending.
    series: Vec<SeriesId>,
    parts: Box<Parts>,
    /// The levels with the slot width of the granularity that may have cells of the series. Each
    /// sample is in one of them.
    levels: Vec<LevelView>,
}

/// A consistent view of some series at one level.
pub(crate) struct LevelView {
    store: Store,
    index: GranularityIndex,
    range: Range<i64>,
    /// The series, ascending.
    series: Vec<SeriesId>,
    /// The cells in memory that are neither in documents nor in the head.
    memory: BySeries,
    /// The cells of the head that are not in documents.
    head: BySeries,
    documents: Box<dyn DocumentsView>,
}

impl Store {
    /// Takes a consistent view. `range` is widened to whole slots of the granularity.
    ///
    /// # Errors
    /// When a partition cannot be read.
    pub fn view(
        &self,
        index: GranularityIndex,
        range: Range<UnixMillis>,
        series: &[SeriesId],
    ) -> Result<View, StoreError> {
        let (mut all, mut parts) = (series.to_vec(), Box::<Parts>::default());
        let dictionary = self.dictionary();
        if dictionary.has_parts() {
            for id in series {
                let parts_of_series = dictionary.parts(*id);
                all.extend_from_slice(parts_of_series);
                if !parts_of_series.is_empty() {
                    parts.of.insert(*id, parts_of_series.to_vec());
                }
                if dictionary.has_parts_of_another_kind(*id) {
                    let with_kind = |id: &SeriesId| Some((*id, dictionary.kind(*id)?));
                    let stretches =
                        parts_of_series.iter().chain([id]).filter_map(with_kind).collect();
                    parts.stretches.insert(*id, stretches);
                }
            }
        }
        drop(dictionary);
        Ok(View { parts, ..self.view_apart(index, range, all)? })
    }

    /// Takes a consistent view of each series without its parts, at all levels with the slot width
    /// of the granularity that may have cells of the series.
    pub(crate) fn view_apart(
        &self,
        index: GranularityIndex,
        range: Range<UnixMillis>,
        mut series: Vec<SeriesId>,
    ) -> Result<View, StoreError> {
        series.sort_unstable();
        series.dedup();
        let whole = self.whole_slots(index, &range);
        let levels = if self.has_classes() {
            let levels = self.levels_with_cells(index, &whole, &series);
            let view = |(level, series)| self.view_level(level, range.clone(), series);
            levels.into_iter().map(view).collect::<Result<_, _>>()?
        } else {
            vec![self.view_level(index, range, series.clone())?]
        };
        let (store, parts) = (self.clone(), Box::default());
        Ok(View { store, index, range: whole, series, parts, levels })
    }

    fn whole_slots(&self, index: GranularityIndex, range: &Range<UnixMillis>) -> Range<i64> {
        let granularity = self.granularity(index);
        let from = granularity.slot_start(range.start).0;
        from..(granularity.slot_start(range.end.minus(1)).0 + granularity.width_ms).max(from)
    }

    /// Returns the levels that may have cells of the series in a range, with their series. A series
    /// whose class changed within the range has several levels.
    fn levels_with_cells(
        &self,
        index: GranularityIndex,
        range: &Range<i64>,
        series: &[SeriesId],
    ) -> Vec<(GranularityIndex, Vec<SeriesId>)> {
        let catalog = self.inner.catalog.read();
        let classes = catalog.series_classes();
        let mut levels: Vec<(GranularityIndex, Vec<SeriesId>)> = Vec::new();
        for id in series {
            for class in classes.within(*id, range) {
                let Some(level) = self.level_in(index, class) else { continue };
                match levels.iter_mut().find(|(known, _)| *known == level) {
                    Some((_, ids)) if ids.last() == Some(id) => {}
                    Some((_, ids)) => ids.push(*id),
                    None => levels.push((level, vec![*id])),
                }
            }
        }
        levels
    }

    /// Takes a consistent view of one level; `series` are ascending.
    pub(crate) fn view_level(
        &self,
        index: GranularityIndex,
        range: Range<UnixMillis>,
        series: Vec<SeriesId>,
    ) -> Result<LevelView, StoreError> {
        let range = self.whole_slots(index, &range);
        let (mut memory, frozen, through) = self.copy_memory(index, &range, &series);
        // The head is read before the partitions: cells that leave the head meanwhile are then
        // found in documents.
        let head = self.or_replace_head(self.inner.head.read(index))?;
        let documents = self.inner.documents.view(index, range.clone())?;
        let mut view = LevelView {
            store: self.clone(),
            index,
            range,
            series,
            memory: BySeries::default(),
            head: BySeries::default(),
            documents,
        };
        memory.retain(|slot| head.through < through && !view.has_absorbed(through, slot));
        if let Some(frozen) = frozen.filter(|frozen| frozen.through > head.through) {
            view.take_frozen(&frozen, &mut memory);
        }
        view.memory = memory.by_series(view.series.len());
        let in_head = self.or_replace_head(view.in_head(&head))?;
        view.head = in_head.by_series(view.series.len());
        Ok(view)
    }

    /// Returns from the catalog: a copy of the active cells of the series, the frozen cells, and
    /// the last record that these cells include.
    fn copy_memory(
        &self,
        index: GranularityIndex,
        range: &Range<i64>,
        series: &[SeriesId],
    ) -> (Gathered, Option<Arc<Frozen>>, u64) {
        let catalog = self.inner.catalog.read();
        let mut active = Gathered::default();
        if index.0 >= self.inner.classes.levels().len() {
            return (active, None, catalog.applied());
        }
        catalog.active_cells(index, series, range.clone(), |place, start, cell| {
            active.push(place, start, cell);
        });
        (active, catalog.frozen().cloned(), catalog.applied())
    }
}

impl View {
    /// Returns the slots of a series that are not empty, ascending.
    ///
    /// # Errors
    /// When a document cannot be read.
    pub fn slots(&self, series: SeriesId) -> Result<Vec<Slot>, StoreError> {
        let mut slots = Vec::new();
        self.slots_into(series, Columns::ALL, &mut slots)?;
        Ok(slots)
    }

    /// Replaces `slots` with the slots of a series, as cells of its present kind. In cells of one
    /// sample or more than two, columns that are not wanted may have any value.
    ///
    /// # Errors
    /// When a document cannot be read.
    pub fn slots_into(
        &self,
        series: SeriesId,
        wanted: Columns,
        slots: &mut Vec<Slot>,
    ) -> Result<(), StoreError> {
        if let Some(stretches) = self.stretches(series) {
            let kind = stretches.last().map_or(Kind::Gauge, |(_, kind)| *kind);
            return self.slots_as(series, kind, slots);
        }
        let Some(parts) = self.parts.of.get(&series) else {
            return self.slots_apart(series, wanted, slots);
        };
        self.slots_apart(series, Columns::ALL, slots)?;
        let mut of_part = Vec::new();
        for part in parts {
            self.slots_apart(*part, Columns::ALL, &mut of_part)?;
            slots.append(&mut of_part);
        }
        merge_equal(slots);
        slots.retain(|slot| !slot.cell.is_empty());
        Ok(())
    }

    /// Returns the document spans of a series that were preallocated and have no samples,
    /// ascending. `slots` are the slots of the series, see [`Self::slots_into`]; only spans that
    /// lie whole in the range of the view are returned.
    ///
    /// # Errors
    /// When a partition cannot be read.
    pub fn shells(
        &self,
        series: SeriesId,
        slots: &[Slot],
    ) -> Result<Vec<Range<UnixMillis>>, StoreError> {
        let mut spans = Vec::new();
        for level in &self.levels {
            level.shells(series, &mut spans)?;
            for part in self.parts.of.get(&series).into_iter().flatten() {
                level.shells(*part, &mut spans)?;
            }
        }
        spans.sort_unstable_by_key(|span| span.start);
        spans.dedup();
        spans.retain(|span| {
            let first = slots.partition_point(|slot| slot.start < span.start);
            let has_samples = slots.get(first).is_some_and(|slot| slot.start < span.end);
            !has_samples && self.range.start <= span.start.0 && span.end.0 <= self.range.end
        });
        Ok(spans)
    }

    /// Replaces `slots` with the slots of a series without its parts.
    fn slots_apart(
        &self,
        series: SeriesId,
        wanted: Columns,
        slots: &mut Vec<Slot>,
    ) -> Result<(), StoreError> {
        if let [level] = &*self.levels {
            return level.slots_into(series, wanted, slots);
        }
        slots.clear();
        let mut of_level = Vec::new();
        for level in self.levels.iter().filter(|level| level.series.binary_search(&series).is_ok())
        {
            // Cells of several levels merge, which needs all columns.
            level.slots_into(series, Columns::ALL, &mut of_level)?;
            slots.append(&mut of_level);
        }
        merge_equal(slots);
        slots.retain(|slot| !slot.cell.is_empty());
        Ok(())
    }
}

impl LevelView {
    /// Adds the document spans of a series that were preallocated at this level. A document whose
    /// samples may be lost, or are only at coarser levels, is not a shell.
    fn shells(&self, series: SeriesId, out: &mut Vec<Range<UnixMillis>>) -> Result<(), StoreError> {
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

    /// Replaces `slots` with the slots of a series at this level, see [`View::slots_into`].
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
        let in_documents = slots.len();
        if let Ok(place) = self.series.binary_search(&series) {
            let (head, memory) = (self.head.of(place), self.memory.of(place));
            let last = slots.last().map(|slot| slot.start);
            let is_late = |slot: &Slot| last.is_some_and(|last| slot.start <= last);
            if wanted != Columns::ALL && head.iter().chain(memory).any(is_late) {
                // Two cells of one sample each merge into a cell of two, which needs all columns.
                slots.clear();
                self.documents.slots(series, Columns::ALL, slots)?;
            }
            // Most of these slots are newer than all slots in documents; late slots are sorted
            // below.
            slots.extend_from_slice(head);
            slots.extend_from_slice(memory);
        }
        if slots.len() > in_documents {
            merge_equal(slots);
            slots.retain(|slot| !slot.cell.is_empty());
        }
        Ok(())
    }

    /// Adds the frozen cells that documents do not have.
    fn take_frozen(&self, frozen: &Frozen, out: &mut Gathered) {
        let (classes, range) = (&self.store.inner.classes, self.range.clone());
        let (index, series) = (self.index, &self.series);
        frozen::cells(&frozen.maps, classes, index, series, range, |place, at, cell| {
            if !self.has_absorbed(frozen.through, at) {
                out.push(place, at, cell);
            }
        });
    }

    /// Returns the cells of the head that are not in documents.
    fn in_head(&self, head: &HeadReader) -> Result<Gathered, StoreError> {
        let mut found = Gathered::default();
        let slots = head.slots(self.range.clone())?;
        found.reserve(slots.len().saturating_mul(self.series.len()));
        for slot in slots {
            if self.has_absorbed(head.through, slot) {
                continue;
            }
            let slot_rows = head.slot(slot);
            for (row, series, from) in rows(&self.series) {
                let wanted = series.iter().fold(0, |all, id| all | 1_u64 << row_and_lane(*id).1);
                slot_rows.row(row, |cells| {
                    // The row is verified, so all wanted cells are readable.
                    let _all = cells.cells(wanted, |lane, cell| {
                        let before = wanted & ((1 << lane) - 1);
                        found.push(from + before.count_ones() as usize, slot, cell);
                    });
                })?;
            }
        }
        Ok(found)
    }

    /// Returns true when documents already contain the cells of a slot up to a record, see
    /// [`Mark::has_absorbed`].
    fn has_absorbed(&self, through: u64, slot: i64) -> bool {
        let marks = self.documents.marks();
        let next = marks.partition_point(|(range, _)| range.start <= slot);
        let holder = next.checked_sub(1).and_then(|index| marks.get(index));
        holder.is_some_and(|(range, mark)| slot < range.end && mark.has_absorbed(through, slot))
    }
}

/// The places of the cells of a series that belong to one document.
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
    /// Returns the places of the cells of a series that belong to the document of a time, each
    /// sample in one place, as of one moment.
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
        let place = documents.place(index, at);
        let start = place.document_start(at);
        let range = start..place.next_document(start);
        let view = self.view_level(index, range.clone(), vec![series])?;
        let document = view.documents.stored(start, series)?;
        let (mut memory, mut head) = (view.memory.of(0).to_vec(), view.head.of(0).to_vec());
        merge_equal(&mut memory);
        merge_equal(&mut head);
        let partitions = documents.partitions();
        let partition = partitions.into_iter().find(|partition| partition.id == place.id);
        Ok(SampleLocations { range, span: place.document, partition, document, head, memory })
    }
}
