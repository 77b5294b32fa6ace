//! Documents as a map of cells, with which the implementations are compared.
//!
//! Must never know: files, faults.

use std::{
    collections::{BTreeMap, BTreeSet},
    ops::Range,
};

use super::{Cells, HistogramCells};
use crate::{
    model::{Cell, GranularityIndex, HistogramCell, PartitionId, SeriesId, UnixMillis},
    store::documents::{Slot, mark::Mark},
};

#[derive(Debug, Default)]
pub(super) struct Map {
    partitions: BTreeMap<PartitionId, Partition>,
    /// The documents that were inserted ahead, by partition, series and start.
    shells: BTreeSet<(PartitionId, SeriesId, UnixMillis)>,
}

#[derive(Debug)]
struct Partition {
    mark: Mark,
    cells: BTreeMap<(SeriesId, i64), Cell>,
    histograms: BTreeMap<(SeriesId, i64), HistogramCell>,
}

impl Map {
    pub(super) fn mark(&self, id: PartitionId) -> Mark {
        self.partitions.get(&id).map_or(Mark::NONE, |partition| partition.mark)
    }

    pub(super) fn merge(
        &mut self,
        id: PartitionId,
        mark: Mark,
        cells: &Cells,
        histograms: &HistogramCells,
    ) {
        let (cells_of_none, histograms_of_none) = Default::default();
        let empty = Partition { mark, cells: cells_of_none, histograms: histograms_of_none };
        let partition = self.partitions.entry(id).or_insert(empty);
        partition.mark = mark;
        for (series, slot, cell) in cells {
            partition.cells.entry((*series, *slot)).or_default().merge(cell);
        }
        for (series, slot, cell) in histograms {
            match partition.histograms.get_mut(&(*series, *slot)) {
                Some(known) => known.merge(cell),
                None => drop(partition.histograms.insert((*series, *slot), cell.clone())),
            }
        }
    }

    pub(super) fn drop(&mut self, id: PartitionId) {
        self.partitions.remove(&id);
        self.shells.retain(|(partition, _, _)| *partition != id);
    }

    pub(super) fn add_shell(&mut self, id: PartitionId, series: SeriesId, start: UnixMillis) {
        self.shells.insert((id, series, start));
    }

    /// Returns the starts of the documents of a series that were inserted ahead.
    pub(super) fn shells(
        &self,
        granularity: GranularityIndex,
        series: SeriesId,
    ) -> impl Iterator<Item = UnixMillis> {
        let is_asked = move |(id, of, _): &&(PartitionId, SeriesId, UnixMillis)| {
            id.granularity == granularity && *of == series
        };
        self.shells.iter().filter(is_asked).map(|(_, _, start)| *start)
    }

    /// Returns whether a slot has samples.
    pub(super) fn has(&self, id: PartitionId, series: SeriesId, slot: i64) -> bool {
        self.partitions
            .get(&id)
            .is_some_and(|partition| partition.cells.contains_key(&(series, slot)))
    }

    /// Returns the partitions that have cells.
    pub(super) fn ids(&self) -> impl Iterator<Item = PartitionId> {
        self.partitions.keys().copied()
    }

    pub(super) fn histograms(
        &self,
        granularity: GranularityIndex,
        range: &Range<i64>,
        series: SeriesId,
    ) -> BTreeMap<i64, HistogramCell> {
        let partitions = self.partitions.iter().filter(|(id, _)| id.granularity == granularity);
        let cells = partitions.flat_map(|(_, partition)| &partition.histograms);
        let found = cells.filter(|((id, slot), _)| *id == series && range.contains(slot));
        found.map(|((_, slot), cell)| (*slot, cell.clone())).collect()
    }

    pub(super) fn slots(
        &self,
        granularity: GranularityIndex,
        range: &Range<i64>,
        series: SeriesId,
    ) -> Vec<Slot> {
        let partitions = self.partitions.iter().filter(|(id, _)| id.granularity == granularity);
        let cells = partitions.flat_map(|(_, partition)| &partition.cells);
        let found = cells.filter(|((id, slot), _)| *id == series && range.contains(slot));
        found.map(|((_, slot), cell)| Slot { start: UnixMillis(*slot), cell: *cell }).collect()
    }
}
