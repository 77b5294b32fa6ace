//! One partition: all documents of one granularity over one partition span, in one redb file and
//! its sealed segments.
//!
//! Must never know: where a document's cells come from.

mod check;
pub(crate) mod fold;
pub(crate) mod histograms;
mod mend;
mod merge;
pub(crate) mod reader;
pub(crate) mod rows;
pub(crate) mod segments;
pub(crate) mod shells;

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use parking_lot::Mutex;
use redb::{
    ReadOnlyTable, ReadTransaction, ReadableTable, ReadableTableMetadata, TableDefinition,
    TableError, WriteTransaction,
};

use super::{Stage, grid::PartitionGrid, mark::Mark, segment::file::Segment};
use crate::{
    model::{DOCUMENT_SLOTS_MAX, Granularity, PartitionId, SeriesId, Span, UnixMillis},
    store::{
        error::StoreError,
        file::{
            damage::Damage,
            database::{DatabaseFile, FileOptions},
            holes::HOLES,
            medium::Medium,
            names::partition_file,
            version::{self, VERSION_KEY},
        },
    },
};
use rows::{Layouts, layout::DocumentLayout};
use segments::{Named, Numbers, Segments};

pub(crate) const DOCUMENTS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("documents");
pub(crate) const META: TableDefinition<'_, &str, i64> = TableDefinition::new("meta");
/// The table of the segments in use: their numbers, and the spans of their documents.
pub(crate) const SEGMENTS: TableDefinition<'_, u32, u64> = TableDefinition::new("segments");
/// The table of blocks of shells. The upper half of the key is the seconds from the partition's
/// start to the start of the documents; the lower half is the number of the block.
pub(crate) const SHELLS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("shells");
/// The table of shells within a read.
pub(crate) type ShellTable = ReadOnlyTable<u64, &'static [u8]>;
/// The table of rows of histograms within a read.
pub(crate) type HistogramTable = ReadOnlyTable<u64, &'static [u8]>;
const START_KEY: &str = "start";
const END_KEY: &str = "end";
const WIDTH_KEY: &str = "width";
const DOCUMENT_KEY: &str = "document";
const MONTHS_KEY: &str = "document_months";
/// The maximum length of a document in months.
const LONGEST_MONTHS: i64 = 12_000;
pub(crate) const THROUGH_KEY: &str = "applied_through";
pub(crate) const UNTIL_KEY: &str = "applied_until";
pub(crate) const CHECK_KEY: &str = "applied_check";
/// The number of transactions that replaced cells; absent while there was none.
pub(crate) const REPLACED_KEY: &str = "replaced";
const OPTIONS: FileOptions = FileOptions { cache_bytes: 2 << 20, quick_repair: true };

/// The maximum size of the compact file of a partition with sealed documents, without its shells.
const LOOSE_BYTES: u64 = 256 << 10;
/// The size of a page of the file.
const PAGE_BYTES: u64 = 4096;

/// The reason why a partition's files will be removed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Removal {
    /// The partition is dropped.
    Dropped,
    /// The partition is damaged: it is set aside, and replaced by an empty one.
    SetAside,
}

/// An open partition: its grid, file and segments.
#[derive(Debug)]
pub(crate) struct Partition {
    pub(crate) grid: PartitionGrid,
    layouts: Layouts,
    pub(crate) file: DatabaseFile,
    /// Keys of damaged documents, and the holes of damaged documents that were replaced.
    pub(crate) damage: Damage,
    /// Keys of documents whose histograms are damaged. Their cells are sound.
    pub(crate) histogram_damage: Damage,
    pub(crate) segments: Segments,
    /// The reason why the partition's files will be removed. While there is a reason, no segment
    /// replaces others. Locked while a segment replaces others.
    pub(crate) removal: Mutex<Option<Removal>>,
    /// The file's stamp at the sealer's last visit, and the time since which it is unchanged.
    pub(crate) seen: Mutex<Option<(u64, UnixMillis)>>,
    /// The file's stamp when folding last did not pay off, and the stage of the partition at that
    /// time.
    pub(crate) not_worth: Mutex<Option<(u64, Stage)>>,
    /// True when a read prevented the file from shrinking after the partition was folded.
    pub(crate) is_loose: AtomicBool,
}

impl Partition {
    /// Opens an existing partition, which begins at the time in its name. Its end and the span of
    /// its documents are in the file.
    pub(crate) fn open(
        medium: &Arc<dyn Medium>,
        id: PartitionId,
        granularity: &Granularity,
        name: String,
        numbers: Numbers,
    ) -> Result<Self, StoreError> {
        let file = DatabaseFile::open(medium, name, OPTIONS)?;
        let (grid, named, shell_bytes) = file.guard("open", || {
            let txn = file.read()?;
            Ok((
                read_grid(&file, id, granularity, medium.format())?,
                read_named(&file, &txn)?,
                shell_bytes_max(&file, &txn)?,
            ))
        })?;
        let damage = Damage::read(&file, grid.width_ms, grid.id.start..grid.end)?;
        let partition = Self { damage, ..Self::of(medium, grid, file, numbers) };
        partition.segments.open_named(&named)?;
        // The last run may have ended after folding and before the file shrank.
        let is_loose = !named.is_empty() && partition.file.bytes()? > LOOSE_BYTES + shell_bytes;
        partition.is_loose.store(is_loose, Ordering::Relaxed);
        Ok(partition)
    }

