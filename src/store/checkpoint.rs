//! The checkpoint: moving what was set aside into documents and the head, exactly once.
//!
//! For each granularity, first the documents whose period is over are written, each partition in
//! one transaction with a mark of what it took in; then the head takes in the rest, and gives up
//! what documents have, in one transaction with the number of the last record. What a mark or the
//! head covers is passed over when a checkpoint that was cut short is taken up again. Only when
//! all is written is the journal cut.

use std::{
    collections::{BTreeMap, BTreeSet, btree_map::Entry},
    sync::Arc,
};

use super::{
    catalog::Frozen,
    counters::Counters,
    error::StoreError,
    head::{Head, HeadReader},
    head_row::{RowCells, SERIES_PER_ROW},
    layer::{Layer, SlotCells},
    partition::{DocumentWriter, Mark, Partition, Written},
    partitions::Partitions,
};
use crate::model::{Granularity, GranularitySet, Moment, SeriesId, UnixMillis};

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
    /// Writes the frozen cells of every granularity that still keeps them.
    pub(crate) fn write(&self, frozen: &Frozen, now: Moment) -> Result<(), StoreError> {
        let mut fanned_out: Option<Layer> = None;
        for (level, granularity) in self.granularities.levels().iter().enumerate() {
            // The finest layer is used as it is; each coarser one takes in the one before.
            if level > 0 {
                let mut merged = Layer::default();
                merged.absorb(fanned_out.as_ref().unwrap_or(&frozen.layers[0]), granularity);
                merged.absorb(&frozen.layers[level], granularity);
                fanned_out = Some(merged);
            }
            let layer = fanned_out.as_ref().unwrap_or(&frozen.layers[0]);
            Step::new(self, level, frozen.through, layer, now)?.run()?;
        }
        // What was under way when a granularity was retired goes into its documents.
        for level in self.granularities.count()..self.partitions.levels().len() {
            if !self.head.read(level)?.slots(0..i64::MAX)?.is_empty() {
                Step::new(self, level, frozen.through, &Layer::default(), now)?.run()?;
            }
        }
        Ok(())
    }

    /// The mark of a partition; `None` when it is empty.
    fn mark(&self, partition: &Arc<Partition>) -> Result<Option<Mark>, StoreError> {
        match partition.read() {
            Ok(reader) => Ok(Some(reader.mark)),
            // There is a new one in its place.
            Err(fault) if self.partitions.replace_if_damaged(partition, &fault)? => Ok(None),
            Err(fault) => Err(fault),
        }
    }
}

/// The part of a checkpoint that concerns one granularity.
struct Step<'a> {
    files: &'a Files<'a>,
    level: usize,
    granularity: &'a Granularity,
    /// The last record in the frozen cells.
    through: u64,
    /// The frozen cells; `None` when the head has them already.
    layer: Option<&'a Layer>,
    head: HeadReader,
    now: Moment,
}

/// What goes into the documents of one period: slots of the head, and of the frozen cells.
#[derive(Default)]
struct Period<'a> {
    rows: Vec<i64>,
    cells: Vec<(i64, &'a SlotCells)>,
}

impl<'a> Step<'a> {
    fn new(
        files: &'a Files<'a>,
        level: usize,
        through: u64,
        layer: &'a Layer,
        now: Moment,
    ) -> Result<Self, StoreError> {
        let head = files.head.read(level)?;
        let granularity = &files.partitions.levels()[level];
        let layer = (head.through < through).then_some(layer);
        Ok(Self { files, level, granularity, through, layer, head, now })
    }

    fn run(&self) -> Result<(), StoreError> {
        let until = written_until(self.granularity, self.now.latest());
        let of_head = self.head.slots(0..until.0)?;
        let frozen = self.layer.iter().flat_map(|layer| layer.slots(0..until.0));
        let due: BTreeSet<i64> = of_head.into_iter().chain(frozen.map(|(slot, _)| slot)).collect();
        let mut next = due.first().copied();
        while let Some(slot) = next {
            let place = self.files.partitions.place(self.level, UnixMillis(slot));
            if self.granularity.keeps(place.last(), self.now.earliest()) {
                self.write_partition(UnixMillis(slot), until)?;
            }
            next = due.range(place.end.0..).next().copied();
        }
        match self.layer {
            Some(layer) => self.write_head(layer),
            None => Ok(()),
        }
    }

