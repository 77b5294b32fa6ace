//! The cells of histograms in the head: a table for each granularity, with the keys of its rows. A
//! head without histograms lacks these tables.
//!
//! Must never know: which cells are written, and when.

use std::ops::{ControlFlow, Range};

use redb::{ReadOnlyTable, ReadableTable, TableDefinition, TableError};

use super::{
    keys::{fail, key, note_damage, row_of_key, slots},
    reader::HeadReader,
    writer::HeadWriter,
};
use crate::{
    model::{HistogramCell, SeriesId, UnixMillis},
    store::{
        encoding::lanes::{row_and_lane, row_of, series_at},
        error::StoreError,
        file::damage::Damage,
        histograms::{
            entries::{self, Entries},
            map::{HistogramVisitor, HistogramsOfLevel, merge_into},
        },
    },
};

pub(super) fn table(name: &str) -> TableDefinition<'_, u64, &'static [u8]> {
    TableDefinition::new(name)
}

/// Reads the wanted cells of a row; the first read of a damaged row is an error, after that the row
/// counts as missing.
fn read(
    damage: &Damage,
    key: u64,
    bytes: &[u8],
    is_wanted: impl Fn(u32) -> bool,
) -> Result<Entries, StoreError> {
    if let Some(entries) = entries::decode(bytes, key, is_wanted) {
        return Ok(entries);
    }
    note_damage(damage, key, "histograms")?;
    Ok(Entries::new())
}

impl HeadReader {
    /// Opens the table of histograms; `None` when the head has none.
    fn histograms(&self) -> Result<Option<ReadOnlyTable<u64, &'static [u8]>>, StoreError> {
        if !self.has_histograms {
            return Ok(None);
        }
        self.file.guard("read", || match self.txn.open_table(table(&self.histograms_name)) {
            Err(TableError::TableDoesNotExist(_)) => Ok(None),
            table => table.map(Some).map_err(fail("read")),
        })
    }

    /// Returns the starts of the slots within a range that have histograms, ascending.
    pub(crate) fn histogram_slots(&self, range: Range<i64>) -> Result<Vec<i64>, StoreError> {
        let Some(table) = self.histograms()? else { return Ok(Vec::new()) };
        self.file.guard("read", || slots(&table, range))
    }

    /// Adds the histograms of all series in a slot to `out`. A damaged row counts as missing.
    pub(crate) fn histograms_of_slot(
        &self,
        slot_start: i64,
        out: &mut HistogramsOfLevel,
    ) -> Result<(), StoreError> {
        let Some(table) = self.histograms()? else { return Ok(()) };
        self.file.guard("read", || {
            let rows = table.range(key(slot_start, 0)..key(slot_start + 1000, 0));
            for entry in rows.map_err(fail("read"))? {
                let (key, bytes) = entry.map_err(fail("read"))?;
                let row = row_of_key(key.value());
                // The first read is an error, which is logged and counted.
                let found = read(&self.histogram_damage, key.value(), bytes.value(), |_| true);
                for (lane, cell) in found.unwrap_or_default() {
                    merge_into(out, (series_at(row, lane as usize), slot_start), cell);
                }
            }
            Ok(())
        })
    }

    /// Passes the histograms of a series in some slots to `visit`, until it breaks.
    ///
    /// # Errors
    /// When a row cannot be read, or is found damaged.
    pub(crate) fn histograms_of(
        &self,
        series: SeriesId,
        slot_starts: &[i64],
        visit: &mut HistogramVisitor<'_>,
    ) -> Result<ControlFlow<()>, StoreError> {
        let Some(table) = self.histograms()? else { return Ok(ControlFlow::Continue(())) };
        let (row, lane) = row_and_lane(series);
        self.file.guard("read", || {
            for slot in slot_starts {
                let key = key(*slot, row);
                let Some(bytes) = table.get(key).map_err(fail("read"))? else { continue };
                let found =
                    read(&self.histogram_damage, key, bytes.value(), |of| of as usize == lane)?;
                for cell in found.into_values() {
                    if visit(*slot, cell).is_break() {
                        return Ok(ControlFlow::Break(()));
                    }
                }
            }
            Ok(ControlFlow::Continue(()))
        })
    }

    /// Reads the histograms of a slot, and notes damaged rows. Returns the number of bytes read.
    pub(super) fn check_histograms(&self, slot_start: i64) -> Result<u64, StoreError> {
        let Some(table) = self.histograms()? else { return Ok(0) };
        self.file.guard("read", || {
            let (mut bytes_read, range) = (0, key(slot_start, 0)..key(slot_start + 1000, 0));
            for entry in table.range(range).map_err(fail("read"))? {
                let (key, bytes) = entry.map_err(fail("read"))?;
                bytes_read += bytes.value().len() as u64;
                // The damage is noted and logged.
                drop(read(&self.histogram_damage, key.value(), bytes.value(), |_| true));
            }
            Ok(bytes_read)
        })
    }
}

impl HeadWriter<'_> {
    /// Returns the starts of the slots that have histograms, ascending.
    pub(super) fn histogram_slots(&self) -> Result<Vec<i64>, StoreError> {
        if !self.has_histograms {
            return Ok(Vec::new());
        }
        let table = self.txn.open_table(table(&self.histograms_name)).map_err(fail("write"))?;
        slots(&table, 0..i64::MAX)
    }

    /// Removes the histograms of the slots for which `is_removed` returns true.
    pub(crate) fn remove_histograms(
        &mut self,
        mut is_removed: impl FnMut(i64) -> Result<bool, StoreError>,
    ) -> Result<(), StoreError> {
        if !self.has_histograms {
            return Ok(());
        }
        let mut table = self.txn.open_table(table(&self.histograms_name)).map_err(fail("write"))?;
        for slot in slots(&table, 0..i64::MAX)? {
            if is_removed(slot)? {
                let rows = key(slot, 0)..key(slot + 1000, 0);
                table.retain_in(rows, |_, _| false).map_err(fail("write"))?;
            }
        }
        Ok(())
    }

    /// Merges histograms into the rows of their slots.
    pub(crate) fn merge_histograms(
        &mut self,
        cells: &[(SeriesId, i64, &HistogramCell)],
    ) -> Result<(), StoreError> {
        if cells.is_empty() {
            return Ok(());
        }
        let mut table = self.txn.open_table(table(&self.histograms_name)).map_err(fail("write"))?;
        let mut sorted = cells.to_vec();
        sorted.sort_by_key(|(series, slot, _)| (*slot, *series));
        let is_same = |(series, slot, _): &(SeriesId, i64, _), next: &(SeriesId, i64, _)| {
            (*slot, row_of(*series)) == (next.1, row_of(next.0))
        };
        for of_row in sorted.chunk_by(is_same) {
            let Some((first, slot, _)) = of_row.first() else { continue };
            let key = key(*slot, row_of(*first));
            let stored = table.get(key).map_err(fail("write"))?;
            let stored =
                stored.map(|bytes| read(self.histogram_damage, key, bytes.value(), |_| true));
            let mut merged = match stored {
                None => Entries::new(),
                Some(Ok(found)) if !found.is_empty() => found,
                // This transaction replaces the damaged row.
                Some(_) => {
                    self.lost.add(UnixMillis(*slot)..UnixMillis(slot + self.width_ms));
                    Entries::new()
                }
            };
            for (series, _, cell) in of_row {
                entries::merge(&mut merged, row_and_lane(*series).1 as u32, cell);
            }
            if let Some(bytes) = entries::encode(&merged, key) {
                table.insert(key, &*bytes).map_err(fail("write"))?;
            }
        }
        Ok(())
    }
}
