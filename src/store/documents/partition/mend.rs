//! Repair of one partition: replaces cells, and removes damaged data, whose time is stored as a
//! hole.
//!
//! Must never know: where the new cells come from.

use std::{
    collections::BTreeMap,
    ops::Range,
    sync::{Arc, atomic::Ordering},
};

use redb::{ReadableTable, WriteTransaction};

use super::{
    DOCUMENTS, META, Partition, REPLACED_KEY, SEGMENTS, SHELLS,
    histograms::sealing::HistogramSealer, merge::writer::Cells, reader::PartitionReader,
    segments::Named,
};
use crate::{
    model::{Cell, SeriesId, UnixMillis},
    store::{
        documents::{
            CellSource, Dropped, HoleChange, Merged, Slot,
            segment::{
                Columns, Scratch,
                file::TileId,
                tile::{HISTOGRAM_BYTES_MAX, SLOTS_MAX, TileWriter},
            },
        },
        encoding::lanes::{SERIES_PER_ROW, series_at},
        error::StoreError,
        file::holes::Holes,
    },
};

const OPERATION: &str = "mend";

/// The cells of a document that cannot be sealed.
type OpenDocument = ((UnixMillis, SeriesId), Vec<(usize, Cell)>);

/// The content of a partition without its damaged documents.
#[derive(Default)]
struct IntactContent {
    segment: Option<Named>,
    open: Vec<OpenDocument>,
    /// Documents without samples, which releases of format 1 preallocated.
    shells: BTreeMap<UnixMillis, Vec<SeriesId>>,
    /// Rows of histograms that cannot be sealed, with their keys.
    histograms: Vec<(u64, Vec<u8>)>,
}

impl Partition {
    /// Replaces cells of documents and changes the holes, in one transaction; see
    /// [`super::super::Documents::replace`].
    pub(crate) fn replace(
        &self,
        change: &HoleChange,
        sealed_min: usize,
        cells: &mut CellSource<'_>,
    ) -> Result<Merged, StoreError> {
        self.write_cells(Cells::Replace, sealed_min, cells, |txn, lost| {
            let apply = |holes: &mut Holes| {
                holes.add_all(lost);
                change.lost.iter().for_each(|range| holes.add(range.clone()));
                change.mended.iter().for_each(|range| holes.remove(range));
            };
            let mut meta = txn.open_table(META).map_err(self.fail(OPERATION))?;
            let found = meta.get(REPLACED_KEY).map_err(self.fail(OPERATION))?;
            let before = found.map_or(0, |count| count.value());
            meta.insert(REPLACED_KEY, before + 1).map_err(self.fail(OPERATION))?;
            drop(meta);
            self.damage.change_holes(&self.file, txn, self.grid.width_ms, apply).map(Some)
        })
    }

    /// Reads everything, and removes damaged documents, segments and blocks of shells; the times of
    /// lost documents become holes. The partition must not be written in the meantime.
    pub(crate) fn drop_damage(self: &Arc<Self>) -> Result<Dropped, StoreError> {
        let reader = self.read()?;
        let mut dropped = Dropped::default();
        reader.check(&mut |_, _, _| {}, &|_| true)?;
        let grid = &self.grid;
        let mut shells = Vec::new();
        reader.check_shells(&mut |start, series, fault| {
            if fault.is_some() {
                shells.push(self.key_of_shells(start, series));
            }
        })?;
        dropped.shells = shells.len() as u64;
        dropped.segments = self.segments.lost().len() as u64;
        let is_whole = self.damage_count() == 0 && dropped.segments == 0;
        if is_whole && shells.is_empty() && !self.damage.is_unreadable() {
            return Ok(dropped);
        }
        let intact = if is_whole { None } else { Some(self.intact(&reader)?) };
        // When a tile is damaged, reading has found all of its documents damaged.
        let mut lost = Holes::default();
        for start in self.damaged_documents() {
            lost.add(start..grid.next_document(start));
        }
        self.segments.lost().into_iter().for_each(|range| lost.add(range));
        dropped.documents = self.damage_count();
        dropped.lost = lost.stretches().to_vec();
        let number = intact.as_ref().and_then(|intact| Some(intact.segment?.number));
        let outcome = self.file.transact(OPERATION, |txn| {
            if let Some(intact) = &intact {
                self.put_intact(txn, intact)?;
            }
            let mut table = txn.open_table(SHELLS).map_err(self.fail(OPERATION))?;
            for key in &shells {
                table.remove(key).map_err(self.fail(OPERATION))?;
            }
            drop(table);
            let add = |holes: &mut Holes| holes.add_all(&lost);
            self.damage.change_holes(&self.file, txn, grid.width_ms, add)
        });
        match outcome {
            Ok(holes) => self.damage.put_holes(holes),
            Err(fault) => {
                if let Some(number) = number {
                    self.remove_unnamed(number);
                }
                return Err(fault);
            }
        }
        if intact.is_some() {
            let replaced = reader.named.clone();
            drop(reader);
            self.damage.forget_noted();
            self.histogram_damage.forget_noted();
            for entry in replaced {
                self.segments.remove(entry.number)?;
            }
            self.is_loose.store(true, Ordering::Relaxed);
        }
        self.damage.note_readable();
        Ok(dropped)
    }

