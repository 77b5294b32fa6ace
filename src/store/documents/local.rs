//! Documents on the local disk: partitions of rows and segments. `partition/merge` merges cells.
//!
//! Must never know: where cells come from.

use std::{
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use parking_lot::MutexGuard;

use super::{
    CellSource, DocumentVisitor, Documents, DocumentsView, Dropped, Folded, HoleChange, Merged,
    PartitionInfo, ShellVisitor, ShellsOfSpan, Stage,
    grid::PartitionGrid,
    mark::Mark,
    partition::{Partition, fold::FoldSizes},
    partitions::{Partitions, rooms::DocumentSpace, view::PartitionsView},
    segment::{cache::SealedCache, tile::HISTOGRAM_BYTES_MAX},
};
use crate::{
    model::{Cell, Granularity, GranularityIndex, PartitionId, SeriesId, UnixMillis},
    store::{
        error::StoreError,
        file::{holes::Holes, medium::Medium, names::partition_file},
        journal::register::Register,
    },
};

/// The default minimum number of new documents that a merge seals at once; fewer documents are not
/// worth a file.
const SEALED_MIN: usize = 512;
/// Open documents stay open next to a segment, and late cells stay in a separate segment, while
/// they take less than this number of bytes per document of the main segment.
const LATE_BYTES: u64 = 128;
/// The documents of a store.
#[derive(Debug)]
pub(crate) struct LocalDocuments {
    partitions: Arc<Partitions>,
    /// See [`SEALED_MIN`].
    sealed_min: AtomicUsize,
    /// See [`HISTOGRAM_BYTES_MAX`].
    tile_bytes_max: AtomicUsize,
}

impl LocalDocuments {
    /// Opens every partition of the medium.
    pub(crate) fn open(
        medium: Arc<dyn Medium>,
        granularities: Vec<Granularity>,
        register: Arc<Register>,
    ) -> Result<Self, StoreError> {
        let partitions = Arc::new(Partitions::open(medium, granularities, register)?);
        let tile_bytes_max = AtomicUsize::new(HISTOGRAM_BYTES_MAX);
        Ok(Self { partitions, sealed_min: AtomicUsize::new(SEALED_MIN), tile_bytes_max })
    }

    /// Sets the minimum number of new documents that a merge seals at once.
    pub(crate) fn set_sealed_min(&self, count: usize) {
        self.sealed_min.store(count, Ordering::Relaxed);
    }

    /// Sets the maximum size of the blocks of a tile of histograms, in bytes.
    #[cfg(test)]
    pub(crate) fn set_tile_bytes_max(&self, bytes: usize) {
        self.tile_bytes_max.store(bytes, Ordering::Relaxed);
    }

    /// Returns the cache of decoded parts of segments.
    pub(crate) fn cache(&self) -> &SealedCache {
        &self.partitions.cache
    }

    /// Returns the partitions with their stages. A partition is busy when this or an earlier call
    /// observed a change of its file after `before`.
    pub(crate) fn stages(
        &self,
        now: UnixMillis,
        before: UnixMillis,
    ) -> Vec<(PartitionGrid, Stage)> {
        let stage = |partition: &Partition| {
            if partition.unchanged_since(now).is_none_or(|at| at > before) {
                Stage::Busy
            } else if partition.grid.end > before {
                Stage::Quiet
            } else {
                Stage::Over
            }
        };
        let all = self.partitions.all().into_iter();
        all.map(|partition| (partition.grid.clone(), stage(&partition))).collect()
    }

    /// Reserves space for the documents of the period that contains `at`, and creates their
    /// partition. Returns the reserved bytes.
    pub(crate) fn reserve(
        &self,
        index: GranularityIndex,
        at: UnixMillis,
        space: DocumentSpace,
    ) -> Result<u64, StoreError> {
        self.partitions.reserve(index, at, space)
    }

    /// Returns the bytes that are reserved for the segment of the period that contains `at`.
    pub(crate) fn reserved(&self, index: GranularityIndex, at: UnixMillis) -> u64 {
        self.partitions.reserved(index, at)
    }

    /// Removes the reserved files of granularities from `first` on.
    pub(crate) fn release_rooms(&self, first: GranularityIndex) -> Result<(), StoreError> {
        self.partitions.release_rooms(first)
    }

    /// Returns the sealed bytes of the last document periods that ended at or before a time, latest
    /// first.
    pub(crate) fn last_periods(
        &self,
        index: GranularityIndex,
        by: UnixMillis,
        count: usize,
    ) -> Vec<u64> {
        self.partitions.last_periods(index, by, count)
    }

    /// Returns the times of a granularity's damaged documents that were replaced.
    pub(crate) fn remembered_holes(&self, index: GranularityIndex) -> Holes {
        let mut all = Holes::default();
        for partition in self.partitions.overlapping(index, i64::MIN..i64::MAX) {
            all.add_all(&partition.damage.holes());
        }
        all
    }

    /// Returns the number of holes in [`Self::remembered_holes`] from earlier runs.
    pub(crate) fn holes_from_before(&self) -> u64 {
        self.partitions
            .all()
            .into_iter()
            .map(|partition| partition.damage.holes_from_before())
            .sum()
    }

    /// Returns the partitions of the first levels: grid, file, mark, and how often cells were
    /// replaced. Damaged partitions are left out, and replaced.
    pub(crate) fn marks_of(
        &self,
        levels: usize,
    ) -> Result<Vec<(PartitionGrid, String, Mark, u64)>, StoreError> {
        let mut all = Vec::new();
        for partition in self.partitions.all() {
            if partition.grid.id.granularity.0 >= levels {
                continue;
            }
            let read =
                partition.read().and_then(|reader| Ok((reader.mark, reader.count_replaced()?)));
            match read {
                Ok((mark, replaced)) => {
                    let file = partition.file_path().to_owned();
                    all.push((partition.grid.clone(), file, mark, replaced));
                }
                Err(fault) if self.partitions.replace_if_damaged(&partition, &fault)? => {}
                Err(fault) => return Err(fault),
            }
        }
        Ok(all)
    }

    /// Returns the partitions to copy: all partitions that are not being removed.
    pub(crate) fn files(&self) -> Vec<Arc<Partition>> {
        let mut all = self.partitions.all();
        all.retain(|partition| !partition.is_being_removed());
        all
    }

    /// Prevents the creation and removal of partitions while the guard exists.
    pub(crate) fn hold(&self) -> MutexGuard<'_, ()> {
        self.partitions.hold()
    }
}

