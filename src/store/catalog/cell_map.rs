//! A cell map: cells of one granularity in memory, by slot and series.
//!
//! Memory is allocated only for samples: a slot contains the rows of 64 neighbouring series in
//! which a series has a sample, and a row contains the cells of these series. Therefore a single
//! sample costs a few hundred bytes, whatever the ID of its series.
//!
//! Must never know: what cells mean, and where they are stored later.

use std::{collections::BTreeMap, collections::HashMap, ops::Range};

use foldhash::fast::FixedState;

use super::cell_row::CellRow;
use crate::{
    model::{Cell, SeriesId},
    store::encoding::lanes::row_and_lane,
};

/// Bytes of a slot without its rows, including its share of the tree's nodes.
const SLOT_BYTES: usize = 2 * (size_of::<SlotCells>() + size_of::<(i64, usize)>());
/// Bytes of the index for each row in its capacity.
const INDEX_BYTES: usize = 11;
/// Bytes of a row without its cells. The factor 2 allows for collections that are half empty after
/// doubling their capacity.
const ROW_BYTES: usize = 2 * (size_of::<CellRow>() + 4 * INDEX_BYTES);
/// Bytes of a cell, including its share of unused capacity.
const CELL_BYTES: usize = 4 * size_of::<Cell>();
/// The approximate bytes of the only sample of a slot.
pub(crate) const LONE_SAMPLE_BYTES: usize = SLOT_BYTES + ROW_BYTES + CELL_BYTES;

/// The cells of one slot.
#[derive(Debug, Clone, Default)]
pub(crate) struct SlotCells {
    /// Rows in the order in which they were added.
    rows: Vec<CellRow>,
    /// The index of a row, by its number.
    index: HashMap<u32, u32, FixedState>,
}

impl SlotCells {
    /// Passes the cells of `series` (ascending) to `out`, each with the index of its series.
    pub(crate) fn cells(&self, series: &[SeriesId], mut out: impl FnMut(usize, &Cell)) {
        let mut row: Option<(u32, Option<&CellRow>)> = None;
        for (index, id) in series.iter().enumerate() {
            let (number, lane) = row_and_lane(*id);
            if row.is_none_or(|(last, _)| last != number) {
                row = Some((number, self.row(number)));
            }
            let found = row.and_then(|(_, row)| row?.cell(lane));
            if let Some(cell) = found.filter(|cell| !cell.is_empty()) {
                out(index, &cell);
            }
        }
    }

    /// Returns the cells of a row.
    pub(crate) fn row(&self, number: u32) -> Option<&CellRow> {
        self.rows.get(*self.index.get(&number)? as usize)
    }

    /// Returns the rows, in the order in which they were added.
    pub(crate) fn rows(&self) -> &[CellRow] {
        &self.rows
    }

    /// Returns the index of a row, which is created if it is missing; adds the new bytes to
    /// `grown`.
    fn enter(&mut self, number: u32, grown: &mut usize) -> usize {
        let next = self.rows.len() as u32;
        let room = self.room_bytes();
        let index = *self.index.entry(number).or_insert(next);
        if index == next {
            if next == 0 {
                self.rows.reserve_exact(1);
            }
            let row = CellRow::new(number);
            *grown += row.bytes();
            self.rows.push(row);
            *grown += self.room_bytes() - room;
        }
        index as usize
    }

    fn room_bytes(&self) -> usize {
        self.rows.capacity() * size_of::<CellRow>() + self.index.capacity() * INDEX_BYTES
    }
}

/// Cells of one granularity.
#[derive(Debug, Clone, Default)]
pub(crate) struct CellMap {
    /// The index of a slot, by its start in Unix milliseconds.
    indexes: BTreeMap<i64, usize>,
    /// Slots in the order in which they were added.
    slots: Vec<SlotCells>,
    bytes: usize,
}

/// The index of a slot in its map, and the number and index of the slot's row that was written
/// last: samples of neighbouring series usually arrive one after the other.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SlotCursor {
    slot: usize,
    row: Option<(u32, usize)>,
}

impl CellMap {
    /// Returns the size in memory in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns a cursor at a slot, which is created if it is missing.
    pub(crate) fn cursor(&mut self, start: i64) -> SlotCursor {
        let next = self.slots.len();
        let slot = *self.indexes.entry(start).or_insert(next);
        if slot == next {
            self.slots.push(SlotCells::default());
            self.bytes += SLOT_BYTES;
        }
        SlotCursor { slot, row: None }
    }

    /// Merges a cell into the cell of a series.
    pub(crate) fn merge(&mut self, cursor: &mut SlotCursor, series: SeriesId, cell: &Cell) {
        let (number, lane) = row_and_lane(series);
        let slot = &mut self.slots[cursor.slot];
        let row = match cursor.row {
            Some((last, row)) if last == number => row,
            _ if cell.is_empty() => return,
            _ => slot.enter(number, &mut self.bytes),
        };
        cursor.row = Some((number, row));
        self.bytes += slot.rows[row].merge(lane, cell);
    }

    /// Adds a row that the slot does not have.
    pub(crate) fn add_row(&mut self, cursor: &mut SlotCursor, row: CellRow) {
        let slot = &mut self.slots[cursor.slot];
        let index = slot.enter(row.number(), &mut self.bytes);
        self.bytes = self.bytes - slot.rows[index].bytes() + row.bytes();
        slot.rows[index] = row;
    }

