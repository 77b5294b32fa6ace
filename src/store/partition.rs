//! One partition: all documents of one granularity over one partition span, in one redb file.

use std::sync::Arc;

use redb::{ReadOnlyTable, ReadableTable, Table, TableDefinition};

use super::{
    database_file::{DatabaseFile, FileOptions},
    error::StoreError,
    journal::{FORMAT_VERSION, is_known_version},
    layouts::Layouts,
    medium::Medium,
};
use crate::model::{DocumentLayout, Granularity, SeriesId, UnixMillis};

const DOCUMENTS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("documents");
const META: TableDefinition<'_, &str, i64> = TableDefinition::new("meta");
const VERSION_KEY: &str = "format_version";
const THROUGH_KEY: &str = "applied_through";
const UNTIL_KEY: &str = "applied_until";
const OPTIONS: FileOptions = FileOptions { cache_bytes: 2 << 20, quick_repair: true };
/// What a partition's span is a multiple of, in ms, and how its start is written then.
const FILE_NAMES: [(i64, &str); 3] =
    [(86_400_000, "%Y-%m-%d"), (60_000, "%Y-%m-%dT%H%M"), (1000, "%Y-%m-%dT%H%M%S")];

/// Name of the partition's granularity and its start: what tells partitions apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PartitionId {
    /// Index of the granularity, finest first.
    pub level: usize,
    /// When the partition begins.
    pub start: UnixMillis,
}

/// What the documents of a partition have: everything up to a journal record, of the slots that
/// begin before a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    /// The journal record.
    pub(crate) through: u64,
    /// The time.
    pub(crate) until: UnixMillis,
}

impl Mark {
    /// Whether the documents have what the head, or the frozen catalog, holds of a slot when that
    /// is everything up to the record `through`.
    pub(crate) fn has_absorbed(&self, through: u64, slot_start: i64) -> bool {
        self.through >= through && slot_start < self.until.0
    }
}

/// See the module.
#[derive(Debug)]
pub(crate) struct Partition {
    pub(crate) id: PartitionId,
    pub(crate) end: UnixMillis,
    pub(crate) file: DatabaseFile,
    layouts: Arc<Layouts>,
}

impl Partition {
    /// Name of a partition's file below the data directory.
    pub(crate) fn file_name(granularity: &Granularity, start: UnixMillis) -> String {
        let span_ms = granularity.partition.longest_ms();
        // As many digits as tell the partitions apart.
        let format = match FILE_NAMES.iter().find(|(unit_ms, _)| span_ms % unit_ms == 0) {
            Some((_, format)) => format,
            None => FILE_NAMES[FILE_NAMES.len() - 1].1,
        };
        let name = start.civil().strftime(format);
        format!("partitions/{}/{name}.redb", granularity.name)
    }

    /// The start that a file's name says; `None` for files of other names.
    pub(crate) fn start_of_file(granularity: &Granularity, name: &str) -> Option<UnixMillis> {
        let stem = name.strip_suffix(".redb")?;
        let read = |(_, format): &(i64, &str)| {
            let parsed = jiff::fmt::strtime::parse(format, stem).ok()?;
            let date = parsed.to_date().ok()?;
            Some(date.to_datetime(parsed.to_time().unwrap_or_default()))
        };
        let civil = FILE_NAMES.iter().find_map(read)?;
        let zoned = civil.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
        let start = UnixMillis(zoned.timestamp().as_millisecond());
        (granularity.partition_start(start) == start).then_some(start)
    }

    /// Opens the partition, creating it when there is none.
    pub(crate) fn open(
        medium: &Arc<dyn Medium>,
        id: PartitionId,
        granularity: &Granularity,
        layouts: Arc<Layouts>,
    ) -> Result<Self, StoreError> {
        let name = Self::file_name(granularity, id.start);
        let end = granularity.partition_end(id.start);
        let expected = [
            (VERSION_KEY, FORMAT_VERSION as i64),
            ("start", id.start.0),
            ("end", end.0),
            ("width", granularity.width_ms),
            ("document", granularity.document.longest_ms()),
        ];
        let file = DatabaseFile::open(medium, name, OPTIONS, |file, txn| {
            txn.open_table(DOCUMENTS).map_err(file.fail("create"))?;
            let mut meta = txn.open_table(META).map_err(file.fail("create"))?;
            for (key, value) in expected.iter().chain([&(THROUGH_KEY, 0)]) {
                meta.insert(key, value).map_err(file.fail("create"))?;
            }
            Ok(())
        })?;
        let partition = Self { id, end, file, layouts };
        partition.check_meta(&expected)?;
        Ok(partition)
    }

    /// Path of the file below the data directory.
    pub(crate) fn file_path(&self) -> &str {
        self.file.name()
    }

