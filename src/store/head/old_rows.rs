//! Rows as releases up to version 6 of the files wrote them: found once, when such a file is opened,
//! and written anew.
//!
//! Must never know: how rows are written now.

use redb::{ReadableTable, TableDefinition, TableHandle, WriteTransaction};
use xxhash_rust::xxh3::xxh3_64_with_seed;

use super::{ROWS_PREFIX, fail, row::RowWriter, rows_table};
use crate::{
    model::Cell,
    store::{
        encoding::lanes::{RowCells, SERIES_PER_ROW},
        error::StoreError,
    },
};

/// Of tables with such rows; a granularity's name follows.
const OLD_PREFIX: &str = "cells/";
/// Bytes of one cell: three u32 and five f64.
const CELL_BYTES: usize = 52;
const BITMAP_BYTES: usize = 8;

/// Writes all such rows anew, also those of granularities that are no longer kept. What is damaged
/// stays so.
pub(super) fn rewrite(txn: &WriteTransaction) -> Result<(), StoreError> {
    const OPERATION: &str = "raise";
    let tables = txn.list_tables().map_err(fail(OPERATION))?;
    let names: Vec<String> = tables.map(|table| table.name().to_owned()).collect();
    for name in names {
        let Some(granularity) = name.strip_prefix(OLD_PREFIX) else { continue };
        let old: TableDefinition<'_, u64, &[u8]> = TableDefinition::new(&name);
        let own_name = format!("{ROWS_PREFIX}{granularity}");
        {
            let mut rows = txn.open_table(rows_table(&own_name)).map_err(fail(OPERATION))?;
            let old = txn.open_table(old).map_err(fail(OPERATION))?;
            let mut writer = RowWriter::default();
            for entry in old.iter().map_err(fail(OPERATION))? {
                let (key, bytes) = entry.map_err(fail(OPERATION))?;
                let key = key.value();
                let Some(cells) = read(bytes.value(), key) else {
                    // It is no row of the new form either, so that who reads it is told.
                    rows.insert(key, bytes.value()).map_err(fail(OPERATION))?;
                    continue;
                };
                if let Some(row) = writer.write(&cells, key) {
                    rows.insert(key, row).map_err(fail(OPERATION))?;
                }
            }
        }
        txn.delete_table(old).map_err(fail(OPERATION))?;
    }
    Ok(())
}

/// Reads the row that lies under a key; `None` when it is not as it was written there. A bitmap says
/// which series have a cell; the cells follow in order, and since version 3 a checksum.
fn read(bytes: &[u8], key: u64) -> Option<Box<RowCells>> {
    let (bitmap, rest) = bytes.split_first_chunk::<BITMAP_BYTES>()?;
    let present = u64::from_le_bytes(*bitmap);
    let (cells, checksum) = rest.split_at_checked(present.count_ones() as usize * CELL_BYTES)?;
    let sound = &bytes[..bytes.len() - checksum.len()];
    if !checksum.is_empty() && *checksum != xxh3_64_with_seed(sound, key).to_le_bytes() {
        return None;
    }
    let mut out = Box::new([Cell::EMPTY; SERIES_PER_ROW]);
    let lanes = (0..SERIES_PER_ROW).filter(|lane| present >> lane & 1 == 1);
    for (lane, bytes) in lanes.zip(cells.as_chunks().0) {
        out[lane] = read_cell(bytes);
    }
    Some(out)
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
    use super::*;

    #[test]
    fn an_old_row_is_read_with_and_without_its_checksum_and_not_when_it_is_damaged() {
        let mut bytes = 0b1001_u64.to_le_bytes().to_vec();
        for last in [7.0_f64, -0.5] {
            bytes.extend([2_u32, 30, 40].into_iter().flat_map(u32::to_le_bytes));
            bytes.extend([1.0, 2.0, 3.0, f64::NAN, last].into_iter().flat_map(f64::to_le_bytes));
        }
        let cell = |last| Cell {
            n: 2,
            first_at: 30,
            last_at: 40,
            sum: 1.0,
            min: 2.0,
            max: 3.0,
            first: f64::NAN,
            last,
        };
        let mut expected = Box::new([Cell::EMPTY; SERIES_PER_ROW]);
        (expected[0], expected[3]) = (cell(7.0), cell(-0.5));
        assert_eq!(read(&bytes, 5), Some(expected.clone()));
        let checksum = xxh3_64_with_seed(&bytes, 5);
        bytes.extend_from_slice(&checksum.to_le_bytes());
        assert_eq!(read(&bytes, 5), Some(expected));
        assert_eq!(read(&bytes, 6), None);
        bytes[20] ^= 1;
        assert_eq!(read(&bytes, 5), None);
        assert_eq!(read(&bytes[..40], 5), None);
    }
}
