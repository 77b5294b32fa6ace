//! The changes of files by an erasure. The cells of each level are set, first in the head and then
//! in documents. A repetition has no further effect.
//!
//! A cell of the head counts unless its partition's mark includes it. When a partially erased slot
//! has such a cell, the remaining cell is written to the head, and otherwise to its document. Cells
//! of the head that a mark includes are also set: they would count again if the partition were
//! lost.
//!
//! Must never know: how the remaining cells were computed.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

use crate::{
    model::{Cell, Granularity, GranularityIndex, SeriesId, UnixMillis},
    store::{
        documents::{CellSink, Columns, Documents, HoleChange, Slot, grid::PartitionGrid},
        encoding::lanes::{row_and_lane, row_of, series_at},
        error::StoreError,
        file::names::HEAD_FILE,
        handle::Store,
        head::HeadReader,
        journal::erasure_row::{CutSlot, Erasure},
    },
};

/// The partially erased slots and series that have a cell in the head.
type InHead = BTreeSet<(i64, SeriesId)>;

impl Store {
    /// Changes the files of all levels. No other thread may write them in the meantime, except to
    /// seal documents. Returns the number of changed cells.
    pub(super) fn apply(&self, erasure: &Erasure) -> Result<u64, StoreError> {
        let mut erased = 0;
        for index in (0..self.all_granularities().len()).map(GranularityIndex) {
            let level = LevelErasure::new(self, index, erasure);
            erased += match self.or_replace_head(level.run()) {
                // An empty head replaced the damaged one.
                Err(fault) if fault.is_damage_of(HEAD_FILE) => level.run()?,
                outcome => outcome?,
            };
        }
        Ok(erased)
    }
}

/// The erasure at one level.
struct LevelErasure<'a> {
    store: &'a Store,
    index: GranularityIndex,
    level: &'a Granularity,
    series: &'a [SeriesId],
    /// The slots that are emptied.
    whole: Range<i64>,
    /// The slots that keep some samples, by start.
    cut: BTreeMap<i64, &'a CutSlot>,
}

/// The changed slots of a document.
struct ChangedDocument {
    start: UnixMillis,
    series: SeriesId,
    /// The slots that are emptied.
    emptied: Vec<u16>,
    /// The slots that keep some samples, with the remaining cells.
    kept: Vec<(u16, Cell)>,
}

impl<'a> LevelErasure<'a> {
    fn new(store: &'a Store, index: GranularityIndex, erasure: &'a Erasure) -> Self {
        let level = store.granularity(index);
        let whole = whole_slots(level, &erasure.range);
        let cut = erasure.cut.iter().filter(|slot| slot.level == level.name);
        let cut = cut.map(|slot| (slot.start.0, slot)).collect();
        Self { store, index, level, series: &erasure.series, whole, cut }
    }

    /// Returns the range of all changed slots.
    fn bounds(&self) -> Range<i64> {
        let cut = || self.cut.keys().copied();
        let starts = cut().chain((!self.whole.is_empty()).then_some(self.whole.start));
        let ends = cut().map(|start| start + self.level.width_ms);
        let ends = ends.chain((!self.whole.is_empty()).then_some(self.whole.end));
        starts.min().unwrap_or(0)..ends.max().unwrap_or(0)
    }

    /// Returns the remaining cell of a slot; `None` when the slot does not change.
    fn remaining(&self, slot: i64, series: SeriesId) -> Option<Cell> {
        if self.whole.contains(&slot) {
            return Some(Cell::EMPTY);
        }
        let cells = &self.cut.get(&slot)?.cells;
        let position = cells.binary_search_by_key(&series, |(id, _)| *id).ok()?;
        Some(cells[position].1)
    }

    /// Returns the series with changed slots in a range.
    fn series_within(&self, range: Range<i64>) -> Vec<SeriesId> {
        if range.start < self.whole.end && self.whole.start < range.end && !self.whole.is_empty() {
            return self.series.to_vec();
        }
        let cells = self.cut.range(range).flat_map(|(_, cut)| &cut.cells);
        cells.map(|(series, _)| *series).collect::<BTreeSet<_>>().into_iter().collect()
    }

    /// Returns the number of changed cells.
    fn run(&self) -> Result<u64, StoreError> {
        let bounds = self.bounds();
        if bounds.is_empty() {
            return Ok(0);
        }
        let (mut cells, in_head) = self.erase_in_head(&bounds)?;
        for grid in self.store.inner.documents.grids(self.index, bounds.clone()) {
            cells += match self.erase_in_partition(&grid, &bounds, &in_head) {
                // The damaged partition was set aside with its cells.
                Err(fault) if fault.is_damage() && fault.file() != HEAD_FILE => 0,
                outcome => outcome?,
            };
        }
        Ok(cells)
    }

