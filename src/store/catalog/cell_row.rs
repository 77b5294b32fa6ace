//! The cells of 64 neighbouring series in one slot, in memory.
//!
//! A cell of one sample takes less than half the bytes of a whole cell, and when senders sample
//! once per slot, all cells have one sample. A row therefore begins with cells of one sample (lone
//! cells), and converts all of them to whole cells when a cell gets a second sample.
//!
//! Must never know: which slot it is, and where cells are stored later.

use crate::{
    model::Cell,
    store::encoding::lanes::{RowCells, SERIES_PER_ROW},
};

/// The capacities of a growing row: most rows have one cell or all cells.
const STEPS: [usize; 4] = [1, 8, 32, SERIES_PER_ROW];

/// The stored rate of a reading without a rate: a NaN that no calculation produces.
const NO_RATE: u64 = 0x7ff4_6e6f_7261_7465;

/// The cells of neighbouring series in one slot, in the order in which they were added.
#[derive(Debug, Clone)]
pub(crate) struct CellRow {
    number: u32,
    /// The index of each series' cell plus 1; 0 when the series has no cell.
    positions: [u8; SERIES_PER_ROW],
    /// The cells while each has one sample.
    lone: Vec<LoneCell>,
    /// The cells once they are whole; without capacity until then.
    whole: Vec<Cell>,
}

/// A cell of one sample.
#[derive(Debug, Clone, Copy)]
#[repr(Rust, packed(4))]
struct LoneCell {
    at: u32,
    value: f64,
    sum: f64,
    /// Both the minimum and the maximum of the cell.
    rate: f64,
}

const _: () = assert!(size_of::<LoneCell>() * 2 <= size_of::<Cell>());

impl LoneCell {
    /// Returns the lone cell; `None` when the cell does not have exactly one sample.
    fn new(cell: &Cell) -> Option<Self> {
        let Cell { n, first_at, last_at, sum, min, max, first, last, m2 } = *cell;
        let rate = match (min.to_bits(), max.to_bits()) {
            _ if (min, max) == (f64::INFINITY, f64::NEG_INFINITY) => f64::from_bits(NO_RATE),
            (NO_RATE, _) => return None,
            (min, max) if min == max => f64::from_bits(min),
            _ => return None,
        };
        let is_single = first_at == last_at && first.to_bits() == last.to_bits();
        (n == 1 && is_single && m2 == 0.0).then_some(Self { at: first_at, value: first, sum, rate })
    }

    fn cell(self) -> Cell {
        let Self { at, value, sum, rate } = self;
        let (min, max) = match rate.to_bits() {
            NO_RATE => (f64::INFINITY, f64::NEG_INFINITY),
            _ => (rate, rate),
        };
        let (first, last) = (value, value);
        Cell { n: 1, first_at: at, last_at: at, sum, min, max, first, last, m2: 0.0 }
    }
}

impl CellRow {
    pub(super) fn new(number: u32) -> Self {
        let lone = Vec::with_capacity(1);
        Self { number, positions: [0; SERIES_PER_ROW], lone, whole: Vec::new() }
    }

    /// Creates a row from the cells that are not empty, with memory for no more cells.
    pub(super) fn of(number: u32, cells: &RowCells) -> Self {
        let filled = || (0..).zip(cells).filter(|(_, cell)| !cell.is_empty());
        let mut row = Self { number, positions: [0; SERIES_PER_ROW], lone: vec![], whole: vec![] };
        for (position, (lane, _)) in (1..).zip(filled()) {
            row.positions[lane as usize] = position;
        }
        let count = filled().count();
        if filled().all(|(_, cell)| cell.n == 1 && LoneCell::new(cell).is_some()) {
            row.lone.reserve_exact(count);
            row.lone.extend(filled().filter_map(|(_, cell)| LoneCell::new(cell)));
        } else {
            row.whole.reserve_exact(count);
            row.whole.extend(filled().map(|(_, cell)| *cell));
        }
        row
    }

    /// Returns the number of the row.
    pub(super) fn number(&self) -> u32 {
        self.number
    }

    /// Returns whether a series has a cell.
    pub(super) fn has(&self, lane: usize) -> bool {
        self.positions[lane] > 0
    }

    /// Returns the cell of a series.
    pub(crate) fn cell(&self, lane: usize) -> Option<Cell> {
        let position = usize::from(self.positions[lane]).checked_sub(1)?;
        match self.whole.get(position) {
            Some(cell) => Some(*cell),
            None => self.lone.get(position).map(|cell| cell.cell()),
        }
    }

    /// Returns the bytes of the cells.
    pub(super) fn bytes(&self) -> usize {
        self.lone.capacity() * size_of::<LoneCell>() + self.whole.capacity() * size_of::<Cell>()
    }

    /// Returns the maximum number of bytes that converting the cells to whole cells adds.
    pub(super) fn whole_growth(&self) -> usize {
        self.lone.capacity() * (size_of::<Cell>() - size_of::<LoneCell>())
    }

    /// Returns the number of cells.
    pub(super) fn count(&self) -> usize {
        self.lone.len() + self.whole.len()
    }

