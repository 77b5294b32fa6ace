//! Folding: all documents of a partition, open and sealed, become one segment when the partition's
//! time is over, or when many documents are open. Until then, overlapping segments are merged.
//!
//! Must never know: when a partition's time is over.

mod layers;
mod portion;

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
    sync::{Arc, atomic::Ordering},
};

use portion::Portion;
use redb::{AccessGuard, ReadableTable, StorageError};

use super::{
    DOCUMENTS, Partition, SEGMENTS,
    histograms::sealing::{FillOutcome, HistogramSealer, LargeDocument},
    reader::PartitionReader,
    segments::Named,
};
use crate::{
    model::UnixMillis,
    store::{
        documents::{
            Folded, Slot, Stage,
            segment::{
                Columns, Scratch,
                file::TileId,
                tile::{SLOTS_MAX, TileWriter},
                writer::SegmentWriter,
            },
        },
        encoding::lanes::{SERIES_PER_ROW, row_of, series_at},
        error::StoreError,
    },
};

/// An open document with its key.
type Entry<'a> = Result<(AccessGuard<'a, u64>, AccessGuard<'a, &'static [u8]>), StorageError>;

/// The sizes that decide what is folded.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FoldSizes {
    /// The minimum of open bytes, and of late bytes, that are worth a new segment.
    pub(crate) bytes_min: u64,
    /// The maximum size of the blocks of a tile of histograms.
    pub(crate) tile_bytes_max: usize,
}

impl Partition {
    /// Folds the whole partition, or some of its segments, into one segment, if that pays off.
    /// `go_on` gets the number of bytes that were written since its last call, and returns false
    /// to end the work.
    pub(crate) fn fold(
        self: &Arc<Self>,
        stage: Stage,
        sizes: FoldSizes,
        go_on: &dyn Fn(u64) -> bool,
    ) -> Result<Option<Folded>, StoreError> {
        if stage != Stage::Busy && self.is_loose.load(Ordering::Relaxed) {
            self.shrink()?;
        }
        let seen = self.file.stamp().map(|stamp| (stamp, stage));
        if seen.is_some() && *self.not_worth.lock() == seen {
            return Ok(None);
        }
        // Folding a damaged partition would lose the record of its damage.
        let is_whole =
            !self.is_being_removed() && self.damage_count() == 0 && !self.segments.has_lost();
        let bytes_min = sizes.bytes_min;
        let portion = if is_whole { self.read()?.portion_to_fold(stage, bytes_min)? } else { None };
        let Some(portion) = portion else {
            *self.not_worth.lock() = seen;
            return Ok(None);
        };
        let (number, mut writer) = self.segments.begin(false)?;
        let mut sealer = HistogramSealer::new(sizes.tile_bytes_max);
        match self.fill(&portion, (&mut writer, &mut sealer), go_on) {
            Ok(FillOutcome::Whole) => {}
            Ok(FillOutcome::Refused) => {
                *self.not_worth.lock() = seen;
                return Ok(Some(Folded { refused: true, ..Folded::default() }));
            }
            // The damage has been recorded.
            Ok(FillOutcome::Ended) | Err(StoreError::DamagedPart { .. }) => return Ok(None),
            Err(fault) => return Err(fault),
        }
        // A query may have found damage in the meantime.
        if self.damage_count() > 0 {
            return Ok(None);
        }
        let segment = Arc::new(writer.finish()?);
        let bytes = segment.bytes();
        self.segments.put(number, segment);
        let left_open = std::mem::take(&mut sealer.left_open);
        let Some((documents, histograms)) = self.install(&portion, number, &left_open)? else {
            return Ok(None);
        };
        drop(portion);
        if documents + histograms > 0 {
            self.shrink()?;
        }
        self.note_left_open(&left_open, stage);
        let left_open = left_open.len() as u64;
        Ok(Some(Folded { documents, bytes, refused: false, left_open }))
    }

    /// Logs that documents stay open, and does not fold them again before the next change.
    fn note_left_open(&self, left_open: &[LargeDocument], stage: Stage) {
        let Some((start, series)) = left_open.first() else { return };
        *self.not_worth.lock() = self.file.stamp().map(|stamp| (stamp, stage));
        let (file, series, documents) = (self.file.name(), series.0, left_open.len());
        tracing::warn!(
            file,
            series,
            %start,
            documents,
            "the histograms of documents are too large for a segment, and stay in the \
             partition's database: send fewer buckets"
        );
    }

