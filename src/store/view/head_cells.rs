//! The cells of a view that are in the head.
//!
//! The head caches decoded columns; other cells are read from rows. Must never know: cells
//! in memory and in documents.

use std::{ops::Range, sync::Arc};

use super::gathered::{BySeries, Gathered, rows};
use crate::{
    model::SeriesId,
    store::{
        documents::Slot,
        encoding::lanes::row_and_lane,
        error::StoreError,
        head::{COLUMN_SLOTS_MAX, ColumnUpdate, HeadColumn, HeadReader, SlotVersion},
    },
};

/// The minimum number of slots for columns. Rows are faster for the newest value of each series.
const COLUMN_SLOTS_MIN: usize = 4;
/// The number of slots from which columns are faster even for all series of a row.
const MANY_SLOTS: usize = 16;
/// The number of series per row up to which columns of few slots take less memory than rows.
const SPARSE_SERIES: usize = 8;

/// The cells of the head that are not in documents, by series.
pub(super) enum HeadCells {
    Rows(BySeries),
    /// A column of each series, and the range of the view's slots.
    Columns(Vec<Arc<HeadColumn>>, Range<i64>),
}

/// The reading of several series from the head.
struct Reading<'a> {
    head: &'a HeadReader,
    /// The series, ascending.
    series: &'a [SeriesId],
}

impl HeadCells {
    /// Reads the cells of series, ascending, in slots of the head.
    pub(super) fn read(
        head: &HeadReader,
        series: &[SeriesId],
        slots: &[i64],
    ) -> Result<Self, StoreError> {
        let reading = Reading { head, series };
        match reading.slots_of_columns(slots) {
            Some(slots) => reading.columns(&slots),
            None => Ok(Self::Rows(reading.rows_of_head(slots, &|_, _| true)?)),
        }
    }

    /// Returns the cells of one series, ascending.
    pub(super) fn of(&self, position: usize) -> &[Slot] {
        match self {
            Self::Rows(cells) => cells.of(position),
            Self::Columns(columns, range) => {
                columns.get(position).map_or(&[], |column| column.within(range))
            }
        }
    }
}

impl Reading<'_> {
    /// Returns the slots with their versions; `None` when rows are faster, or a slot was changed
    /// since the view began.
    fn slots_of_columns(&self, slots: &[i64]) -> Option<Arc<[SlotVersion]>> {
        let is_sparse = || self.series.len() <= SPARSE_SERIES * rows(self.series).count();
        let is_fast = (COLUMN_SLOTS_MIN..=COLUMN_SLOTS_MAX).contains(&slots.len())
            && (slots.len() >= MANY_SLOTS || is_sparse());
        let version =
            |start: &i64| Some(SlotVersion { start: *start, version: self.head.version(*start)? });
        is_fast.then(|| slots.iter().map(version).collect()).flatten()
    }

    /// Reads columns, and updates those that lack slots.
    fn columns(&self, slots: &Arc<[SlotVersion]>) -> Result<HeadCells, StoreError> {
        let mut columns: Vec<_> = self.series.iter().map(|id| self.head.column(*id)).collect();
        let mut updates: Vec<ColumnUpdate> = Vec::new();
        let mut update_of = Vec::with_capacity(columns.len());
        let mut last: Option<Option<&Arc<[SlotVersion]>>> = None;
        for column in &columns {
            let before = column.as_deref().map(HeadColumn::slots);
            // Most columns have the slots of the one before.
            let is_known = last.is_some_and(|last| match (last, before) {
                (Some(last), Some(before)) => Arc::ptr_eq(last, before) || last == before,
                (last, before) => last.is_none() && before.is_none(),
            });
            if !is_known {
                let before = before.map_or(&[][..], |slots| slots);
                updates.push(ColumnUpdate::new(before, slots, |slot| self.head.version(slot)));
            }
            last = Some(before);
            update_of.push(updates.len() - 1);
        }
        if updates.iter().any(|update| !update.is_current()) {
            let starts: Vec<_> = slots.iter().map(|slot| slot.start).collect();
            let lacks = |slot: usize, position: usize| updates[update_of[position]].lacks(slot);
            let decoded = self.rows_of_head(&starts, &lacks)?;
            for (position, column) in columns.iter_mut().enumerate() {
                let update = &updates[update_of[position]];
                if !update.is_current() {
                    let updated = update.apply(column.as_deref(), decoded.of(position));
                    let updated = Arc::new(updated);
                    self.head.keep_column(self.series[position], updated.clone());
                    *column = Some(updated);
                }
            }
        }
        let ends = slots.first().zip(slots.last());
        let range = ends.map_or(0..0, |(first, last)| first.start..last.start + 1);
        // Every series has a column now.
        Ok(HeadCells::Columns(columns.into_iter().flatten().collect(), range))
    }

    /// Decodes the cells of slots for which `is_wanted` returns true, given the index of the slot
    /// and of the series.
    fn rows_of_head(
        &self,
        slots: &[i64],
        is_wanted: &dyn Fn(usize, usize) -> bool,
    ) -> Result<BySeries, StoreError> {
        let lanes = |series: &[SeriesId]| {
            series.iter().fold(0, |all, id| all | 1_u64 << row_and_lane(*id).1)
        };
        let rows: Vec<_> =
            rows(self.series).map(|(row, series, from)| (row, lanes(series), from)).collect();
        let mut found = Gathered::default();
        found.reserve(slots.len().saturating_mul(self.series.len()));
        for (index, slot) in slots.iter().enumerate() {
            let slot_rows = self.head.slot(*slot);
            for (row, lanes, from) in &rows {
                let (mut wanted, mut left, mut position) = (0, *lanes, *from);
                while left != 0 {
                    let lane = left & left.wrapping_neg();
                    wanted |= if is_wanted(index, position) { lane } else { 0 };
                    (left, position) = (left ^ lane, position + 1);
                }
                if wanted == 0 {
                    continue;
                }
                slot_rows.row(*row, |cells| {
                    // The row is verified, so all wanted cells are readable.
                    let _all = cells.cells(wanted, |lane, cell| {
                        let before = lanes & ((1 << lane) - 1);
                        found.push(from + before.count_ones() as usize, *slot, cell);
                    });
                })?;
            }
        }
        Ok(found.by_series(self.series.len()))
    }
}
