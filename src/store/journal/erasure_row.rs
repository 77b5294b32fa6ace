//! An erasure as the journal stores it; FORMAT.md describes the bytes.
//!
//! Must never know: how samples are erased.

use std::{ops::Range, sync::Arc};

use crate::{
    model::{Cell, SeriesId, UnixMillis},
    store::encoding::fixed::take_bytes,
};

/// The flag of an erasure whose files are changed.
const APPLIED: u8 = 1;
/// The flag of a row whose cells have second moments.
const WITH_M2: u8 = 2;

/// An accepted erasure.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Erasure {
    /// The last record before the erasure: all cells up to it are in files.
    pub(crate) through: u64,
    /// True when the files are changed.
    pub(crate) is_applied: bool,
    pub(crate) range: Range<UnixMillis>,
    /// The series, ascending.
    pub(crate) series: Vec<SeriesId>,
    /// The slots that the range cuts, with the cells that remain.
    pub(crate) cut: Vec<CutSlot>,
}

/// A partially erased slot.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct CutSlot {
    /// The name of the level.
    pub(crate) level: String,
    /// The start.
    pub(crate) start: UnixMillis,
    /// The series that change, ascending, with their remaining cells.
    pub(crate) cells: Vec<(SeriesId, Cell)>,
}

/// The erasure since the last cut.
#[derive(Debug, Clone, Default)]
pub(crate) enum Pending {
    /// There is no erasure, or its files are already changed.
    #[default]
    Nothing,
    /// The files are not changed yet.
    Stored(Arc<Erasure>),
    /// Storing the erasure failed, and the row may exist: the next checkpoint removes it.
    Unsure,
}

impl Erasure {
    /// Returns the bytes of the row.
    pub(crate) fn to_row(&self) -> Vec<u8> {
        let mut row = Vec::new();
        row.push(if self.is_applied { APPLIED | WITH_M2 } else { WITH_M2 });
        row.extend_from_slice(&self.through.to_le_bytes());
        put_i64(self.range.start.0, &mut row);
        put_i64(self.range.end.0, &mut row);
        put_u32(self.series.len() as u32, &mut row);
        for id in &self.series {
            put_u32(id.0, &mut row);
        }
        put_u32(self.cut.len() as u32, &mut row);
        for CutSlot { level, start, cells } in &self.cut {
            put_u32(level.len() as u32, &mut row);
            row.extend_from_slice(level.as_bytes());
            put_i64(start.0, &mut row);
            put_u32(cells.len() as u32, &mut row);
            for (id, cell) in cells {
                for number in [id.0, cell.n, cell.first_at, cell.last_at] {
                    put_u32(number, &mut row);
                }
                for value in [cell.sum, cell.min, cell.max, cell.first, cell.last, cell.m2] {
                    row.extend_from_slice(&value.to_le_bytes());
                }
            }
        }
        row
    }

    /// Reads a row; `None` when it is damaged.
    pub(crate) fn from_row(mut row: &[u8]) -> Option<Self> {
        let row = &mut row;
        let [flags] = take_bytes::<1>(row)?;
        let through = u64::from_le_bytes(take_bytes(row)?);
        let range = take_time(row)?..take_time(row)?;
        let mut series = Vec::new();
        for _ in 0..take_u32(row)? {
            series.push(SeriesId(take_u32(row)?));
        }
        let mut cut = Vec::new();
        for _ in 0..take_u32(row)? {
            let length = take_u32(row)? as usize;
            let (level, rest) = row.split_at_checked(length)?;
            *row = rest;
            let level = str::from_utf8(level).ok()?.to_owned();
            let start = take_time(row)?;
            let mut cells = Vec::new();
            for _ in 0..take_u32(row)? {
                cells.push((SeriesId(take_u32(row)?), take_cell(row, flags)?));
            }
            cut.push(CutSlot { level, start, cells });
        }
        let is_ascending = |ids: &[SeriesId]| ids.is_sorted_by(|id, next| id < next);
        let is_sound = row.is_empty() && flags <= (APPLIED | WITH_M2) && is_ascending(&series);
        let is_applied = flags & APPLIED != 0;
        is_sound.then_some(Self { through, is_applied, range, series, cut })
    }
}

fn put_u32(number: u32, row: &mut Vec<u8>) {
    row.extend_from_slice(&number.to_le_bytes());
}

fn put_i64(number: i64, row: &mut Vec<u8>) {
    row.extend_from_slice(&number.to_le_bytes());
}

fn take_u32(row: &mut &[u8]) -> Option<u32> {
    take_bytes(row).map(u32::from_le_bytes)
}

fn take_time(row: &mut &[u8]) -> Option<UnixMillis> {
    take_bytes(row).map(|bytes| UnixMillis(i64::from_le_bytes(bytes)))
}

fn take_f64(row: &mut &[u8]) -> Option<f64> {
    take_bytes(row).map(f64::from_le_bytes)
}

fn take_cell(row: &mut &[u8], flags: u8) -> Option<Cell> {
    Some(Cell {
        n: take_u32(row)?,
        first_at: take_u32(row)?,
        last_at: take_u32(row)?,
        sum: take_f64(row)?,
        min: take_f64(row)?,
        max: take_f64(row)?,
        first: take_f64(row)?,
        last: take_f64(row)?,
        m2: if flags & WITH_M2 != 0 { take_f64(row)? } else { 0.0 },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_row_is_read_as_it_was_written_and_a_shorter_one_is_refused() {
        let cell = Cell { n: 3, last_at: 59_000, sum: f64::NAN, m2: 0.5, ..Cell::single(7, -0.5) };
        let cells = vec![(SeriesId(2), cell), (SeriesId(9), Cell::EMPTY)];
        let erasure = Erasure {
            through: 1 << 40,
            is_applied: true,
            range: UnixMillis(60_000)..UnixMillis(180_000),
            series: vec![SeriesId(2), SeriesId(9)],
            cut: vec![CutSlot { level: "5m@debug".to_owned(), start: UnixMillis(0), cells }],
        };
        let row = erasure.to_row();
        assert_eq!(Erasure::from_row(&row), Some(erasure));
        for length in 0..row.len() {
            assert_eq!(Erasure::from_row(&row[..length]), None, "{length} bytes");
        }
    }
}
