//! A row of the head: the cells of one slot of neighbouring series, as bytes.
//!
//! A bitmap says which series have a cell; the cells follow in order, and a checksum. Rows of older
//! releases have none. FORMAT.md describes the bytes. Must never know where rows are kept.

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::{
    model::Cell,
    store::rows::{RowCells, SERIES_PER_ROW},
};

/// Bytes of one cell: three u32 and five f64.
const CELL_BYTES: usize = 52;
const BITMAP_BYTES: usize = 8;
const CHECKSUM_BYTES: usize = 8;

/// A row as it lies on disk.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Row<'a> {
    present: u64,
    cells: &'a [[u8; CELL_BYTES]],
}

impl<'a> Row<'a> {
    /// Reads the row that lies under a key; `None` when it is not as it was written there.
    pub(crate) fn parse(bytes: &'a [u8], key: u64) -> Option<Self> {
        let row = Self::checked(bytes)?;
        let (sound, checksum) = bytes.split_at(BITMAP_BYTES + row.cells.as_flattened().len());
        (checksum.is_empty() || *checksum == checksum_of(sound, key)).then_some(row)
    }

    /// Reads a row whose checksum was found right before.
    pub(crate) fn checked(bytes: &'a [u8]) -> Option<Self> {
        let (bitmap, rest) = bytes.split_first_chunk::<BITMAP_BYTES>()?;
        let present = u64::from_le_bytes(*bitmap);
        let cells = rest.get(..present.count_ones() as usize * CELL_BYTES)?;
        Some(Self { present, cells: cells.as_chunks().0 })
    }

    /// The cell of the series at a place of the row.
    pub(crate) fn cell(&self, lane: usize) -> Option<Cell> {
        let bit = 1_u64 << lane;
        let before = (self.present & (bit - 1)).count_ones() as usize;
        (self.present & bit != 0).then(|| self.cells.get(before).map(read_cell))?
    }

    /// Merges the cells of the row into others.
    pub(crate) fn merge_into(&self, out: &mut RowCells) {
        let lanes = (0..SERIES_PER_ROW).filter(|lane| self.present >> lane & 1 == 1);
        for (lane, bytes) in lanes.zip(self.cells) {
            out[lane].merge(&read_cell(bytes));
        }
    }
}

/// What the bytes of a row must have behind them under a key.
fn checksum_of(row: &[u8], key: u64) -> [u8; CHECKSUM_BYTES] {
    xxh3_64_with_seed(row, key).to_le_bytes()
}

/// Writes cells as the row of a key over `out`; false when all are empty.
pub(crate) fn encode(cells: &RowCells, key: u64, out: &mut Vec<u8>) -> bool {
    out.clear();
    out.extend_from_slice(&[0; BITMAP_BYTES]);
    let mut present = 0_u64;
    for (lane, cell) in cells.iter().enumerate().filter(|(_, cell)| !cell.is_empty()) {
        present |= 1 << lane;
        for part in [cell.n, cell.first_at, cell.last_at] {
            out.extend_from_slice(&part.to_le_bytes());
        }
        for part in [cell.sum, cell.min, cell.max, cell.first, cell.last] {
            out.extend_from_slice(&part.to_le_bytes());
        }
    }
    out[..BITMAP_BYTES].copy_from_slice(&present.to_le_bytes());
    let checksum = checksum_of(out, key);
    out.extend_from_slice(&checksum);
    present != 0
}

fn read_cell(bytes: &[u8; CELL_BYTES]) -> Cell {
    let (numbers, values) = bytes.split_at(12);
    let u32_at = |index: usize| {
        numbers.as_chunks::<4>().0.get(index).map_or(0, |bytes| u32::from_le_bytes(*bytes))
    };
    let f64_at = |index: usize| {
        values.as_chunks::<8>().0.get(index).map_or(0.0, |bytes| f64::from_le_bytes(*bytes))
    };
    Cell {
        n: u32_at(0),
        first_at: u32_at(1),
        last_at: u32_at(2),
        sum: f64_at(0),
        min: f64_at(1),
        max: f64_at(2),
        first: f64_at(3),
        last: f64_at(4),
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_row_is_read_as_it_was_written(
            lanes in prop::collection::btree_map(0..SERIES_PER_ROW, (0..60_u32, -9.0..9.0_f64), 0..64)
        ) {
            let mut cells = [Cell::EMPTY; SERIES_PER_ROW];
            for (lane, (at, value)) in &lanes {
                cells[*lane] = Cell::single(*at, *value);
                cells[*lane].merge(&Cell::reading(at + 1, 2.0, 3.0, Some(1.0)));
            }
            cells[7] = Cell::correction(-2.0, Some(0.5));
            let mut bytes = Vec::new();
            prop_assert!(encode(&cells, 77, &mut bytes));
            prop_assert!(Row::parse(&bytes, 78).is_none());
            for bit in 0..bytes.len() * 8 {
                bytes[bit / 8] ^= 1 << (bit % 8);
                prop_assert!(Row::parse(&bytes, 77).is_none());
                bytes[bit / 8] ^= 1 << (bit % 8);
            }
            // Those of older releases have no checksum.
            let length = bytes.len() - CHECKSUM_BYTES;
            prop_assert!(Row::parse(&bytes[..length], 78).is_some());
            let row = Row::parse(&bytes, 77).unwrap();
            let mut read = [Cell::EMPTY; SERIES_PER_ROW];
            row.merge_into(&mut read);
            prop_assert_eq!(read, cells);
            for (lane, cell) in cells.iter().enumerate() {
                prop_assert_eq!(row.cell(lane).unwrap_or(Cell::EMPTY), *cell);
            }
        }

        #[test]
        fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            if let Some(row) = Row::parse(&bytes, 5) {
                let present = (0..SERIES_PER_ROW).filter(|lane| row.cell(*lane).is_some());
                let length = present.count() * CELL_BYTES + BITMAP_BYTES;
                prop_assert!([length, length + CHECKSUM_BYTES].contains(&bytes.len()));
            }
        }
    }

    #[test]
    fn a_row_of_empty_cells_is_none() {
        assert!(!encode(&[Cell::EMPTY; SERIES_PER_ROW], 5, &mut Vec::new()));
    }
}
