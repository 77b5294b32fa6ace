//! One redb file that is opened again after a failed write.
//!
//! redb refuses to go on with a database that had an I/O error. After a failed transaction the
//! file is closed, and the next use opens it again: what was committed before is there, and what
//! failed is not, or, when only the last sync failed, may be. A new file is filled under another
//! name and then renamed, so a file that is there is whole.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use parking_lot::RwLock;
use redb::{Builder, Database, Durability, ReadTransaction, ReadableDatabase, WriteTransaction};

use super::{assertion, error::StoreError, medium::Medium};

/// End of the name of a file that is being made.
pub(crate) const UNFINISHED: &str = ".new";

/// How a file is used.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FileOptions {
    /// Memory for its pages.
    pub(crate) cache_bytes: usize,
    /// Whether each commit stores what a start after a crash needs. Without, a commit costs one
    /// sync and not two, and such a start reads the whole file.
    pub(crate) quick_repair: bool,
}

/// See the module.
#[derive(Debug)]
pub(crate) struct DatabaseFile {
    medium: Arc<dyn Medium>,
    name: String,
    options: FileOptions,
    /// `None` after a failed transaction, until the next use.
    db: RwLock<Option<Database>>,
    /// The file is damaged; it is not to be written any more.
    doomed: AtomicBool,
}

impl DatabaseFile {
    /// Opens the file. When there is none, `fill` writes the first transaction of a new one.
    pub(crate) fn open(
        medium: &Arc<dyn Medium>,
        name: String,
        options: FileOptions,
        fill: impl FnOnce(&Self, &WriteTransaction) -> Result<(), StoreError>,
    ) -> Result<Self, StoreError> {
        let unopened = |name| Self {
            medium: medium.clone(),
            name,
            options,
            db: RwLock::new(None),
            doomed: AtomicBool::new(false),
        };
        if !medium.exists(&name) {
            let new_name = format!("{name}{UNFINISHED}");
            let fault = |operation| {
                let file = new_name.clone();
                move |cause| StoreError::Io { operation, file, cause }
            };
            if medium.exists(&new_name) {
                medium.remove(&new_name).map_err(fault("remove"))?;
            }
            let new = unopened(new_name.clone());
            new.transact("create", |txn| fill(&new, txn))?;
            drop(new);
            medium.rename(&new_name, &name).map_err(fault("rename"))?;
        }
        let file = unopened(name);
        file.reopen()?;
        Ok(file)
    }

    /// Path below the data directory.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Turns a redb error into one that names the operation and this file.
    pub(crate) fn fail<E: Into<redb::Error>>(
        &self,
        operation: &'static str,
    ) -> impl FnOnce(E) -> StoreError + use<'_, E> {
        StoreError::redb(operation, &self.name)
    }

    /// A consistent view.
    pub(crate) fn read(&self) -> Result<ReadTransaction, StoreError> {
        self.with(|db| db.begin_read().map_err(self.fail("read")))
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
        let outcome = self.with(|db| self.guard(operation, || transaction(db)));
        if outcome.is_err() {
            self.close();
        }
        outcome
    }

    /// Closes the file until its next use; transactions under way finish.
    pub(crate) fn close(&self) {
        let Some(db) = self.db.write().take() else { return };
        if self.doomed.load(Ordering::Relaxed) {
            // Closing writes to the file, and redb may end the process when that fails, too.
            Box::leak(Box::new(db));
        } else if let Err(place) = assertion::catch(|| drop(db)) {
            tracing::warn!(file = self.name, place, "closed a file in disorder");
        }
    }

    /// Turns a failed assertion of redb into an error, and notes when the file is damaged.
    pub(crate) fn guard<T>(
        &self,
        operation: &'static str,
        run: impl FnOnce() -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let outcome = assertion::catch(run).unwrap_or_else(|place| {
            let problem = format!("{operation}: an assertion failed at {place}");
            Err(StoreError::Corrupt { file: self.name.clone(), problem })
        });
        // What runs here may read other files, too.
        if outcome.as_ref().is_err_and(|fault| fault.is_damage_of(&self.name)) {
            self.doomed.store(true, Ordering::Relaxed);
        }
        outcome
    }

    /// Whether an operation found the file to be damaged.
    pub(crate) fn is_damaged(&self) -> bool {
        self.doomed.load(Ordering::Relaxed)
    }

    /// Runs something while no transaction changes the file.
    pub(crate) fn while_unwritten<T>(&self, run: impl FnOnce() -> T) -> Result<T, StoreError> {
        self.with(|db| {
            // redb allows one write transaction at a time; this one writes nothing.
            let txn = db.begin_write().map_err(self.fail("copy"))?;
            let out = run();
            txn.abort().map_err(self.fail("copy"))?;
            Ok(out)
        })
    }

    fn with<T>(
        &self,
        run: impl FnOnce(&Database) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        loop {
            if let Some(db) = &*self.db.read() {
                return run(db);
            }
            self.reopen()?;
        }
    }

    fn reopen(&self) -> Result<(), StoreError> {
        let mut db = self.db.write();
        if db.is_none() {
            let mut builder = Builder::new();
            builder.set_cache_size(self.options.cache_bytes);
            let fault = |cause| StoreError::Open { file: self.name.clone(), cause };
            let open = || self.medium.open(&builder, &self.name).map_err(fault);
            *db = Some(self.guard("open", open)?);
        }
        Ok(())
    }
}

impl Drop for DatabaseFile {
    fn drop(&mut self) {
        self.close();
    }
}
