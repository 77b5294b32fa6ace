//! The journal: `journal.redb`, the durable log of accepted batches and what belongs to it.
//!
//! One group commit is one transaction with the record and the new series; what a checkpoint leaves
//! rides with such transactions.
//!
//! Must never know: what batches mean; the catalog does.

mod append;
mod columns;
mod cut;
mod free;
pub(crate) mod granularities;
mod loading;
pub(crate) mod record;
pub(crate) mod register;
pub(crate) mod series_row;

use std::{collections::BTreeSet, sync::Arc};

use parking_lot::Mutex;
use redb::{ReadTransaction, ReadableTable, TableDefinition, TableHandle, WriteTransaction};

use super::{
    dictionary::changes::SeriesUpdate,
    error::StoreError,
    file::{
        database::{DatabaseFile, FileOptions},
        medium::Medium,
        names::{self, JOURNAL_FILE},
        version::{self, FORMAT_VERSION, VERSION_KEY},
    },
};
use crate::model::{SenderWindow, SeriesId, UnixMillis};
use append::Unsure;
pub(crate) use cut::CutPart;
use cut::Ride;
use free::FreeSpace;
use granularities::StoredGranularity;
use record::Record;

const RECORDS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("records");
const SERIES: TableDefinition<'_, u32, &[u8]> = TableDefinition::new("series");
const CHANGES: TableDefinition<'_, u32, &[u8]> = TableDefinition::new("series_changes");
const SENDERS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("senders");
const STATES: TableDefinition<'_, u32, &[u8]> = TableDefinition::new("states");
const GRANULARITIES: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("granularities");
const SEEN: TableDefinition<'_, u32, &[u8]> = TableDefinition::new("seen");
/// The files that are to be there, see the register.
const FILES: TableDefinition<'_, &str, ()> = TableDefinition::new("files");
const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
const THROUGH_KEY: &str = "checkpointed_through";
const LAST_RUN_KEY: &str = "last_run";
const STATES_THROUGH_KEY: &str = "states_through";
const STATES_ROWS_KEY: &str = "states_rows";
/// Its size is bounded, and it is committed all the time: a start may read it whole.
const OPTIONS: FileOptions =
    FileOptions { cache_bytes: 16 << 20, quick_repair: false, frees_late: true };

/// The open journal.
#[derive(Debug)]
pub(crate) struct Journal {
    file: DatabaseFile,
    unsure: Mutex<Unsure>,
    ride: Ride,
    free: FreeSpace,
}

impl Journal {
    /// Opens the journal, or makes the first one of a store. Where others of its files are, the
    /// journal was lost, and a new one would have every batch counted again.
    pub(crate) fn open(medium: &Arc<dyn Medium>) -> Result<Self, StoreError> {
        let fault =
            |cause| StoreError::Io { operation: "look for", file: JOURNAL_FILE.to_owned(), cause };
        let file = if medium.exists(JOURNAL_FILE).map_err(fault)? {
            DatabaseFile::open(medium, JOURNAL_FILE.to_owned(), OPTIONS)?
        } else {
            refuse_orphans(medium)?;
            DatabaseFile::create(medium, JOURNAL_FILE.to_owned(), OPTIONS, |_, txn| create(txn))?
        };
        let (unsure, ride, free) = Default::default();
        let journal = Self { file, unsure, ride, free };
        journal.file.guard("open", || journal.check_version())?;
        Ok(journal)
    }

    fn check_version(&self) -> Result<(), StoreError> {
        const OPERATION: &str = "check the version";
        let txn = self.file.read()?;
        let meta = txn.open_table(META).map_err(fail(OPERATION))?;
        let found =
            meta.get(VERSION_KEY).map_err(fail(OPERATION))?.map_or(0, |guard| guard.value());
        if found == FORMAT_VERSION {
            return Ok(());
        }
        version::check(JOURNAL_FILE, found)?;
        drop((meta, txn));
        // Releases that only know the old format must not open it any more.
        self.file.transact("raise the version", create)
    }

    /// What the time was when the store was last run; `None` when it was not, or before releases
    /// that remember it.
    pub(crate) fn last_run(&self) -> Result<Option<UnixMillis>, StoreError> {
        let txn = self.file.read()?;
        let meta = txn.open_table(META).map_err(fail("read"))?;
        let found = meta.get(LAST_RUN_KEY).map_err(fail("read"))?;
        Ok(found.map(|guard| UnixMillis(guard.value() as i64)))
    }

