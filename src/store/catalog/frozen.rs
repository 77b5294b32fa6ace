//! A catalog that was set aside for a checkpoint, and how its cells are read.
//!
//! Must never know: where the cells are stored.

use std::{
    ops::Range,
    sync::{Arc, atomic::AtomicU32},
};

use super::cell_map::CellMap;
use crate::model::{Cell, GranularityIndex, GranularitySet, SenderWindow, SeriesId, UnixMillis};

/// A catalog that no longer changes, while a checkpoint moves it to files.
#[derive(Debug)]
pub(crate) struct Frozen {
    /// The number of the last journal record that it includes.
    pub(crate) through: u64,
    /// Raw cells by granularity, each sample in exactly one map.
    pub(crate) maps: Vec<CellMap>,
    /// Changed sender windows; `None` for senders that were forgotten.
    pub(crate) senders: Vec<(Arc<str>, Option<SenderWindow>)>,
    /// Rows of states with lower numbers are stored as of `through`.
    pub(crate) stored_rows: AtomicU32,
}

/// Passes the cells of `series` (ascending) in slots of a granularity to `out`: the index of the
/// series, the slot's start and the cell. A slot may occur several times.
pub(crate) fn cells(
    maps: &[CellMap],
    granularities: &GranularitySet,
    index: GranularityIndex,
    series: &[SeriesId],
    range: Range<i64>,
    mut out: impl FnMut(usize, i64, Cell),
) {
    let granularity = &granularities[index];
    for map in &maps[..=index.0] {
        for (start, slot) in map.slots(range.clone()) {
            let wide_start = granularity.slot_start(UnixMillis(start)).0;
            let shift = (start - wide_start) as u32;
            slot.cells(series, |place, cell| out(place, wide_start, cell.shifted(shift)));
        }
    }
}
