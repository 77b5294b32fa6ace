//! The map of the cells of histograms that are in no file yet.
//!
//! Must never know: where cells are stored later.

use std::{
    collections::BTreeMap,
    ops::{ControlFlow, Range},
};

use crate::{
    model::{Granularity, GranularityIndex, HistogramCell, SeriesId, UnixMillis},
    store::classes::Classes,
};

/// The approximate bytes of an entry of the map without its histograms.
const ENTRY_BYTES: usize = 64;

/// Cells by level, series and slot. Each sample is in the cell of one level.
#[derive(Debug, Clone, Default)]
pub(crate) struct HistogramMap {
    cells: BTreeMap<(usize, SeriesId, i64), HistogramCell>,
    bytes: usize,
}

/// A function that takes the cell of a slot, and breaks when no more cells are wanted.
pub(crate) type HistogramVisitor<'a> = dyn FnMut(i64, HistogramCell) -> ControlFlow<()> + 'a;

/// The cells of one level, by series and slot.
pub(crate) type HistogramsOfLevel = BTreeMap<(SeriesId, i64), HistogramCell>;

impl HistogramMap {
    /// Returns true when there are no cells.
    pub(crate) fn is_empty(&self) -> bool {
        self.cells.is_empty()
    }

    /// Returns the approximate bytes of the cells.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Merges a cell into the cell of a slot.
    pub(crate) fn merge(
        &mut self,
        level: GranularityIndex,
        (series, slot): (SeriesId, i64),
        cell: &HistogramCell,
    ) {
        if let Some(known) = self.cells.get_mut(&(level.0, series, slot)) {
            let before = known.bytes();
            known.merge(cell);
            self.bytes = self.bytes + known.bytes() - before;
        } else {
            self.bytes += cell.bytes() + ENTRY_BYTES;
            self.cells.insert((level.0, series, slot), cell.clone());
        }
    }

    /// Adds the cells of a series in the slots of a level within a range to `out`, including the
    /// cells of finer levels.
    pub(crate) fn copy_into(
        &self,
        classes: &Classes,
        level: GranularityIndex,
        (series, range): (SeriesId, &Range<i64>),
        out: &mut HistogramsOfLevel,
    ) {
        let granularity = &classes.levels()[level.0];
        for finer in classes.up_to(level) {
            let cells = self.cells.range((finer, series, range.start)..(finer, series, range.end));
            for ((_, _, slot), cell) in cells {
                merge_wide(out, granularity, (series, *slot), cell);
            }
        }
    }

    /// Returns the cells in the slots of a level, including the cells of finer levels.
    pub(crate) fn fan_out(&self, classes: &Classes, level: GranularityIndex) -> HistogramsOfLevel {
        let (mut out, granularity) = (HistogramsOfLevel::new(), &classes.levels()[level.0]);
        let levels = classes.up_to(level);
        let within = (levels.start, SeriesId(0), i64::MIN)..(levels.end, SeriesId(0), i64::MIN);
        for ((_, series, slot), cell) in self.cells.range(within) {
            merge_wide(&mut out, granularity, (*series, *slot), cell);
        }
        out
    }
}

/// Merges a cell of a slot into the wider slot that contains it.
fn merge_wide(
    out: &mut HistogramsOfLevel,
    granularity: &Granularity,
    (series, slot): (SeriesId, i64),
    cell: &HistogramCell,
) {
    let start = granularity.slot_start(UnixMillis(slot)).0;
    merge_into(out, (series, start), cell.clone().shifted((slot - start) as u32));
}

/// Returns a visitor that merges all cells of a series into the cells of a level.
pub(crate) fn merger(
    series: SeriesId,
    out: &mut HistogramsOfLevel,
) -> impl FnMut(i64, HistogramCell) -> ControlFlow<()> {
    move |slot, cell| {
        merge_into(out, (series, slot), cell);
        ControlFlow::Continue(())
    }
}

/// Merges a cell into the cells of a level.
pub(crate) fn merge_into(out: &mut HistogramsOfLevel, key: (SeriesId, i64), cell: HistogramCell) {
    match out.get_mut(&key) {
        Some(known) => known.merge(&cell),
        None => drop(out.insert(key, cell)),
    }
}
