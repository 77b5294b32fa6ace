//! Documents: the cells of one series over one document span, stored in partitions. This is the
//! interface between the store and the storage of documents; only cells pass through it.
//!
//! Must never know: where cells come from, when they are merged.
//!
//! # Contract of every implementation
//!
//! **Spans.** A partition covers one time span of one granularity, and its documents have one
//! span. Neither ever changes, whatever the settings are later; partitions never overlap.
//!
//! **Marks.** A partition's mark states that its documents contain all cells up to the journal
//! record `through`, of the slots that begin before `until`. [`Documents::merge`] changes the cells
//! and the mark in one transaction, which is complete or absent after any failure and any power
//! cut. After a success, both are durable. After a failure, the mark shows whether the cells are
//! merged. Cells that are merged twice count twice. Therefore the caller reads the mark before each
//! merge, and never merges cells that the mark includes.
//!
//! **Cells.** Cells are merged with the stored cells ([`Cell::merge`]), in any order, as long as
//! the partition exists. A missing document is created with empty cells in all other slots. A cell
//! without samples corrects the stored cell of its slot.
//!
//! **Shells.** [`Documents::add_shells`] changes no cell and no mark, so it may run at any time,
//! and repeatedly. A document that was added and never received a sample stays a shell until its
//! partition is dropped, whatever is merged or sealed in the meantime. A shell is not shown when
//! damage lost samples of its time, because its document may have been lost.
//!
//! **Views.** A view is a consistent snapshot of the documents and the mark of each partition, even
//! while the partition changes or is dropped.
//!
//! **Loss.** Before the error is returned, a damaged partition is set aside and replaced by an
//! empty partition, whose mark includes nothing; a second attempt uses the new partition. A
//! partition that was lost between two runs does not exist, and [`Documents::holes`] returns its
//! time. The first read of a damaged document is an error; after that, the document counts as
//! missing and its time as a hole. A merge into a damaged document creates a new document, and the
//! same transaction stores the hole, which lasts as long as the partition.
//!
//! **Dropping.** A partition is dropped as a whole, with its mark. Late cells may create it again.
//!
//! # Names of series
//!
//! A [`SeriesId`] is valid in one daemon only, which numbers its series in the order of their
//! registration. A store that several daemons share must never store an ID. It names a series by
//! the hash (XXH3, 128 bits) of the key with which the series was registered, which a renaming does
//! not change, and by the number of earlier series of this key that were deleted. A series that is
//! registered after a deletion therefore has a different name. When such a store is opened, it
//! receives a function from IDs to names, which it calls once per document or series of a view. It
//! has a mark for each daemon, because each journal numbers its records separately.

#[cfg(test)]
mod conformance;
pub(crate) mod grid;
pub(crate) mod local;
pub(crate) mod mark;
pub(crate) mod partition;
mod partitions;
pub(crate) mod segment;
pub(crate) mod stored;

use std::{
    fmt::Debug,
    ops::{ControlFlow, Range},
};

use super::{error::StoreError, histograms::map::HistogramVisitor};
use crate::model::{
    Cell, Granularity, GranularityIndex, HistogramCell, PartitionId, SeriesId, UnixMillis,
};
use grid::PartitionGrid;
use mark::Mark;
pub use partitions::rooms::DocumentSpace;
pub use segment::Columns;
use stored::StoredDocument;

/// A slot and its cell.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Slot {
    /// Start of the slot.
    pub start: UnixMillis,
    /// The cell, which is never empty.
    pub cell: Cell,
}

/// Merges the cells of the same slot, in their order, so that each slot occurs once, ascending.
pub(crate) fn merge_equal(slots: &mut Vec<Slot>) {
    slots.sort_by_key(|slot| slot.start);
    slots.dedup_by(|later, kept| {
        let is_same = later.start == kept.start;
        if is_same {
            kept.cell.merge(&later.cell);
        }
        is_same
    });
}

/// The span, file and size of a partition.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PartitionInfo {
    /// Granularity and start.
    pub id: PartitionId,
    /// The end, exclusive.
    pub end: UnixMillis,
    /// The path of the file below the data directory.
    pub file: String,
    /// Bytes that the file takes.
    pub bytes: u64,
}

/// The shells of one document span of a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ShellsOfSpan {
    /// The start of the documents.
    pub start: UnixMillis,
    /// The end of the documents, exclusive.
    pub end: UnixMillis,
    /// The number of documents.
    pub count: u64,
}

/// The stage of a partition: how likely it is to change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Stage {
    /// The partition changed recently.
    Busy,
    /// The partition has not changed for a while.
    Quiet,
    /// The time of the partition is over; only very late samples still change it.
    Over,
}