    /// Writes what is due of the partition that holds a time.
    fn write_partition(&self, at: UnixMillis, until: UnixMillis) -> Result<(), StoreError> {
        self.files.partitions.change(self.level, at, |partition| {
            let before = partition.read()?.mark;
            let range = partition.place.range();
            let in_head = self.head.slots(range.clone())?;
            let until = self.until(before, until, &in_head);
            let mut periods: BTreeMap<UnixMillis, Period<'_>> = BTreeMap::new();
            let is_due =
                |through: u64, slot: i64| slot < until.0 && !before.has_absorbed(through, slot);
            let document = |slot: i64| partition.place.layouts.start_of(UnixMillis(slot));
            for slot in in_head.into_iter().filter(|slot| is_due(self.head.through, *slot)) {
                periods.entry(document(slot)).or_default().rows.push(slot);
            }
            let frozen = self.layer.iter().flat_map(|layer| layer.slots(range.clone()));
            for (slot, cells) in frozen.filter(|(slot, _)| is_due(self.through, *slot)) {
                periods.entry(document(slot)).or_default().cells.push((slot, cells));
            }
            if periods.is_empty() {
                return Ok(());
            }
            let through = self.through.max(self.head.through);
            partition.write(Some(Mark { through, until }), |writer| {
                for (document, period) in &periods {
                    self.write_period(writer, *document, period)?;
                }
                Ok(())
            })
        })
    }

    /// Until when a partition is written: what it took in before stays taken in.
    fn until(&self, before: Mark, until: UnixMillis, in_head: &[i64]) -> UnixMillis {
        if before.through >= self.through {
            return until.max(before.until);
        }
        let absorbed = |slot: &&i64| before.has_absorbed(self.head.through, **slot);
        let last = in_head.iter().rev().find(absorbed);
        last.map_or(until, |slot| until.max(UnixMillis(slot + 1)))
    }

    /// Patches the documents of one period, series ascending, which is the order of the keys.
    fn write_period(
        &self,
        writer: &mut DocumentWriter<'_, '_>,
        document: UnixMillis,
        period: &Period<'_>,
    ) -> Result<(), StoreError> {
        let index = |slot: i64| self.granularity.slot_index(document, UnixMillis(slot));
        let frozen = period.cells.iter().flat_map(|(_, cells)| cells.row_numbers());
        let frozen: BTreeSet<u32> = frozen.collect();
        let mut frozen = frozen.into_iter().peekable();
        let mut cursor = self.head.cursor(&period.rows)?;
        let mut cells: Vec<(usize, Box<RowCells>)> = Vec::new();
        while let Some(row) = frozen.peek().copied().into_iter().chain(cursor.next_row()?).min() {
            frozen.next_if_eq(&row);
            cells.clear();
            cursor.take(row, |slot, own| cells.push((index(slot), own)))?;
            for (slot, own) in &period.cells {
                cells.extend(own.copy_row(row).map(|own| (index(*slot), own)));
            }
            self.write_row(writer, document, row, &cells)?;
        }
        Ok(())
    }

    fn write_row(
        &self,
        writer: &mut DocumentWriter<'_, '_>,
        document: UnixMillis,
        row: u32,
        cells: &[(usize, Box<RowCells>)],
    ) -> Result<(), StoreError> {
        let counters = self.files.counters;
        for lane in 0..SERIES_PER_ROW {
            let filled = || cells.iter().filter(|(_, row)| !row[lane].is_empty());
            if filled().next().is_none() {
                continue;
            }
            let series = SeriesId(row * SERIES_PER_ROW as u32 + lane as u32);
            let written = writer.patch(document, series, |layout, doc| {
                let length = doc.len();
                for (slot, row) in filled() {
                    layout.merge_cell(doc, *slot, &row[lane]);
                }
                counters.cells_written.add(filled().count() as u64);
                if doc.len() != length {
                    counters.documents_grown.add(1);
                }
            })?;
            match written {
                Written::Patched => counters.documents_patched.add(1),
                Written::Created => counters.shells_missed.add(1),
            }
        }
        Ok(())
    }

    /// Merges into the head what documents did not take in, and removes from it what they have.
    fn write_head(&self, layer: &Layer) -> Result<(), StoreError> {
        let mut marks = BTreeMap::new();
        let mut has_absorbed = |through: u64, slot: i64| {
            let partitions = &self.files.partitions;
            let Some(partition) = partitions.holding(self.level, UnixMillis(slot)) else {
                return Ok(false);
            };
            let mark = match marks.entry(partition.id()) {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(unknown) => *unknown.insert(self.files.mark(&partition)?),
            };
            Ok::<_, StoreError>(mark.is_some_and(|mark| mark.has_absorbed(through, slot)))
        };
        let is_kept = |slot: i64| self.granularity.keeps(UnixMillis(slot), self.now.earliest());
        self.files.head.write(self.level, self.through, |rows| {
            for slot in rows.slots()? {
                if !is_kept(slot) || has_absorbed(self.head.through, slot)? {
                    rows.remove_slot(slot)?;
                }
            }
            for (slot, cells) in layer.all_slots() {
                if is_kept(slot) && !has_absorbed(self.through, slot)? {
                    rows.merge_slot(slot, cells)?;
                }
            }
            Ok(())
        })
    }
}

/// Documents that begin before this are written.
fn written_until(granularity: &Granularity, now: UnixMillis) -> UnixMillis {
    let current = granularity.document_start(now);
    let before = granularity.document_start(now.minus(LATENESS_MS));
    // With documents shorter than the wait, a period is enough.
    before.max(granularity.document_start(current.minus(1)))
}
