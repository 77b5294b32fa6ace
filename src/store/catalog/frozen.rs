//! The frozen catalog of a checkpoint, and reading of its cells.
//!
//! Must never know: where the cells are stored.

use std::{
    ops::Range,
    sync::{Arc, atomic::AtomicU32},
};

use super::cell_map::CellMap;
use crate::{
    model::{Cell, GranularityIndex, SenderWindow, SeriesId, UnixMillis},
    store::{classes::Classes, histograms::map::HistogramMap},
};

/// The cells and states that a checkpoint moves to files; they no longer change.
#[derive(Debug)]
pub(crate) struct Frozen {
    /// The number of the last journal record that it includes.
    pub(crate) through: u64,
    /// Cells by level; each sample is in exactly one map.
    pub(crate) maps: Vec<CellMap>,
    /// Cells of histograms.
    pub(crate) histograms: HistogramMap,
    /// The changed windows of senders; `None` for removed senders.
    pub(crate) senders: Vec<(Arc<str>, Option<SenderWindow>)>,
    /// The number of the first row of states that is not yet stored as of `through`.
    pub(crate) stored_rows: AtomicU32,
}

/// Passes the cells of `series` (ascending) in slots of a level to `out`: the index of the
/// series, the slot's start and the cell. A slot may occur several times.
pub(crate) fn cells(
    maps: &[CellMap],
    classes: &Classes,
    level: GranularityIndex,
    series: &[SeriesId],
    range: Range<i64>,
    mut out: impl FnMut(usize, i64, Cell),
) {
    let granularity = &classes.levels()[level.0];
    for map in &maps[classes.up_to(level)] {
        for (start, slot) in map.slots(range.clone()) {
            let wide_start = granularity.slot_start(UnixMillis(start)).0;
            let shift = (start - wide_start) as u32;
            slot.cells(series, |position, cell| out(position, wide_start, cell.shifted(shift)));
        }
    }
}
