//! One redb file, which is reopened after a failed read or write.
//!
//! redb refuses every use of a database after an I/O error. The next use closes and reopens the
//! file, which then contains all earlier commits; it contains the failed commit only if nothing but
//! the sync failed. A new file is filled under a temporary name and then renamed, so that every
//! existing file is complete. A read never creates a missing file.
//!
//! Must never know: tables and their content.

use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
};

use parking_lot::RwLock;
use redb::{
    Builder, CompactionError, Database, Durability, ReadTransaction, ReadableDatabase,
    StorageBackend, WriteTransaction,
};

use super::{assertion, medium::Medium, watched::Watched};
use crate::store::error::StoreError;

/// The suffix of the names of unfinished files.
pub(crate) const UNFINISHED: &str = ".new";

/// The options of a file.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FileOptions {
    /// The size of the page cache in bytes.
    pub(crate) cache_bytes: usize,
    /// True when each commit stores the data that a start after a crash needs. Otherwise, a commit
    /// takes one sync instead of two, and a start after a crash reads the whole file.
    pub(crate) quick_repair: bool,
}

/// A redb file, opened at its next use if it is closed.
#[derive(Debug)]
pub(crate) struct DatabaseFile {
    medium: Arc<dyn Medium>,
    name: String,
    options: FileOptions,
    /// `None` until the next use.
    open: RwLock<Option<Open>>,
    /// True for a damaged file, which is no longer written.
    damaged: AtomicBool,
    /// The number of writing operations that began.
    begun: AtomicU64,
    /// The number of writing operations that ended.
    ended: AtomicU64,
}

#[derive(Debug)]
struct Open {
    db: Database,
    /// True after a failed operation: redb refuses all further operations.
    failed: Arc<AtomicBool>,
}

impl Open {
    fn has_failed(&self) -> bool {
        self.failed.load(Ordering::Acquire)
    }
}

impl DatabaseFile {
    /// Opens an existing file.
    pub(crate) fn open(
        medium: &Arc<dyn Medium>,
        name: String,
        options: FileOptions,
    ) -> Result<Self, StoreError> {
        let file = Self::unopened(medium, name, options);
        medium.settle(&file.name).map_err(file.fault("sync the name of"))?;
        file.reopen()?;
        Ok(file)
    }

    /// Creates a file; `fill` writes its first transaction.
    pub(crate) fn create(
        medium: &Arc<dyn Medium>,
        name: String,
        options: FileOptions,
        fill: impl FnOnce(&Self, &WriteTransaction) -> Result<(), StoreError>,
    ) -> Result<Self, StoreError> {
        let new = Self::unopened(medium, format!("{name}{UNFINISHED}"), options);
        medium.remove(&new.name).map_err(new.fault("remove"))?;
        let empty = medium.create(&new.name).map_err(new.fault("create"))?;
        *new.open.write() = Some(new.guard("create", || new.begin(empty))?);
        new.transact("create", |txn| fill(&new, txn))?;
        let new_name = new.name.clone();
        drop(new);
        medium.rename(&new_name, &name).map_err(|cause| StoreError::Io {
            operation: "rename",
            file: new_name,
            cause,
        })?;
        Self::open(medium, name, options)
    }

    fn unopened(medium: &Arc<dyn Medium>, name: String, options: FileOptions) -> Self {
        let (open, damaged) = (RwLock::new(None), AtomicBool::new(false));
        let (begun, ended) = (AtomicU64::new(0), AtomicU64::new(0));
        Self { medium: medium.clone(), name, options, open, damaged, begun, ended }
    }

    fn fault(&self, operation: &'static str) -> impl FnOnce(io::Error) -> StoreError + use<'_> {
        move |cause| StoreError::Io { operation, file: self.name.clone(), cause }
    }

    /// Returns the path below the data directory.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Returns a function that converts an error of redb to a store error with the operation and
    /// this file.
    pub(crate) fn fail<E: Into<redb::Error>>(
        &self,
        operation: &'static str,
    ) -> impl FnOnce(E) -> StoreError + use<'_, E> {
        StoreError::redb(operation, &self.name)
    }

    /// Begins a consistent read.
    pub(crate) fn read(&self) -> Result<ReadTransaction, StoreError> {
        self.read_under(|| ()).map(|((), txn)| txn)
    }

    /// Begins a consistent read while a lock is held, and returns the lock. A writer may take this
    /// lock within its transaction; a thread that holds the lock must not use the file otherwise.
    pub(crate) fn read_under<L>(
        &self,
        lock: impl FnOnce() -> L,
    ) -> Result<(L, ReadTransaction), StoreError> {
        self.with(|db| {
            let held = lock();
            let begin = || db.begin_read().map_err(self.fail("read"));
            Ok((held, self.guard("read", begin)?))
        })
    }

    /// Runs one durable transaction.
    pub(crate) fn transact<T>(
        &self,
        operation: &'static str,
        change: impl FnOnce(&WriteTransaction) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let transaction = |db: &Database| {
            let mut txn = db.begin_write().map_err(self.fail(operation))?;
            txn.set_durability(Durability::Immediate).map_err(self.fail(operation))?;
            txn.set_quick_repair(self.options.quick_repair);
            let out = change(&txn)?;
            txn.commit().map_err(self.fail(operation))?;
            Ok(out)
        };
        self.begun.fetch_add(1, Ordering::SeqCst);
        let outcome = self.with(|db| self.guard(operation, || transaction(db)));
        if outcome.is_err() && self.is_damaged() {
            self.shut(&mut self.open.write());
        }
        self.ended.fetch_add(1, Ordering::SeqCst);
        outcome
    }

