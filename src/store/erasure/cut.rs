//! The slots that the range of an erasure cuts, and the cells that remain there.
//!
//! A slot that is erased in part keeps the samples outside of the range. When all samples of its
//! cell are on one side of an edge, the first and last time show it. Otherwise the cells of the
//! next finer level are merged again, if these have as many samples as the cell.
//!
//! Must never know: files; it reads views.

use std::ops::Range;

use crate::{
    model::{Cell, Granularity, GranularityIndex, SeriesId, UnixMillis},
    store::{
        documents::{Columns, Slot},
        error::StoreError,
        handle::Store,
        journal::erasure_row::CutSlot,
        view::level::LevelView,
    },
};

/// A slot that cannot be erased in part.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedSlot {
    /// The name of the level.
    pub level: String,
    /// The times of the slot.
    pub times: Range<UnixMillis>,
    /// The next finer level, which lacks samples of the slot; `None` for the finest level.
    pub finer: Option<String>,
    /// The number of series with such a cell.
    pub series: usize,
}

/// The slots of one level that a range cuts.
pub(super) struct CutLevel<'a> {
    pub(super) store: &'a Store,
    pub(super) index: GranularityIndex,
    pub(super) level: &'a Granularity,
    pub(super) range: &'a Range<UnixMillis>,
    pub(super) series: &'a [SeriesId],
    /// The next finer level, with its changed slots.
    pub(super) finer: Option<(GranularityIndex, &'a [CutSlot])>,
}

/// The relation of a cell to the range.
enum Relation {
    Outside,
    Inside,
    Both,
}

impl CutLevel<'_> {
    /// Returns the cut slots with changed cells, and adds those that cannot be divided to `refused`.
    pub(super) fn cut_slots(
        &self,
        refused: &mut Vec<RefusedSlot>,
    ) -> Result<Vec<CutSlot>, StoreError> {
        let edges = [self.range.start, self.range.end];
        let mut starts: Vec<_> =
            edges.into_iter().map(|edge| (self.level.slot_start(edge), edge)).collect();
        starts.retain(|(start, edge)| start != edge);
        starts.dedup_by_key(|(start, _)| *start);
        let mut cut = Vec::new();
        for (start, _) in starts {
            let slot = self.cut_slot(start, refused)?;
            if !slot.cells.is_empty() {
                cut.push(slot);
            }
        }
        Ok(cut)
    }

    fn cut_slot(
        &self,
        start: UnixMillis,
        refused: &mut Vec<RefusedSlot>,
    ) -> Result<CutSlot, StoreError> {
        let times = start..start.plus(self.level.width_ms);
        let view = self.store.view_level(self.index, times.clone(), self.series.to_vec())?;
        let (mut cells, mut mixed, mut slots) = (Vec::new(), Vec::new(), Vec::new());
        for id in self.series {
            view.slots_into(*id, Columns::ALL, &mut slots)?;
            let Some(Slot { cell, .. }) = slots.first() else { continue };
            match self.relation(start, cell) {
                Relation::Outside => {}
                Relation::Inside => cells.push((*id, Cell::EMPTY)),
                Relation::Both => mixed.push((*id, *cell)),
            }
        }
        let mut missing = mixed.len();
        if let (Some((finer, changed)), false) = (self.finer, mixed.is_empty()) {
            let ids = mixed.iter().map(|(id, _)| *id).collect();
            let view = self.store.view_level(finer, times.clone(), ids)?;
            missing = 0;
            for (id, cell) in &mixed {
                match self.remaining(&view, (start, *id), cell.n, (finer, changed))? {
                    Ok(Some(rest)) => cells.push((*id, rest)),
                    Ok(None) => {}
                    Err(()) => missing += 1,
                }
            }
        }
        if missing > 0 {
            let finer = self.finer.map(|(index, _)| self.store.granularity(index).name.clone());
            let level = self.level.name.clone();
            refused.push(RefusedSlot { level, times, finer, series: missing });
        }
        cells.sort_unstable_by_key(|(id, _)| *id);
        Ok(CutSlot { level: self.level.name.clone(), start, cells })
    }

    fn relation(&self, start: UnixMillis, cell: &Cell) -> Relation {
        let first = start.plus(i64::from(cell.first_at));
        let last = start.plus(i64::from(cell.last_at));
        if cell.n == 0 || last < self.range.start || first >= self.range.end {
            Relation::Outside
        } else if first >= self.range.start && last < self.range.end {
            Relation::Inside
        } else {
            Relation::Both
        }
    }

    /// Merges the finer cells outside of the range; `None` when all of them are, and an error when
    /// they do not have all `n` samples.
    fn remaining(
        &self,
        finer: &LevelView,
        (start, series): (UnixMillis, SeriesId),
        n: u32,
        (index, changed): (GranularityIndex, &[CutSlot]),
    ) -> Result<Result<Option<Cell>, ()>, StoreError> {
        let width_ms = self.store.granularity(index).width_ms;
        let mut slots = Vec::new();
        finer.slots_into(series, Columns::ALL, &mut slots)?;
        let (mut rest, mut found, mut is_changed) = (Cell::EMPTY, 0_u64, false);
        for Slot { start: at, cell } in &slots {
            found += u64::from(cell.n);
            let mut kept = *cell;
            if self.range.start <= *at && at.plus(width_ms) <= self.range.end {
                (kept, is_changed) = (Cell::EMPTY, true);
            }
            let of_slot = changed.iter().find(|cut| cut.start == *at);
            let cells = of_slot.map_or(&[][..], |cut| &cut.cells);
            if let Ok(place) = cells.binary_search_by_key(&series, |(id, _)| *id) {
                (kept, is_changed) = (cells[place].1, true);
            }
            rest.merge(&kept.shifted((at.0 - start.0) as u32));
        }
        if found != u64::from(n) {
            return Ok(Err(()));
        }
        Ok(Ok(is_changed.then_some(rest)))
    }
}
