//! Rows of neighbouring series: 64 series share a row of the head, of the states and of the
//! catalog.
//!
//! Must never know: the content of rows, where they are stored.

use crate::model::{Cell, SeriesId};

/// The number of neighbouring series that share a row.
pub(crate) const SERIES_PER_ROW: usize = 64;

/// The cells of a row; [`Cell::EMPTY`] for series without a cell.
pub(crate) type RowCells = [Cell; SERIES_PER_ROW];

/// Returns the row of a series.
pub(crate) fn row_of(series: SeriesId) -> u32 {
    series.0 / SERIES_PER_ROW as u32
}

/// Returns the row of a series, and its lane: the index within the row.
pub(crate) fn row_and_lane(series: SeriesId) -> (u32, usize) {
    (row_of(series), series.0 as usize % SERIES_PER_ROW)
}

/// Returns the series of a lane in a row.
pub(crate) fn series_at(row: u32, lane: usize) -> SeriesId {
    SeriesId(row * SERIES_PER_ROW as u32 + lane as u32)
}
