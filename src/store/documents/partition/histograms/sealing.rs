//! Sealing: the histograms that a reader sees become tiles of a segment. A tile that would be too
//! large is split by time; the series of a document that are still too large stay open.
//!
//! Must never know: when a partition is sealed.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::{ControlFlow, Range},
};

use redb::{ReadableTable, ReadableTableMetadata, TableHandle, WriteTransaction};

use super::{HISTOGRAMS, HISTOGRAMS_NAME};
use crate::{
    model::{HistogramCell, SeriesId, UnixMillis},
    store::{
        documents::{
            partition::{Partition, reader::PartitionReader},
            segment::{
                Scratch,
                file::TileId,
                histograms::{HISTOGRAM_SLOTS_MAX, tile::AddOutcome},
                tile::TileWriter,
                writer::SegmentWriter,
            },
        },
        encoding::lanes::{SERIES_PER_ROW, row_of, series_at},
        error::StoreError,
        histograms::entries::{self, Entries},
    },
};

/// A function that takes the key and the bytes of a row of histograms.
type RowVisitor<'a> = dyn FnMut(u64, &[u8]) -> Result<(), StoreError> + 'a;

/// A document of a series whose histograms are too large for a tile: its start, and the series.
pub(crate) type LargeDocument = (UnixMillis, SeriesId);

/// The outcome of filling a segment.
pub(crate) enum FillOutcome {
    Whole,
    /// Decoding would not restore some cells exactly.
    Refused,
    /// The caller asked to stop.
    Ended,
}

/// A writer of tiles of histograms, with its memory.
pub(crate) struct HistogramSealer {
    /// The maximum size of the blocks of a tile.
    bytes_max: usize,
    tile: TileWriter,
    scratch: Scratch,
    /// The documents that were left out.
    pub(crate) left_open: Vec<LargeDocument>,
}

impl HistogramSealer {
    pub(crate) fn new(bytes_max: usize) -> Self {
        let (tile, scratch) = (TileWriter::default(), Scratch::default());
        Self { bytes_max, tile, scratch, left_open: Vec::new() }
    }

    /// Appends the histograms of rows over a span of documents to a segment, in the order of time.
    /// Before each tile, `go_on` is called with the size of the segment; when it returns false,
    /// the rest is missing. Documents in `left_open` are not in the segment.
    pub(crate) fn seal(
        &mut self,
        reader: &PartitionReader,
        (span, rows): (&Range<i64>, &BTreeSet<u32>),
        writer: &mut SegmentWriter,
        go_on: &mut dyn FnMut(u64) -> bool,
    ) -> Result<FillOutcome, StoreError> {
        let partition = &reader.partition;
        let spans = partition.histogram_spans(span);
        let tiles = spans
            .iter()
            .flat_map(|Range { start, end }| rows.iter().map(|row| (*start, *row, *end)));
        let mut waiting: BTreeSet<(i64, u32, i64)> = tiles.collect();
        while let Some((start, row, end)) = waiting.pop_first() {
            if !go_on(writer.bytes()) {
                return Ok(FillOutcome::Ended);
            }
            let documents = partition.documents_in(&(start..end));
            let is_single = documents.len() == 1;
            match self.put_tile(reader, (&(start..end), row), writer, is_single)? {
                AddOutcome::Added => {}
                AddOutcome::Inexact => return Ok(FillOutcome::Refused),
                AddOutcome::TooLarge => {
                    let middle = documents[documents.len() / 2];
                    waiting.extend([(start, row, middle), (middle, row, end)]);
                }
            }
        }
        Ok(FillOutcome::Whole)
    }

    /// Appends the histograms of a row over a span to a segment. Returns false, and appends
    /// nothing, when they do not become one tile.
    pub(crate) fn seal_tile(
        &mut self,
        reader: &PartitionReader,
        at: (&Range<i64>, u32),
        writer: &mut SegmentWriter,
    ) -> Result<bool, StoreError> {
        Ok(self.put_tile(reader, at, writer, false)? == AddOutcome::Added)
    }

