//! One partition: all documents of one granularity over one partition span, in one redb file.
//!
//! Must never know: where a document's cells come from.

mod documents;
mod name;

use std::sync::Arc;

use redb::TableDefinition;

pub(crate) use documents::{DocumentWriter, PartitionReader, Written};
pub(crate) use name::data_files;

use super::{
    database_file::{DatabaseFile, FileOptions},
    error::StoreError,
    layouts::Layouts,
    medium::Medium,
    version::{self, FORMAT_VERSION},
};
use crate::model::{DocumentLayout, Granularity, SeriesId, UnixMillis};

const DOCUMENTS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("documents");
const META: TableDefinition<'_, &str, i64> = TableDefinition::new("meta");
const VERSION_KEY: &str = "format_version";
const THROUGH_KEY: &str = "applied_through";
const UNTIL_KEY: &str = "applied_until";
const OPTIONS: FileOptions = FileOptions { cache_bytes: 2 << 20, quick_repair: true };

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
        let fault = |cause| StoreError::Io { operation: "look for", file: name.clone(), cause };
        let file = if medium.exists(&name).map_err(fault)? {
            DatabaseFile::open(medium, name, OPTIONS)?
        } else {
            DatabaseFile::create(medium, name, OPTIONS, |file, txn| {
                txn.open_table(DOCUMENTS).map_err(file.fail("create"))?;
                let mut meta = txn.open_table(META).map_err(file.fail("create"))?;
                for (key, value) in expected.iter().chain([&(THROUGH_KEY, 0)]) {
                    meta.insert(key, value).map_err(file.fail("create"))?;
                }
                Ok(())
            })?
        };
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
                Some(found) if *key == VERSION_KEY => version::check(&file, found as u64)?,
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