    /// Remembers what the time is.
    pub(crate) fn set_last_run(&self, now: UnixMillis) -> Result<(), StoreError> {
        const OPERATION: &str = "store the time";
        self.file.transact(OPERATION, |txn| {
            let mut meta = txn.open_table(META).map_err(fail(OPERATION))?;
            meta.insert(LAST_RUN_KEY, now.0.max(0) as u64).map_err(fail(OPERATION))?;
            Ok(())
        })
    }

    /// The last record that a finished checkpoint covers.
    pub(crate) fn checkpointed_through(&self) -> Result<u64, StoreError> {
        self.meta(THROUGH_KEY)
    }

    fn meta(&self, key: &str) -> Result<u64, StoreError> {
        let txn = self.file.read()?;
        self.file.guard("read", || {
            let meta = txn.open_table(META).map_err(fail("read"))?;
            Ok(meta.get(key).map_err(fail("read"))?.map_or(0, |guard| guard.value()))
        })
    }

    /// Writes a journal of the same content, as it is at one moment, into another medium, where
    /// only these files are.
    pub(crate) fn copy_to(
        &self,
        target: &Arc<dyn Medium>,
        files: &[String],
    ) -> Result<(), StoreError> {
        let from = self.file.read()?;
        let name = JOURNAL_FILE.to_owned();
        DatabaseFile::create(target, name, OPTIONS, |_, to| {
            copy_table(&from, to, META)?;
            copy_table(&from, to, RECORDS)?;
            copy_table(&from, to, SERIES)?;
            copy_table(&from, to, CHANGES)?;
            copy_table(&from, to, SENDERS)?;
            copy_table(&from, to, STATES)?;
            copy_table(&from, to, SEEN)?;
            copy_table(&from, to, GRANULARITIES)?;
            note_files(to, files)
        })?;
        Ok(())
    }

    /// The files that were registered.
    pub(crate) fn files(&self) -> Result<BTreeSet<String>, StoreError> {
        let txn = self.file.read()?;
        self.file.guard("read", || {
            let table = txn.open_table(FILES).map_err(fail("read"))?;
            let mut files = BTreeSet::new();
            for entry in table.iter().map_err(fail("read"))? {
                files.insert(entry.map_err(fail("read"))?.0.value().to_owned());
            }
            Ok(files)
        })
    }

    /// Registers files.
    pub(crate) fn note_files(&self, files: &[String]) -> Result<(), StoreError> {
        self.file.transact("register files", |txn| note_files(txn, files))
    }

    /// Strikes out a file.
    pub(crate) fn forget_file(&self, file: &str) -> Result<(), StoreError> {
        const OPERATION: &str = "strike out a file";
        self.file.transact(OPERATION, |txn| {
            let mut table = txn.open_table(FILES).map_err(fail(OPERATION))?;
            table.remove(file).map_err(fail(OPERATION))?;
            Ok(())
        })
    }

    /// The granularities that the store was last run with, finest first.
    pub(crate) fn granularities(&self) -> Result<Vec<StoredGranularity>, StoreError> {
        let mut all = self.rows(GRANULARITIES, |_, name, text| {
            StoredGranularity::from_text(name, std::str::from_utf8(text).ok()?)
        })?;
        all.sort_by_key(|own| own.granularity.width_ms);
        Ok(all)
    }

    /// Remembers the granularities that the store is run with.
    pub(crate) fn set_granularities(&self, all: &[StoredGranularity]) -> Result<(), StoreError> {
        const OPERATION: &str = "store the granularities";
        self.file.transact(OPERATION, |txn| {
            let mut table = txn.open_table(GRANULARITIES).map_err(fail(OPERATION))?;
            table.retain(|_, _| false).map_err(fail(OPERATION))?;
            for own in all {
                let text = own.to_text();
                table.insert(&*own.granularity.name, text.as_bytes()).map_err(fail(OPERATION))?;
            }
            Ok(())
        })
    }

    /// What became of series since they were made known, by their ids.
    pub(crate) fn changes(&self) -> Result<Vec<SeriesUpdate>, StoreError> {
        self.rows(CHANGES, |_, id, row| SeriesUpdate::from_row(SeriesId(id), row))
    }

    /// All senders' windows.
    pub(crate) fn senders(&self) -> Result<Vec<(Arc<str>, SenderWindow)>, StoreError> {
        self.rows(SENDERS, |_, sender, bytes| {
            Some((sender.into(), SenderWindow::from_bytes(bytes)?))
        })
    }

