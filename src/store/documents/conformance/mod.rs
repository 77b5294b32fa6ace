//! Tests of every implementation of [`Documents`]: its contract, on a medium that fails.
//!
//! `claims` has one test for each promise, `histories` compares random histories with a naive map
//! of cells. Must never know: how an implementation stores documents, except for its [`Subject`].
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test that cannot continue has failed")]

mod claims;
mod histogram_claims;
mod histories;
mod local;
mod map;

use std::{
    collections::BTreeMap,
    ops::{ControlFlow, Range},
    sync::Arc,
};

use super::{CellSink, Columns, Documents, Slot, grid::PartitionGrid, mark::Mark};
use crate::{
    model::{
        Cell, Granularity, GranularityIndex, Histogram, HistogramCell, SeriesId, Span, UnixMillis,
        histogram::{Bucket, ZERO_THRESHOLD},
    },
    store::{error::StoreError, faulty::FaultyMedium, file::medium::Medium},
};

/// Opens the documents on a medium, as a start of the daemon does.
type Open = fn(Arc<dyn Medium>, Vec<Granularity>) -> Result<Box<dyn Documents>, StoreError>;

/// A tested implementation.
#[derive(Clone, Copy)]
struct Subject {
    name: &'static str,
    open: Open,
    /// Returns the name of the file that contains a partition's documents, given the name of the
    /// partition file.
    holder: fn(&dyn Medium, String) -> String,
    /// Damages, in the bytes of this file, the document of a series that begins at a time.
    damage: fn(&mut Vec<u8>, UnixMillis, SeriesId),
}

const SUBJECTS: [Subject; 2] = [local::SUBJECT, local::SEALED];

/// 2026-11-21T12:00:00Z
const NOON: UnixMillis = UnixMillis(1_795_262_400_000);
const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;
const FINE: GranularityIndex = GranularityIndex(0);
const COARSE: GranularityIndex = GranularityIndex(1);

/// Returns two granularities: slots of a minute in documents of ten minutes, and slots of a day in
/// documents of a month.
fn granularities() -> Vec<Granularity> {
    let (months, years) = (Span::Months(1), Span::Months(12));
    let fine = Granularity::new(
        MINUTE,
        Span::Fixed(10 * MINUTE),
        Span::Fixed(HOUR),
        Span::Fixed(100 * HOUR),
    );
    vec![fine, Granularity::new(24 * HOUR, months, years, Span::Months(60))]
}

/// An implementation and its medium.
struct Bench {
    subject: Subject,
    medium: FaultyMedium,
    documents: Box<dyn Documents>,
}

impl Bench {
    fn new(subject: Subject, seed: u64) -> Self {
        let medium = FaultyMedium::new(seed);
        let documents = (subject.open)(Arc::new(medium.clone()), granularities()).unwrap();
        Self { subject, medium, documents }
    }

    /// Drops all open files, as a kill does, and opens them again.
    fn reopen(&mut self) {
        self.reopen_with(granularities());
    }

    fn reopen_with(&mut self, granularities: Vec<Granularity>) {
        self.medium.kill();
        self.documents = (self.subject.open)(Arc::new(self.medium.clone()), granularities).unwrap();
    }

    /// Restores the power and opens the documents.
    fn power_up(&mut self) {
        self.medium.power_up();
        self.reopen();
    }

    /// Changes the bytes of the file of a partition.
    fn change_file(&mut self, grid: &PartitionGrid, change: impl FnOnce(&mut Vec<u8>)) {
        self.change(&self.documents.name(grid), change);
    }

    /// Changes the bytes of the file that contains a partition's documents.
    fn change_documents(&mut self, grid: &PartitionGrid, change: impl FnOnce(&mut Vec<u8>)) {
        let name = (self.subject.holder)(&self.medium, self.documents.name(grid));
        self.change(&name, change);
    }

    fn change(&mut self, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
        let dir = tempfile::tempdir().unwrap();
        let copy = dir.path().join("copy");
        self.medium.copy(name, &copy).unwrap();
        let mut bytes = std::fs::read(copy).unwrap();
        change(&mut bytes);
        self.medium.put(name, bytes);
        self.reopen();
    }

    fn grid(&self, granularity: GranularityIndex, at: UnixMillis) -> PartitionGrid {
        self.documents.grid(granularity, at)
    }

    /// Merges cells into a partition.
    fn merge(&self, grid: &PartitionGrid, mark: Mark, cells: &Cells) -> Result<(), StoreError> {
        self.merge_all(grid, mark, cells, &HistogramCells::new())
    }

