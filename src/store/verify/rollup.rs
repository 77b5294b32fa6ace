//! Comparison of each granularity with the next finer granularity: each slot is recomputed and
//! compared.
//!
//! Must never know: where a cell is stored.

use std::{collections::BTreeSet, ops::Range};

use super::VerifyReport;
use crate::{
    model::{Cell, Granularity, GranularityIndex, Kind, PartitionId, SeriesId, UnixMillis},
    store::{
        documents::{Columns, Documents, grid::PartitionGrid},
        error::StoreError,
        handle::Store,
        view::LevelView,
    },
};

/// The relative difference of sums that is tolerated, because their last bits depend on the order
/// of the samples.
const SUM_TOLERANCE: f64 = 1e-9;
/// The number of series that are compared with one view of each granularity.
const SERIES_AT_A_TIME: u32 = 1024;

/// Returns the partitions of which the head contains some or all cells.
pub(super) fn partitions_of_head(store: &Store) -> Result<BTreeSet<PartitionId>, StoreError> {
    let mut found = BTreeSet::new();
    for index in store.inner.classes.indexes() {
        for slot in store.inner.head.read(index)?.slots(0..i64::MAX)? {
            found.insert(store.inner.documents.grid(index, UnixMillis(slot)).id);
        }
    }
    Ok(found)
}

/// Recomputes a partition from the next finer granularity, as far back as that granularity is kept,
/// and compares both.
pub(super) fn compare(
    store: &Store,
    id: PartitionId,
    in_head: &BTreeSet<PartitionId>,
    now: UnixMillis,
    report: &mut VerifyReport,
) -> Result<(), StoreError> {
    // The finest granularity cannot be recomputed.
    let Some(finer) = store.inner.classes.finer(id.granularity) else { return Ok(()) };
    let (coarse, fine) = (store.granularity(id.granularity), store.granularity(finer));
    let grid = store.inner.documents.grid(id.granularity, id.start);
    let end = grid.end;
    let sides = Sides {
        store,
        id,
        finer,
        file: store.inner.documents.name(&grid),
        grid,
        coarse,
        fine,
        complete_since: complete_since(store, finer),
        whole: whole_partitions(store, finer, id.start..end, in_head, now),
        holes: holes(store, &[id.granularity, finer], id.start..end),
    };
    let mut document = id.start;
    while document < end {
        let slots = sides.comparable_slots(document);
        if slots.iter().any(|comparable| *comparable) {
            sides.compare_period(document, &slots, report)?;
        }
        document = sides.grid.next_document(document);
    }
    Ok(())
}

/// The times for which the next coarser granularity of a partition must have samples.
pub(super) struct Coarser {
    complete_since: UnixMillis,
    /// The times whose samples were lost.
    holes: Vec<Range<UnixMillis>>,
}

impl Coarser {
    pub(super) fn of(store: &Store, id: PartitionId) -> Self {
        let Some(index) = store.inner.classes.coarser(id.granularity) else {
            return Self { complete_since: UnixMillis::LATEST, holes: Vec::new() };
        };
        let range = store.inner.documents.grid(id.granularity, id.start).range();
        let holes = holes(store, &[index], UnixMillis(range.start)..UnixMillis(range.end));
        Self { complete_since: complete_since(store, id.granularity), holes }
    }

    /// Returns true when the coarser granularity must have the samples of a slot.
    pub(super) fn must_have(&self, at: UnixMillis) -> bool {
        let is_in = |hole: &Range<UnixMillis>| hole.contains(&at);
        at >= self.complete_since && !self.holes.iter().any(is_in)
    }
}

/// Reports a fault when a partition has samples, but the next coarser granularity has no cells of
/// its time.
pub(super) fn check_coarser_exists(
    store: &Store,
    id: PartitionId,
    in_head: &BTreeSet<PartitionId>,
    report: &mut VerifyReport,
) {
    let index = id.granularity.coarser();
    let documents = &store.inner.documents;
    let (finer, grid) = (documents.grid(id.granularity, id.start), documents.grid(index, id.start));
    // A finer partition may overlap several coarser ones.
    let end = PartitionId { granularity: index, start: finer.end };
    let found = !documents.grids(index, finer.range()).is_empty()
        || in_head.range(grid.id..end).next().is_some();
    let missing = documents.name(&grid);
    if !found && !store.inner.register.is_lost(&missing) {
        let file = documents.name(&finer);
        report.fault(&missing, format!("it is missing, although {file} contains samples"));
    }
}

