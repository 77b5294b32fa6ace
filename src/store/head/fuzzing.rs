//! The fuzz target of the head: any bytes as a row.
//!
//! Must never know: checksums, which would keep changed bytes out.

use super::row::{HeadRow, HeadRowWriter};
use crate::{
    model::Cell,
    store::encoding::{
        lanes::{RowCells, SERIES_PER_ROW},
        moment,
    },
};

const KEY: u64 = 7;

/// Checks that reading the cells of a row one by one and all at once finds the same counts, and
/// that a row that is written again has equal cells, except for rounding of their moments.
pub(crate) fn read(bytes: &[u8]) {
    // The zeros are in the place of the checksum, which is not verified.
    let with_checksum = [bytes, &[0; 8]].concat();
    let Some(row) = HeadRow::checked(&with_checksum) else { return };
    let mut cells: RowCells = [Cell::EMPTY; SERIES_PER_ROW];
    for (lane, read) in cells.iter_mut().enumerate() {
        row.cells(1 << lane, |_, cell| *read = cell);
    }
    let mut merged = [Cell::EMPTY; SERIES_PER_ROW];
    if row.merge_into(&mut merged).is_some() {
        assert_eq!(merged.map(|cell| cell.n), cells.map(|cell| cell.n));
    }
    let mut writer = HeadRowWriter::default();
    let Some(written) = writer.write(&cells, KEY) else { return };
    let again = HeadRow::parse(written, KEY).expect("a written row can be read");
    let mut unread = cells.iter().filter(|cell| !cell.is_empty()).count();
    let outcome = again.cells(u64::MAX, |lane, cell| {
        assert_eq!(bits(&cell), bits(&cells[lane]), "lane {lane}");
        let Cell { min, max, first, last, m2, .. } = cells[lane];
        // The encoder takes a cell whose first or last value is outside of min and max for a
        // counter's, which has no moment.
        let encloses_ends = min <= first.min(last) && first.max(last) <= max;
        assert!(moment::is_same(cell.m2, m2) || !encloses_ends && cell.m2 == 0.0, "lane {lane}");
        unread -= 1;
    });
    assert_eq!((outcome, unread), (Some(()), 0), "all written cells are read");
}

/// Returns the bits of all fields of a cell except its moment, for exact comparisons.
pub(super) fn bits(cell: &Cell) -> [u64; 8] {
    let Cell { n, first_at, last_at, sum, min, max, first, last, .. } = *cell;
    let [sum, min, max, first, last] = [sum, min, max, first, last].map(f64::to_bits);
    [n.into(), first_at.into(), last_at.into(), sum, min, max, first, last]
}
