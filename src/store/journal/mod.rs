//! The journal: the durable log of accepted batches in flat files, and `journal.redb` with the
//! series and the states as of the last checkpoint.
//!
//! One group commit is one append to the log. New series are stored before the record that contains
//! their IDs.
//!
//! Must never know: the meaning of batches; the catalog applies them.

mod append;
pub(crate) mod checked;
mod columns;
mod copy;
mod cut;
pub(crate) mod epoch_row;
mod epochs;
pub(crate) mod erasure_row;
mod erasures;
pub(crate) mod file_log;
mod files;
mod free;
pub(crate) mod granularities;
pub(crate) mod granularity_rows;
pub(crate) mod in_head;
mod loading;
pub(crate) mod log;
mod merged;
pub(crate) mod numbers;
pub(crate) mod projects;
pub(crate) mod record;
pub(crate) mod record_log;
pub(crate) mod register;
pub(crate) mod replicated;
pub(crate) mod series_row;

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use parking_lot::Mutex;
use redb::{ReadableTable, TableDefinition, TableHandle, WriteTransaction};

use super::{
    dictionary::changes::SeriesUpdate,
    error::StoreError,
    file::{
        database::{DatabaseFile, FileOptions},
        holes::HOLES,
        medium::Medium,
        names::{self, JOURNAL_FILE},
        version::VERSION_KEY,
    },
};
use crate::model::{SenderWindow, SeriesId, UnixMillis};
use append::Unsure;
use checked::{DamagedRows, RowKey, set_number, with_check, without_check};
pub(crate) use cut::CutPart;
pub(crate) use erasures::ERASURES;
use files::{ENDS, FILES};
use free::FreeSpace;
use in_head::IN_HEAD;
use log::Log;
use merged::MERGED;
use numbers::Settled;
use record::Record;

const SERIES: TableDefinition<'_, u32, &[u8]> = TableDefinition::new("series");
const CHANGES: TableDefinition<'_, u32, &[u8]> = TableDefinition::new("series_changes");
const SENDERS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("senders");
const STATES: TableDefinition<'_, u32, &[u8]> = TableDefinition::new("states");
const GRANULARITIES: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("granularities");
const SEEN: TableDefinition<'_, u32, &[u8]> = TableDefinition::new("seen");
/// The remembered readings of histograms; absent before the first one.
pub(super) const HISTOGRAMS: TableDefinition<'_, u32, &[u8]> = TableDefinition::new("histograms");
const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
/// The names of all tables, in every format.
pub(crate) const TABLES: [&str; 12] = [
    "ends",
    "files",
    "granularities",
    "holes",
    "in_head",
    "meta",
    "seen",
    "senders",
    "series",
    "series_changes",
    "series_merged",
    "states",
];
const THROUGH_KEY: &str = "checkpointed_through";
const LAST_RUN_KEY: &str = "last_run";
/// The key of the number of the log's last file.
const LOG_KEY: &str = "log";
const STATES_THROUGH_KEY: &str = "states_through";
const STATES_ROWS_KEY: &str = "states_rows";
const CHANGES_THROUGH_KEY: &str = "changes_through";
const RECORD_TIME_KEY: &str = "record_time";
/// The options of the tables' file. Its size is bounded, so that a start after a crash can read the
/// whole file.
const OPTIONS: FileOptions = FileOptions { cache_bytes: 16 << 20, quick_repair: false };

/// A sender with its window; `None` when its accepted numbers are unknown.
pub(crate) type StoredSender = (Arc<str>, Option<SenderWindow>);

/// The open journal.
#[derive(Debug)]
pub(crate) struct Journal {
    medium: Arc<dyn Medium>,
    file: DatabaseFile,
    /// The log; locked before `unsure`.
    log: Mutex<Log>,
    /// The size of the log when it was last determined, in bytes.
    log_bytes: AtomicU64,
    unsure: Mutex<Unsure>,
    free: FreeSpace,
    damaged: DamagedRows,
    settled: Settled,
}

impl Journal {
    /// Opens the journal, or creates the first one of a store. When other files of a store exist,
    /// the journal was lost, and a new journal would make every batch count again.
    pub(crate) fn open(medium: &Arc<dyn Medium>) -> Result<Self, StoreError> {
        let fault =
            |cause| StoreError::Io { operation: "find", file: JOURNAL_FILE.to_owned(), cause };
        let file = if medium.exists(JOURNAL_FILE).map_err(fault)? {
            DatabaseFile::open(medium, JOURNAL_FILE.to_owned(), OPTIONS)?
        } else {
            refuse_orphans(medium)?;
            DatabaseFile::create(medium, JOURNAL_FILE.to_owned(), OPTIONS, |_, txn| {
                create(txn, medium.format())
            })?
        };
        let damaged = DamagedRows::default();
        file.guard("open", || numbers::check_version(&file, medium.format(), &damaged))?;
        let (settled, last) = file.guard("open", || numbers::settle(&file, medium, &damaged))?;
        let log = Log::open(medium.clone(), last)?;
        let log_bytes = AtomicU64::new(log.bytes());
        let (log, medium) = (Mutex::new(log), medium.clone());
        let (unsure, free) = Default::default();
        Ok(Self { medium, file, log, log_bytes, unsure, free, damaged, settled })
    }

    /// Stores the current time as that of the last run.
    pub(crate) fn set_last_run(&self, now: UnixMillis) -> Result<(), StoreError> {
        const OPERATION: &str = "store the time";
        self.file.transact(OPERATION, |txn| {
            let mut meta = txn.open_table(META).map_err(fail(OPERATION))?;
            set_number(&mut meta, LAST_RUN_KEY, now.0.max(0) as u64).map_err(fail(OPERATION))
        })
    }

