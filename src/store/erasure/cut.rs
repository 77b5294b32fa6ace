//! The slots that the range of an erasure cuts, and the cells that remain there.
//!
//! A partially erased slot keeps the samples outside of the range. The first and last time of a
//! cell show when all of its samples are on one side of an edge. Otherwise, the cell is merged
//! again from the coarsest finer level that has all of its samples.
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

/// A slot that cannot be partially erased.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RefusedSlot {
    /// The name of the level.
    pub level: String,
    /// The times of the slot.
    pub times: Range<UnixMillis>,
    /// True when there is no finer level; otherwise, all of them lack samples of the slot.
    pub is_finest: bool,
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
    /// Finer levels that may have the samples of this one, the coarsest first.
    pub(super) finer: Vec<&'a CutSlots>,
}

/// The changed slots of a level that a range cuts.
pub(super) struct CutSlots {
    pub(super) index: GranularityIndex,
    pub(super) slots: Vec<CutSlot>,
    /// The number of samples that are erased in these slots.
    pub(super) erased: u64,
}

/// The relation of a cell to the range.
enum Relation {
    Outside,
    Inside,
    Both,
}

impl CutLevel<'_> {
    /// Returns the cut slots with changed cells. Slots that cannot be divided are added to
    /// `refused`.
    pub(super) fn cut_slots(&self, refused: &mut Vec<RefusedSlot>) -> Result<CutSlots, StoreError> {
        let edges = [self.range.start, self.range.end];
        let mut starts: Vec<_> =
            edges.into_iter().map(|edge| (self.level.slot_start(edge), edge)).collect();
        starts.retain(|(start, edge)| start != edge);
        starts.dedup_by_key(|(start, _)| *start);
        let mut cut = CutSlots { index: self.index, slots: Vec::new(), erased: 0 };
        for (start, _) in starts {
            self.cut_slot(start, &mut cut, refused)?;
        }
        Ok(cut)
    }

    fn cut_slot(
        &self,
        start: UnixMillis,
        cut: &mut CutSlots,
        refused: &mut Vec<RefusedSlot>,
    ) -> Result<(), StoreError> {
        let times = start..start.plus(self.level.width_ms);
        let view = self.store.view_level(self.index, times.clone(), self.series.to_vec())?;
        let (mut cells, mut mixed, mut slots) = (Vec::new(), Vec::new(), Vec::new());
        for id in self.series {
            view.slots_into(*id, Columns::ALL, &mut slots)?;
            let Some(Slot { cell, .. }) = slots.first() else { continue };
            match self.relation(start, cell) {
                Relation::Outside => {}
                Relation::Inside => {
                    cut.erased += u64::from(cell.n);
                    cells.push((*id, Cell::EMPTY));
                }
                Relation::Both => mixed.push((*id, *cell)),
            }
        }
        for finer in &self.finer {
            let ids: Vec<_> = mixed.iter().map(|(id, _)| *id).collect();
            if ids.is_empty() {
                break;
            }
            let view = self.store.view_level(finer.index, times.clone(), ids)?;
            let mut missing = Vec::new();
            for (id, cell) in mixed {
                match self.remaining(&view, (start, id), &cell, finer)? {
                    Ok(Some(rest)) => {
                        cut.erased += u64::from(cell.n.saturating_sub(rest.n));
                        cells.push((id, rest));
                    }
                    Ok(None) => {}
                    Err(()) => missing.push((id, cell)),
                }
            }
            mixed = missing;
        }
        let level = self.level.name.clone();
        if !mixed.is_empty() {
            let is_finest = self.finer.is_empty();
            refused.push(RefusedSlot {
                level: level.clone(),
                times,
                is_finest,
                series: mixed.len(),
            });
        }
        if !cells.is_empty() {
            cells.sort_unstable_by_key(|(id, _)| *id);
            cut.slots.push(CutSlot { level, start, cells });
        }
        Ok(())
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

    /// Merges the finer cells outside of the range. Returns `None` when the range contains none of
    /// these cells, and an error when they do not have all samples of the cell.
    fn remaining(
        &self,
        view: &LevelView,
        (start, series): (UnixMillis, SeriesId),
        cell: &Cell,
        finer: &CutSlots,
    ) -> Result<Result<Option<Cell>, ()>, StoreError> {
        let width_ms = self.store.granularity(finer.index).width_ms;
        let mut slots = Vec::new();
        view.slots_into(series, Columns::ALL, &mut slots)?;
        let (mut all, mut rest, mut is_changed) = (Cell::EMPTY, Cell::EMPTY, false);
        for Slot { start: at, cell } in &slots {
            let shift = (at.0 - start.0) as u32;
            all.merge(&cell.shifted(shift));
            let mut kept = *cell;
            if self.range.start <= *at && at.plus(width_ms) <= self.range.end {
                (kept, is_changed) = (Cell::EMPTY, true);
            }
            let of_slot = finer.slots.iter().find(|cut| cut.start == *at);
            let cells = of_slot.map_or(&[][..], |cut| &cut.cells);
            if let Ok(position) = cells.binary_search_by_key(&series, |(id, _)| *id) {
                (kept, is_changed) = (cells[position].1, true);
            }
            rest.merge(&kept.shifted(shift));
        }
        if !has_same_samples(&all, cell) {
            return Ok(Err(()));
        }
        Ok(Ok(is_changed.then_some(rest)))
    }
}

/// Returns true when two cells aggregate the same samples, as far as the cells show it.
pub(super) fn has_same_samples(cell: &Cell, other: &Cell) -> bool {
    let times = |cell: &Cell| (cell.n, cell.first_at, cell.last_at);
    times(cell) == times(other)
}
