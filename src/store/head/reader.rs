//! A consistent view of one granularity of the head: single rows, or the rows of several slots in
//! parallel.
//!
//! Must never know: when rows are written and removed.

use std::{ops::Range, sync::Arc};

use redb::{ReadOnlyTable, ReadTransaction};

use super::{
    cache::{RowCache, SlotRows},
    columns::HeadColumn,
    keys::{fail, key, read_row, row_of_key, slots},
    row::HeadRow,
};
use crate::{
    model::{Cell, SeriesId, UnixMillis},
    store::{
        encoding::lanes::{RowCells, SERIES_PER_ROW},
        error::StoreError,
        file::{damage::Damage, database::DatabaseFile},
    },
};

/// One granularity of the head, as of one moment.
pub(crate) struct HeadReader {
    pub(super) file: Arc<DatabaseFile>,
    pub(super) damage: Arc<Damage>,
    pub(super) histogram_damage: Arc<Damage>,
    /// All cells up to this journal record are in the head or in documents.
    pub(crate) through: u64,
    pub(super) rows: ReadOnlyTable<u64, &'static [u8]>,
    pub(super) cache: Arc<RowCache>,
    pub(super) granularity: usize,
    pub(super) txn: ReadTransaction,
    /// False when the head has no histograms.
    pub(crate) has_histograms: bool,
    /// The name of the table of histograms.
    pub(super) histograms_name: String,
}

impl HeadReader {
    /// Returns the starts of the slots within a range that have rows, ascending.
    pub(crate) fn slots(&self, range: Range<i64>) -> Result<Vec<i64>, StoreError> {
        self.file.guard("read", || slots(&self.rows, range))
    }

    /// Returns true when a row of a slot, or a row of its histograms, was found damaged, in this run
    /// or an earlier one.
    pub(crate) fn is_lost(&self, slot_start: i64) -> bool {
        let keys = key(slot_start, 0)..key(slot_start + 1000, 0);
        self.damage.has_within(keys.clone())
            || self.histogram_damage.has_within(keys)
            || self.damage.holes().has(UnixMillis(slot_start))
    }

    /// Returns the version of a slot's rows; `None` when it was changed since this view began.
    pub(crate) fn version(&self, slot_start: i64) -> Option<u64> {
        self.cache.version(self.granularity, slot_start, self.through)
    }

    /// Returns the column of a series, if it is in the cache.
    pub(crate) fn column(&self, series: SeriesId) -> Option<Arc<HeadColumn>> {
        self.cache.column(self.granularity, series)
    }

    /// Caches the column of a series.
    pub(crate) fn keep_column(&self, series: SeriesId, column: Arc<HeadColumn>) {
        self.cache.keep_column(self.granularity, series, column);
    }

    /// Returns a reader of single rows of a slot.
    pub(crate) fn slot(&self, slot_start: i64) -> SlotReader<'_> {
        let cached = self.cache.slot(self.granularity, slot_start, self.through);
        SlotReader { head: self, slot_start, cached }
    }

    /// Reads the rows of a slot, and notes damaged rows. Returns the number of bytes read.
    pub(super) fn check_slot(&self, slot_start: i64) -> Result<u64, StoreError> {
        self.file.guard("read", || {
            let rows = self.rows.range(key(slot_start, 0)..key(slot_start + 1000, 0));
            let mut bytes = 0;
            for row in rows.map_err(fail("read"))? {
                let (key, row) = row.map_err(fail("read"))?;
                bytes += row.value().len() as u64;
                match read_row(&self.damage, key.value(), row.value()) {
                    // The damage has been noted and logged.
                    Ok(_) | Err(StoreError::DamagedPart { .. }) => {}
                    Err(fault) => return Err(fault),
                }
            }
            Ok(bytes)
        })
    }

    /// Returns a cursor over the rows of several slots in parallel.
    pub(crate) fn cursor(&self, slot_starts: &[i64]) -> Result<RowCursor<'_>, StoreError> {
        self.file.guard("read", || {
            let open = |start: &i64| {
                let range = self.rows.range(key(*start, 0)..key(start + 1000, 0));
                Ok((*start, range.map_err(fail("read"))?.peekable()))
            };
            let slots = slot_starts.iter().map(open).collect::<Result<_, StoreError>>()?;
            Ok(RowCursor { file: &self.file, damage: &self.damage, slots })
        })
    }
}

/// A reader of single rows of a slot.
pub(crate) struct SlotReader<'a> {
    head: &'a HeadReader,
    slot_start: i64,
    /// The cached rows; `None` when the slot was changed since this view began.
    cached: Option<SlotRows<'a>>,
}

impl SlotReader<'_> {
    /// Passes a row to `read`, if the row exists.
    pub(crate) fn row(&self, row: u32, read: impl FnOnce(HeadRow<'_>)) -> Result<(), StoreError> {
        let key = key(self.slot_start, row);
        if let Some(bytes) = self.cached.as_ref().and_then(|rows| rows.get(key)) {
            if let Some(row) = HeadRow::checked(&bytes) {
                read(row);
            }
            return Ok(());
        }
        self.head.file.guard("read", || {
            let found = self.head.rows.get(key).map_err(fail("read"))?;
            let Some(guard) = found else { return Ok(()) };
            if let Some(row) = read_row(&self.head.damage, key, guard.value())? {
                if let Some(rows) = &self.cached {
                    rows.keep(key, guard.value());
                }
                read(row);
            }
            Ok(())
        })
    }
}

type Rows = std::iter::Peekable<redb::Range<'static, u64, &'static [u8]>>;

/// A cursor over the rows of several slots.
pub(crate) struct RowCursor<'a> {
    file: &'a DatabaseFile,
    damage: &'a Damage,
    slots: Vec<(i64, Rows)>,
}

impl RowCursor<'_> {
    /// Returns the lowest row that was not yet taken.
    pub(crate) fn next_row(&mut self) -> Result<Option<u32>, StoreError> {
        let rows = self.slots.iter_mut();
        // `take` reports an error.
        let number = |entry: &Result<(redb::AccessGuard<'_, u64>, _), _>| {
            entry.as_ref().map_or(0, |(key, _)| row_of_key(key.value()))
        };
        self.file.guard("read", || Ok(rows.filter_map(|(_, rows)| rows.peek().map(number)).min()))
    }

    /// Takes a row from every slot that has it, and passes the slot's start and the cells to `out`.
    /// The caller takes every row that `next_row` returns, in ascending order.
    pub(crate) fn take(
        &mut self,
        row: u32,
        mut out: impl FnMut(i64, Box<RowCells>),
    ) -> Result<(), StoreError> {
        let slots = &mut self.slots;
        self.file.guard("read", || {
            for (slot, rows) in slots {
                let is_next = |entry: &Result<(redb::AccessGuard<'_, u64>, _), _>| {
                    entry.as_ref().map_or(true, |(key, _)| row_of_key(key.value()) == row)
                };
                let Some(entry) = rows.next_if(is_next) else { continue };
                let (key, bytes) = entry.map_err(fail("read"))?;
                let mut cells = Box::new([Cell::EMPTY; SERIES_PER_ROW]);
                // A checkpoint moves only intact rows, so the error is ignored.
                if let Ok(Some(row)) = read_row(self.damage, key.value(), bytes.value()) {
                    row.merge_into(&mut cells);
                    out(*slot, cells);
                }
            }
            Ok(())
        })
    }
}