    /// Returns descriptions of the first rows that were found damaged since the start, and the
    /// total number.
    pub(crate) fn damaged_rows(&self) -> (Vec<String>, u64) {
        self.damaged.get()
    }

    /// Returns the size on the medium in bytes.
    pub(crate) fn bytes(&self) -> u64 {
        // While an append holds the lock, the previous size is returned.
        if let Some(log) = self.log.try_lock() {
            self.log_bytes.store(log.bytes(), Ordering::Relaxed);
        }
        self.file.bytes().unwrap_or(0) + self.log_bytes.load(Ordering::Relaxed)
    }

    /// Returns the changes of series since their definitions, by ID.
    pub(crate) fn changes(&self) -> Result<Vec<SeriesUpdate>, StoreError> {
        let unknown = "its name is unknown: its samples are hidden, and its sender's next samples \
                       begin a new series";
        self.rows(CHANGES, |id, row| {
            let Some(row) = row else {
                self.damaged.note("series_changes", &format!("series {id}: {unknown}"));
                return Some(Some(SeriesUpdate::delete(SeriesId(id))));
            };
            SeriesUpdate::from_row(SeriesId(id), row).map(Some)
        })
    }

    /// Returns the windows of all senders; `None` for a sender whose accepted numbers are unknown.
    pub(crate) fn senders(&self) -> Result<Vec<StoredSender>, StoreError> {
        let unknown = "the numbers of its accepted batches are unknown: batches of its earlier \
                       epochs are refused, and it continues in a new epoch";
        self.rows(SENDERS, |sender, bytes| {
            let Some(bytes) = bytes else {
                self.damaged.note("senders", &format!("sender {sender}: {unknown}"));
                return Some(Some((sender.into(), None)));
            };
            Some(Some((sender.into(), Some(SenderWindow::from_bytes(bytes)?))))
        })
    }

    /// Passes the rows of a table to `read`, damaged rows as `None`, and returns its results.
    /// `read` returns an inner `None` to skip a row, and an outer `None` for an unreadable row.
    ///
    /// # Errors
    /// When a row is unreadable.
    fn rows<K: redb::Key + 'static, T>(
        &self,
        table: TableDefinition<'_, K, &'static [u8]>,
        mut read: impl FnMut(K::SelfType<'_>, Option<&[u8]>) -> Option<Option<T>>,
    ) -> Result<Vec<T>, StoreError>
    where
        for<'a> K::SelfType<'a>: RowKey,
    {
        let name = table.name().to_owned();
        let txn = self.file.read()?;
        self.file.guard("read", || {
            let table = txn.open_table(table).map_err(fail("read"))?;
            let mut out = Vec::new();
            for (index, entry) in table.iter().map_err(fail("read"))?.enumerate() {
                let (key, value) = entry.map_err(fail("read"))?;
                let key = key.value();
                let row = without_check(value.value(), &key);
                let row = read(key, row).ok_or_else(|| {
                    corrupt(format!("row {index} of table {name} cannot be read"))
                })?;
                out.extend(row);
            }
            Ok(out)
        })
    }

    /// Visits the records after `after`, in order.
    pub(crate) fn replay(
        &self,
        after: u64,
        mut out: impl FnMut(u64, Record) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.records_after(after, |number, bytes| {
            let record = record::batches::decode(bytes)
                .ok_or_else(|| corrupt(format!("record {number} cannot be read")))?;
            out(number, record)
        })
    }

    /// Visits the bytes of the records after `after`, in order.
    fn records_after(
        &self,
        after: u64,
        out: impl FnMut(u64, &[u8]) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        self.log.lock().replay(after, out)
    }
}

/// Creates all tables.
fn create(txn: &WriteTransaction, format: u64) -> Result<(), StoreError> {
    const OPERATION: &str = "create tables";
    let mut meta = txn.open_table(META).map_err(fail(OPERATION))?;
    set_number(&mut meta, VERSION_KEY, format).map_err(fail(OPERATION))?;
    txn.open_table(SERIES).map_err(fail(OPERATION))?;
    txn.open_table(CHANGES).map_err(fail(OPERATION))?;
    txn.open_table(SENDERS).map_err(fail(OPERATION))?;
    txn.open_table(STATES).map_err(fail(OPERATION))?;
    txn.open_table(SEEN).map_err(fail(OPERATION))?;
    txn.open_table(GRANULARITIES).map_err(fail(OPERATION))?;
    txn.open_table(FILES).map_err(fail(OPERATION))?;
    txn.open_table(MERGED).map_err(fail(OPERATION))?;
    txn.open_table(ENDS).map_err(fail(OPERATION))?;
    txn.open_table(IN_HEAD).map_err(fail(OPERATION))?;
    txn.open_table(HOLES).map_err(fail(OPERATION))?;
    Ok(())
}

/// Refuses to create a journal when other files of a store exist.
fn refuse_orphans(medium: &Arc<dyn Medium>) -> Result<(), StoreError> {
    let others = [names::data_files(medium)?, log::names(medium)?].concat();
    let Some(other) = others.into_iter().next() else { return Ok(()) };
    let problem = format!(
        "it is missing, but {other} exists: check that all disks are mounted, restore the journal, \
         or create a new data directory from a snapshot with `granary restore`; for a new store, \
         use an empty data directory"
    );
    Err(StoreError::Mismatch { file: JOURNAL_FILE.to_owned(), problem })
}

fn fail<E: Into<redb::Error>>(operation: &'static str) -> impl FnOnce(E) -> StoreError {
    StoreError::redb(operation, JOURNAL_FILE)
}

fn corrupt(problem: String) -> StoreError {
    StoreError::Corrupt { file: JOURNAL_FILE.to_owned(), problem }
}
