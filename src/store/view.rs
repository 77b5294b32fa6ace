//! Reading: documents merged with what is not yet in them, each sample exactly once.
//!
//! A view copies what is in memory first, under the catalog's lock for a moment, then begins its
//! read of the head, then those of the partitions, without any lock. What it copied has a number:
//! everything up to a journal record. Cells move one way, from memory to the head and to documents,
//! and with them moves the number of the last record that is there, in the same transaction. So a
//! copied cell counts unless the head or its documents say that they have everything up to its
//! number, and a row of the head counts unless its documents do. Checkpoints may begin and end
//! meanwhile: a view has all that was accepted before it, each sample once, and perhaps some of
//! what came since.
//!
//! Must never know: what is asked of the cells.

use std::{
    collections::{BTreeMap, HashMap},
    ops::Range,
    sync::Arc,
};

use foldhash::fast::FixedState;

use super::{
    catalog::frozen::{self, Frozen},
    documents::{Documents, DocumentsView, PartitionInfo, Slot, stored::StoredDocument},
    error::StoreError,
    handle::Store,
    head::HeadReader,
    rows::row_and_lane,
};
use crate::model::{GranularityIndex, SeriesId, Span, UnixMillis};

/// Slots that room is made for before any is read.
const SLOTS_AT_ONCE: usize = 4096;

/// A consistent view of some series at one granularity over a range of time.
pub struct View {
    store: Store,
    index: GranularityIndex,
    range: Range<i64>,
    frozen: Option<Arc<Frozen>>,
    /// The active cells that are in no document, and neither in the head.
    active: Cells,
    /// The head's cells that are in no document.
    head: Cells,
    documents: Box<dyn DocumentsView>,
}

/// Cells by series, a slot perhaps several times.
type Cells = HashMap<SeriesId, Vec<Slot>, FixedState>;

/// Series by the row of the head that holds them.
type Rows = BTreeMap<u32, Vec<(usize, SeriesId)>>;

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
        let granularity = self.granularity(index);
        let width = granularity.width_ms;
        let from = granularity.slot_start(range.start).0;
        let range = from..(granularity.slot_start(range.end.minus(1)).0 + width).max(from);
        let (active, frozen, through) = self.copy_memory(index, &range, series);
        // Before the partitions: what leaves the head is in documents by then.
        let head = self.or_replace_head(self.inner.head.read(index))?;
        let frozen = frozen.filter(|frozen| frozen.through > head.through);
        let documents = self.inner.documents.view(index, range.clone())?;
        let mut rows = Rows::new();
        for id in series {
            let (row, lane) = row_and_lane(*id);
            rows.entry(row).or_default().push((lane, *id));
        }
        let active = if head.through < through { active } else { Cells::default() };
        let (store, rows_of_head) = (self.clone(), Cells::default());
        let mut view = View { store, index, range, frozen, active, head: rows_of_head, documents };
        view.drop_absorbed(through);
        self.or_replace_head(view.take_head(&head, &rows))?;
        Ok(view)
    }

    /// What the catalog holds: the active cells of series, the frozen ones, and the last record that
    /// is in them.
    fn copy_memory(
        &self,
        index: GranularityIndex,
        range: &Range<i64>,
        series: &[SeriesId],
    ) -> (Cells, Option<Arc<Frozen>>, u64) {
        let catalog = self.inner.catalog.read();
        let mut active = Cells::default();
        if index > self.granularities().coarsest() {
            return (active, None, catalog.applied());
        }
        for id in series {
            catalog.active_cells(index, *id, range.clone(), |start, cell| {
                let start = UnixMillis(start);
                active.entry(*id).or_default().push(Slot { start, cell });
            });
        }
        (active, catalog.frozen().cloned(), catalog.applied())
    }
}

impl View {
    /// The slots of a series that hold samples, ascending.
    ///
    /// # Errors
    /// When a document cannot be read.
    pub fn slots(&self, series: SeriesId) -> Result<Vec<Slot>, StoreError> {
        let mut slots = Vec::new();
        self.slots_into(series, &mut slots)?;
        Ok(slots)
    }

    /// The same, in place of what is in `slots`.
    ///
    /// # Errors
    /// When a document cannot be read.
    pub fn slots_into(&self, series: SeriesId, slots: &mut Vec<Slot>) -> Result<(), StoreError> {
        slots.clear();
        let width = self.store.granularity(self.index).width_ms;
        let longest = ((self.range.end - self.range.start) / width) as usize;
        slots.reserve(longest.min(SLOTS_AT_ONCE));
        self.documents.slots(series, slots)?;
        let in_documents = slots.len();
        self.in_memory(series, slots);
        slots.extend_from_slice(self.in_head(series));
        if slots.len() > in_documents {
            merge_equal(slots);
            slots.retain(|slot| !slot.cell.is_empty());
        }
        Ok(())
    }

