//! The part of a checkpoint that handles one granularity: first the documents whose period is over,
//! then the head.
//!
//! Must never know: the other granularities, the truncation of the journal.

use std::collections::{BTreeMap, BTreeSet, btree_map::Entry};

use super::Destinations;
use crate::{
    model::{Cell, Granularity, GranularityIndex, HistogramCell, Moment, UnixMillis},
    store::{
        catalog::fan_out::{FanOut, WideRow, WideSlot},
        documents::{CellSink, Documents, grid::PartitionGrid, mark::Mark},
        due::due_before,
        encoding::lanes::{SERIES_PER_ROW, series_at},
        error::StoreError,
        file::names::HEAD_FILE,
        head::HeadReader,
        histograms::map::{HistogramsOfLevel, merge_into},
    },
};

/// The part of a checkpoint that concerns one granularity.
pub(super) struct GranularityStep<'a> {
    to: &'a Destinations<'a>,
    index: GranularityIndex,
    granularity: &'a Granularity,
    /// The last record in the frozen cells.
    through: u64,
    /// The frozen cells; `None` when the head already contains them.
    map: Option<&'a FanOut<'a>>,
    /// The frozen histograms, if the head does not contain them.
    histograms: Option<&'a HistogramsOfLevel>,
    head: HeadReader,
    now: Moment,
}

/// The cells of the documents of one period: slots with rows in the head, and slots with frozen
/// cells.
#[derive(Default)]
struct Period<'a> {
    rows: Vec<i64>,
    cells: Vec<(i64, &'a WideSlot<'a>)>,
}