    fn erase_in_head(&self, bounds: &Range<i64>) -> Result<(u64, InHead), StoreError> {
        let (head, documents) = (&self.store.inner.head, &self.store.inner.documents);
        let reader = head.read(self.index)?;
        let mut marks = BTreeMap::new();
        let (mut changes, mut in_head) = (Vec::new(), InHead::new());
        for slot in reader.slots(bounds.clone())? {
            if !(self.whole.contains(&slot) || self.cut.contains_key(&slot)) {
                continue;
            }
            let grid = documents.grid(self.index, UnixMillis(slot));
            let mark = match marks.get(&grid.id) {
                Some(mark) => *mark,
                None => *marks.entry(grid.id).or_insert(documents.mark(&grid)?),
            };
            let is_absorbed = mark.has_absorbed(reader.through, slot);
            let present = self.present(&reader, slot)?;
            let change = |id: SeriesId| Some((id, self.remaining(slot, id)?));
            let cells: Vec<_> = present.into_iter().filter_map(change).collect();
            if !is_absorbed && !self.whole.contains(&slot) {
                in_head.extend(cells.iter().map(|(id, _)| (slot, *id)));
            }
            if !cells.is_empty() {
                changes.push((slot, cells, is_absorbed));
            }
        }
        let mut count = 0;
        if !changes.is_empty() {
            head.rewrite(self.index, |rows| {
                for (slot, cells, is_absorbed) in &changes {
                    let replaced = rows.replace_cells(*slot, cells)?;
                    // Cells that the partition includes are counted with the partition.
                    count += if *is_absorbed { 0 } else { replaced };
                }
                Ok(())
            })?;
        }
        Ok((count, in_head))
    }

    /// Returns the series that have a cell in a slot of the head.
    fn present(&self, head: &HeadReader, slot: i64) -> Result<Vec<SeriesId>, StoreError> {
        let (rows, mut present) = (head.slot(slot), Vec::new());
        for of_row in self.series.chunk_by(|id, next| row_of(*id) == row_of(*next)) {
            let Some(first) = of_row.first() else { continue };
            let number = row_of(*first);
            let wanted = of_row.iter().fold(0, |all, id| all | 1_u64 << row_and_lane(*id).1);
            let read = rows.row(number, |row| {
                // The row is verified, so all wanted cells are readable.
                let _all = row.cells(wanted, |lane, cell| {
                    if !cell.is_empty() {
                        present.push(series_at(number, lane));
                    }
                });
            });
            match read {
                // The cells of a damaged row are lost.
                Err(StoreError::DamagedPart { .. }) => {}
                outcome => outcome?,
            }
        }
        Ok(present)
    }

    fn erase_in_partition(
        &self,
        grid: &PartitionGrid,
        bounds: &Range<i64>,
        in_head: &InHead,
    ) -> Result<u64, StoreError> {
        let changed = self.changed_documents(grid, bounds, in_head)?;
        if changed.is_empty() {
            return Ok(0);
        }
        let mut cells = Vec::new();
        let documents = &self.store.inner.documents;
        let writing = self.store.inner.followed.begin();
        let merged = documents.replace(grid, &HoleChange::default(), &mut |sink| {
            let mut write = |sink: &mut dyn CellSink| {
                for ChangedDocument { start, series, emptied, kept } in &changed {
                    cells.clear();
                    cells.extend(emptied.iter().map(|slot| (usize::from(*slot), Cell::EMPTY)));
                    cells.extend(kept.iter().map(|(slot, cell)| (usize::from(*slot), *cell)));
                    sink.document(*start, *series, &cells)?;
                }
                Ok(())
            };
            match &writing {
                Some(writing) => writing.note(self.index, sink, write),
                None => write(sink),
            }
        })?;
        Ok(merged.cells)
    }

    /// Returns the documents of a partition that change, by start and then series.
    fn changed_documents(
        &self,
        grid: &PartitionGrid,
        bounds: &Range<i64>,
        in_head: &InHead,
    ) -> Result<Vec<ChangedDocument>, StoreError> {
        let (mut changed, mut found) = (Vec::new(), Vec::new());
        let first = UnixMillis(bounds.start.max(grid.id.start.0));
        let mut start = grid.document_start(first);
        while start.0 < bounds.end && start < grid.end {
            let next = grid.next_document(start);
            let within = self.series_within(start.0..next.0);
            if within.is_empty() {
                start = next;
                continue;
            }
            let view = self.store.inner.documents.view(self.index, start.0..next.0)?;
            for series in within {
                found.clear();
                match view.slots(series, Columns::ALL, &mut found) {
                    // The cells of a damaged document are lost.
                    Err(StoreError::DamagedPart { .. }) => continue,
                    outcome => outcome?,
                }
                let (mut emptied, mut kept) = (Vec::new(), Vec::new());
                for Slot { start: at, cell } in &found {
                    let number = grid.slot_index(start, *at) as u16;
                    match self.remaining(at.0, series) {
                        Some(rest) if rest.is_empty() || in_head.contains(&(at.0, series)) => {
                            emptied.push(number);
                        }
                        Some(rest) if rest != *cell => kept.push((number, rest)),
                        Some(_) | None => {}
                    }
                }
                if !(emptied.is_empty() && kept.is_empty()) {
                    changed.push(ChangedDocument { start, series, emptied, kept });
                }
            }
            start = next;
        }
        Ok(changed)
    }
}

/// Returns the range of the whole slots of a level within a range; empty when there is none.
pub(super) fn whole_slots(level: &Granularity, range: &Range<UnixMillis>) -> Range<i64> {
    let end = level.slot_start(range.end).0;
    let start = level.slot_start(range.start).0;
    let first = if start == range.start.0 { start } else { start + level.width_ms };
    first..end.max(first)
}
