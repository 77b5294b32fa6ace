//! The journal's table of erasures, which contains the erasure since the last cut, if there was
//! one.
//!
//! FORMAT.md describes the bytes. Must never know: how samples are erased.

use redb::{TableDefinition, TableError, WriteTransaction};

use super::{Journal, erasure_row::Erasure, fail, with_check, without_check};
use crate::store::error::StoreError;

/// The table of erasures. The next checkpoint removes it, so that older releases never find it
/// after a clean stop.
pub(crate) const ERASURES: TableDefinition<'_, u32, &[u8]> = TableDefinition::new("erasures");
/// The key of the only row.
const KEY: u32 = 0;

impl Journal {
    /// Returns the erasure since the last cut; `None` for a damaged row.
    pub(crate) fn erasure(&self) -> Result<Option<Erasure>, StoreError> {
        let txn = self.file.read()?;
        self.file.guard("read", || {
            let table = match txn.open_table(ERASURES) {
                Err(TableError::TableDoesNotExist(_)) => return Ok(None),
                table => table.map_err(fail("read"))?,
            };
            let Some(row) = table.get(KEY).map_err(fail("read"))? else { return Ok(None) };
            let erasure = without_check(row.value(), &KEY).and_then(Erasure::from_row);
            if erasure.is_none() {
                let consequence = "the last deletion of samples may be incomplete: repeat it";
                self.damaged.note("erasures", consequence);
            }
            Ok(erasure)
        })
    }

    /// Stores an erasure durably, in place of the earlier one.
    pub(crate) fn set_erasure(&self, erasure: &Erasure) -> Result<(), StoreError> {
        const OPERATION: &str = "store a deletion of samples";
        self.file.transact(OPERATION, |txn| set(txn, erasure, OPERATION))
    }

    /// Removes an erasure of which it is unknown whether it was stored.
    pub(crate) fn remove_erasure(&self) -> Result<(), StoreError> {
        const OPERATION: &str = "remove a deletion of samples";
        self.file.transact(OPERATION, |txn| {
            txn.delete_table(ERASURES).map(drop).map_err(fail(OPERATION))
        })
    }
}

/// Stores an erasure in a transaction.
pub(super) fn set(
    txn: &WriteTransaction,
    erasure: &Erasure,
    operation: &'static str,
) -> Result<(), StoreError> {
    let mut table = txn.open_table(ERASURES).map_err(fail(operation))?;
    let row = with_check(&erasure.to_row(), &KEY);
    table.insert(KEY, &*row).map_err(fail(operation))?;
    Ok(())
}
