//! The rebuild of one granularity from the next finer granularity.
//!
//! Must never know: damaged bytes, which were removed before.

use std::ops::Range;

use super::{RebuildWork, RebuiltLevel, RebuiltTimes, times::Times};
use crate::{
    model::{Cell, Gaps, Granularity, GranularityIndex, HistogramCell, SeriesId, UnixMillis},
    store::{
        documents::{
            CellSink, Columns, Documents, DocumentsView, HoleChange, Slot, grid::PartitionGrid,
        },
        error::StoreError,
        file::{
            holes::Holes,
            names::{partition_folder, partition_start},
        },
        handle::Store,
        histograms::map::{HistogramsOfLevel, merge_into, merger},
        verify::rollup::difference,
    },
};

/// One granularity, its gaps, and the part of them that can be rebuilt.
pub(super) struct LevelStep<'a> {
    store: &'a Store,
    index: GranularityIndex,
    finer: GranularityIndex,
    coarse: &'a Granularity,
    is_dry: bool,
    gaps: Gaps,
    /// The times that may be changed.
    asked: Range<UnixMillis>,
    /// Missing slots that the finer granularity has.
    todo: Times,
    /// Missing slots that the finer granularity lacks.
    missing: Times,
    report: RebuiltLevel,
}

/// The documents of one period in both granularities.
struct Period {
    start: UnixMillis,
    coarse: Box<dyn DocumentsView>,
    fine: Box<dyn DocumentsView>,
}

impl<'a> LevelStep<'a> {
    /// Finds the times that can be rebuilt. In a dry run, `planned` contains the times that would
    /// be rebuilt at the finer granularity.
    pub(super) fn new(
        store: &'a Store,
        index: GranularityIndex,
        work: &RebuildWork,
        now: UnixMillis,
        planned: Option<&Times>,
    ) -> Result<Self, StoreError> {
        let is_dry = planned.is_some();
        let finer = GranularityIndex(index.0 - 1);
        let (coarse, fine) = (store.granularity(index), store.granularity(finer));
        let mut all = store.gaps();
        let (gaps, of_finer) = (all.swap_remove(index.0), &all[finer.0]);
        let kept_from = coarse.kept_from(now);
        let asked = Times::of([work.range.clone()]).narrowed(coarse.width_ms);
        let asked = asked.ranges().first().cloned().unwrap_or(now..now);
        let holes = gaps.holes.iter().cloned();
        let wanted = Times::of(holes.chain([UnixMillis::EARLIEST..gaps.complete_since]));
        let wanted = wanted.widened(coarse.width_ms);
        let wanted = wanted.within(&(kept_from..UnixMillis::LATEST)).within(&asked);
        let since = of_finer.complete_since.max(fine.kept_from(now));
        let holes_of_finer = Times::of(of_finer.holes.iter().cloned());
        let mut present = Times::of([since..of_finer.complete_until]).without(&holes_of_finer);
        if let Some(planned) = planned {
            present = Times::of([present.ranges(), planned.ranges()].concat());
        }
        // Cells of the far future stay in the head.
        for level in [finer, index] {
            let slots = store.inner.head.read(level)?.slots(0..i64::MAX)?.into_iter();
            let width_ms = store.granularity(level).width_ms;
            let in_head = slots.map(|slot| UnixMillis(slot)..UnixMillis(slot + width_ms));
            let in_head = if is_dry { Times::default() } else { Times::of(in_head) };
            present = present.without(&in_head);
        }
        let todo = wanted.and(&present.narrowed(coarse.width_ms));
        let missing = wanted.without(&todo);
        let report = RebuiltLevel {
            granularity: coarse.name.clone(),
            from: fine.name.clone(),
            rebuilt: in_ms(&todo),
            missing: in_ms(&missing),
            ..RebuiltLevel::default()
        };
        Ok(Self { store, index, finer, coarse, is_dry, gaps, asked, todo, missing, report })
    }

    /// Returns the times that are rebuilt.
    pub(super) fn todo(&self) -> &Times {
        &self.todo
    }

    /// Rebuilds the granularity, unless the run is dry.
    pub(super) fn run(
        mut self,
        progress: &mut dyn FnMut(&str),
    ) -> Result<RebuiltLevel, StoreError> {
        if self.is_dry {
            return Ok(self.report);
        }
        for grid in self.grids() {
            self.rebuild_partition(&grid, progress)?;
        }
        self.forget_losses()?;
        self.store.inner.head.note_mended(self.index, self.todo.ranges())?;
        self.note_complete()?;
        Ok(self.report)
    }