    /// Creates a partition.
    pub(crate) fn create(
        medium: &Arc<dyn Medium>,
        granularity: &Granularity,
        grid: PartitionGrid,
        numbers: Numbers,
    ) -> Result<Self, StoreError> {
        let document = grid.document;
        let months = if let Span::Months(months) = document { months } else { 0 };
        let rows = [
            (VERSION_KEY, medium.format() as i64),
            (START_KEY, grid.id.start.0),
            (END_KEY, grid.end.0),
            (WIDTH_KEY, granularity.width_ms),
            (DOCUMENT_KEY, document.longest_ms()),
            (MONTHS_KEY, i64::from(months)),
            (THROUGH_KEY, Mark::NONE.through as i64),
            (UNTIL_KEY, Mark::NONE.until.0),
            (CHECK_KEY, Mark::NONE.checksum() as i64),
        ];
        let name = partition_file(granularity, grid.range());
        let file = DatabaseFile::create(medium, name, OPTIONS, |file, txn| {
            txn.open_table(DOCUMENTS).map_err(file.fail("create"))?;
            txn.open_table(SEGMENTS).map_err(file.fail("create"))?;
            txn.open_table(HOLES).map_err(file.fail("create"))?;
            txn.open_table(SHELLS).map_err(file.fail("create"))?;
            let mut meta = txn.open_table(META).map_err(file.fail("create"))?;
            for (key, value) in rows {
                meta.insert(key, value).map_err(file.fail("create"))?;
            }
            Ok(())
        })?;
        Ok(Self::of(medium, grid, file, numbers))
    }

    fn of(
        medium: &Arc<dyn Medium>,
        grid: PartitionGrid,
        file: DatabaseFile,
        numbers: Numbers,
    ) -> Self {
        let layouts = Layouts::new(grid.width_ms, grid.document);
        let segments = Segments::new(medium, file.name(), &grid, numbers);
        let (damage, histogram_damage, removal, seen, not_worth, is_loose) = Default::default();
        Self {
            grid,
            layouts,
            file,
            damage,
            histogram_damage,
            segments,
            removal,
            seen,
            not_worth,
            is_loose,
        }
    }

    /// Returns true when the partition's files will be removed.
    pub(crate) fn is_being_removed(&self) -> bool {
        self.removal.lock().is_some()
    }

    /// Returns the segments that the file names, in a read transaction.
    pub(crate) fn named(&self, txn: &ReadTransaction) -> Result<Vec<Named>, StoreError> {
        read_named(&self.file, txn)
    }

    /// Returns the open segments that the file names, in a write transaction.
    pub(crate) fn segments_of(
        &self,
        txn: &WriteTransaction,
    ) -> Result<Vec<Arc<Segment>>, StoreError> {
        let table = txn.open_table(SEGMENTS).map_err(self.fail("write"))?;
        self.segments.open().get(&rows_named(&self.file, &table)?)
    }

    /// Returns the time since which the file has not changed, as observed by earlier calls.
    pub(crate) fn unchanged_since(&self, now: UnixMillis) -> Option<UnixMillis> {
        let stamp = self.file.stamp()?;
        let mut seen = self.seen.lock();
        match *seen {
            Some((known, since)) if known == stamp => Some(since),
            _ => seen.insert((stamp, now)).1.into(),
        }
    }

    /// Returns the segments to copy.
    pub(crate) fn segment_files(&self) -> Vec<Arc<Segment>> {
        self.segments.files()
    }

    /// Returns the path of the file below the data directory.
    pub(crate) fn file_path(&self) -> &str {
        self.file.name()
    }

    /// Returns the granularity and start of the partition.
    pub(crate) fn id(&self) -> PartitionId {
        self.grid.id
    }

