//! Frozen cells in the slots of one granularity, each row merged on demand.
//!
//! A sample is in the map of one granularity only, so a coarser slot consists of several finer
//! slots. Merging these in advance would take as much memory again for each granularity.
//!
//! Must never know: where the cells are stored.

use std::{collections::BTreeMap, ops::Range};

use super::{
    cell_map::{CellMap, SlotCells},
    cell_row::CellRow,
};
use crate::{
    model::{Cell, Granularity, UnixMillis},
    store::encoding::lanes::{RowCells, SERIES_PER_ROW},
};

/// The cells of several maps, grouped by the slots of a granularity.
#[derive(Debug, Default)]
pub(crate) struct FanOut<'a> {
    slots: BTreeMap<i64, WideSlot<'a>>,
}

/// The cells of one slot.
#[derive(Debug, Default)]
pub(crate) struct WideSlot<'a> {
    /// Finer slots, each with its offset in this slot, in milliseconds.
    parts: Vec<(u32, &'a SlotCells)>,
    /// Rows of the parts, ascending.
    rows: Vec<Piece>,
}

/// A row of a part: the row's number in the store, the index of its part, and its index there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Piece {
    number: u32,
    part: u32,
    index: u32,
}

/// A row of one slot, not merged yet.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Pieces<'s> {
    slot: &'s WideSlot<'s>,
    pieces: &'s [Piece],
}

/// The cells of a row in one slot.
#[derive(Debug)]
pub(crate) enum WideRow<'a> {
    /// Merged cells; cells without samples are empty.
    Merged(Box<RowCells>),
    /// The only row of the slot, whose cells need no shift.
    Borrowed(&'a CellRow),
}

impl WideRow<'_> {
    /// Returns the cell of a series.
    pub(crate) fn cell(&self, lane: usize) -> Option<Cell> {
        match self {
            Self::Merged(cells) => Some(cells[lane]),
            Self::Borrowed(row) => row.cell(lane),
        }
    }
}

impl<'a> FanOut<'a> {
    /// Groups the cells of the maps of this granularity and of finer granularities by slot.
    pub(crate) fn new(
        granularity: &Granularity,
        maps: impl IntoIterator<Item = &'a CellMap>,
    ) -> Self {
        let mut slots: BTreeMap<i64, WideSlot<'a>> = BTreeMap::new();
        for (start, cells) in maps.into_iter().flat_map(CellMap::all_slots) {
            let wide_start = granularity.slot_start(UnixMillis(start)).0;
            let slot = slots.entry(wide_start).or_default();
            let part = slot.parts.len() as u32;
            slot.parts.push(((start - wide_start) as u32, cells));
            let rows = (0..).zip(cells.rows());
            slot.rows.extend(rows.map(|(index, row)| Piece { number: row.number(), part, index }));
        }
        for slot in slots.values_mut() {
            slot.rows.sort_unstable();
        }
        Self { slots }
    }

    /// Returns the slots that begin within the range, ascending.
    pub(crate) fn slots(&self, range: Range<i64>) -> impl Iterator<Item = (i64, &WideSlot<'a>)> {
        self.slots.range(range).map(|(start, slot)| (*start, slot))
    }

    /// Returns the merged cells.
    pub(crate) fn merged(&self) -> CellMap {
        let mut map = CellMap::default();
        let mut cells = [Cell::EMPTY; SERIES_PER_ROW];
        for (start, slot) in self.all_slots() {
            let mut cursor = map.cursor(start);
            for (number, pieces) in slot.rows() {
                cells.fill(Cell::EMPTY);
                pieces.merge_into(&mut cells);
                map.add_row(&mut cursor, CellRow::of(number, &cells));
            }
        }
        map
    }

    /// Returns all slots, ascending.
    pub(crate) fn all_slots(&self) -> impl Iterator<Item = (i64, &WideSlot<'a>)> {
        self.slots.iter().map(|(start, slot)| (*start, slot))
    }
}