    /// Returns the ranges of lost partitions that may be changed.
    fn lost(&self) -> Vec<(String, Range<UnixMillis>)> {
        let folder = partition_folder(self.coarse);
        let lost = self.store.inner.register.lost(&folder).into_iter();
        let range = |(name, end): (String, Option<UnixMillis>)| {
            let start = partition_start(&name)?;
            let presumed = || self.coarse.partition_end(self.coarse.partition_start(start));
            Some((format!("{folder}/{name}"), start..end.unwrap_or_else(presumed)))
        };
        let is_asked = |(_, range): &(String, Range<UnixMillis>)| {
            self.asked.start <= range.start && range.end <= self.asked.end
        };
        let mut all: Vec<_> = lost.filter_map(range).filter(is_asked).collect();
        all.dedup();
        all
    }

    /// Returns the partitions with times to rebuild, and the partitions that replace lost
    /// partitions.
    fn grids(&self) -> Vec<PartitionGrid> {
        let lost = Times::of(self.lost().into_iter().map(|(_, range)| range));
        let stays = lost.and(&self.missing);
        let all = Times::of(self.todo.ranges().iter().chain(stays.ranges()).cloned());
        let mut grids: Vec<PartitionGrid> = Vec::new();
        for range in all.ranges() {
            let mut at = range.start;
            while at < range.end {
                let grid = self.store.inner.documents.grid(self.index, at);
                at = grid.end;
                if grids.last() != Some(&grid) {
                    grids.push(grid);
                }
            }
        }
        grids
    }

    fn rebuild_partition(
        &mut self,
        grid: &PartitionGrid,
        progress: &mut dyn FnMut(&str),
    ) -> Result<(), StoreError> {
        let documents = &self.store.inner.documents;
        let name = documents.name(grid);
        progress(&format!("rebuilding {name}"));
        let range = grid.id.start..grid.end;
        let lost = Times::of(self.lost().into_iter().map(|(_, range)| range));
        let change = HoleChange {
            lost: lost.and(&self.missing).within(&range).ranges().to_vec(),
            mended: self.todo.within(&range).ranges().to_vec(),
        };
        let exists = !documents.grids(self.index, grid.range()).is_empty();
        let has_finer = !documents.grids(self.finer, grid.range()).is_empty();
        if !exists && !has_finer && change.lost.is_empty() {
            return Ok(());
        }
        // The views begin before the transaction.
        let periods = self.periods(grid)?;
        let count = self.store.all_series().id_count() as u32;
        let (store, todo, coarse) = (self.store, &self.todo, self.coarse);
        let report = &mut self.report;
        store.inner.documents.replace(grid, &change, &mut |sink| {
            for period in &periods {
                progress(&format!("rebuilding {name}, {}", period.start));
                for series in (0..count).map(SeriesId) {
                    rebuild_document(sink, period, series, (grid, coarse, todo), report)?;
                }
            }
            Ok(())
        })?;
        Ok(())
    }

    /// Returns the documents of a partition with times to rebuild.
    fn periods(&self, grid: &PartitionGrid) -> Result<Vec<Period>, StoreError> {
        let documents = &self.store.inner.documents;
        let mut periods = Vec::new();
        let mut start = grid.id.start;
        while start < grid.end {
            let next = grid.next_document(start);
            if !self.todo.within(&(start..next)).is_empty() {
                let coarse = documents.view(self.index, start.0..next.0)?;
                let fine = documents.view(self.finer, start.0..next.0)?;
                periods.push(Period { start, coarse, fine });
            }
            start = next;
        }
        Ok(periods)
    }

    /// Forgets lost files whose missing times are now holes of the partitions that replaced them.
    fn forget_losses(&self) -> Result<(), StoreError> {
        let mut lost = self.lost().into_iter();
        lost.try_for_each(|(file, _)| self.store.inner.register.forget_loss(&file))
    }