    fn rows<K: redb::Key + 'static, T>(
        &self,
        table: TableDefinition<'_, K, &'static [u8]>,
        mut read: impl FnMut(usize, K::SelfType<'_>, &[u8]) -> Option<T>,
    ) -> Result<Vec<T>, StoreError> {
        let name = table.name().to_owned();
        let txn = self.file.read()?;
        self.file.guard("read", || {
            let table = txn.open_table(table).map_err(fail("read"))?;
            let mut out = Vec::new();
            for entry in table.iter().map_err(fail("read"))? {
                let (key, value) = entry.map_err(fail("read"))?;
                let row = read(out.len(), key.value(), value.value()).ok_or_else(|| {
                    corrupt(format!("row {} of table {name} cannot be read", out.len()))
                })?;
                out.push(row);
            }
            Ok(out)
        })
    }

    /// Hands out the records after `after`, in order.
    pub(crate) fn replay(
        &self,
        after: u64,
        mut out: impl FnMut(u64, Record) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let txn = self.file.read()?;
        self.file.guard("replay", || {
            let table = txn.open_table(RECORDS).map_err(fail("replay"))?;
            let entries = table.range(after + 1..).map_err(fail("replay"))?;
            for (expected, entry) in (after + 1..).zip(entries) {
                let (sequence, bytes) = entry.map_err(fail("replay"))?;
                let sequence = sequence.value();
                if sequence != expected {
                    return Err(corrupt(format!("record {expected} is missing before {sequence}")));
                }
                let record = record::decode(bytes.value())
                    .ok_or_else(|| corrupt(format!("record {sequence} cannot be read")))?;
                out(sequence, record)?;
            }
            Ok(())
        })
    }
}

/// Makes all tables, and those that an older version did not have.
fn create(txn: &WriteTransaction) -> Result<(), StoreError> {
    const OPERATION: &str = "create tables";
    let mut meta = txn.open_table(META).map_err(fail(OPERATION))?;
    meta.insert(VERSION_KEY, FORMAT_VERSION).map_err(fail(OPERATION))?;
    txn.open_table(RECORDS).map_err(fail(OPERATION))?;
    txn.open_table(SERIES).map_err(fail(OPERATION))?;
    txn.open_table(CHANGES).map_err(fail(OPERATION))?;
    txn.open_table(SENDERS).map_err(fail(OPERATION))?;
    txn.open_table(STATES).map_err(fail(OPERATION))?;
    txn.open_table(SEEN).map_err(fail(OPERATION))?;
    txn.open_table(GRANULARITIES).map_err(fail(OPERATION))?;
    txn.open_table(FILES).map_err(fail(OPERATION))?;
    Ok(())
}

fn note_files(txn: &WriteTransaction, files: &[String]) -> Result<(), StoreError> {
    const OPERATION: &str = "register files";
    let mut table = txn.open_table(FILES).map_err(fail(OPERATION))?;
    for file in files {
        table.insert(&**file, ()).map_err(fail(OPERATION))?;
    }
    Ok(())
}

/// Refuses a store whose journal is gone.
fn refuse_orphans(medium: &Arc<dyn Medium>) -> Result<(), StoreError> {
    let Some(other) = names::data_files(medium)?.into_iter().next() else { return Ok(()) };
    let problem = format!(
        "it is missing, but {other} is there: see that the whole disk is mounted, put the journal \
         back, or make a new data directory of a snapshot with `granary restore`; to begin anew, \
         name an empty data directory"
    );
    Err(StoreError::Mismatch { file: JOURNAL_FILE.to_owned(), problem })
}

fn fail<E: Into<redb::Error>>(operation: &'static str) -> impl FnOnce(E) -> StoreError {
    StoreError::redb(operation, JOURNAL_FILE)
}

fn corrupt(problem: String) -> StoreError {
    StoreError::Corrupt { file: JOURNAL_FILE.to_owned(), problem }
}

fn copy_table<K: redb::Key + 'static, V: redb::Value + 'static>(
    from: &ReadTransaction,
    to: &WriteTransaction,
    table: TableDefinition<'_, K, V>,
) -> Result<(), StoreError> {
    let source = from.open_table(table).map_err(fail("copy"))?;
    let mut copy = to.open_table(table).map_err(fail("copy"))?;
    for entry in source.iter().map_err(fail("copy"))? {
        let (key, value) = entry.map_err(fail("copy"))?;
        copy.insert(key.value(), value.value()).map_err(fail("copy"))?;
    }
    Ok(())
}
