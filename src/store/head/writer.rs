//! Changes of one granularity of the head, within one transaction.
//!
//! Must never know: which cells are written, and when.

use redb::{ReadableTable, Table, WriteTransaction};

use super::{
    keys::{fail, histograms_name, key, read_row, slots},
    row::HeadRowWriter,
};
use crate::{
    model::{Cell, SeriesId, UnixMillis},
    store::{
        catalog::fan_out::WideSlot,
        encoding::lanes::{SERIES_PER_ROW, row_and_lane, row_of},
        error::StoreError,
        file::{damage::Damage, database::DatabaseFile, holes::Holes},
    },
};

/// Changes one granularity of the head.
pub(crate) struct HeadWriter<'t> {
    pub(super) damage: &'t Damage,
    pub(super) histogram_damage: &'t Damage,
    /// The key of the holes.
    holes_key: i64,
    pub(super) width_ms: i64,
    rows: Table<'t, u64, &'static [u8]>,
    /// A function that is called before each change with the start of its slot.
    note_change: &'t dyn Fn(i64),
    encoder: HeadRowWriter,
    /// The slots of damaged rows that were replaced.
    pub(super) lost: Holes,
    pub(super) txn: &'t WriteTransaction,
    /// True when the file may have tables of histograms.
    pub(super) has_histograms: bool,
    /// The name of the table of histograms.
    pub(super) histograms_name: String,
}

impl<'t> HeadWriter<'t> {
    pub(super) fn new(
        (damage, histogram_damage): (&'t Damage, &'t Damage),
        (holes_key, width_ms): (i64, i64),
        rows: Table<'t, u64, &'static [u8]>,
        (note_change, (txn, has_histograms, granularity)): (
            &'t dyn Fn(i64),
            (&'t WriteTransaction, bool, &str),
        ),
    ) -> Self {
        let (encoder, lost) = Default::default();
        let histograms_name = histograms_name(granularity);
        Self {
            damage,
            histogram_damage,
            holes_key,
            width_ms,
            rows,
            note_change,
            encoder,
            lost,
            txn,
            has_histograms,
            histograms_name,
        }
    }

    /// Stores the holes of damaged rows that were replaced, and removes holes whose slots have no
    /// rows in the head. Returns the holes if they changed.
    pub(super) fn finish(
        self,
        file: &DatabaseFile,
        txn: &WriteTransaction,
    ) -> Result<Option<Holes>, StoreError> {
        let before = self.damage.holes();
        if before.is_empty() && self.lost.is_empty() {
            return Ok(None);
        }
        let mut slots = self.slots()?;
        slots.extend(self.histogram_slots()?);
        slots.sort_unstable();
        slots.dedup();
        let in_head =
            slots.iter().map(|slot| UnixMillis(*slot)).map(|at| at..at.plus(self.width_ms));
        let (damage, lost) = (self.damage, &self.lost);
        let holes = damage.change_holes(file, txn, self.holes_key, |holes| {
            holes.add_all(lost);
            let mut kept = Holes::default();
            in_head.filter(|slot| holes.has(slot.start)).for_each(|slot| kept.add(slot));
            *holes = kept;
        })?;
        Ok((holes != before).then_some(holes))
    }
}

impl HeadWriter<'_> {
    /// Returns the starts of all slots that have rows, ascending.
    pub(crate) fn slots(&self) -> Result<Vec<i64>, StoreError> {
        slots(&self.rows, 0..i64::MAX)
    }

    /// Removes the rows of a slot.
    pub(crate) fn remove_slot(&mut self, slot_start: i64) -> Result<(), StoreError> {
        (self.note_change)(slot_start);
        let rows = key(slot_start, 0)..key(slot_start + 1000, 0);
        self.rows.retain_in(rows, |_, _| false).map_err(fail("write"))
    }

    /// Replaces the cells of series (ascending) in a slot; an empty cell removes the stored one.
    /// Damaged rows stay as they are. Returns the number of cells that were not empty before.
    pub(crate) fn replace_cells(
        &mut self,
        slot_start: i64,
        cells: &[(SeriesId, Cell)],
    ) -> Result<u64, StoreError> {
        (self.note_change)(slot_start);
        let mut count = 0;
        let mut merged = [Cell::EMPTY; SERIES_PER_ROW];
        for of_row in cells.chunk_by(|(id, _), (next, _)| row_of(*id) == row_of(*next)) {
            let Some((first, _)) = of_row.first() else { continue };
            let key = key(slot_start, row_of(*first));
            merged.fill(Cell::EMPTY);
            {
                let Some(guard) = self.rows.get(key).map_err(fail("write"))? else { continue };
                let row = read_row(self.damage, key, guard.value()).ok().flatten();
                if row.and_then(|row| row.merge_into(&mut merged)).is_none() {
                    continue;
                }
            }
            for (id, cell) in of_row {
                let stored = &mut merged[row_and_lane(*id).1];
                count += u64::from(!stored.is_empty());
                *stored = *cell;
            }
            match self.encoder.write(&merged, key) {
                Some(bytes) => self.rows.insert(key, bytes).map_err(fail("write"))?,
                None => self.rows.remove(key).map_err(fail("write"))?,
            };
        }
        Ok(count)
    }

    /// Merges cells into the rows of a slot; returns the number of cells.
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
            let mut is_lost = false;
            if let Some(guard) = self.rows.get(key).map_err(fail("write"))? {
                // This transaction replaces the damaged row, so the error is ignored.
                let row = read_row(self.damage, key, guard.value()).ok().flatten();
                is_lost = row.and_then(|before| before.merge_into(&mut merged)).is_none();
            }
            if let Some(bytes) = self.encoder.write(&merged, key) {
                self.rows.insert(key, bytes).map_err(fail("write"))?;
                if is_lost {
                    let slot = UnixMillis(slot_start);
                    self.lost.add(slot..slot.plus(self.width_ms));
                }
            }
        }
        Ok(count)
    }
}
