//! The checkpoint: moving what was set aside into the head, and from there into documents.
//!
//! First all frozen cells are merged into the head, in one transaction with the number of the
//! last record in them; then the journal may be cut. Then the documents whose periods are over
//! are written, each partition in one transaction with a mark of what it took out of the head.
//! The next merge removes that from the head. So each cell is in one place, whatever is cut short.

use std::collections::{BTreeMap, btree_map::Entry};

use super::{
    catalog::Frozen,
    counters::Counters,
    error::StoreError,
    head::{Head, HeadReader, HeadWriter},
    head_row::{RowCells, SERIES_PER_ROW},
    layer::Layer,
    partition::{DocumentWriter, Mark, PartitionId, Written},
    partitions::Partitions,
};
use crate::model::{Granularity, GranularitySet, SeriesId, UnixMillis};

/// Documents are written this long after their period, or a period later if that is sooner:
/// most of what is late comes within that time, and need not be patched in.
const LATENESS_MS: i64 = 120_000;

/// Where checkpoints take cells from and put them.
pub(crate) struct Files<'a> {
    pub(crate) granularities: &'a GranularitySet,
    pub(crate) head: &'a Head,
    pub(crate) partitions: &'a Partitions,
    pub(crate) counters: &'a Counters,
}

impl Files<'_> {
    /// Merges the frozen cells into the head, and removes from it what documents have taken over.
    pub(crate) fn write_head(&self, frozen: &Frozen, now: UnixMillis) -> Result<(), StoreError> {
        let levels = self.granularities.levels();
        let throughs = (0..levels.len()).map(|level| Ok(self.head.read(level)?.through));
        let throughs = throughs.collect::<Result<Vec<_>, StoreError>>()?;
        if throughs.iter().all(|through| *through >= frozen.through) {
            return Ok(());
        }
        self.head.write(|writer| {
            let mut finer: Option<Layer> = None;
            for (level, granularity) in levels.iter().enumerate() {
                // The finest layer is used as it is; each coarser one takes in the one before.
                let mut merged = Layer::default();
                if level > 0 {
                    merged.absorb(finer.as_ref().unwrap_or(&frozen.layers[0]), granularity);
                    merged.absorb(&frozen.layers[level], granularity);
                    finer = Some(merged);
                }
                if throughs[level] < frozen.through {
                    let layer = finer.as_ref().unwrap_or(&frozen.layers[0]);
                    self.clear_level(writer, level, throughs[level], now)?;
                    self.merge_level(writer, level, layer, now)?;
                    writer.set_through(level, frozen.through)?;
                }
            }
            Ok(())
        })
    }

    /// Removes slots that documents have taken over, and those that are no longer kept.
    fn clear_level(
        &self,
        writer: &HeadWriter<'_>,
        level: usize,
        through: u64,
        now: UnixMillis,
    ) -> Result<(), StoreError> {
        let granularity = &self.granularities.levels()[level];
        let mut rows = writer.level(level)?;
        let mut marks = BTreeMap::new();
        for slot in rows.slots()? {
            let start = granularity.partition_start(UnixMillis(slot));
            let mark = match marks.entry(start) {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(unknown) => *unknown.insert(self.mark(PartitionId { level, start })?),
            };
            let absorbed = mark.is_some_and(|mark| mark.has_absorbed(through, slot));
            if absorbed || !granularity.keeps_partition(start, now) {
                rows.remove_slot(slot)?;
            }
        }
        Ok(())
    }

    /// The mark of a partition; `None` when there is no such partition.
    fn mark(&self, id: PartitionId) -> Result<Option<Mark>, StoreError> {
        let Some(partition) = self.partitions.get(id) else { return Ok(None) };
        match partition.read() {
            Ok(reader) => Ok(Some(reader.mark)),
            // It is empty now.
            Err(fault) if self.partitions.replace_if_damaged(&partition, &fault)? => Ok(None),
            Err(fault) => Err(fault),
        }
    }

    fn merge_level(
        &self,
        writer: &HeadWriter<'_>,
        level: usize,
        layer: &Layer,
        now: UnixMillis,
    ) -> Result<(), StoreError> {
        let granularity = &self.granularities.levels()[level];
        let mut rows = writer.level(level)?;
        for (slot, cells) in layer.all_slots() {
            if granularity.keeps(UnixMillis(slot), now) {
                rows.merge_slot(slot, cells)?;
            }
        }
        Ok(())
    }

    /// Writes the documents whose periods are over.
    pub(crate) fn write_documents(&self, now: UnixMillis) -> Result<(), StoreError> {
        for (level, granularity) in self.granularities.levels().iter().enumerate() {
            let head = self.head.read(level)?;
            let until = written_until(granularity, now);
            let mut due: BTreeMap<UnixMillis, Vec<i64>> = BTreeMap::new();
            for slot in head.slots(0..until.0)? {
                let start = granularity.partition_start(UnixMillis(slot));
                due.entry(start).or_default().push(slot);
            }
            for (start, slots) in due {
                if granularity.keeps_partition(start, now) {
                    self.write_partition(PartitionId { level, start }, &head, &slots, until)?;
                }
            }
        }
        Ok(())
    }

    fn write_partition(
        &self,
        id: PartitionId,
        head: &HeadReader,
        slots: &[i64],
        until: UnixMillis,
    ) -> Result<(), StoreError> {
        let granularity = &self.granularities.levels()[id.level];
        self.partitions.change(id, |partition| {
            let mark = partition.read()?.mark;
            let is_new = |slot: &&i64| !mark.has_absorbed(head.through, **slot);
            let mut periods: BTreeMap<UnixMillis, Vec<i64>> = BTreeMap::new();
            for slot in slots.iter().filter(is_new) {
                let document = granularity.document_start(UnixMillis(*slot));
                periods.entry(document).or_default().push(*slot);
            }
            if periods.is_empty() {
                return Ok(());
            }
            // What was taken over of the same head before stays taken over.
            let before = if mark.through >= head.through { mark.until } else { until };
            let mark = Mark { through: head.through, until: until.max(before) };
            partition.write(Some(mark), |writer| {
                for (document, slots) in &periods {
                    self.write_period(writer, granularity, *document, head, slots)?;
                }
                Ok(())
            })
        })
    }

    /// Patches the documents of one period, series ascending, which is the order of the keys.
    fn write_period(
        &self,
        writer: &mut DocumentWriter<'_, '_>,
        granularity: &Granularity,
        document: UnixMillis,
        head: &HeadReader,
        slots: &[i64],
    ) -> Result<(), StoreError> {
        let indexes: Vec<_> =
            slots.iter().map(|at| granularity.slot_index(document, UnixMillis(*at))).collect();
        head.for_each_row(slots, |row, cells| {
            for lane in 0..SERIES_PER_ROW {
                if cells.iter().any(|(_, cells)| !cells[lane].is_empty()) {
                    let series = SeriesId(row * SERIES_PER_ROW as u32 + lane as u32);
                    self.write_document(writer, document, series, lane, &indexes, cells)?;
                }
            }
            Ok(())
        })
    }

    fn write_document(
        &self,
        writer: &mut DocumentWriter<'_, '_>,
        document: UnixMillis,
        series: SeriesId,
        lane: usize,
        indexes: &[usize],
        cells: &[(usize, Box<RowCells>)],
    ) -> Result<(), StoreError> {
        let counters = self.counters;
        let written = writer.patch(document, series, |layout, doc| {
            let length = doc.len();
            for (slot, row) in cells.iter().filter(|(_, row)| !row[lane].is_empty()) {
                layout.merge_cell(doc, indexes[*slot], &row[lane]);
                counters.cells_written.add(1);
            }
            if doc.len() != length {
                counters.documents_grown.add(1);
            }
        })?;
        match written {
            Written::Patched => counters.documents_patched.add(1),
            Written::Created => counters.shells_missed.add(1),
        }
        Ok(())
    }
}

/// Documents that begin before this are written.
fn written_until(granularity: &Granularity, now: UnixMillis) -> UnixMillis {
    let current = granularity.document_start(now);
    let before = granularity.document_start(now.minus(LATENESS_MS));
    // With documents shorter than the wait, a period is enough.
    before.max(granularity.document_start(current.minus(1)))
}
