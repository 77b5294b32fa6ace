//! The epochs of the rules of retention in the journal: reading and writing.
//!
//! Must never know: the use of the rules.

use redb::{ReadableTable, TableDefinition, TableError};

use super::{Journal, corrupt, epoch_row::Epoch, fail, with_check, without_check};
use crate::store::error::StoreError;

/// The table of epochs, numbered from 0. A journal without rules may lack it.
pub(super) const EPOCHS: TableDefinition<'_, u32, &[u8]> = TableDefinition::new("retention");
const OPERATION: &str = "store the rules of retention";

impl Journal {
    /// Returns the epochs of the rules, ascending; empty for a store that never had rules.
    ///
    /// # Errors
    /// When a row is damaged. Without the rules, records could count in files of two classes.
    pub(crate) fn epochs(&self) -> Result<Vec<Epoch>, StoreError> {
        let txn = self.file.read()?;
        self.file.guard("read", || {
            let table = match txn.open_table(EPOCHS) {
                Err(TableError::TableDoesNotExist(_)) => return Ok(Vec::new()),
                table => table.map_err(fail("read"))?,
            };
            let mut epochs: Vec<Epoch> = Vec::new();
            for entry in table.iter().map_err(fail("read"))? {
                let (key, value) = entry.map_err(fail("read"))?;
                let row = without_check(value.value(), &key.value());
                let epoch = row.and_then(Epoch::from_row);
                let follows =
                    |epoch: &Epoch| epochs.last().is_none_or(|last| last.from <= epoch.from);
                let epoch = epoch.filter(follows).ok_or_else(|| {
                    corrupt(format!(
                        "row {} of table retention cannot be read, so the files of its series are \
                         unknown: restore the data directory from a snapshot",
                        key.value()
                    ))
                })?;
                epochs.push(epoch);
            }
            Ok(epochs)
        })
    }

    /// Stores all epochs. Without epochs, the table is removed: older releases do not know it.
    pub(crate) fn set_epochs(&self, epochs: &[Epoch]) -> Result<(), StoreError> {
        self.file.transact(OPERATION, |txn| {
            if epochs.is_empty() {
                txn.delete_table(EPOCHS).map_err(fail(OPERATION))?;
                return Ok(());
            }
            let mut table = txn.open_table(EPOCHS).map_err(fail(OPERATION))?;
            table.retain(|_, _| false).map_err(fail(OPERATION))?;
            for (number, epoch) in (0_u32..).zip(epochs) {
                let row = with_check(&epoch.to_row(), &number);
                table.insert(number, &*row).map_err(fail(OPERATION))?;
            }
            Ok(())
        })
    }
}
