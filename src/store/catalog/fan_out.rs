//! Frozen cells in the slots of one granularity, each row merged when it is asked for.
//!
//! A sample is in the map of one granularity only, so a coarser slot takes in several of finer ones.
//! To merge them beforehand would take as much memory again for each granularity.
//!
//! Must never know: where the cells go.

use std::{collections::BTreeMap, ops::Range};

use super::{
    cell_map::{CellMap, SlotCells},
    cell_row::CellRow,
};
use crate::{
    model::{Cell, Granularity, UnixMillis},
    store::rows::{RowCells, SERIES_PER_ROW},
};

/// Cells of several maps by the slots of a granularity.
#[derive(Debug, Default)]
pub(crate) struct FanOut<'a> {
    slots: BTreeMap<i64, WideSlot<'a>>,
}

/// What falls into one slot.
#[derive(Debug, Default)]
pub(crate) struct WideSlot<'a> {
    /// Finer slots, each with how many milliseconds later it begins.
    parts: Vec<(u32, &'a SlotCells)>,
    /// Rows of the parts, ascending, each with the place of its part.
    rows: Vec<(u32, u32)>,
}

/// The cells of a row in one slot.
#[derive(Debug)]
pub(crate) enum WideRow<'a> {
    /// Merged, those without samples empty.
    Merged(Box<RowCells>),
    /// Where they lie.
    Lying(&'a CellRow),
}

impl WideRow<'_> {
    /// The cell of a series.
    pub(crate) fn cell(&self, lane: usize) -> Option<Cell> {
        match self {
            Self::Merged(cells) => Some(cells[lane]),
            Self::Lying(row) => row.cell(lane),
        }
    }
}

impl<'a> FanOut<'a> {
    /// Cells of maps of this granularity and of finer ones.
    pub(crate) fn new(granularity: &Granularity, maps: &'a [CellMap]) -> Self {
        let mut slots: BTreeMap<i64, WideSlot<'a>> = BTreeMap::new();
        for (start, cells) in maps.iter().flat_map(CellMap::all_slots) {
            let own_start = granularity.slot_start(UnixMillis(start)).0;
            let slot = slots.entry(own_start).or_default();
            let place = slot.parts.len() as u32;
            slot.parts.push(((start - own_start) as u32, cells));
            slot.rows.extend(cells.row_numbers().into_iter().map(|row| (row, place)));
        }
        for slot in slots.values_mut() {
            slot.rows.sort_unstable();
        }
        Self { slots }
    }

    /// The slots that begin within the range, ascending.
    pub(crate) fn slots(&self, range: Range<i64>) -> impl Iterator<Item = (i64, &WideSlot<'a>)> {
        self.slots.range(range).map(|(start, slot)| (*start, slot))
    }

    /// All slots, ascending.
    pub(crate) fn all_slots(&self) -> impl Iterator<Item = (i64, &WideSlot<'a>)> {
        self.slots.iter().map(|(start, slot)| (*start, slot))
    }
}

impl WideSlot<'_> {
    /// Numbers of the rows that are there, ascending.
    pub(crate) fn row_numbers(&self) -> impl Iterator<Item = u32> {
        self.rows.chunk_by(|one, other| one.0 == other.0).map(|parts| parts[0].0)
    }

    /// The cells of a row, merged only if they are of several slots or of a finer one.
    pub(crate) fn row(&self, number: u32) -> Option<WideRow<'_>> {
        match self.parts_of(number) {
            [(_, place)] if self.parts[*place as usize].0 == 0 => {
                self.parts[*place as usize].1.row(number).map(WideRow::Lying)
            }
            _ => self.copy_row(number).map(WideRow::Merged),
        }
    }

    /// The cells of a row, those without samples empty.
    pub(crate) fn copy_row(&self, number: u32) -> Option<Box<RowCells>> {
        let mut merged: Option<Box<RowCells>> = None;
        for (_, place) in self.parts_of(number) {
            let (shift, cells) = self.parts[*place as usize];
            let row = merged.get_or_insert_with(|| Box::new([Cell::EMPTY; SERIES_PER_ROW]));
            cells.merge_row_into(number, shift, row);
        }
        merged
    }

    fn parts_of(&self, number: u32) -> &[(u32, u32)] {
        let from = self.rows.partition_point(|(row, _)| *row < number);
        let behind = self.rows[from..].partition_point(|(row, _)| *row == number);
        &self.rows[from..from + behind]
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::{GranularitySet, SeriesId};

    proptest! {
        #[test]
        fn a_wide_slot_has_what_its_finer_ones_have_together(
            samples in prop::collection::vec((0..2_usize, 0..9_i64, 0..300_u32, 0..60_000_u32), 0..300)
        ) {
            let set = GranularitySet::default();
            let [fine, coarse] = [0, 1].map(|index| &set.as_slice()[index]);
            let mut maps = [CellMap::default(), CellMap::default()];
            let mut model: BTreeMap<(i64, u32), Cell> = BTreeMap::new();
            for (map, minute, series, at) in samples {
                let own = if map == 0 { fine } else { coarse };
                let time = UnixMillis(minute * 60_000 + i64::from(at));
                let [start, wide] = [own, coarse].map(|of| of.slot_start(time).0);
                let cell = |start: i64| Cell::single((time.0 - start) as u32, f64::from(at));
                let mut place = maps[map].place(start);
                maps[map].merge(&mut place, SeriesId(series), &cell(start));
                model.entry((wide, series)).or_insert(Cell::EMPTY).merge(&cell(wide));
            }
            let fan_out = FanOut::new(coarse, &maps);
            let mut found = BTreeMap::new();
            for (start, slot) in fan_out.all_slots() {
                for number in slot.row_numbers() {
                    let row = slot.copy_row(number).unwrap();
                    let lying = slot.row(number).unwrap();
                    for (lane, cell) in row.iter().enumerate() {
                        prop_assert_eq!(lying.cell(lane).unwrap_or_default(), *cell);
                    }
                    let filled = row.iter().enumerate().filter(|(_, cell)| !cell.is_empty());
                    for (lane, cell) in filled {
                        let before = found.insert((start, number * 64 + lane as u32), *cell);
                        prop_assert!(before.is_none());
                    }
                }
                prop_assert!(slot.copy_row(700).is_none());
            }
            prop_assert_eq!(found, model);
        }
    }
}