    /// Returns the slots that begin within the range, ascending.
    pub(crate) fn slots(&self, range: Range<i64>) -> impl Iterator<Item = (i64, &SlotCells)> {
        self.indexes.range(range).map(|(start, index)| (*start, &self.slots[*index]))
    }

    /// Returns all slots, ascending.
    pub(crate) fn all_slots(&self) -> impl Iterator<Item = (i64, &SlotCells)> {
        self.indexes.iter().map(|(start, index)| (*start, &self.slots[*index]))
    }

    /// Begins an estimate of the growth of the map by samples of one slot.
    pub(crate) fn growth(&self, start: i64) -> Growth<'_> {
        let slot = self.indexes.get(&start).map(|index| &self.slots[*index]);
        let bytes = if slot.is_none() { SLOT_BYTES } else { 0 };
        // A slot whose collections are full grows by more than one row.
        let doubled = slot.map_or(0, SlotCells::room_bytes);
        Growth { slot, bytes, doubled, entered: None, row: None, row_doubled: 0 }
    }
}

/// An estimate of the growth of a map; see [`CellMap::growth`].
#[derive(Debug)]
pub(crate) struct Growth<'a> {
    slot: Option<&'a SlotCells>,
    /// Bytes that only the next sample adds.
    bytes: usize,
    doubled: usize,
    entered: Option<u32>,
    row: Option<&'a CellRow>,
    row_doubled: usize,
}

impl Growth<'_> {
    /// Returns the maximum number of bytes that one more sample adds.
    pub(crate) fn add(&mut self, series: SeriesId) -> usize {
        let (number, lane) = row_and_lane(series);
        let mut bytes = std::mem::take(&mut self.bytes);
        if self.entered != Some(number) {
            self.entered = Some(number);
            self.row = self.slot.and_then(|slot| slot.row(number));
            self.row_doubled = self.row.map_or(0, |row| 3 * row.count() * size_of::<Cell>());
            bytes += self.row.map_or(0, CellRow::whole_growth);
            if self.row.is_none() {
                bytes += ROW_BYTES + std::mem::take(&mut self.doubled);
            }
        }
        if self.row.is_none_or(|row| !row.has(lane)) {
            bytes += CELL_BYTES + std::mem::take(&mut self.row_doubled);
        }
        bytes
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::store::encoding::lanes::SERIES_PER_ROW;

    fn merge(map: &mut CellMap, slot: i64, series: u32, cell: &Cell) {
        let mut cursor = map.cursor(slot);
        map.merge(&mut cursor, SeriesId(series), cell);
    }

    proptest! {
        #[test]
        fn merged_cells_are_found_and_the_map_never_grows_by_more_than_the_estimate(
            samples in prop::collection::vec((0..3_i64, 0..700_u32, 0..9_u32), 0..300)
        ) {
            let mut map = CellMap::default();
            let mut model: BTreeMap<(i64, u32), Cell> = BTreeMap::new();
            for (slot, series, times) in samples {
                let cell = Cell { n: times, ..Cell::single(0, f64::from(times)) };
                let estimated = map.growth(slot).add(SeriesId(series));
                let before = map.bytes();
                merge(&mut map, slot, series, &cell);
                prop_assert!(map.bytes() - before <= estimated);
                model.entry((slot, series)).or_insert(Cell::EMPTY).merge(&cell);
            }
            let find = |slot: i64, series: u32| {
                let mut found = None;
                let row = [series.saturating_sub(1), series, series + 1, series + 70].map(SeriesId);
                let first = row.iter().position(|id| id.0 == series)?;
                map.slots(slot..slot + 1).next()?.1.cells(&row[first..], |at, cell| {
                    found = if at == 0 { Some(*cell) } else { found };
                });
                found
            };
            for ((slot, series), cell) in &model {
                let expected = (!cell.is_empty()).then_some(*cell);
                prop_assert_eq!(find(*slot, *series), expected);
            }
            for (slot, cells) in map.all_slots() {
                let copied: usize = cells.rows().iter().map(|cells| {
                    let mut row = [Cell::EMPTY; SERIES_PER_ROW];
                    cells.merge_into(0, &mut row);
                    row.iter().filter(|cell| !cell.is_empty()).count()
                }).sum();
                let filled = model.iter().filter(|((at, _), cell)| *at == slot && !cell.is_empty());
                prop_assert_eq!(copied, filled.count());
            }
        }
    }

    #[test]
    fn the_memory_of_a_backfill_depends_on_its_samples_and_not_on_the_series_id() {
        let mut map = CellMap::default();
        let series = SeriesId(5_000_000);
        let estimated: usize = (0..10_000).map(|slot| map.growth(slot).add(series)).sum();
        (0..10_000).for_each(|slot| merge(&mut map, slot, series.0, &Cell::single(0, 1.0)));
        assert!(map.bytes() < 8 << 20, "{}", map.bytes());
        assert!(estimated < 16 << 20, "{estimated}");
        // With many neighbours, a cell costs little more than its size.
        let mut dense = CellMap::default();
        (0..64_000).for_each(|id| merge(&mut dense, 0, id, &Cell::single(0, 1.0)));
        assert!(dense.bytes() < 64_000 * 64, "{}", dense.bytes());
    }
}
