//! Changes of one granularity of the head, within one transaction.
//!
//! Must never know: what is to be changed, and when.

use redb::{ReadableTable, Table};

use super::{fail, key, read_row, row::RowWriter, slots};
use crate::{
    model::Cell,
    store::{
        catalog::fan_out::WideSlot, error::StoreError, file::damage::Damage, rows::SERIES_PER_ROW,
    },
};

/// Changes one granularity of the head.
pub(crate) struct HeadWriter<'t> {
    pub(super) damage: &'t Damage,
    pub(super) rows: Table<'t, u64, &'static [u8]>,
    /// Told of each slot that is changed.
    pub(super) note_change: &'t dyn Fn(i64),
    pub(super) encoder: RowWriter,
}

impl HeadWriter<'_> {
    /// Starts of all slots that have rows, ascending.
    pub(crate) fn slots(&self) -> Result<Vec<i64>, StoreError> {
        slots(&self.rows, 0..i64::MAX)
    }

    /// Removes the rows of a slot.
    pub(crate) fn remove_slot(&mut self, slot_start: i64) -> Result<(), StoreError> {
        (self.note_change)(slot_start);
        let rows = key(slot_start, 0)..key(slot_start + 1000, 0);
        self.rows.retain_in(rows, |_, _| false).map_err(fail("write"))
    }

    /// Merges cells into the rows of a slot; returns how many.
    pub(crate) fn merge_slot(
        &mut self,
        slot_start: i64,
        cells: &WideSlot<'_>,
    ) -> Result<u64, StoreError> {
        (self.note_change)(slot_start);
        let mut count = 0;
        let mut merged = [Cell::EMPTY; SERIES_PER_ROW];
        for (row, pieces) in cells.rows() {
            merged.fill(Cell::EMPTY);
            pieces.merge_into(&mut merged);
            count += merged.iter().filter(|cell| !cell.is_empty()).count() as u64;
            let key = key(slot_start, row);
            if let Some(guard) = self.rows.get(key).map_err(fail("write"))?
                && let Ok(Some(before)) = read_row(self.damage, key, guard.value())
            {
                before.merge_into(&mut merged);
            }
            if let Some(bytes) = self.encoder.write(&merged, key) {
                self.rows.insert(key, bytes).map_err(fail("write"))?;
            }
        }
        Ok(count)
    }
}