impl<'a> GranularityStep<'a> {
    pub(super) fn new(
        to: &'a Destinations<'a>,
        index: GranularityIndex,
        (through, map, histograms): (u64, &'a FanOut<'a>, &'a HistogramsOfLevel),
        now: Moment,
    ) -> Result<Self, StoreError> {
        let head = to.head.read(index)?;
        let granularity = &to.documents.granularities()[index.0];
        let map = (head.through < through).then_some(map);
        let histograms = map.map(|_| histograms);
        Ok(Self { to, index, granularity, through, map, histograms, head, now })
    }

    /// Writes the due documents, and then the head. Cells of documents that cannot be written are
    /// merged into the head or remain there, and the documents stay due; the first such error is
    /// returned as the value.
    ///
    /// # Errors
    /// When the head cannot be read or written.
    pub(super) fn run(&self) -> Result<Option<StoreError>, StoreError> {
        let due_before = due_before(self.granularity, self.now.latest());
        let of_head = self.head.slots(0..due_before.0)?;
        let frozen = self.map.iter().flat_map(|map| map.slots(0..due_before.0));
        let mut due: BTreeSet<i64> =
            of_head.into_iter().chain(frozen.map(|(slot, _)| slot)).collect();
        // A correction may be in a slot without other cells.
        due.extend(self.head.histogram_slots(0..due_before.0)?);
        let frozen = self.histograms.iter().flat_map(|cells| cells.keys().map(|(_, slot)| *slot));
        due.extend(frozen.filter(|slot| *slot < due_before.0));
        let mut postponed = None;
        let mut next = due.first().copied();
        while let Some(slot) = next {
            let grid = self.to.documents.grid(self.index, UnixMillis(slot));
            if self.granularity.keeps(grid.last(), self.now.earliest())
                && let Err(fault) = self.write_partition(&grid, due_before)
            {
                if fault.file() == HEAD_FILE {
                    return Err(fault);
                }
                postponed = postponed.or(Some(fault));
            }
            next = due.range(grid.end.0..).next().copied();
        }
        if let Some(map) = self.map {
            self.write_head(map)?;
        }
        Ok(postponed)
    }

    /// Writes the due documents of a partition. When the partition is damaged, an empty partition
    /// replaces it, and the cells that are still in the head are due again.
    fn write_partition(
        &self,
        grid: &PartitionGrid,
        due_before: UnixMillis,
    ) -> Result<(), StoreError> {
        match self.merge_due(grid, due_before) {
            Err(fault) if fault.is_damage() && fault.file() != HEAD_FILE => {
                self.merge_due(grid, due_before)
            }
            outcome => outcome,
        }
    }

    fn merge_due(&self, grid: &PartitionGrid, due_before: UnixMillis) -> Result<(), StoreError> {
        let before = self.to.documents.mark(grid)?;
        let mut in_head = self.head.slots(grid.range())?;
        let histograms_in_head = self.head.histogram_slots(grid.range())?;
        if !histograms_in_head.is_empty() {
            in_head.extend(&histograms_in_head);
            in_head.sort_unstable();
            in_head.dedup();
        }
        let until = self.mark_until(before, due_before, &in_head);
        let mut periods: BTreeMap<UnixMillis, Period<'_>> = BTreeMap::new();
        let is_due =
            |through: u64, slot: i64| slot < until.0 && !before.has_absorbed(through, slot);
        let document = |slot: i64| grid.document_start(UnixMillis(slot));
        for slot in in_head.into_iter().filter(|slot| is_due(self.head.through, *slot)) {
            periods.entry(document(slot)).or_default().rows.push(slot);
        }
        let frozen = self.map.iter().flat_map(|map| map.slots(grid.range()));
        for (slot, cells) in frozen.filter(|(slot, _)| is_due(self.through, *slot)) {
            periods.entry(document(slot)).or_default().cells.push((slot, cells));
        }
        let mut histograms = HistogramsOfLevel::new();
        for slot in histograms_in_head {
            if is_due(self.head.through, slot) {
                self.head.histograms_of_slot(slot, &mut histograms)?;
            }
        }
        for ((series, slot), cell) in self.histograms.into_iter().flatten() {
            if grid.range().contains(slot) && is_due(self.through, *slot) {
                merge_into(&mut histograms, (*series, *slot), cell.clone());
            }
        }
        if periods.is_empty() && histograms.is_empty() {
            return Ok(());
        }
        let mark = Mark { through: self.through.max(self.head.through), until };
        let writing = self.to.followed.begin();
        let merged = self.to.documents.merge(grid, mark, &mut |sink| {
            let write = |sink: &mut dyn CellSink| {
                let mut all = periods.iter();
                all.try_for_each(|(document, period)| self.write_period(sink, *document, period))
            };
            match &writing {
                Some(writing) => writing.note(self.index, sink, write)?,
                None => write(sink)?,
            }
            self.write_histograms(sink, grid, &histograms)?;
            // All damaged rows have been found. They are removed from the head, so the partition
            // records them as holes.
            let rows = periods.values().flat_map(|period| &period.rows);
            for slot in rows.filter(|slot| self.head.is_lost(**slot)) {
                sink.lost(UnixMillis(*slot)..UnixMillis(slot + self.granularity.width_ms));
            }
            Ok(())
        })?;
        let counters = self.to.counters;
        counters.cells_written.add(merged.cells);
        counters.documents_patched.add(merged.patched);
        counters.documents_created.add(merged.created);
        counters.sealing_refused.add(merged.refused);
        Ok(())
    }

    /// Merges histograms into the documents of a partition.
    fn write_histograms(
        &self,
        sink: &mut dyn CellSink,
        grid: &PartitionGrid,
        histograms: &HistogramsOfLevel,
    ) -> Result<(), StoreError> {
        let mut documents: BTreeMap<_, Vec<(usize, HistogramCell)>> = BTreeMap::new();
        for ((series, slot), cell) in histograms {
            let document = grid.document_start(UnixMillis(*slot));
            let index = self.granularity.slot_index(document, UnixMillis(*slot));
            documents.entry((document, *series)).or_default().push((index, cell.clone()));
        }
        let mut documents = documents.into_iter();
        documents.try_for_each(|((start, series), cells)| sink.histograms(start, series, &cells))
    }

    /// Returns the time before which all slots of a partition are in its documents after this
    /// write. The time never decreases, because absorbed cells stay absorbed.
    fn mark_until(&self, before: Mark, due_before: UnixMillis, in_head: &[i64]) -> UnixMillis {
        if before.through >= self.through {
            return due_before.max(before.until);
        }
        let absorbed = |slot: &&i64| before.has_absorbed(self.head.through, **slot);
        let last = in_head.iter().rev().find(absorbed);
        last.map_or(due_before, |slot| due_before.max(UnixMillis(slot + 1)))
    }

    /// Merges cells into the documents of one period, in ascending order of series, which is the
    /// order of keys.
    fn write_period(
        &self,
        sink: &mut dyn CellSink,
        document: UnixMillis,
        period: &Period<'_>,
    ) -> Result<(), StoreError> {
        let index = |slot: i64| self.granularity.slot_index(document, UnixMillis(slot));
        let frozen =
            period.cells.iter().flat_map(|(_, cells)| cells.rows()).map(|(number, _)| number);
        let frozen: BTreeSet<u32> = frozen.collect();
        let mut frozen = frozen.into_iter().peekable();
        let mut cursor = self.head.cursor(&period.rows)?;
        let mut cells: Vec<(usize, WideRow<'_>)> = Vec::new();
        let mut of_lane = Vec::new();
        while let Some(row) = frozen.peek().copied().into_iter().chain(cursor.next_row()?).min() {
            frozen.next_if_eq(&row);
            cells.clear();
            cursor.take(row, |slot, merged| cells.push((index(slot), WideRow::Merged(merged))))?;
            for (slot, cells_of_slot) in &period.cells {
                cells.extend(cells_of_slot.row(row).map(|wide| (index(*slot), wide)));
            }
            write_row(sink, (document, row), &cells, &mut of_lane)?;
        }
        Ok(())
    }

    /// Merges into the head the cells that no document absorbed, and removes the absorbed cells
    /// from it.
    fn write_head(&self, map: &FanOut<'_>) -> Result<(), StoreError> {
        let documents = self.to.documents;
        let mut marks = BTreeMap::new();
        let mut has_absorbed = |through: u64, slot: i64| {
            let grid = documents.grid(self.index, UnixMillis(slot));
            let mark = match marks.entry(grid.id) {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(unknown) => *unknown.insert(documents.mark(&grid)?),
            };
            Ok::<_, StoreError>(mark.has_absorbed(through, slot))
        };
        let is_kept = |slot: i64| self.granularity.keeps(UnixMillis(slot), self.now.earliest());
        let mut lacks_before = UnixMillis::EARLIEST;
        let of_head =
            self.head.slots(0..i64::MAX)?.into_iter().map(|slot| (self.head.through, slot));
        let all = of_head.chain(map.all_slots().map(|(slot, _)| (self.through, slot)));
        for (through, slot) in all.filter(|(_, slot)| !is_kept(*slot)) {
            if !has_absorbed(through, slot)? {
                lacks_before = lacks_before.max(UnixMillis(slot).plus(self.granularity.width_ms));
            }
        }
        (self.to.note_lacking)(self.index, lacks_before)?;
        let mut moved = 0;
        self.to.head.write(self.index, self.through, |rows| {
            for slot in rows.slots()? {
                if !is_kept(slot) || has_absorbed(self.head.through, slot)? {
                    rows.remove_slot(slot)?;
                }
            }
            for (slot, cells) in map.all_slots() {
                if is_kept(slot) && !has_absorbed(self.through, slot)? {
                    moved += rows.merge_slot(slot, cells)?;
                }
            }
            rows.remove_histograms(|slot| {
                Ok(!is_kept(slot) || has_absorbed(self.head.through, slot)?)
            })?;
            let mut kept = Vec::new();
            for ((series, slot), cell) in self.histograms.into_iter().flatten() {
                if is_kept(*slot) && !has_absorbed(self.through, *slot)? {
                    kept.push((*series, *slot, cell));
                }
            }
            rows.merge_histograms(&kept)
        })?;
        self.to.counters.cells_to_head.add(moved);
        Ok(())
    }
}

/// Merges the cells of a row into the documents of its series.
fn write_row(
    sink: &mut dyn CellSink,
    (document, row): (UnixMillis, u32),
    cells: &[(usize, WideRow<'_>)],
    of_lane: &mut Vec<(usize, Cell)>,
) -> Result<(), StoreError> {
    for lane in 0..SERIES_PER_ROW {
        of_lane.clear();
        for (slot, row) in cells {
            if let Some(cell) = row.cell(lane).filter(|cell| !cell.is_empty()) {
                of_lane.push((*slot, cell));
            }
        }
        if !of_lane.is_empty() {
            sink.document(document, series_at(row, lane), of_lane)?;
        }
    }
    Ok(())
}
