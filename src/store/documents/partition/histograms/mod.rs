//! The histograms of a partition: rows with the cells of open documents, and tiles of segments.
//!
//! A row has all histograms of its document, and hides those in segments. At most one segment has
//! histograms of a document. A partition without histograms lacks the table. Must never know: where
//! cells come from, what the mark means.

mod check;
mod sealed;
pub(super) mod sealing;

use std::{
    ops::{ControlFlow, Range},
    sync::Arc,
};

use redb::{ReadableTable, TableDefinition, TableError, WriteTransaction};

use self::sealed::SealedHistograms;
use super::{HistogramTable, Partition, reader::PartitionReader};
use crate::{
    model::{HistogramCell, SeriesId, UnixMillis},
    store::{
        documents::segment::{Scratch, file::Segment},
        error::StoreError,
        histograms::{
            entries::{self, Entries},
            map::HistogramVisitor,
        },
    },
};

/// The table, with the keys of documents.
const HISTOGRAMS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new(HISTOGRAMS_NAME);
const HISTOGRAMS_NAME: &str = "histograms";

impl Partition {
    /// Merges cells of histograms into a document, or replaces the cells of its slots, where an
    /// empty cell empties its slot. Histograms in segments become a row. Returns false when damaged
    /// histograms were replaced.
    pub(super) fn write_histograms(
        &self,
        txn: &WriteTransaction,
        (start, series): (UnixMillis, SeriesId),
        (cells, replaces): (&[(usize, HistogramCell)], bool),
        (segments, scratch): (&[Arc<Segment>], &mut Scratch),
    ) -> Result<bool, StoreError> {
        let mut table = txn.open_table(HISTOGRAMS).map_err(self.fail("write"))?;
        let key = self.key(start, series);
        let stored = table.get(key).map_err(self.fail("write"))?;
        let stored = stored.map(|bytes| entries::decode(bytes.value(), key, |_| true));
        // A row without cells still hides what segments have.
        let mut exists = stored.is_some();
        let known = if let Some(entries) = stored {
            entries
        } else {
            let found = SealedHistograms::new(self, segments).document(start, series, scratch)?;
            exists = found.as_ref().is_none_or(|found| !found.is_empty());
            found
        };
        let is_sound = known.is_some();
        let mut merged = known.unwrap_or_default();
        for (slot, cell) in cells {
            let slot = *slot as u32;
            match (replaces, cell.is_empty()) {
                (false, _) => entries::merge(&mut merged, slot, cell),
                (true, false) => drop(merged.insert(slot, cell.clone())),
                (true, true) => drop(merged.remove(&slot)),
            }
        }
        if exists || !merged.is_empty() {
            let bytes = entries::encode_any(&merged, key);
            table.insert(key, &*bytes).map_err(self.fail("write"))?;
        }
        Ok(is_sound)
    }
}

impl PartitionReader {
    /// Opens the table of rows at its first use; `None` when the file has no histograms, or the
    /// reader is restricted to segments.
    fn histogram_table(&self) -> Result<Option<&HistogramTable>, StoreError> {
        if self.histograms.get().is_none() {
            let file = &self.partition.file;
            let table = file.guard("read", || match self.txn.open_table(HISTOGRAMS) {
                Err(TableError::TableDoesNotExist(_)) => Ok(None),
                table => table.map(Some).map_err(file.fail("read")),
            })?;
            // Another thread may have opened it in the meantime.
            self.histograms.get_or_init(|| table);
        }
        Ok(self.histograms.get().and_then(Option::as_ref))
    }