    /// Appends a tile. `leaves_large` leaves out series for which the tile has no room; without it,
    /// such a tile is not appended.
    fn put_tile(
        &mut self,
        reader: &PartitionReader,
        (span, row): (&Range<i64>, u32),
        writer: &mut SegmentWriter,
        leaves_large: bool,
    ) -> Result<AddOutcome, StoreError> {
        let grid = &reader.partition.grid;
        let id = TileId::of_histograms(grid.seconds(UnixMillis(span.start)), row);
        let slots = ((span.end - span.start) / grid.width_ms) as usize;
        self.tile.clear();
        for lane in 0..SERIES_PER_ROW {
            let mut cells = Vec::new();
            let mut add = |start: i64, cell: HistogramCell| {
                if !cell.is_empty() {
                    cells.push((((start - span.start) / grid.width_ms) as u16, cell));
                }
                ControlFlow::Continue(())
            };
            let series = series_at(row, lane);
            let _all = reader.histograms(series, span, &mut self.scratch, &mut add)?;
            match self.tile.add_histograms(id.key(), lane, &cells, self.bytes_max) {
                AddOutcome::Added => {}
                AddOutcome::TooLarge if leaves_large => {
                    self.left_open.push((UnixMillis(span.start), series));
                }
                outcome @ (AddOutcome::TooLarge | AddOutcome::Inexact) => return Ok(outcome),
            }
        }
        let is_exact = self.tile.is_empty() || writer.add(id, slots, &mut self.tile)?;
        Ok(if is_exact { AddOutcome::Added } else { AddOutcome::Inexact })
    }
}

impl PartitionReader {
    /// Returns the rows of series that have histograms, ascending.
    pub(crate) fn rows_with_histograms(&self) -> Result<BTreeSet<u32>, StoreError> {
        let tiles = self.segments.iter().flat_map(|segment| segment.histogram_tiles());
        let mut rows: BTreeSet<u32> = tiles.map(|(_, _, row, _)| row).collect();
        self.each_histogram_row(&mut |key, _| {
            rows.insert(row_of(self.partition.document_of(key).1));
            Ok(())
        })?;
        Ok(rows)
    }

    /// Returns the bytes of the rows of histograms.
    pub(crate) fn histogram_bytes(&self) -> Result<u64, StoreError> {
        let Some(table) = self.histogram_table()? else { return Ok(0) };
        let partition = &self.partition;
        partition.file.guard("read", || {
            table.stats().map(|stats| stats.stored_bytes()).map_err(partition.fail("read"))
        })
    }

    /// Passes each row of histograms with its key to `visit`.
    pub(super) fn each_histogram_row(&self, visit: &mut RowVisitor<'_>) -> Result<(), StoreError> {
        let Some(table) = self.histogram_table()? else { return Ok(()) };
        let partition = &self.partition;
        partition.file.guard("read", || {
            for entry in table.iter().map_err(partition.fail("read"))? {
                let (key, bytes) = entry.map_err(partition.fail("read"))?;
                visit(key.value(), bytes.value())?;
            }
            Ok(())
        })
    }

    /// Returns rows of the histograms of a row of series over a span, with their keys.
    pub(crate) fn histograms_as_rows(
        &self,
        (span, row): (&Range<i64>, u32),
    ) -> Result<Vec<(u64, Vec<u8>)>, StoreError> {
        let mut rows = Vec::new();
        for series in (0..SERIES_PER_ROW).map(|lane| series_at(row, lane)) {
            rows.extend(self.histograms_of_series_as_rows(span, series)?);
        }
        Ok(rows)
    }