/// The outcome of a merge.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Merged {
    /// Cells that were merged.
    pub(crate) cells: u64,
    /// Existing documents that were changed.
    pub(crate) patched: u64,
    /// Documents that were created because they were missing or damaged.
    pub(crate) created: u64,
    /// Documents that stayed open, because decoding a segment would not restore them exactly.
    pub(crate) refused: u64,
}

/// The result of folding a partition.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Folded {
    /// Open documents that are sealed now.
    pub(crate) documents: u64,
    /// Bytes of the segment.
    pub(crate) bytes: u64,
    /// True when the segment was rejected, because decoding would not restore some cells exactly.
    pub(crate) refused: bool,
    /// Documents whose histograms stay open, because they are too large for a segment.
    pub(crate) left_open: u64,
}

/// A change of the holes of a partition.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct HoleChange {
    /// Times whose cells are missing from now on.
    pub(crate) lost: Vec<Range<UnixMillis>>,
    /// Times whose cells are all present from now on, even if they are also in `lost`.
    pub(crate) mended: Vec<Range<UnixMillis>>,
}

/// The damaged data that was removed from a partition.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Dropped {
    /// Damaged documents.
    pub(crate) documents: u64,
    /// Damaged or missing segments.
    pub(crate) segments: u64,
    /// Damaged blocks of shells.
    pub(crate) shells: u64,
    /// The times that became holes.
    pub(crate) lost: Vec<Range<UnixMillis>>,
}

/// A function that passes a merge's cells to the sink, one document after the other. It is called
/// once per merge; when it fails, the merge fails with the same error, and nothing is merged.
pub(crate) type CellSource<'a> = dyn FnMut(&mut dyn CellSink) -> Result<(), StoreError> + 'a;

/// The sink of a merge's cells.
pub(crate) trait CellSink {
    /// Merges cells into a document, each with the number of its slot; a slot may occur several
    /// times. The calls are ordered by start and then by series, with one call for each document.
    fn document(
        &mut self,
        start: UnixMillis,
        series: SeriesId,
        cells: &[(usize, Cell)],
    ) -> Result<(), StoreError>;

    /// Merges cells of histograms into a document, each with the number of its slot, or replaces
    /// them.
    fn histograms(
        &mut self,
        start: UnixMillis,
        series: SeriesId,
        cells: &[(usize, HistogramCell)],
    ) -> Result<(), StoreError>;

    /// Records in the partition that cells of these slots were lost before the merge.
    fn lost(&mut self, times: Range<UnixMillis>);
}

/// A function that visits a document: its start, its series, and its cells or its fault.
pub(crate) type DocumentVisitor<'a> = dyn FnMut(UnixMillis, SeriesId, Result<&[Cell], String>) + 'a;

/// A function that visits a block of shells: the start of its documents, and its last series; for a
/// damaged block, its first series and the fault.
pub(crate) type ShellVisitor<'a> = dyn FnMut(UnixMillis, SeriesId, Option<&'static str>) + 'a;

/// Documents of all granularities; the contract is in the module's documentation. Only one
/// checkpoint at a time may merge; any thread may call all other methods at any time.
pub(crate) trait Documents: Send + Sync + Debug {
    /// Returns all granularities: first the granularities of the settings, then the retired
    /// granularities.
    fn granularities(&self) -> &[Granularity];

    /// Returns the grid of the partition that contains a time, or would contain it if it existed.
    fn grid(&self, granularity: GranularityIndex, at: UnixMillis) -> PartitionGrid;

    /// Returns the partitions that overlap a range, ascending.
    fn grids(&self, granularity: GranularityIndex, range: Range<i64>) -> Vec<PartitionGrid>;

    /// Returns the name of a partition for messages.
    fn name(&self, grid: &PartitionGrid) -> String;

    /// Returns the partition's mark; [`Mark::NONE`] when the partition does not exist or was
    /// damaged.
    fn mark(&self, grid: &PartitionGrid) -> Result<Mark, StoreError>;

    /// Returns the highest record of all marks, and the name of its partition.
    fn last_record(&self) -> Result<Option<(u64, String)>, StoreError>;

    /// Returns a consistent view of the slots of a granularity that begin within a range of whole
    /// slots.
    fn view(
        &self,
        granularity: GranularityIndex,
        range: Range<i64>,
    ) -> Result<Box<dyn DocumentsView>, StoreError>;

    /// Merges cells into documents of a partition and sets its mark; creates a missing partition.
    fn merge(
        &self,
        grid: &PartitionGrid,
        mark: Mark,
        cells: &mut CellSource<'_>,
    ) -> Result<Merged, StoreError>;

    /// Replaces the cells of slots, where an empty cell empties its slot, and changes the holes of a
    /// partition, in one transaction. Changes no mark; creates a missing partition.
    fn replace(
        &self,
        grid: &PartitionGrid,
        holes: &HoleChange,
        cells: &mut CellSource<'_>,
    ) -> Result<Merged, StoreError>;