    pub(crate) fn fail<E: Into<redb::Error>>(
        &self,
        operation: &'static str,
    ) -> impl FnOnce(E) -> StoreError + use<'_, E> {
        self.file.fail(operation)
    }

    /// Returns the key of a document: the seconds from the partition's start to the document's
    /// start, then the series.
    pub(crate) fn key(&self, document: UnixMillis, series: SeriesId) -> u64 {
        u64::from(self.grid.seconds(document)) << 32 | u64::from(series.0)
    }

    /// Returns the start and series of the document with a key.
    pub(crate) fn document_of(&self, key: u64) -> (UnixMillis, SeriesId) {
        (self.grid.id.start.plus((key >> 32) as i64 * 1000), SeriesId(key as u32))
    }

    /// Returns true when a document is intact. The first read of a damaged document is an error,
    /// which is logged and counted; after that, the document counts as missing.
    pub(crate) fn is_sound(
        &self,
        layout: &DocumentLayout,
        doc: &[u8],
        start: UnixMillis,
        series: SeriesId,
    ) -> Result<bool, StoreError> {
        let Err(fault) = layout.check(doc, series, start) else { return Ok(true) };
        let file = self.file.name();
        let is_new = self.damage.note(self.key(start, series), || {
            let series = series.0;
            tracing::error!(
                file,
                series,
                %start,
                %fault,
                "a document is damaged: its samples are missing at its granularity"
            );
        });
        if !is_new {
            return Ok(false);
        }
        let part = format!("the document of series {} at {start}", series.0);
        Err(StoreError::DamagedPart { file: file.to_owned(), part })
    }

    /// Returns true when the document of a key is an intact shell.
    pub(crate) fn is_shell(&self, key: u64, doc: &[u8]) -> bool {
        let (start, series) = self.document_of(key);
        let layout = self.layout(start);
        layout.check(doc, series, start).is_ok() && layout.is_shell(doc)
    }

    /// Records a damaged document without logging it; the caller reports it.
    pub(crate) fn note_damage(&self, start: UnixMillis, series: SeriesId) {
        self.damage.note(self.key(start, series), || {});
    }

    /// Returns the starts of documents whose cells or histograms are damaged, ascending.
    pub(crate) fn damaged_documents(&self) -> Vec<UnixMillis> {
        let keys = self.damage.keys().into_iter().chain(self.histogram_damage.keys());
        let mut starts: Vec<_> = keys.map(|key| self.document_of(key).0).collect();
        starts.sort_unstable();
        starts.dedup();
        starts
    }

    /// Returns the number of damaged documents, and of documents whose histograms are damaged.
    pub(crate) fn damage_count(&self) -> u64 {
        self.damage.count() + self.histogram_damage.count()
    }

    /// Returns the layout of the documents that begin at `document`.
    pub(crate) fn layout(&self, document: UnixMillis) -> &DocumentLayout {
        self.layouts.of(document)
    }
}

/// Returns the maximum number of bytes of the blocks of shells in the file: a page for each block.
fn shell_bytes_max(file: &DatabaseFile, txn: &ReadTransaction) -> Result<u64, StoreError> {
    let blocks = match txn.open_table(SHELLS) {
        Ok(table) => table.len().map_err(file.fail("read"))?,
        Err(TableError::TableDoesNotExist(_)) => 0,
        Err(cause) => return Err(file.fail("read")(cause)),
    };
    Ok(blocks * PAGE_BYTES)
}

/// Returns the segments that a file names.
fn read_named(file: &DatabaseFile, txn: &ReadTransaction) -> Result<Vec<Named>, StoreError> {
    rows_named(file, &txn.open_table(SEGMENTS).map_err(file.fail("read"))?)
}

/// Returns the segments in the rows of the table.
fn rows_named(
    file: &DatabaseFile,
    table: &impl ReadableTable<u32, u64>,
) -> Result<Vec<Named>, StoreError> {
    let mut named = Vec::new();
    for entry in table.iter().map_err(file.fail("read"))? {
        let (number, span) = entry.map_err(file.fail("read"))?;
        named.push(Named::of(number.value(), span.value()));
    }
    Ok(named)
}

/// Reads the grid of the partition from its file. The grid must fit the granularity.
fn read_grid(
    file: &DatabaseFile,
    id: PartitionId,
    granularity: &Granularity,
    format: u64,
) -> Result<PartitionGrid, StoreError> {
    let txn = file.read()?;
    let meta = txn.open_table(META).map_err(file.fail("open"))?;
    let corrupt = |problem| StoreError::Corrupt { file: file.name().to_owned(), problem };
    let number = |key| {
        let found = meta.get(key).map_err(file.fail("open"))?;
        found.map(|guard| guard.value()).ok_or_else(|| corrupt(format!("{key} is missing")))
    };
    version::check(file.name(), number(VERSION_KEY)? as u64, format)?;
    let (start, end) = (UnixMillis(number(START_KEY)?), UnixMillis(number(END_KEY)?));
    let (width_ms, longest_ms) = (number(WIDTH_KEY)?, number(DOCUMENT_KEY)?);
    let document = match number(MONTHS_KEY)? {
        0 => Span::Fixed(longest_ms),
        months @ 1..=LONGEST_MONTHS => Span::Months(months as i32),
        months => return Err(corrupt(format!("{MONTHS_KEY} is {months}"))),
    };
    let slots = longest_ms / width_ms.max(1);
    let is_whole = width_ms == granularity.width_ms
        && document.longest_ms() == longest_ms
        && document.is_multiple_of_span(Span::Fixed(width_ms))
        && (1..=DOCUMENT_SLOTS_MAX as i64).contains(&slots)
        && start == id.start
        && start < end
        && [start, end].into_iter().all(|at| document.start_of(at) == at);
    if !is_whole {
        let problem = format!(
            "its span from {start} to {end}, documents of {document} or slots of {width_ms} ms do \
             not fit its name and granularity"
        );
        return Err(corrupt(problem));
    }
    Ok(PartitionGrid::new(id, end, width_ms, document))
}