    /// Merges cells and histograms into a partition.
    fn merge_all(
        &self,
        grid: &PartitionGrid,
        mark: Mark,
        cells: &Cells,
        histograms: &HistogramCells,
    ) -> Result<(), StoreError> {
        let mut by_document: BTreeMap<(UnixMillis, SeriesId), Vec<(usize, Cell)>> = BTreeMap::new();
        for (series, slot, cell) in cells {
            let start = grid.document_start(UnixMillis(*slot));
            let slot = grid.slot_index(start, UnixMillis(*slot));
            by_document.entry((start, *series)).or_default().push((slot, *cell));
        }
        let merged = self.documents.merge(grid, mark, &mut |sink| {
            let mut documents = by_document.iter();
            documents
                .try_for_each(|((start, series), cells)| sink.document(*start, *series, cells))?;
            put_histograms(grid, sink, histograms)
        })?;
        assert_eq!(merged.cells, cells.len() as u64);
        assert_eq!(merged.patched + merged.created, by_document.len() as u64);
        Ok(())
    }

    /// Returns the slots of a series that begin within a range.
    fn slots(
        &self,
        granularity: GranularityIndex,
        range: Range<i64>,
        series: SeriesId,
    ) -> Result<Vec<Slot>, StoreError> {
        let mut slots = Vec::new();
        self.documents.view(granularity, range)?.slots(series, Columns::ALL, &mut slots)?;
        Ok(slots)
    }

    /// Returns the histograms of a series that begin within a range, by slot.
    fn histograms(
        &self,
        granularity: GranularityIndex,
        range: Range<i64>,
        series: SeriesId,
    ) -> Result<BTreeMap<i64, HistogramCell>, StoreError> {
        let mut found = BTreeMap::new();
        let _all =
            self.documents.view(granularity, range)?.histograms(series, &mut |slot, cell| {
                assert_eq!(found.insert(slot, cell), None, "{slot} was visited twice");
                ControlFlow::Continue(())
            })?;
        Ok(found)
    }

    /// Returns the starts of the documents of a partition that are shells of a series, or were one.
    fn shells(&self, grid: &PartitionGrid, series: SeriesId) -> Vec<UnixMillis> {
        let mut spans = Vec::new();
        let view = self.documents.view(grid.id.granularity, grid.range()).unwrap();
        view.shells(series, &mut spans).unwrap();
        spans.into_iter().map(|span| span.start).collect()
    }

    /// Returns the starts and sums of a series' slots in a partition.
    fn of_partition(&self, grid: &PartitionGrid, series: SeriesId) -> Vec<(i64, f64)> {
        let slots = self.slots(grid.id.granularity, grid.range(), series).unwrap();
        slots.into_iter().map(|slot| (slot.start.0, slot.cell.sum)).collect()
    }
}

/// Cells with their series and the start of their slot.
type Cells = Vec<(SeriesId, i64, Cell)>;

/// Histograms with their series and the start of their slot.
type HistogramCells = Vec<(SeriesId, i64, HistogramCell)>;

/// Passes histograms to a sink, document by document.
fn put_histograms(
    grid: &PartitionGrid,
    sink: &mut dyn CellSink,
    histograms: &HistogramCells,
) -> Result<(), StoreError> {
    let mut documents: BTreeMap<_, Vec<(usize, HistogramCell)>> = BTreeMap::new();
    for (series, slot, cell) in histograms {
        let start = grid.document_start(UnixMillis(*slot));
        let slot = grid.slot_index(start, UnixMillis(*slot));
        documents.entry((start, *series)).or_default().push((slot, cell.clone()));
    }
    let mut documents = documents.iter();
    documents.try_for_each(|((start, series), cells)| sink.histograms(*start, *series, cells))
}

/// Returns the histogram of some equal observations.
fn histogram(schema: i8, index: i32, count: f64) -> Histogram {
    let (sum, positive) = (count * 0.1, vec![Bucket { index, count }]);
    Histogram { zero_threshold: ZERO_THRESHOLD, count, sum, positive, ..Histogram::empty(schema) }
}

fn cell(series: u32, slot: i64, value: f64) -> (SeriesId, i64, Cell) {
    (SeriesId(series), slot, Cell::single(5, value))
}

fn mark(through: u64, until: i64) -> Mark {
    Mark { through, until: UnixMillis(until) }
}