    fn sealed_histograms(&self) -> SealedHistograms<'_> {
        SealedHistograms::new(&self.partition, &self.segments)
    }

    /// Passes the histograms of a series in the slots of a range to `visit`, document by document,
    /// until it breaks.
    ///
    /// # Errors
    /// When histograms cannot be read, or are found damaged.
    pub(crate) fn histograms(
        &self,
        series: SeriesId,
        range: &Range<i64>,
        scratch: &mut Scratch,
        visit: &mut HistogramVisitor<'_>,
    ) -> Result<ControlFlow<()>, StoreError> {
        let (table, sealed) = (self.histogram_table()?, self.sealed_histograms());
        if table.is_none() && !sealed.has_any() {
            return Ok(ControlFlow::Continue(()));
        }
        let grid = &self.partition.grid;
        let from = UnixMillis(range.start.max(grid.id.start.0));
        let to = UnixMillis(range.end.min(grid.end.0));
        let (mut run, mut document) = (None, grid.document_start(from));
        while document < to {
            if let Some(row) = self.histogram_row(document, series, range)? {
                if sealed.visit(run.take(), series, range, scratch, visit)?.is_break() {
                    return Ok(ControlFlow::Break(()));
                }
                for (slot, cell) in row {
                    let start = document.0 + i64::from(slot) * grid.width_ms;
                    if visit(start, cell).is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                }
            } else if let Some(found) = sealed.find(document, series, scratch)? {
                let next = match &mut run {
                    Some(run) => found.join(run),
                    None => Some(found),
                };
                if let Some(next) = next {
                    let before = run.replace(next);
                    if sealed.visit(before, series, range, scratch, visit)?.is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                }
            }
            document = grid.next_document(document);
        }
        sealed.visit(run, series, range, scratch, visit)
    }

    /// Returns the cells of a row within a range; `None` when there is no row. A damaged row has no
    /// cells after its first read.
    fn histogram_row(
        &self,
        document: UnixMillis,
        series: SeriesId,
        range: &Range<i64>,
    ) -> Result<Option<Entries>, StoreError> {
        let Some(table) = self.histogram_table()? else { return Ok(None) };
        let partition = &self.partition;
        let (key, width_ms) = (partition.key(document, series), partition.grid.width_ms);
        let is_wanted = |slot: u32| range.contains(&(document.0 + i64::from(slot) * width_ms));
        let found = partition.file.guard("read", || {
            let found = table.get(key).map_err(partition.fail("read"))?;
            Ok(found.map(|bytes| entries::decode(bytes.value(), key, is_wanted)))
        })?;
        found.map(|entries| self.sound(entries, document, series)).transpose()
    }

    /// Returns whether a document has a row of histograms.
    fn has_histogram_row(&self, start: UnixMillis, series: SeriesId) -> Result<bool, StoreError> {
        let Some(table) = self.histogram_table()? else { return Ok(false) };
        let partition = &self.partition;
        partition.file.guard("read", || {
            let found = table.get(partition.key(start, series));
            found.map(|row| row.is_some()).map_err(partition.fail("read"))
        })
    }

    /// Returns the cells of an intact row. The first read of a damaged row is an error, which is
    /// logged and counted; after that, the row counts as empty.
    fn sound(
        &self,
        entries: Option<Entries>,
        start: UnixMillis,
        series: SeriesId,
    ) -> Result<Entries, StoreError> {
        if let Some(entries) = entries {
            return Ok(entries);
        }
        let file = self.partition.file.name();
        let cause = "the checksum of a row differs".to_owned();
        self.partition.meet_histograms(&[start], series, file, &cause).map(|()| Entries::new())
    }
}

impl Partition {
    /// Records damaged histograms of documents. Returns an error unless all of them were known to
    /// be damaged.
    fn meet_histograms(
        &self,
        starts: &[UnixMillis],
        series: SeriesId,
        file: &str,
        cause: &str,
    ) -> Result<(), StoreError> {
        let part = (file, "the histograms");
        self.meet_damage(&self.histogram_damage, (starts, series), part, |start| {
            let series = series.0;
            tracing::error!(
                file,
                series,
                %start,
                cause,
                "the histograms of a document are damaged: they are missing at its granularity"
            );
        })
    }
}