    /// Compares what the file says of itself with what it must be.
    fn check_meta(&self, expected: &[(&str, i64)]) -> Result<(), StoreError> {
        self.file.guard("open", || self.compare_meta(expected))
    }

    fn compare_meta(&self, expected: &[(&str, i64)]) -> Result<(), StoreError> {
        let txn = self.file.read()?;
        let meta = txn.open_table(META).map_err(self.fail("open"))?;
        for (key, value) in expected {
            let found = meta.get(*key).map_err(self.fail("open"))?.map(|guard| guard.value());
            let file = self.file.name().to_owned();
            match found {
                Some(found) if found == *value => {}
                Some(version) if *key == VERSION_KEY && is_known_version(version as u64) => {}
                Some(version) if *key == VERSION_KEY => {
                    let problem = format!(
                        "format version {version}; this granary reads {value}: use the release \
                         that wrote it or a newer one"
                    );
                    return Err(StoreError::Mismatch { file, problem });
                }
                // The settings are those that it was written with: the journal says so.
                _ => {
                    let problem = format!("{key} is {found:?} and should be {value}");
                    return Err(StoreError::Corrupt { file, problem });
                }
            }
        }
        Ok(())
    }

    fn fail<E: Into<redb::Error>>(
        &self,
        operation: &'static str,
    ) -> impl FnOnce(E) -> StoreError + use<'_, E> {
        self.file.fail(operation)
    }

    /// A consistent view of the partition.
    pub(crate) fn read(self: &Arc<Self>) -> Result<PartitionReader, StoreError> {
        let txn = self.file.read()?;
        self.file.guard("read", || {
            let meta = txn.open_table(META).map_err(self.fail("read"))?;
            let value = |key| {
                let found = meta.get(key).map_err(self.fail("read"))?;
                Ok::<_, StoreError>(found.map(|guard| guard.value()))
            };
            let mark = Mark {
                through: value(THROUGH_KEY)?.unwrap_or(0) as u64,
                // The first format knew no such time: it wrote all slots.
                until: UnixMillis(value(UNTIL_KEY)?.unwrap_or(i64::MAX)),
            };
            let documents = txn.open_table(DOCUMENTS).map_err(self.fail("read"))?;
            Ok(PartitionReader { partition: self.clone(), mark, documents })
        })
    }

    /// Changes documents in one transaction, which also stores the mark when one is given.
    pub(crate) fn write<T>(
        &self,
        mark: Option<Mark>,
        change: impl FnOnce(&mut DocumentWriter<'_, '_>) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        self.file.transact("write", |txn| {
            let table = txn.open_table(DOCUMENTS).map_err(self.fail("write"))?;
            let mut writer = DocumentWriter { partition: self, table, buffer: Vec::new() };
            let out = change(&mut writer)?;
            if let Some(mark) = mark {
                let mut meta = txn.open_table(META).map_err(self.fail("write"))?;
                meta.insert(THROUGH_KEY, mark.through as i64).map_err(self.fail("write"))?;
                meta.insert(UNTIL_KEY, mark.until.0).map_err(self.fail("write"))?;
            }
            Ok(out)
        })
    }

    /// Key of a document: seconds from the partition's start to the document's, then the series.
    fn key(&self, document: UnixMillis, series: SeriesId) -> u64 {
        let seconds = (document.0 - self.id.start.0) / 1000;
        ((seconds as u64) << 32) | u64::from(series.0)
    }

    /// What a key says: the document's start and series.
    fn place(&self, key: u64) -> (UnixMillis, SeriesId) {
        (self.id.start.plus((key >> 32) as i64 * 1000), SeriesId(key as u32))
    }

    fn check(
        &self,
        layout: &DocumentLayout,
        doc: &[u8],
        start: UnixMillis,
        series: SeriesId,
    ) -> Result<(), StoreError> {
        layout.check(doc, series, start).map_err(|fault| StoreError::Corrupt {
            file: self.file.name().to_owned(),
            problem: format!("document of series {} at {start}: {fault}", series.0),
        })
    }

    /// Layout of the documents that begin at `document`.
    pub(crate) fn layout(&self, document: UnixMillis) -> &DocumentLayout {
        self.layouts.of(document)
    }
}

/// The name that a partition's file gets when it is set aside as damaged.
pub(crate) fn set_aside_name(file: &str) -> String {
    file.trim_start_matches("partitions/").replace('/', "-")
}

/// A consistent view of a partition and of its mark.
pub(crate) struct PartitionReader {
    pub(crate) partition: Arc<Partition>,
    /// What the documents have.
    pub(crate) mark: Mark,
    documents: ReadOnlyTable<u64, &'static [u8]>,
}

