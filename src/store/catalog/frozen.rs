//! A catalog that was set aside for a checkpoint, and how its cells are read.
//!
//! Must never know: where the cells go.

use std::{
    ops::Range,
    sync::{Arc, atomic::AtomicU32},
};

use super::cell_map::CellMap;
use crate::model::{Cell, GranularityIndex, GranularitySet, SenderWindow, SeriesId, UnixMillis};

/// A catalog that no longer changes and is on its way into documents.
#[derive(Debug)]
pub(crate) struct Frozen {
    /// The last journal record in it.
    pub(crate) through: u64,
    /// Raw cells by granularity, each sample in exactly one map.
    pub(crate) maps: Vec<CellMap>,
    /// Changed sender windows; nothing of senders that are forgotten.
    pub(crate) senders: Vec<(Arc<str>, Option<SenderWindow>)>,
    /// Rows of states before this are stored as of `through`.
    pub(crate) stored_rows: AtomicU32,
}

/// Hands out the cells of series, which ascend, in slots of a granularity: the place of the series,
/// the slot's start and the cell. A slot may come several times.
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
            let own_start = granularity.slot_start(UnixMillis(start)).0;
            let shift = (start - own_start) as u32;
            slot.cells(series, |place, cell| out(place, own_start, cell.shifted(shift)));
        }
    }
}