    /// Returns a number that changes with every change of the file; `None` while a change is
    /// possible.
    pub(crate) fn stamp(&self) -> Option<u64> {
        let ended = self.ended.load(Ordering::SeqCst);
        (self.begun.load(Ordering::SeqCst) == ended).then_some(ended)
    }

    /// Closes the file until its next use; running transactions finish or fail.
    fn shut(&self, open: &mut Option<Open>) {
        let Some(Open { db, .. }) = open.take() else { return };
        if self.is_damaged() {
            // Closing a database writes to its file. When this write also fails, redb may end the
            // process.
            Box::leak(Box::new(db));
        } else if let Err(location) = assertion::catch(|| drop(db)) {
            tracing::warn!(file = self.name, location, "a file was not closed cleanly");
        }
    }

    /// Runs a function. Returns a failed assertion of redb as an error, and notes damage of the
    /// file.
    pub(crate) fn guard<T>(
        &self,
        operation: &'static str,
        run: impl FnOnce() -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let outcome = assertion::catch(run).unwrap_or_else(|location| {
            let problem = format!("{operation}: an assertion failed at {location}");
            Err(StoreError::Corrupt { file: self.name.clone(), problem })
        });
        // The function may also read other files.
        if outcome.as_ref().is_err_and(|fault| fault.is_damage_of(&self.name)) {
            self.damaged.store(true, Ordering::Relaxed);
        }
        outcome
    }

    /// Returns true when an operation found the file damaged.
    pub(crate) fn is_damaged(&self) -> bool {
        self.damaged.load(Ordering::Relaxed)
    }

    /// Runs a function while no transaction changes the file.
    pub(crate) fn while_unwritten<T>(&self, run: impl FnOnce() -> T) -> Result<T, StoreError> {
        self.with(|db| {
            // redb allows one write transaction at a time; this one writes nothing.
            let txn = db.begin_write().map_err(self.fail("copy"))?;
            let out = run();
            txn.abort().map_err(self.fail("copy"))?;
            Ok(out)
        })
    }

    /// Returns the size of the file in bytes.
    pub(crate) fn bytes(&self) -> Result<u64, StoreError> {
        self.medium.allocated_bytes(&self.name).map_err(self.fault("read the size of"))
    }

    /// Allocates the blocks of the file, and more after its end, up to `bytes_max` in all, so that
    /// changes need no free space.
    pub(crate) fn allocate(&self, beyond: u64, bytes_max: u64) -> Result<(), StoreError> {
        self.medium.allocate(&self.name, beyond, bytes_max).map_err(self.fault("allocate"))
    }

    /// Releases free space; returns false when readers prevented it.
    pub(crate) fn compact(&self) -> Result<bool, StoreError> {
        self.begun.fetch_add(1, Ordering::SeqCst);
        let outcome = self.guard("compact", || match &mut *self.open.write() {
            Some(open) if !open.has_failed() => match open.db.compact() {
                Ok(_) => Ok(true),
                Err(CompactionError::TransactionInProgress) => Ok(false),
                Err(cause) => Err(self.fail("compact")(cause)),
            },
            _ => Ok(false),
        });
        if matches!(outcome, Ok(false)) {
            // The file is unchanged.
            self.begun.fetch_sub(1, Ordering::SeqCst);
        } else {
            self.ended.fetch_add(1, Ordering::SeqCst);
        }
        outcome
    }

    /// Runs a function with the database, which is reopened if it is closed or has failed.
    fn with<T>(
        &self,
        run: impl FnOnce(&Database) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        loop {
            if let Some(open) = &*self.open.read()
                && !open.has_failed()
            {
                return run(&open.db);
            }
            self.reopen()?;
        }
    }

    fn reopen(&self) -> Result<(), StoreError> {
        self.begun.fetch_add(1, Ordering::SeqCst);
        let outcome = self.open_anew();
        self.ended.fetch_add(1, Ordering::SeqCst);
        outcome
    }

    fn open_anew(&self) -> Result<(), StoreError> {
        let mut open = self.open.write();
        if open.as_ref().is_some_and(Open::has_failed) {
            tracing::info!(file = self.name, "reopening a file after a failed operation");
            self.shut(&mut open);
        }
        if open.is_none() {
            let fault = |cause: io::Error| StoreError::Open {
                file: self.name.clone(),
                cause: cause.into(),
            };
            let opened = || self.begin(self.medium.open(&self.name).map_err(fault)?);
            *open = Some(self.guard("open", opened)?);
        }
        Ok(())
    }

    /// Opens the database in a file, or creates it in an empty file.
    fn begin(&self, file: Box<dyn StorageBackend>) -> Result<Open, StoreError> {
        let (file, failed) = Watched::new(file);
        let mut builder = Builder::new();
        builder.set_cache_size(self.options.cache_bytes);
        let fault = |cause| StoreError::Open { file: self.name.clone(), cause };
        Ok(Open { db: builder.create_with_backend(file).map_err(fault)?, failed })
    }
}

impl Drop for DatabaseFile {
    fn drop(&mut self) {
        self.shut(&mut self.open.write());
    }
}