impl PartitionReader {
    /// Hands a document's bytes to `read`; `None` when there is no such document.
    pub(crate) fn document<T>(
        &self,
        start: UnixMillis,
        series: SeriesId,
        read: impl FnOnce(&DocumentLayout, &[u8]) -> T,
    ) -> Result<Option<T>, StoreError> {
        let partition = &self.partition;
        partition.file.guard("read", || {
            let key = partition.key(start, series);
            let found = self.documents.get(key).map_err(partition.fail("read"))?;
            let Some(guard) = found else { return Ok(None) };
            let layout = partition.layout(start);
            partition.check(layout, guard.value(), start, series)?;
            Ok(Some(read(layout, guard.value())))
        })
    }

    /// Hands out every document with what its key says: its start and series.
    pub(crate) fn for_each_document(
        &self,
        mut visit: impl FnMut(UnixMillis, SeriesId, &[u8]),
    ) -> Result<(), StoreError> {
        let partition = &self.partition;
        partition.file.guard("read", || {
            for entry in self.documents.iter().map_err(partition.fail("read"))? {
                let (key, doc) = entry.map_err(partition.fail("read"))?;
                let (start, series) = partition.place(key.value());
                visit(start, series, doc.value());
            }
            Ok(())
        })
    }
}

/// What became of a document that was to be changed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Written {
    /// It was there and was patched in place.
    Patched,
    /// It was not there; it was made as a shell in the same step.
    Created,
}

/// Changes the documents of one partition in one transaction.
pub(crate) struct DocumentWriter<'p, 't> {
    partition: &'p Partition,
    table: Table<'t, u64, &'static [u8]>,
    buffer: Vec<u8>,
}

impl DocumentWriter<'_, '_> {
    /// Changes a document in place, or a new shell when there is none.
    pub(crate) fn patch(
        &mut self,
        document: UnixMillis,
        series: SeriesId,
        change: impl FnOnce(&DocumentLayout, &mut [u8]),
    ) -> Result<Written, StoreError> {
        let partition = self.partition;
        let layout = partition.layout(document);
        let key = partition.key(document, series);
        let written = if self.load(key)? {
            partition.check(layout, &self.buffer, document, series)?;
            Written::Patched
        } else {
            layout.write_shell(series, document, &mut self.buffer);
            Written::Created
        };
        change(layout, &mut self.buffer);
        self.table.insert(key, &*self.buffer).map_err(partition.fail("write"))?;
        Ok(written)
    }

    /// Copies a document into the buffer; false when there is none.
    fn load(&mut self, key: u64) -> Result<bool, StoreError> {
        let found = self.table.get(key).map_err(self.partition.fail("read"))?;
        self.buffer.clear();
        self.buffer.extend_from_slice(found.as_ref().map_or(&[], |guard| guard.value()));
        Ok(found.is_some())
    }

    /// Inserts empty documents for series, ascending, that have none yet; returns how many.
    pub(crate) fn add_shells(
        &mut self,
        document: UnixMillis,
        series: &[SeriesId],
    ) -> Result<usize, StoreError> {
        let partition = self.partition;
        let layout = partition.layout(document);
        let mut added = 0;
        for series in series {
            let key = partition.key(document, *series);
            if self.table.get(key).map_err(partition.fail("preallocate"))?.is_some() {
                continue;
            }
            layout.write_shell(*series, document, &mut self.buffer);
            self.table.insert(key, &*self.buffer).map_err(partition.fail("preallocate"))?;
            added += 1;
        }
        Ok(added)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Span;

    #[test]
    fn every_partition_has_a_name_of_its_own_that_says_its_start() {
        let at = UnixMillis(1_795_264_496_000);
        for (span, name) in [
            ("5s", "2026-11-21T123455"),
            ("1m", "2026-11-21T1234"),
            ("90s", "2026-11-21T123430"),
            ("6h", "2026-11-21T1200"),
            ("1d", "2026-11-21"),
            ("1y", "2026-01-01"),
        ] {
            let span: Span = span.parse().unwrap();
            let granularity = Granularity::new(1000, span, span, span);
            let start = granularity.partition_start(at);
            let file = Partition::file_name(&granularity, start);
            assert_eq!(file, format!("partitions/1s/{name}.redb"));
            let base = file.trim_start_matches("partitions/1s/");
            assert_eq!(Partition::start_of_file(&granularity, base), Some(start), "{base}");
            let next = Partition::file_name(&granularity, granularity.partition_end(start));
            assert_ne!(next, file);
        }
        let day = Granularity::new(1000, Span::Months(1), Span::Months(1), Span::Months(1));
        for name in ["2026-11-21.redb", "2026-11-01", "x.redb", "2026-13-01.redb"] {
            assert_eq!(Partition::start_of_file(&day, name), None, "{name}");
        }
    }
}
