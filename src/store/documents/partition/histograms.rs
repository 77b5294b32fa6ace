//! The histograms of a partition: for each document of a series of histograms, a row with the cells
//! of its slots. A partition without histograms lacks the table.
//!
//! Must never know: where cells come from, what the mark means.

use std::ops::{ControlFlow, Range};

use redb::{ReadOnlyTable, ReadableTable, TableDefinition, TableError, WriteTransaction};

use super::{Partition, reader::PartitionReader};
use crate::{
    model::{HistogramCell, SeriesId, UnixMillis},
    store::{
        documents::DocumentVisitor,
        error::StoreError,
        histograms::{
            entries::{self, Entries},
            map::HistogramVisitor,
        },
    },
};

/// The table, with the keys of documents.
pub(crate) const HISTOGRAMS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("histograms");

impl Partition {
    /// Merges cells of histograms into a document, or replaces the cells of its slots, where an
    /// empty cell empties its slot. Returns false when a damaged row was replaced.
    pub(super) fn write_histograms(
        &self,
        txn: &WriteTransaction,
        (start, series): (UnixMillis, SeriesId),
        (cells, replaces): (&[(usize, HistogramCell)], bool),
    ) -> Result<bool, StoreError> {
        let mut table = txn.open_table(HISTOGRAMS).map_err(self.fail("write"))?;
        let key = self.key(start, series);
        let stored = table.get(key).map_err(self.fail("write"))?;
        let stored = stored.map(|bytes| entries::decode(bytes.value(), key, |_| true));
        let is_sound = stored.as_ref().is_none_or(Option::is_some);
        let mut merged = stored.flatten().unwrap_or_default();
        for (slot, cell) in cells {
            let slot = *slot as u32;
            match (replaces, cell.is_empty()) {
                (false, _) => entries::merge(&mut merged, slot, cell),
                (true, false) => drop(merged.insert(slot, cell.clone())),
                (true, true) => drop(merged.remove(&slot)),
            }
        }
        match entries::encode(&merged, key) {
            Some(bytes) => table.insert(key, &*bytes).map_err(self.fail("write"))?,
            None => table.remove(key).map_err(self.fail("write"))?,
        };
        Ok(is_sound)
    }

    /// Removes the damaged rows of histograms.
    pub(super) fn drop_damaged_histograms(&self, txn: &WriteTransaction) -> Result<(), StoreError> {
        let mut tables = txn.list_tables().map_err(self.fail("mend"))?;
        if !tables.any(|table| redb::TableHandle::name(&table) == HISTOGRAMS_NAME) {
            return Ok(());
        }
        let mut table = txn.open_table(HISTOGRAMS).map_err(self.fail("mend"))?;
        let is_sound = |key, bytes: &[u8]| entries::decode(bytes, key, |_| true).is_some();
        table.retain(is_sound).map_err(self.fail("mend"))
    }
}

const HISTOGRAMS_NAME: &str = "histograms";

impl PartitionReader {
    /// Opens the table of histograms; `None` when the partition has none.
    fn histograms_table(&self) -> Result<Option<ReadOnlyTable<u64, &'static [u8]>>, StoreError> {
        let file = &self.partition.file;
        file.guard("read", || match self.txn.open_table(HISTOGRAMS) {
            Err(TableError::TableDoesNotExist(_)) => Ok(None),
            table => table.map(Some).map_err(file.fail("read")),
        })
    }

    /// Passes the histograms of a series in the slots of a range to `visit`, document by document,
    /// until it breaks.
    ///
    /// # Errors
    /// When a row cannot be read, or is found damaged.
    pub(crate) fn histograms(
        &self,
        series: SeriesId,
        range: &Range<i64>,
        visit: &mut HistogramVisitor<'_>,
    ) -> Result<ControlFlow<()>, StoreError> {
        let Some(table) = self.histograms_table()? else { return Ok(ControlFlow::Continue(())) };
        let (partition, grid) = (&self.partition, &self.partition.grid);
        let from = UnixMillis(range.start.max(grid.id.start.0));
        let to = UnixMillis(range.end.min(grid.end.0));
        let mut document = grid.document_start(from);
        while document < to {
            let key = partition.key(document, series);
            let is_wanted =
                |slot: u32| range.contains(&(document.0 + i64::from(slot) * grid.width_ms));
            let entries = partition.file.guard("read", || {
                let found = table.get(key).map_err(partition.fail("read"))?;
                let decode = |bytes: &[u8]| entries::decode(bytes, key, is_wanted);
                Ok(found.map_or(Some(Entries::new()), |bytes| decode(bytes.value())))
            })?;
            for (slot, cell) in self.sound(entries, document, series)? {
                let start = document.0 + i64::from(slot) * grid.width_ms;
                if visit(start, cell).is_break() {
                    return Ok(ControlFlow::Break(()));
                }
            }
            document = grid.next_document(document);
        }
        Ok(ControlFlow::Continue(()))
    }

    /// Returns the cells of an intact row. The first read of a damaged row is an error, which is
    /// logged and counted; after that, the row counts as missing.
    fn sound(
        &self,
        entries: Option<Entries>,
        start: UnixMillis,
        series: SeriesId,
    ) -> Result<Entries, StoreError> {
        if let Some(entries) = entries {
            return Ok(entries);
        }
        let (partition, file) = (&self.partition, self.partition.file.name());
        let is_new = partition.histogram_damage.note(partition.key(start, series), || {
            let series = series.0;
            tracing::error!(
                file,
                series,
                %start,
                "the histograms of a document are damaged: they are missing at its granularity"
            );
        });
        if !is_new {
            return Ok(Entries::new());
        }
        let part = format!("the histograms of series {} at {start}", series.0);
        Err(StoreError::DamagedPart { file: file.to_owned(), part })
    }

    /// Reads every row of histograms, notes damaged rows, and visits them.
    pub(super) fn check_histograms(
        &self,
        visit: &mut DocumentVisitor<'_>,
        go_on: &dyn Fn(u64) -> bool,
    ) -> Result<(), StoreError> {
        let Some(table) = self.histograms_table()? else { return Ok(()) };
        let partition = &self.partition;
        partition.file.guard("read", || {
            for entry in table.iter().map_err(partition.fail("read"))? {
                let (key, bytes) = entry.map_err(partition.fail("read"))?;
                if !go_on(bytes.value().len() as u64) {
                    return Ok(());
                }
                if entries::decode(bytes.value(), key.value(), |_| true).is_none() {
                    let (start, series) = partition.document_of(key.value());
                    partition.histogram_damage.note(key.value(), || {});
                    visit(start, series, Err("its histograms are damaged".to_owned()));
                }
            }
            Ok(())
        })
    }
}