impl WideSlot<'_> {
    /// Returns the rows with cells, and their numbers, ascending.
    pub(crate) fn rows(&self) -> impl Iterator<Item = (u32, Pieces<'_>)> {
        let rows = self.rows.chunk_by(|piece, next| piece.number == next.number);
        rows.map(|pieces| (pieces[0].number, Pieces { slot: self, pieces }))
    }

    /// Returns the cells of a row. They are merged only if they belong to several finer slots or
    /// need a shift.
    pub(crate) fn row(&self, number: u32) -> Option<WideRow<'_>> {
        let from = self.rows.partition_point(|piece| piece.number < number);
        let count = self.rows[from..].partition_point(|piece| piece.number == number);
        let row = Pieces { slot: self, pieces: &self.rows[from..from + count] };
        match row.pieces {
            [] => None,
            [piece] if row.part(piece).0 == 0 => Some(WideRow::Borrowed(row.part(piece).1)),
            _ => {
                let mut merged = Box::new([Cell::EMPTY; SERIES_PER_ROW]);
                row.merge_into(&mut merged);
                Some(WideRow::Merged(merged))
            }
        }
    }
}

impl<'s> Pieces<'s> {
    /// Merges the cells into `out`.
    pub(crate) fn merge_into(&self, out: &mut RowCells) {
        for piece in self.pieces {
            let (shift, row) = self.part(piece);
            row.merge_into(shift, out);
        }
    }

    /// Returns the offset of a piece's slot in milliseconds, and the row.
    fn part(&self, piece: &Piece) -> (u32, &'s CellRow) {
        let (shift, cells) = self.slot.parts[piece.part as usize];
        (shift, &cells.rows()[piece.index as usize])
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::model::{GranularitySet, SeriesId};

    proptest! {
        #[test]
        fn a_wide_slot_contains_the_merged_cells_of_its_finer_slots(
            samples in prop::collection::vec((0..2_usize, 0..9_i64, 0..300_u32, 0..60_000_u32), 0..300)
        ) {
            let set = GranularitySet::default();
            let [fine, coarse] = [0, 1].map(|index| &set.as_slice()[index]);
            let mut maps = [CellMap::default(), CellMap::default()];
            let mut model: BTreeMap<(i64, u32), Cell> = BTreeMap::new();
            for (map, minute, series, at) in samples {
                let granularity = if map == 0 { fine } else { coarse };
                let time = UnixMillis(minute * 60_000 + i64::from(at));
                let [start, wide] = [granularity, coarse].map(|level| level.slot_start(time).0);
                let cell = |start: i64| Cell::single((time.0 - start) as u32, f64::from(at));
                let mut cursor = maps[map].cursor(start);
                maps[map].merge(&mut cursor, SeriesId(series), &cell(start));
                model.entry((wide, series)).or_insert(Cell::EMPTY).merge(&cell(wide));
            }
            let fan_out = FanOut::new(coarse, &maps);
            let merged = fan_out.merged();
            let mut found = BTreeMap::new();
            for (start, slot) in FanOut::new(coarse, [&merged]).all_slots() {
                for (number, pieces) in slot.rows() {
                    let mut row = [Cell::EMPTY; SERIES_PER_ROW];
                    pieces.merge_into(&mut row);
                    let filled = (0..).zip(row).filter(|(_, cell)| !cell.is_empty());
                    found.extend(filled.map(|(lane, cell)| ((start, number * 64 + lane), cell)));
                }
            }
            prop_assert_eq!(&found, &model);
            found.clear();
            for (start, slot) in fan_out.all_slots() {
                let numbers = slot.rows().map(|(number, _)| number);
                prop_assert!(numbers.is_sorted_by(|number, next| number < next));
                for (number, pieces) in slot.rows() {
                    let mut row = [Cell::EMPTY; SERIES_PER_ROW];
                    pieces.merge_into(&mut row);
                    let looked_up = slot.row(number).unwrap();
                    for (lane, cell) in row.iter().enumerate() {
                        prop_assert_eq!(looked_up.cell(lane).unwrap_or_default(), *cell);
                    }
                    let filled = row.iter().enumerate().filter(|(_, cell)| !cell.is_empty());
                    for (lane, cell) in filled {
                        let before = found.insert((start, number * 64 + lane as u32), *cell);
                        prop_assert!(before.is_none());
                    }
                }
                prop_assert!(slot.row(700).is_none());
            }
            prop_assert_eq!(found, model);
        }
    }
}