/// Returns the time since which both a granularity and the next coarser granularity have every
/// sample.
fn complete_since(store: &Store, finer: GranularityIndex) -> UnixMillis {
    let gaps = store.gaps();
    let both = gaps.iter().skip(finer.0).take(2).map(|gap| gap.complete_since);
    both.max().unwrap_or(UnixMillis::MIN)
}

/// Returns the holes of some granularities that overlap a range.
fn holes(
    store: &Store,
    indexes: &[GranularityIndex],
    range: Range<UnixMillis>,
) -> Vec<Range<UnixMillis>> {
    let gaps = store.gaps();
    let all = indexes.iter().flat_map(|index| &gaps[index.0].holes);
    all.filter(|hole| hole.start < range.end && range.start < hole.end).cloned().collect()
}

/// Returns the starts of the partitions of a granularity within a range that were not lost and are
/// still kept.
fn whole_partitions(
    store: &Store,
    index: GranularityIndex,
    range: Range<UnixMillis>,
    in_head: &BTreeSet<PartitionId>,
    now: UnixMillis,
) -> BTreeSet<UnixMillis> {
    let granularity = store.granularity(index);
    let documents = &store.inner.documents;
    let files = documents.grids(index, range.start.0..range.end.0);
    let files = files.into_iter().map(|grid| grid.id.start);
    let first = documents.grid(index, range.start).id;
    let rows = in_head
        .range(first..PartitionId { granularity: index, start: range.end })
        .map(|id| id.start);
    let is_whole = |start: &UnixMillis| {
        let file = documents.name(&documents.grid(index, *start));
        // After the retention of a partition, only coarser granularities accept late samples.
        granularity.keeps(*start, now) && !store.inner.register.is_lost(&file)
    };
    files.chain(rows).filter(is_whole).collect()
}

/// A partition and the finer granularity with which it is compared.
struct Sides<'a> {
    store: &'a Store,
    id: PartitionId,
    /// The next finer granularity.
    finer: GranularityIndex,
    file: String,
    grid: PartitionGrid,
    coarse: &'a Granularity,
    fine: &'a Granularity,
    complete_since: UnixMillis,
    /// The starts of the finer partitions that were not lost and are kept.
    whole: BTreeSet<UnixMillis>,
    /// The times for which either granularity lost samples.
    holes: Vec<Range<UnixMillis>>,
}

impl Sides<'_> {
    /// Returns, for each slot of a document, true when the finer granularity still has all of its
    /// samples.
    fn comparable_slots(&self, document: UnixMillis) -> Vec<bool> {
        let comparable = |slot: usize| {
            let start = document.plus(slot as i64 * self.coarse.width_ms);
            let end = start.plus(self.coarse.width_ms);
            let mut at = start;
            let is_lost = |hole: &Range<UnixMillis>| hole.start < end && start < hole.end;
            let mut covered = start >= self.complete_since && !self.holes.iter().any(is_lost);
            while covered && at < end {
                let finer = self.store.inner.documents.grid(self.finer, at);
                covered = self.whole.contains(&finer.id.start);
                at = finer.end;
            }
            covered
        };
        (0..self.grid.slots(document)).map(comparable).collect()
    }

    /// Compares the documents of all series that begin at the time `document`.
    fn compare_period(
        &self,
        document: UnixMillis,
        slots: &[bool],
        report: &mut VerifyReport,
    ) -> Result<(), StoreError> {
        let count = self.store.all_series().id_count() as u32;
        let range = document..self.grid.next_document(document);
        for first in (0..count).step_by(SERIES_AT_A_TIME as usize) {
            let ids: Vec<_> = (first..count.min(first + SERIES_AT_A_TIME)).map(SeriesId).collect();
            // Parts of a series are compared as separate series.
            let view = |index| self.store.view_level(index, range.clone(), ids.clone());
            let (coarse, fine) = (view(self.id.granularity)?, view(self.finer)?);
            for series in ids {
                let found = self.cells(&coarse, document, series, slots.len())?;
                let recomputed = self.cells(&fine, document, series, slots.len())?;
                self.compare_cells(document, series, slots, (&found, &recomputed), report);
            }
        }
        Ok(())
    }

    /// Returns the cells of the slots of a document from a view of either granularity.
    fn cells(
        &self,
        view: &LevelView,
        document: UnixMillis,
        series: SeriesId,
        slots: usize,
    ) -> Result<Option<Vec<Cell>>, StoreError> {
        let mut filled = Vec::new();
        view.slots_into(series, Columns::ALL, &mut filled)?;
        if filled.is_empty() {
            return Ok(None);
        }
        let mut cells = vec![Cell::EMPTY; slots];
        for slot in filled {
            let shift = (slot.start.0 - self.coarse.slot_start(slot.start).0) as u32;
            cells[self.coarse.slot_index(document, slot.start)].merge(&slot.cell.shifted(shift));
        }
        if self.store.all_series().kind(series) == Some(Kind::Counter) {
            // Cells that look like those of a gauge may have a moment, which has no meaning.
            for cell in &mut cells {
                cell.m2 = 0.0;
            }
        }
        Ok(Some(cells))
    }

    fn compare_cells(
        &self,
        document: UnixMillis,
        series: SeriesId,
        slots: &[bool],
        (found, recomputed): (&Option<Vec<Cell>>, &Option<Vec<Cell>>),
        report: &mut VerifyReport,
    ) {
        if found.is_none() && recomputed.is_none() {
            return;
        }
        let cell_of = |cells: &Option<Vec<Cell>>, slot: usize| {
            cells.as_ref().map_or(Cell::EMPTY, |cells| cells[slot])
        };
        for slot in (0..slots.len()).filter(|slot| slots[*slot]) {
            report.compared += 1;
            if let Some(fault) = difference(&cell_of(found, slot), &cell_of(recomputed, slot)) {
                let at = document.plus(slot as i64 * self.coarse.width_ms);
                let problem = format!(
                    "document of series {} at {document}, slot at {at}: {fault}, recomputed from \
                     {}",
                    series.0, self.fine.name
                );
                report.fault(&self.file, problem);
            }
        }
    }
}