impl Documents for LocalDocuments {
    fn granularities(&self) -> &[Granularity] {
        self.partitions.granularities()
    }

    fn grid(&self, granularity: GranularityIndex, at: UnixMillis) -> PartitionGrid {
        self.partitions.grid(granularity, at)
    }

    fn grids(&self, granularity: GranularityIndex, range: Range<i64>) -> Vec<PartitionGrid> {
        let found = self.partitions.overlapping(granularity, range).into_iter();
        found.map(|partition| partition.grid.clone()).collect()
    }

    fn name(&self, grid: &PartitionGrid) -> String {
        partition_file(self.partitions.granularity(grid.id.granularity), grid.range())
    }

    fn mark(&self, grid: &PartitionGrid) -> Result<Mark, StoreError> {
        let Some(partition) = self.partitions.get(grid.id) else { return Ok(Mark::NONE) };
        match partition.read() {
            Ok(reader) => Ok(reader.mark),
            Err(fault) if self.partitions.replace_if_damaged(&partition, &fault)? => Ok(Mark::NONE),
            Err(fault) => Err(fault),
        }
    }

    fn last_record(&self) -> Result<Option<(u64, String)>, StoreError> {
        let mut last = None;
        for partition in self.partitions.all() {
            let mark = self.mark(&partition.grid)?;
            last = last.max(Some((mark.through, partition.file_path().to_owned())));
        }
        Ok(last)
    }

    fn view(
        &self,
        granularity: GranularityIndex,
        range: Range<i64>,
    ) -> Result<Box<dyn DocumentsView>, StoreError> {
        Ok(Box::new(PartitionsView::new(self.partitions.clone(), granularity, range)?))
    }

    fn merge(
        &self,
        grid: &PartitionGrid,
        mark: Mark,
        cells: &mut CellSource<'_>,
    ) -> Result<Merged, StoreError> {
        let partition = self.partitions.get_or_create(grid.id.granularity, grid.id.start)?;
        if partition.grid != *grid {
            let problem = "it was created with another span meanwhile; the next checkpoint uses it";
            let file = partition.file_path().to_owned();
            return Err(StoreError::Mismatch { file, problem: problem.to_owned() });
        }
        let merged = partition.merge(mark, self.sealed_min.load(Ordering::Relaxed), cells);
        self.partitions.or_replace(&partition, merged)
    }

    fn replace(
        &self,
        grid: &PartitionGrid,
        holes: &HoleChange,
        cells: &mut CellSource<'_>,
    ) -> Result<Merged, StoreError> {
        let partition = self.partitions.get_or_create(grid.id.granularity, grid.id.start)?;
        let replaced = partition.replace(holes, self.sealed_min.load(Ordering::Relaxed), cells);
        self.partitions.or_replace(&partition, replaced)
    }

    fn drop_damage(&self, grid: &PartitionGrid) -> Result<Dropped, StoreError> {
        let Some(partition) = self.partitions.get(grid.id) else { return Ok(Dropped::default()) };
        self.partitions.or_replace(&partition, partition.drop_damage())
    }