    /// Merges a cell into the cell of a series; returns the number of added bytes.
    pub(super) fn merge(&mut self, lane: usize, cell: &Cell) -> usize {
        let position = usize::from(self.positions[lane]);
        if position > 0 {
            let grown = self.make_whole();
            self.whole[position - 1].merge(cell);
            return grown;
        }
        if cell.is_empty() {
            return 0;
        }
        let grown = match LoneCell::new(cell) {
            Some(lone) if self.is_lone() => push(&mut self.lone, lone),
            _ => self.make_whole() + push(&mut self.whole, *cell),
        };
        self.positions[lane] = self.count() as u8;
        grown
    }

    fn is_lone(&self) -> bool {
        self.whole.capacity() == 0
    }

    /// Converts the cells to whole cells; returns the number of added bytes.
    fn make_whole(&mut self) -> usize {
        if !self.is_lone() {
            return 0;
        }
        let before = self.bytes();
        let lone = std::mem::take(&mut self.lone);
        self.whole.reserve_exact(lone.capacity());
        self.whole.extend(lone.into_iter().map(LoneCell::cell));
        self.bytes() - before
    }

    /// Merges the row into the cells of a wider slot that begins `shift` milliseconds earlier.
    pub(super) fn merge_into(&self, shift: u32, cells: &mut RowCells) {
        let of_lanes = cells.iter_mut().zip(self.positions).filter(|(_, position)| *position > 0);
        if self.is_lone() {
            for (merged, position) in of_lanes {
                merged.merge(&self.lone[usize::from(position) - 1].cell().shifted(shift));
            }
            return;
        }
        for (merged, position) in of_lanes {
            let cell = &self.whole[usize::from(position) - 1];
            if !cell.is_empty() {
                merged.merge(&cell.shifted(shift));
            }
        }
    }
}

/// Adds a cell; the capacity grows in [`STEPS`]. Returns the number of added bytes.
#[inline]
fn push<T>(cells: &mut Vec<T>, cell: T) -> usize {
    let room = cells.capacity();
    if cells.len() == room {
        let next = STEPS.into_iter().find(|step| *step > room).unwrap_or(SERIES_PER_ROW);
        cells.reserve_exact(next - room);
    }
    cells.push(cell);
    (cells.capacity() - room) * size_of::<T>()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lone_cell_is_restored_to_the_bit_and_other_cells_are_never_lone() {
        let bits = |cell: Cell| {
            let floats = [cell.sum, cell.min, cell.max, cell.first, cell.last].map(f64::to_bits);
            (cell.n, cell.first_at, cell.last_at, floats)
        };
        let values = [0.0, -0.0, 1.5, f64::NAN, -f64::NAN, f64::INFINITY, f64::NEG_INFINITY];
        for value in values {
            for rate in [None, Some(value), Some(0.5)] {
                for cell in [Cell::single(7, value), Cell::reading(7, 2.0, value, rate)] {
                    let restored = LoneCell::new(&cell).map(LoneCell::cell).map(bits);
                    assert_eq!(restored, Some(bits(cell)));
                }
            }
        }
        let lone = Cell::reading(3, 2.0, 1.0, None);
        let no_rate = f64::from_bits(NO_RATE);
        for other in [
            Cell::EMPTY,
            Cell::correction(1.0, Some(1.0)),
            Cell { n: 2, ..lone },
            Cell { last_at: 4, ..lone },
            Cell { last: 3.0, ..lone },
            Cell { min: 0.0, ..lone },
            Cell { min: -0.0, max: 0.0, ..lone },
            Cell::single(0, no_rate),
        ] {
            assert!(LoneCell::new(&other).is_none(), "{other:?}");
        }
    }

    #[test]
    fn a_row_contains_the_merged_cells_whether_they_are_lone_or_whole() {
        let mut row = CellRow::new(3);
        let mut expected = [Cell::EMPTY; SERIES_PER_ROW];
        let mut merge = |lane: usize, cell: Cell, is_whole: bool| {
            let before = row.bytes();
            assert_eq!(row.merge(lane, &cell), row.bytes() - before);
            expected[lane].merge(&cell);
            let mut merged = [Cell::EMPTY; SERIES_PER_ROW];
            row.merge_into(0, &mut merged);
            assert_eq!(merged, expected);
            assert_eq!(row.whole_growth() == 0, is_whole);
            row.bytes()
        };
        for lane in (0..40).rev() {
            merge(lane, Cell::single(lane as u32, 1.5), false);
        }
        let lone_bytes = merge(50, Cell::reading(1, 2.0, 1.0, None), false);
        merge(51, Cell::EMPTY, false);
        let whole_bytes = lone_bytes / size_of::<LoneCell>() * size_of::<Cell>();
        assert_eq!(merge(50, Cell::single(9, 3.0), true), whole_bytes);
        merge(51, Cell::single(9, 3.0), true);
        merge(3, Cell::correction(-1.0, None), true);
        assert_eq!(row.count(), 42);
        let mut corrected = CellRow::new(3);
        corrected.merge(1, &Cell::correction(1.0, None));
        assert_eq!((corrected.count(), corrected.whole_growth()), (1, 0));
    }
}