    /// Lowers the time since which the granularity is complete; later times that are still missing
    /// become holes.
    fn note_complete(&self) -> Result<(), StoreError> {
        let since = self.gaps.complete_since;
        let first = self.todo.ranges().first().map_or(since, |range| range.start.min(since));
        let before = Times::of([first..since]);
        let away = &self.store.inner.gaps.read()[self.index.0].holes.clone();
        let still_away = Times::of(away.iter().cloned()).without(&self.todo);
        let not_computed = before.without(&self.todo);
        let all = [still_away.ranges(), not_computed.ranges()].concat();
        if first == since && all == *away {
            return Ok(());
        }
        let mut holes = Holes::default();
        for range in all {
            holes.add(range);
        }
        // The times before the first rebuilt slot remain incomplete.
        self.store.inner.journal.set_complete(&self.coarse.name, first, &holes)?;
        let mut gaps = self.store.inner.gaps.write();
        let gaps = &mut gaps[self.index.0];
        gaps.complete_since = first;
        gaps.holes = holes.stretches().to_vec();
        Ok(())
    }
}

fn in_ms(times: &Times) -> Vec<RebuiltTimes> {
    let ranges = times.ranges().iter();
    ranges.map(|range| RebuiltTimes { start: range.start.0, end: range.end.0 }).collect()
}

/// Computes the missing cells of a document, and passes the cells that differ to the sink.
fn rebuild_document(
    sink: &mut dyn CellSink,
    period: &Period,
    series: SeriesId,
    (grid, coarse, todo): (&PartitionGrid, &Granularity, &Times),
    report: &mut RebuiltLevel,
) -> Result<(), StoreError> {
    let slots = grid.slots(period.start);
    let cells = |view: &dyn DocumentsView| {
        let mut found = Vec::new();
        view.slots(series, Columns::ALL, &mut found)?;
        let mut cells = vec![Cell::EMPTY; if found.is_empty() { 0 } else { slots }];
        for Slot { start, cell } in found {
            let slot_start = coarse.slot_start(start);
            let shift = (start.0 - slot_start.0) as u32;
            cells[grid.slot_index(period.start, slot_start)].merge(&cell.shifted(shift));
        }
        Ok::<_, StoreError>(cells)
    };
    let computed = cells(&*period.fine)?;
    if computed.is_empty() {
        return Ok(());
    }
    let stored = cells(&*period.coarse)?;
    let mut changed = Vec::new();
    for (slot, cell) in computed.into_iter().enumerate() {
        let at = period.start.plus(slot as i64 * grid.width_ms);
        let known = stored.get(slot).copied().unwrap_or(Cell::EMPTY);
        if !todo.has(at) || difference(&known, &cell).is_none() {
            continue;
        }
        if known.n > cell.n {
            report.larger += 1;
        } else {
            changed.push((slot, cell));
        }
    }
    if !changed.is_empty() {
        report.documents += 1;
        report.cells += changed.len() as u64;
        sink.document(period.start, series, &changed)?;
    }
    rebuild_histograms(sink, period, series, (grid, coarse, todo))
}

/// Computes the missing histograms of a document, and passes the cells that differ to the sink.
fn rebuild_histograms(
    sink: &mut dyn CellSink,
    period: &Period,
    series: SeriesId,
    (grid, coarse, todo): (&PartitionGrid, &Granularity, &Times),
) -> Result<(), StoreError> {
    let [mut fine, mut stored, mut computed] = [(); 3].map(|()| HistogramsOfLevel::new());
    let _all = period.fine.histograms(series, &mut merger(series, &mut fine))?;
    if fine.is_empty() {
        return Ok(());
    }
    let _all = period.coarse.histograms(series, &mut merger(series, &mut stored))?;
    for ((_, start), cell) in fine {
        let slot = coarse.slot_start(UnixMillis(start)).0;
        merge_into(&mut computed, (series, slot), cell.shifted((start - slot) as u32));
    }
    let is_changed = |((_, slot), cell): &((SeriesId, i64), HistogramCell)| {
        let known = stored.get(&(series, *slot));
        todo.has(UnixMillis(*slot)) && known.is_none_or(|known| known.n <= cell.n && known != cell)
    };
    let index = |slot: i64| grid.slot_index(period.start, UnixMillis(slot));
    let changed = computed.into_iter().filter(is_changed);
    let changed: Vec<_> = changed.map(|((_, slot), cell)| (index(slot), cell)).collect();
    if changed.is_empty() { Ok(()) } else { sink.histograms(period.start, series, &changed) }
}