    /// Removes the damaged data of a partition; times of lost cells become holes. The partition
    /// must not be written in the meantime.
    fn drop_damage(&self, grid: &PartitionGrid) -> Result<Dropped, StoreError>;

    /// Converts a partition to its smallest form, if that pays off. Changes no cell, no shell and
    /// no mark. Returns `None` when there was nothing to do. `go_on` receives the number of bytes
    /// written since its last call, may wait, and returns whether to continue.
    fn seal(
        &self,
        grid: &PartitionGrid,
        stage: Stage,
        go_on: &dyn Fn(u64) -> bool,
    ) -> Result<Option<Folded>, StoreError>;

    /// Inserts a shell for each of the series (ascending) without a document of the span that
    /// contains `at`; returns the number of new shells. A missing partition is created.
    fn add_shells(
        &self,
        granularity: GranularityIndex,
        at: UnixMillis,
        series: &[SeriesId],
    ) -> Result<usize, StoreError>;

    /// Returns how many of the series, ascending, have neither a shell nor a document of the span
    /// that contains `at`.
    fn count_absent(
        &self,
        granularity: GranularityIndex,
        at: UnixMillis,
        series: &[SeriesId],
    ) -> Result<usize, StoreError>;

    /// Returns the shells of the spans that begin at or after a time, ascending, including shells
    /// whose documents have received samples.
    fn shells_since(
        &self,
        granularity: GranularityIndex,
        since: UnixMillis,
    ) -> Result<Vec<ShellsOfSpan>, StoreError>;

    /// Removes a partition; returns whether it existed. After a failure, the partition may still
    /// exist, and can be removed again.
    fn drop_partition(&self, id: PartitionId) -> Result<bool, StoreError>;

    /// Returns all partitions.
    fn partitions(&self) -> Vec<PartitionInfo>;

    /// Returns the number of documents of a partition without its shells; `None` when counting
    /// would require reading each document, or when the partition does not exist.
    fn count(&self, id: PartitionId) -> Result<Option<u64>, StoreError>;

    /// Returns whether a partition has sealed documents and no open ones.
    fn is_sealed(&self, id: PartitionId) -> Result<bool, StoreError>;

    /// Returns the times of lost partitions and damaged documents of a granularity.
    fn holes(&self, granularity: GranularityIndex) -> Vec<Range<UnixMillis>>;

    /// Returns the number of documents that were found damaged since the start.
    fn damaged_documents(&self) -> u64;

    /// Reads every document of a partition, and records damaged documents. Returns the partition's
    /// mark.
    fn check(
        &self,
        id: PartitionId,
        visit: &mut DocumentVisitor<'_>,
    ) -> Result<Option<Mark>, StoreError>;

    /// Reads every document of a partition in use. Damaged documents are recorded and become holes;
    /// `fault` receives the file and the fault of each of them. Returns the number of documents
    /// that were newly found damaged. A partition that cannot be read is set aside. `go_on` is
    /// called as in [`Self::seal`].
    fn check_slowly(
        &self,
        id: PartitionId,
        fault: &mut dyn FnMut(&str, String),
        go_on: &dyn Fn(u64) -> bool,
    ) -> Result<u64, StoreError>;

    /// Reads all shells of a partition, and visits them.
    fn check_shells(&self, id: PartitionId, visit: &mut ShellVisitor<'_>)
    -> Result<(), StoreError>;
}

/// A consistent view of the documents of one granularity over a range.
pub(crate) trait DocumentsView: Send + Sync {
    /// Returns the partitions' ranges and marks, ascending.
    fn marks(&self) -> &[(Range<i64>, Mark)];

    /// Appends the slots of a series that hold samples, ascending. In cells of one sample or more
    /// than two samples, columns that are not wanted may have any value.
    fn slots(
        &self,
        series: SeriesId,
        wanted: Columns,
        out: &mut Vec<Slot>,
    ) -> Result<(), StoreError>;

    /// Passes the histograms of a series to `visit`, document by document, until it breaks.
    fn histograms(
        &self,
        series: SeriesId,
        visit: &mut HistogramVisitor<'_>,
    ) -> Result<ControlFlow<()>, StoreError>;

    /// Appends the spans of a series' shells that overlap the range, ascending. Some of these
    /// documents may have samples.
    fn shells(&self, series: SeriesId, out: &mut Vec<Range<UnixMillis>>) -> Result<(), StoreError>;

    /// Returns the document of a series that begins at a time within the range, as it is stored.
    /// For a shell, returns the zeroed document.
    fn stored(
        &self,
        start: UnixMillis,
        series: SeriesId,
    ) -> Result<Option<StoredDocument>, StoreError>;
}
