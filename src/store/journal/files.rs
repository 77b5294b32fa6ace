//! The journal's tables of registered files and of the ends of partitions.
//!
//! The ends are stored because partitions may be longer or shorter than in the settings, and a lost
//! file cannot report its range. Must never know: the content of the files, which files exist.

use std::collections::{BTreeMap, BTreeSet};

use redb::{ReadableTable, TableDefinition, WriteTransaction};

use super::{Journal, fail, with_check};
use crate::{model::UnixMillis, store::error::StoreError};

/// The table of registered files; see the register.
pub(super) const FILES: TableDefinition<'_, &str, ()> = TableDefinition::new("files");
/// The ends of partitions whose files are registered or were lost.
pub(super) const ENDS: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("ends");

impl Journal {
    /// Returns the registered files.
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

    /// Returns the ends of partitions whose files are registered or were lost, by file.
    pub(crate) fn ends(&self) -> Result<BTreeMap<String, UnixMillis>, StoreError> {
        let unknown = "the end of this partition is unknown: it is assumed to be as long as in the \
                       settings";
        let all = self.rows(ENDS, |file, end| {
            let Some(end) = end else {
                self.damaged.note("ends", &format!("{file}: {unknown}"));
                return Some(None);
            };
            let end = i64::from_le_bytes(end.try_into().ok()?);
            Some(Some((file.to_owned(), UnixMillis(end))))
        })?;
        Ok(all.into_iter().collect())
    }

    /// Registers files, and the ends of partitions.
    pub(crate) fn note_files(
        &self,
        files: &[String],
        ends: &[(String, UnixMillis)],
    ) -> Result<(), StoreError> {
        const OPERATION: &str = "register files";
        self.file.transact(OPERATION, |txn| {
            note_files(txn, files)?;
            let mut table = txn.open_table(ENDS).map_err(fail(OPERATION))?;
            for (file, end) in ends {
                let row = with_check(&end.0.to_le_bytes(), &&**file);
                table.insert(&**file, &*row).map_err(fail(OPERATION))?;
            }
            Ok(())
        })
    }

    /// Removes `files` from the register, and the ends of the partitions `ends`.
    pub(crate) fn forget_files(&self, files: &[&str], ends: &[&str]) -> Result<(), StoreError> {
        const OPERATION: &str = "unregister files";
        self.file.transact(OPERATION, |txn| {
            let mut table = txn.open_table(FILES).map_err(fail(OPERATION))?;
            for file in files {
                table.remove(file).map_err(fail(OPERATION))?;
            }
            let mut table = txn.open_table(ENDS).map_err(fail(OPERATION))?;
            for file in ends {
                table.remove(file).map_err(fail(OPERATION))?;
            }
            Ok(())
        })
    }
}

/// Registers files in the table.
pub(super) fn note_files(txn: &WriteTransaction, files: &[String]) -> Result<(), StoreError> {
    const OPERATION: &str = "register files";
    let mut table = txn.open_table(FILES).map_err(fail(OPERATION))?;
    for file in files {
        table.insert(&**file, ()).map_err(fail(OPERATION))?;
    }
    Ok(())
}
