//! Rows of neighbouring series: 64 of them share a row of the head, of states, and of the catalog.
//!
//! Must never know: what rows hold, and where they are kept.

use crate::model::{Cell, SeriesId};

/// Neighbouring series that share a row.
pub(crate) const SERIES_PER_ROW: usize = 64;

/// The cells of a row, those without samples empty.
pub(crate) type RowCells = [Cell; SERIES_PER_ROW];

/// The row that holds a series.
pub(crate) fn row_of(series: SeriesId) -> u32 {
    series.0 / SERIES_PER_ROW as u32
}

/// The row that holds a series, and its place there.
pub(crate) fn row_and_lane(series: SeriesId) -> (u32, usize) {
    (row_of(series), series.0 as usize % SERIES_PER_ROW)
}

/// The series at a place of a row.
pub(crate) fn series_at(row: u32, lane: usize) -> SeriesId {
    SeriesId(row * SERIES_PER_ROW as u32 + lane as u32)
}
