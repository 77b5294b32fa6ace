//! The part of a checkpoint that concerns one granularity: documents whose period is over, then the
//! head.
//!
//! Must never know: the other granularities, and what becomes of the journal.

use std::collections::{BTreeMap, BTreeSet, btree_map::Entry};

use super::Destinations;
use crate::{
    model::{Granularity, GranularityIndex, Moment, SeriesId, UnixMillis},
    store::{
        catalog::cell_map::{Layer, SlotCells},
        documents::{
            mark::Mark,
            open::access::{DocumentWriter, Written},
        },
        error::StoreError,
        head::{
            HeadReader,
            row::{RowCells, SERIES_PER_ROW},
        },
    },
};

/// Documents are written this long after their period, or a period later if that is sooner:
/// most of what is late comes within that time, and need not be patched in.
const LATENESS_MS: i64 = 120_000;

/// The part of a checkpoint that concerns one granularity.
pub(super) struct GranularityStep<'a> {
    to: &'a Destinations<'a>,
    level: GranularityIndex,
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

impl<'a> GranularityStep<'a> {
    pub(super) fn new(
        to: &'a Destinations<'a>,
        level: GranularityIndex,
        through: u64,
        layer: &'a Layer,
        now: Moment,
    ) -> Result<Self, StoreError> {
        let head = to.head.read(level)?;
        let granularity = to.partitions.granularity(level);
        let layer = (head.through < through).then_some(layer);
        Ok(Self { to, level, granularity, through, layer, head, now })
    }

    pub(super) fn run(&self) -> Result<(), StoreError> {
        let until = written_until(self.granularity, self.now.latest());
        let of_head = self.head.slots(0..until.0)?;
        let frozen = self.layer.iter().flat_map(|layer| layer.slots(0..until.0));
        let due: BTreeSet<i64> = of_head.into_iter().chain(frozen.map(|(slot, _)| slot)).collect();
        let mut next = due.first().copied();
        while let Some(slot) = next {
            let place = self.to.partitions.place(self.level, UnixMillis(slot));
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
        self.to.partitions.change(self.level, at, |partition| {
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
        let counters = self.to.counters;
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
            let partitions = &self.to.partitions;
            let Some(partition) = partitions.holding(self.level, UnixMillis(slot)) else {
                return Ok(false);
            };
            let mark = match marks.entry(partition.id()) {
                Entry::Occupied(known) => *known.get(),
                Entry::Vacant(unknown) => *unknown.insert(self.to.mark(&partition)?),
            };
            Ok::<_, StoreError>(mark.is_some_and(|mark| mark.has_absorbed(through, slot)))
        };
        let is_kept = |slot: i64| self.granularity.keeps(UnixMillis(slot), self.now.earliest());
        self.to.head.write(self.level, self.through, |rows| {
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