    fn seal(
        &self,
        grid: &PartitionGrid,
        stage: Stage,
        go_on: &dyn Fn(u64) -> bool,
    ) -> Result<Option<Folded>, StoreError> {
        let Some(partition) = self.partitions.get(grid.id) else { return Ok(None) };
        let sealed_min = self.sealed_min.load(Ordering::Relaxed) as u64;
        let bytes_min = sealed_min.saturating_mul(LATE_BYTES);
        let tile_bytes_max = self.tile_bytes_max.load(Ordering::Relaxed);
        let folded = partition.fold(stage, FoldSizes { bytes_min, tile_bytes_max }, go_on);
        self.partitions.or_replace(&partition, folded)
    }

    fn add_shells(
        &self,
        granularity: GranularityIndex,
        at: UnixMillis,
        series: &[SeriesId],
    ) -> Result<usize, StoreError> {
        let add = |partition: &Arc<Partition>| {
            partition.add_shells(partition.grid.document_start(at), series)
        };
        let partition = self.partitions.get_or_create(granularity, at)?;
        match add(&partition) {
            Err(fault) if self.partitions.replace_if_damaged(&partition, &fault)? => {
                add(&self.partitions.get_or_create(granularity, at)?)
            }
            outcome => outcome,
        }
    }

    fn count_absent(
        &self,
        granularity: GranularityIndex,
        at: UnixMillis,
        series: &[SeriesId],
    ) -> Result<usize, StoreError> {
        let Some(partition) = self.partitions.holding(granularity, at) else {
            return Ok(series.len());
        };
        let document = partition.grid.document_start(at);
        let absent = partition.read().and_then(|reader| reader.absent(document, series));
        self.partitions.or_replace(&partition, absent.map(|absent| absent.len()))
    }

    fn shells_since(
        &self,
        granularity: GranularityIndex,
        since: UnixMillis,
    ) -> Result<Vec<ShellsOfSpan>, StoreError> {
        let mut spans = Vec::new();
        for partition in self.partitions.overlapping(granularity, since.0..i64::MAX) {
            let counted =
                partition.read().and_then(|reader| reader.count_shells(since, &mut spans));
            self.partitions.or_replace(&partition, counted)?;
        }
        Ok(spans)
    }

    fn drop_partition(&self, id: PartitionId) -> Result<bool, StoreError> {
        self.partitions.remove(id)
    }

    fn partitions(&self) -> Vec<PartitionInfo> {
        self.partitions.infos()
    }

    fn count(&self, id: PartitionId) -> Result<Option<u64>, StoreError> {
        let Some(partition) = self.partitions.get(id) else { return Ok(None) };
        let count = partition.read().and_then(|reader| {
            // The number of documents in segments would need a read of each tile.
            if reader.is_open() { reader.count().map(Some) } else { Ok(None) }
        });
        self.partitions.or_replace(&partition, count)
    }

    fn is_sealed(&self, id: PartitionId) -> Result<bool, StoreError> {
        let Some(partition) = self.partitions.get(id) else { return Ok(false) };
        let is_sealed = partition.read().map(|reader| reader.is_sealed());
        self.partitions.or_replace(&partition, is_sealed)
    }

    fn holes(&self, granularity: GranularityIndex) -> Vec<Range<UnixMillis>> {
        self.partitions.holes(granularity)
    }

    fn damaged_documents(&self) -> u64 {
        self.partitions.all().into_iter().map(|partition| partition.damage_count()).sum()
    }

    fn check(
        &self,
        id: PartitionId,
        visit: &mut DocumentVisitor<'_>,
    ) -> Result<Option<Mark>, StoreError> {
        let Some(partition) = self.partitions.get(id) else { return Ok(None) };
        let reader = partition.read()?;
        reader.check(visit, &|_| true)?;
        Ok(Some(reader.mark))
    }

    fn check_slowly(
        &self,
        id: PartitionId,
        fault: &mut dyn FnMut(&str, String),
        go_on: &dyn Fn(u64) -> bool,
    ) -> Result<u64, StoreError> {
        let Some(partition) = self.partitions.get(id) else { return Ok(0) };
        let before = partition.damage_count();
        let name = partition.file_path();
        let checked = partition.read().and_then(|reader| {
            let report = &mut |start, series: SeriesId, cells: Result<&[Cell], String>| {
                if let Err(problem) = cells {
                    fault(name, format!("document of series {} at {start}: {problem}", series.0));
                }
            };
            reader.check(report, go_on)
        });
        self.partitions.or_replace(&partition, checked)?;
        Ok(partition.damage_count().saturating_sub(before))
    }

    fn check_shells(
        &self,
        id: PartitionId,
        visit: &mut ShellVisitor<'_>,
    ) -> Result<(), StoreError> {
        let Some(partition) = self.partitions.get(id) else { return Ok(()) };
        partition.read()?.check_shells(visit)
    }
}