    /// Replaces all documents and segments in a transaction.
    fn put_intact(&self, txn: &WriteTransaction, intact: &IntactContent) -> Result<(), StoreError> {
        let mut table = txn.open_table(DOCUMENTS).map_err(self.fail(OPERATION))?;
        table.retain(|_, _| false).map_err(self.fail(OPERATION))?;
        let mut bytes = Vec::new();
        for ((start, series), cells) in &intact.open {
            let layout = self.layout(*start);
            bytes.clear();
            layout.write_shell(*series, *start, &mut bytes);
            for (slot, cell) in cells {
                layout.write_cell(&mut bytes, *slot, cell);
            }
            layout.write_checksum(&mut bytes);
            table.insert(self.key(*start, *series), &*bytes).map_err(self.fail(OPERATION))?;
        }
        for (start, series) in &intact.shells {
            self.set_bits(txn, *start, series)?;
        }
        self.replace_histogram_rows(txn, &intact.histograms)?;
        let mut segments = txn.open_table(SEGMENTS).map_err(self.fail(OPERATION))?;
        segments.retain(|_, _| false).map_err(self.fail(OPERATION))?;
        if let Some(named) = &intact.segment {
            segments.insert(named.number, named.span()).map_err(self.fail(OPERATION))?;
        }
        Ok(())
    }

    /// Reads all intact documents into a new segment.
    fn intact(&self, reader: &PartitionReader) -> Result<IntactContent, StoreError> {
        let (grid, mut intact) = (&self.grid, IntactContent::default());
        for (key, bytes) in reader.open_rows()? {
            if self.is_shell(key, &bytes) {
                let (start, series) = self.document_of(key);
                intact.shells.entry(start).or_default().push(series);
            }
        }
        let (number, mut writer) = self.segments.begin(false)?;
        let mut tile = TileWriter::default();
        let mut slots: Vec<(SeriesId, Vec<Slot>)> = Vec::new();
        let (rows, with_histograms) = (reader.rows()?, reader.rows_with_histograms()?);
        let mut sealer = HistogramSealer::new(HISTOGRAM_BYTES_MAX);
        for span in self.spans(&(grid.id.start..grid.end), SLOTS_MAX) {
            let seconds = grid.seconds(UnixMillis(span.start));
            let count = ((span.end - span.start) / grid.width_ms) as usize;
            let index = |slot: &Slot| ((slot.start.0 - span.start) / grid.width_ms) as u16;
            for &row in &rows {
                let id = TileId { seconds, row };
                tile.clear();
                slots.clear();
                for lane in 0..SERIES_PER_ROW {
                    let series = series_at(row, lane);
                    let found = intact_slots(reader, series, &span)?;
                    let cells = found.iter().map(|slot| (index(slot), &slot.cell));
                    tile.add(id.key(), lane, grid.width_ms, cells);
                    slots.push((series, found));
                }
                if tile.is_empty() {
                    continue;
                }
                if !writer.add(id, count, &mut tile)? {
                    for (series, slots) in &slots {
                        intact.open.extend(self.open_documents_of(*series, slots));
                    }
                }
            }
            for part in self.histogram_spans(&span) {
                for row in &with_histograms {
                    let at = (&part, *row);
                    if !past_damage(|| sealer.seal_tile(reader, at, &mut writer))? {
                        intact.histograms.extend(past_damage(|| reader.histograms_as_rows(at))?);
                    }
                }
            }
        }
        if writer.bytes() > 0 {
            let segment = Arc::new(writer.finish()?);
            self.segments.put(number, segment);
            let [from, to] = [grid.id.start, grid.end].map(|at| grid.seconds(at));
            intact.segment = Some(Named { number, from, to });
        }
        Ok(intact)
    }

    /// Groups the slots of a series by document.
    fn open_documents_of(&self, series: SeriesId, slots: &[Slot]) -> Vec<OpenDocument> {
        let grid = &self.grid;
        let mut documents: BTreeMap<UnixMillis, Vec<(usize, Cell)>> = BTreeMap::new();
        for slot in slots {
            let start = grid.document_start(slot.start);
            let index = grid.slot_index(start, slot.start);
            documents.entry(start).or_default().push((index, slot.cell));
        }
        documents.into_iter().map(|(start, cells)| ((start, series), cells)).collect()
    }
}

/// Repeats a read until it meets no further damage: the first read of each damaged document fails,
/// and later ones leave the document out.
fn past_damage<T>(mut read: impl FnMut() -> Result<T, StoreError>) -> Result<T, StoreError> {
    loop {
        match read() {
            Err(StoreError::DamagedPart { .. }) => {}
            outcome => return outcome,
        }
    }
}

/// Reads the slots of a series, except the slots of damaged documents.
fn intact_slots(
    reader: &PartitionReader,
    series: SeriesId,
    span: &Range<i64>,
) -> Result<Vec<Slot>, StoreError> {
    let mut scratch = Scratch::default();
    past_damage(|| {
        let mut slots = Vec::new();
        reader.slots_and_corrections(series, span, Columns::ALL, &mut scratch, &mut slots)?;
        Ok(slots)
    })
}