/// Describes the first field in which the cells differ.
pub(crate) fn difference(found: &Cell, recomputed: &Cell) -> Option<String> {
    if found.n != recomputed.n {
        return Some(format!("n is {} and should be {}", found.n, recomputed.n));
    }
    if found.is_empty() {
        return None;
    }
    let times = [
        ("first_at", found.first_at, recomputed.first_at),
        ("last_at", found.last_at, recomputed.last_at),
    ];
    let values = [
        ("min", found.min, recomputed.min),
        ("max", found.max, recomputed.max),
        ("first", found.first, recomputed.first),
        ("last", found.last, recomputed.last),
    ];
    let time = times.iter().find(|(_, a, b)| a != b).map(|(name, a, b)| (name, *a, *b));
    let time = time.map(|(name, a, b)| format!("{name} is {a} and should be {b}"));
    let value = || values.iter().find(|(_, a, b)| a.to_bits() != b.to_bits());
    let value = || value().map(|(name, a, b)| format!("{name} is {a} and should be {b}"));
    let sum = || {
        let (a, b) = (found.sum, recomputed.sum);
        // The terms of the sum may be much larger than the sum; first and last indicate their size.
        let scale = [a, b, found.first, found.last].iter().fold(0.0, |m: f64, x| m.max(x.abs()));
        let differs = a.is_finite() != b.is_finite()
            || (a - b).abs() > SUM_TOLERANCE * scale * f64::from(found.n);
        differs.then(|| format!("sum is {a} and should be {b}"))
    };
    let is_known = found.m2 != 0.0 && recomputed.m2 != 0.0;
    let moment = || {
        let differs = is_known && !found.has_moment_of(recomputed);
        differs.then(|| format!("m2 is {} and should be {}", found.m2, recomputed.m2))
    };
    time.or_else(value).or_else(sum).or_else(moment)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_difference_names_the_field() {
        let mut cell = Cell::single(5, 2.0);
        cell.merge(&Cell::single(9, 3.0));
        assert_eq!(difference(&cell, &cell), None);
        let other = |change: fn(&mut Cell)| {
            let mut other = cell;
            change(&mut other);
            difference(&other, &cell).unwrap_or_default()
        };
        assert_eq!(other(|c| c.n = 3), "n is 3 and should be 2");
        assert_eq!(other(|c| c.first_at = 4), "first_at is 4 and should be 5");
        assert_eq!(other(|c| c.max = 3.5), "max is 3.5 and should be 3");
        assert_eq!(other(|c| c.sum += 1e-6), "sum is 5.000001 and should be 5");
        assert_eq!(other(|c| c.sum += 1e-12), "");
        assert_eq!(difference(&Cell::EMPTY, &Cell::EMPTY), None);
        cell.merge(&Cell::single(11, 7.0));
        let with = |m2: f64| difference(&Cell { m2, ..cell }, &cell);
        assert_eq!(with(13.0).unwrap(), "m2 is 13 and should be 14");
        assert_eq!((with(14.0 + 1e-12), with(0.0)), (None, None), "0 is unknown");
    }
}