    /// Returns rows of the histograms of a series over a span, with their keys.
    fn histograms_of_series_as_rows(
        &self,
        span: &Range<i64>,
        series: SeriesId,
    ) -> Result<Vec<(u64, Vec<u8>)>, StoreError> {
        let (grid, mut scratch) = (&self.partition.grid, Scratch::default());
        let mut documents = BTreeMap::<u64, Entries>::new();
        let mut add = |at: i64, cell| {
            let start = grid.document_start(UnixMillis(at));
            let entries = documents.entry(self.partition.key(start, series)).or_default();
            entries.insert(grid.slot_index(start, UnixMillis(at)) as u32, cell);
            ControlFlow::Continue(())
        };
        let _all = self.histograms(series, span, &mut scratch, &mut add)?;
        let rows = documents.into_iter();
        Ok(rows.map(|(key, entries)| (key, entries::encode_any(&entries, key))).collect())
    }
}

impl Partition {
    /// Splits a span of documents into spans of tiles of histograms.
    pub(crate) fn histogram_spans(&self, span: &Range<i64>) -> Vec<Range<i64>> {
        self.spans(&(UnixMillis(span.start)..UnixMillis(span.end)), HISTOGRAM_SLOTS_MAX)
    }

    /// Returns the starts of the documents in a span of whole documents.
    fn documents_in(&self, span: &Range<i64>) -> Vec<i64> {
        let next = |document: &UnixMillis| Some(self.grid.next_document(*document));
        let documents = std::iter::successors(Some(UnixMillis(span.start)), next);
        documents.map(|document| document.0).take_while(|start| *start < span.end).collect()
    }

    /// Writes rows of the documents that were left out of a segment, as the reader read them. A row
    /// that changed since then has all histograms of its document.
    pub(crate) fn keep_open(
        &self,
        txn: &WriteTransaction,
        reader: &PartitionReader,
        left_open: &[LargeDocument],
    ) -> Result<(), StoreError> {
        if left_open.is_empty() {
            return Ok(());
        }
        let mut table = txn.open_table(HISTOGRAMS).map_err(self.fail("seal"))?;
        for (start, series) in left_open {
            let span = start.0..self.grid.next_document(*start).0;
            for (key, bytes) in reader.histograms_of_series_as_rows(&span, *series)? {
                if table.get(key).map_err(self.fail("seal"))?.is_none() {
                    table.insert(key, &*bytes).map_err(self.fail("seal"))?;
                }
            }
        }
        Ok(())
    }

    /// Removes the rows of histograms that did not change since the reader read them. A changed row
    /// hides its sealed copy. Returns the number of removed rows.
    pub(crate) fn remove_sealed_histograms(
        &self,
        txn: &WriteTransaction,
        reader: &PartitionReader,
    ) -> Result<u64, StoreError> {
        let mut removed = 0;
        if reader.histogram_table()?.is_none() {
            return Ok(removed);
        }
        let mut table = txn.open_table(HISTOGRAMS).map_err(self.fail("seal"))?;
        reader.each_histogram_row(&mut |key, sealed| {
            let current = table.get(key).map_err(self.fail("seal"))?;
            let is_same = current.is_some_and(|current| current.value() == sealed);
            if is_same {
                table.remove(key).map_err(self.fail("seal"))?;
                removed += 1;
            }
            Ok(())
        })?;
        Ok(removed)
    }

    /// Replaces all rows of histograms.
    pub(crate) fn replace_histogram_rows(
        &self,
        txn: &WriteTransaction,
        rows: &[(u64, Vec<u8>)],
    ) -> Result<(), StoreError> {
        let mut tables = txn.list_tables().map_err(self.fail("mend"))?;
        if rows.is_empty() && !tables.any(|table| table.name() == HISTOGRAMS_NAME) {
            return Ok(());
        }
        drop(tables);
        let mut table = txn.open_table(HISTOGRAMS).map_err(self.fail("mend"))?;
        table.retain(|_, _| false).map_err(self.fail("mend"))?;
        for (key, bytes) in rows {
            table.insert(key, &**bytes).map_err(self.fail("mend"))?;
        }
        Ok(())
    }
}