    /// Releases the space of folded documents. When a reader prevents it, a later call retries.
    fn shrink(&self) -> Result<(), StoreError> {
        self.is_loose.store(true, Ordering::Relaxed);
        if self.file.compact()? {
            self.is_loose.store(false, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Replaces everything that the reader saw with the segment; returns the number of removed open
    /// documents and that of removed rows of histograms, or `None` when the partition is being
    /// removed.
    fn install(
        &self,
        portion: &Portion,
        number: u32,
        left_open: &[LargeDocument],
    ) -> Result<Option<(u64, u64)>, StoreError> {
        let removal = self.removal.lock();
        if removal.is_some() {
            return self.segments.remove(number).map(|()| None);
        }
        let [from, to] = [portion.span.start, portion.span.end].map(|at| self.grid.seconds(at));
        let named = Named { number, from, to };
        let removed = self.commit_segment(&portion.reader, named, left_open);
        if removed.is_err() {
            self.remove_unnamed(number);
        }
        let removed = removed?;
        for entry in &portion.reader.named {
            self.segments.remove(entry.number)?;
        }
        Ok(Some(removed))
    }

    /// Writes all documents of a portion into a segment.
    fn fill(
        &self,
        portion: &Portion,
        (writer, sealer): (&mut SegmentWriter, &mut HistogramSealer),
        go_on: &dyn Fn(u64) -> bool,
    ) -> Result<FillOutcome, StoreError> {
        let (grid, reader) = (&self.grid, &portion.reader);
        let (rows, with_histograms) = (reader.rows()?, reader.rows_with_histograms()?);
        let (mut tile, mut slots, mut bytes) = (TileWriter::default(), Vec::new(), 0);
        let mut scratch = Scratch::default();
        let mut go_on = |now: u64| go_on(now - std::mem::replace(&mut bytes, now));
        for span in self.spans(&portion.span, SLOTS_MAX) {
            let seconds = grid.seconds(UnixMillis(span.start));
            let count = ((span.end - span.start) / grid.width_ms) as usize;
            let number = |slot: &Slot| ((slot.start.0 - span.start) / grid.width_ms) as u16;
            for row in &rows {
                if !go_on(writer.bytes()) {
                    return Ok(FillOutcome::Ended);
                }
                let id = TileId { seconds, row: *row };
                tile.clear();
                for lane in 0..SERIES_PER_ROW {
                    slots.clear();
                    let (series, all) = (series_at(*row, lane), Columns::ALL);
                    reader.slots_and_corrections(series, &span, all, &mut scratch, &mut slots)?;
                    let cells = slots.iter().map(|slot| (number(slot), &slot.cell));
                    tile.add(id.key(), lane, grid.width_ms, cells);
                }
                if !tile.is_empty() && !writer.add(id, count, &mut tile)? {
                    return Ok(FillOutcome::Refused);
                }
            }
            match sealer.seal(reader, (&span, &with_histograms), writer, &mut go_on)? {
                FillOutcome::Whole => {}
                outcome @ (FillOutcome::Refused | FillOutcome::Ended) => return Ok(outcome),
            }
        }
        Ok(FillOutcome::Whole)
    }

    /// Splits a range into spans of whole documents that fit into a tile.
    pub(super) fn spans(&self, all: &Range<UnixMillis>, slots_max: usize) -> Vec<Range<i64>> {
        let grid = &self.grid;
        let longest_ms = slots_max as i64 * grid.width_ms;
        let mut spans: Vec<Range<i64>> = Vec::new();
        let mut document = all.start;
        while document < all.end {
            let next = grid.next_document(document);
            match spans.last_mut() {
                Some(span) if next.0 - span.start <= longest_ms => span.end = next.0,
                _ => spans.push(document.0..next.0),
            }
            document = next;
        }
        spans
    }

    /// Registers the segment in place of the segments that it replaces, and removes the open
    /// documents that did not change in the meantime. A changed document stays open, and counts
    /// instead of its sealed copy. Documents without samples, which releases with format 1
    /// preallocated, become bits. Rows of histograms are removed likewise, except those that were
    /// left open. Returns the numbers of removed documents and rows.
    fn commit_segment(
        &self,
        reader: &PartitionReader,
        named: Named,
        left_open: &[LargeDocument],
    ) -> Result<(u64, u64), StoreError> {
        self.file.transact("seal", |txn| {
            let mut table = txn.open_table(DOCUMENTS).map_err(self.fail("seal"))?;
            let (mut removed, mut shells) = (0, BTreeMap::<_, Vec<_>>::new());
            for entry in reader.open_documents()? {
                let (key, sealed) = entry.map_err(self.fail("seal"))?;
                let key = key.value();
                let current = table.get(key).map_err(self.fail("seal"))?;
                let is_same = current.is_some_and(|current| current.value() == sealed.value());
                if is_same {
                    table.remove(key).map_err(self.fail("seal"))?;
                    removed += 1;
                    if self.is_shell(key, sealed.value()) {
                        let (start, series) = self.document_of(key);
                        shells.entry(start).or_default().push(series);
                    }
                }
            }
            for (start, series) in &shells {
                self.set_bits(txn, *start, series)?;
            }
            let histograms = self.remove_sealed_histograms(txn, reader)?;
            self.keep_open(txn, reader, left_open)?;
            let mut segments = txn.open_table(SEGMENTS).map_err(self.fail("seal"))?;
            for entry in &reader.named {
                segments.remove(entry.number).map_err(self.fail("seal"))?;
            }
            segments.insert(named.number, named.span()).map_err(self.fail("seal"))?;
            Ok((removed, histograms))
        })
    }
}

impl PartitionReader {
    /// Returns the open documents; empty for a reader that is restricted to segments.
    fn open_documents(&self) -> Result<impl Iterator<Item = Entry<'_>>, StoreError> {
        let partition = &self.partition;
        let open = || self.documents.iter().map_err(partition.fail("read"));
        let has_any = !self.open_starts.is_empty();
        Ok(has_any.then(open).transpose()?.into_iter().flatten())
    }

    /// Returns copies of the open documents with their keys.
    pub(super) fn open_rows(&self) -> Result<Vec<(u64, Vec<u8>)>, StoreError> {
        let fail = |cause| self.partition.fail("read")(cause);
        let copy = |entry: Entry<'_>| {
            entry.map(|(key, bytes)| (key.value(), bytes.value().to_vec())).map_err(fail)
        };
        self.open_documents()?.map(copy).collect()
    }

    /// Returns the rows of series that have documents, ascending.
    pub(super) fn rows(&self) -> Result<BTreeSet<u32>, StoreError> {
        let tiles = self.segments.iter().flat_map(|segment| segment.tiles());
        let mut rows: BTreeSet<u32> = tiles.map(|(_, id, _)| id.row).collect();
        let partition = &self.partition;
        for entry in self.open_documents()? {
            let (key, _) = entry.map_err(partition.fail("read"))?;
            rows.insert(row_of(partition.document_of(key.value()).1));
        }
        Ok(rows)
    }
}
