//! Followed documents: the documents that changed since a role last took the changes.
//!
//! While no role follows, nothing is noted. A writer of documents notes them before its write is
//! complete, and changes cannot be taken during a write. The taken changes therefore contain every
//! document whose change is in the marks that are taken with them. Notes are in memory only; after
//! a restart, the marks show which partitions changed. Must never know: which role follows.

mod series_set;

use std::{
    collections::BTreeMap,
    ops::Range,
    sync::atomic::{AtomicBool, Ordering},
};

use parking_lot::Mutex;

use super::{
    documents::{CellSink, grid::PartitionGrid, mark::Mark},
    error::StoreError,
    file::names::{FILE_END, partition_start},
};
use crate::model::{Cell, GranularityIndex, HistogramCell, SeriesId, Span, UnixMillis};
pub use series_set::SeriesSet;

/// The maximum number of rows in all sets of series. Beyond it, a document span is noted without a
/// set, as [`ChangedSeries::All`]. 1 million rows of 64 series take about 24 MiB.
const ROWS_MAX: usize = 1 << 20;

/// The series with a changed document of a span.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ChangedSeries {
    /// These series.
    Some(SeriesSet),
    /// Perhaps all series.
    All,
}

/// A partition with its mark, and the changed documents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FollowedPartition {
    /// The level in the store.
    pub level: GranularityIndex,
    /// The start and the end of the partition.
    pub range: Range<UnixMillis>,
    /// The name of its file without folder and extension, which is its start.
    pub name: String,
    /// The length of its documents.
    pub document: Span,
    /// The last journal record that the documents contain, for slots before `until`.
    pub through: u64,
    /// The time before which slots are in documents.
    pub until: UnixMillis,
    /// The number of transactions that replaced cells.
    pub replaced: u64,
    /// The changed documents, by start.
    pub changed: BTreeMap<UnixMillis, ChangedSeries>,
}

impl FollowedPartition {
    /// Returns the documents whose period is over, ascending.
    pub fn finished(&self) -> impl Iterator<Item = Range<UnixMillis>> {
        let ended = self.until.min(self.range.end);
        let first = self.document.start_of(self.range.start);
        let next = |start: &UnixMillis| Some(self.document.next(*start));
        std::iter::successors(Some(first), next)
            .map(|start| start..self.document.next(start))
            .take_while(move |span| span.end <= ended)
    }

    /// Returns the end of a document.
    pub fn end_of(&self, start: UnixMillis) -> UnixMillis {
        self.document.next(start)
    }
}

/// The notes of all writers.
#[derive(Debug, Default)]
pub(crate) struct Followed {
    is_followed: AtomicBool,
    notes: Mutex<Notes>,
}

#[derive(Debug, Default)]
struct Notes {
    /// The number of writes under way.
    writers: usize,
    spans: BTreeMap<(GranularityIndex, UnixMillis), ChangedSeries>,
    /// The number of rows of all sets.
    rows: usize,
}

impl Notes {
    fn add(&mut self, span: (GranularityIndex, UnixMillis), series: SeriesSet) {
        let empty = || ChangedSeries::Some(SeriesSet::default());
        let noted = self.spans.entry(span).or_insert_with(empty);
        let ChangedSeries::Some(known) = noted else { return };
        let before = known.rows();
        known.extend(series);
        self.rows += known.rows() - before;
        if self.rows > ROWS_MAX {
            self.rows -= known.rows();
            *noted = ChangedSeries::All;
        }
    }
}

/// A write under way.
#[derive(Debug)]
pub(crate) struct Writing<'a>(&'a Followed);

impl Drop for Writing<'_> {
    fn drop(&mut self) {
        self.0.notes.lock().writers -= 1;
    }
}

impl Writing<'_> {
    /// Passes cells of a level to a sink, and notes their documents.
    pub(crate) fn note(
        &self,
        level: GranularityIndex,
        sink: &mut dyn CellSink,
        write: impl FnOnce(&mut dyn CellSink) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let mut noting = NotingSink { sink, spans: BTreeMap::new() };
        write(&mut noting)?;
        let mut notes = self.0.notes.lock();
        for (start, series) in noting.spans {
            notes.add((level, start), series);
        }
        Ok(())
    }
}

/// A sink that notes the documents of the cells.
struct NotingSink<'a> {
    sink: &'a mut dyn CellSink,
    spans: BTreeMap<UnixMillis, SeriesSet>,
}

impl CellSink for NotingSink<'_> {
    fn document(
        &mut self,
        start: UnixMillis,
        series: SeriesId,
        cells: &[(usize, Cell)],
    ) -> Result<(), StoreError> {
        self.spans.entry(start).or_default().insert(series);
        self.sink.document(start, series, cells)
    }

    fn histograms(
        &mut self,
        start: UnixMillis,
        series: SeriesId,
        cells: &[(usize, HistogramCell)],
    ) -> Result<(), StoreError> {
        self.sink.histograms(start, series, cells)
    }

    fn lost(&mut self, times: Range<UnixMillis>) {
        self.sink.lost(times);
    }
}

impl Followed {
    /// Begins to note changed documents.
    pub(crate) fn turn_on(&self) {
        self.is_followed.store(true, Ordering::Release);
    }

    /// Begins a write of documents; `None` while no role follows.
    pub(crate) fn begin(&self) -> Option<Writing<'_>> {
        if !self.is_followed.load(Ordering::Acquire) {
            return None;
        }
        self.notes.lock().writers += 1;
        Some(Writing(self))
    }

    /// Returns true if changes are noted.
    pub(crate) fn has_notes(&self) -> bool {
        !self.notes.lock().spans.is_empty()
    }

    /// Takes the noted changes, and returns them with the partitions that `read` returns; `None`
    /// while documents are written. No write begins before the function returns.
    ///
    /// # Errors
    /// When `read` fails; the notes stay.
    pub(crate) fn take(
        &self,
        read: impl FnOnce() -> Result<Vec<(PartitionGrid, String, Mark, u64)>, StoreError>,
    ) -> Result<Option<Vec<FollowedPartition>>, StoreError> {
        let mut notes = self.notes.lock();
        if notes.writers > 0 {
            return Ok(None);
        }
        let partition = |(grid, file, mark, replaced): (PartitionGrid, String, Mark, u64)| {
            let PartitionGrid { id, end, document, .. } = grid;
            FollowedPartition {
                level: id.granularity,
                range: id.start..end,
                name: name_of(&file).to_owned(),
                document,
                through: mark.through,
                until: mark.until,
                replaced,
                changed: BTreeMap::new(),
            }
        };
        let mut all: Vec<_> = read()?.into_iter().map(partition).collect();
        notes.rows = 0;
        for ((level, start), series) in std::mem::take(&mut notes.spans) {
            let holds = |partition: &&mut FollowedPartition| {
                partition.level == level && partition.range.contains(&start)
            };
            if let Some(partition) = all.iter_mut().find(holds) {
                partition.changed.insert(start, series);
            }
        }
        Ok(Some(all))
    }
}

/// Returns the name of a partition's file without folder and extension.
fn name_of(file: &str) -> &str {
    let name = file.rsplit('/').next().unwrap_or(file);
    name.strip_suffix(FILE_END).unwrap_or(name)
}

/// Returns the start of a partition from its name; `None` for other texts.
pub fn start_of_partition(name: &str) -> Option<UnixMillis> {
    partition_start(&format!("{name}{FILE_END}"))
}