    /// Appends the cells that are only in memory, a slot perhaps several times.
    fn in_memory(&self, series: SeriesId, slots: &mut Vec<Slot>) {
        if let Some(frozen) = &self.frozen {
            let granularities = self.store.granularities();
            let range = self.range.clone();
            frozen::cells(&frozen.maps, granularities, self.index, series, range, |at, cell| {
                if !self.has_absorbed(frozen.through, at) {
                    slots.push(Slot { start: UnixMillis(at), cell });
                }
            });
        }
        slots.extend_from_slice(self.active.get(&series).map_or(&[], Vec::as_slice));
    }

    /// The cells that are in the head and in no document.
    fn in_head(&self, series: SeriesId) -> &[Slot] {
        self.head.get(&series).map_or(&[], Vec::as_slice)
    }

    /// Drops those of the active cells, which are everything up to a record, that documents have.
    fn drop_absorbed(&mut self, through: u64) {
        let mut active = std::mem::take(&mut self.active);
        active.retain(|_, slots| {
            slots.retain(|slot| !self.has_absorbed(through, slot.start.0));
            !slots.is_empty()
        });
        self.active = active;
    }

    /// Takes over the cells of the head that are not in documents.
    fn take_head(&mut self, head: &HeadReader, rows: &Rows) -> Result<(), StoreError> {
        for slot in head.slots(self.range.clone())? {
            if self.has_absorbed(head.through, slot) {
                continue;
            }
            for (row, series) in rows {
                head.row(slot, *row, |cells| {
                    for (lane, id) in series {
                        if let Some(cell) = cells.cell(*lane) {
                            let start = UnixMillis(slot);
                            self.head.entry(*id).or_default().push(Slot { start, cell });
                        }
                    }
                })?;
            }
        }
        Ok(())
    }

    /// Whether documents have what is held elsewhere of a slot, see [`Mark::has_absorbed`].
    fn has_absorbed(&self, through: u64, slot: i64) -> bool {
        let marks = self.documents.marks();
        let next = marks.partition_point(|(range, _)| range.start <= slot);
        let holder = next.checked_sub(1).and_then(|index| marks.get(index));
        holder.is_some_and(|(range, mark)| slot < range.end && mark.has_absorbed(through, slot))
    }
}

/// Where the cells of a series lie that belong to one document.
#[derive(Debug, Clone, PartialEq)]
pub struct Whereabouts {
    /// What the document covers, or would.
    pub range: Range<UnixMillis>,
    /// How long it is.
    pub span: Span,
    /// Its partition, when there is one.
    pub partition: Option<PartitionInfo>,
    /// The document, when it is there.
    pub document: Option<StoredDocument>,
    /// Cells that are in the head only, ascending.
    pub head: Vec<Slot>,
    /// Cells that are in memory, and in the journal, only, ascending.
    pub memory: Vec<Slot>,
}

impl Store {
    /// Where the cells of a series lie that belong to the document that holds a time, each sample
    /// in one place, as of one moment.
    ///
    /// # Errors
    /// When the document, or the head, cannot be read.
    pub fn whereabouts(
        &self,
        index: GranularityIndex,
        series: SeriesId,
        at: UnixMillis,
    ) -> Result<Whereabouts, StoreError> {
        let documents = &self.inner.documents;
        let place = documents.place(index, at);
        let start = place.document_start(at);
        let range = start..place.next_document(start);
        let view = self.view(index, range.clone(), &[series])?;
        let document = view.documents.stored(start, series)?;
        let mut memory = Vec::new();
        view.in_memory(series, &mut memory);
        let mut head = view.in_head(series).to_vec();
        merge_equal(&mut memory);
        merge_equal(&mut head);
        let partition = documents.partitions().into_iter().find(|own| own.id == place.id);
        Ok(Whereabouts { range, span: place.document, partition, document, head, memory })
    }
}

/// Merges the cells of equal slots and leaves each slot once, ascending.
fn merge_equal(slots: &mut Vec<Slot>) {
    slots.sort_by_key(|slot| slot.start);
    slots.dedup_by(|later, kept| {
        let is_same = later.start == kept.start;
        if is_same {
            kept.cell.merge(&later.cell);
        }
        is_same
    });
}
