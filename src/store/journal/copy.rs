//! A copy of the journal, for a snapshot: all of it in its tables, and no log.
//!
//! Must never know: what else a snapshot has.

use std::sync::Arc;

use redb::{ReadTransaction, ReadableTable, TableDefinition, TableError, WriteTransaction};

use super::{
    CHANGES, GRANULARITIES, Journal, LOG_KEY, META, OPTIONS, RECORDS, SEEN, SENDERS, SERIES,
    STATES,
    checked::check_key,
    fail,
    files::{ENDS, note_files},
    in_head::IN_HEAD,
    merged::MERGED,
};
use crate::store::{
    error::StoreError,
    file::{database::DatabaseFile, holes::HOLES, medium::Medium, names::JOURNAL_FILE},
};

impl Journal {
    /// Writes a journal of the same content, as it is at one moment, into another medium, where
    /// only these files are.
    pub(crate) fn copy_to(
        &self,
        target: &Arc<dyn Medium>,
        files: &[String],
    ) -> Result<(), StoreError> {
        let mut records = Vec::new();
        let from = {
            // Series that a record names are there when it is.
            let log = self.log.lock();
            // Those of older releases go with their table.
            let after = self.checkpointed_through()?.max(self.last_in_table()?);
            log.replay(after, |number, record| {
                records.push((number, record.to_vec()));
                Ok(())
            })?;
            self.file.read()?
        };
        let name = JOURNAL_FILE.to_owned();
        DatabaseFile::create(target, name, OPTIONS, |_, to| {
            copy_table(&from, to, META)?;
            copy_table(&from, to, RECORDS)?;
            store_records(to, &records)?;
            copy_table(&from, to, SERIES)?;
            copy_table(&from, to, CHANGES)?;
            copy_table(&from, to, MERGED)?;
            copy_table(&from, to, SENDERS)?;
            copy_table(&from, to, STATES)?;
            copy_table(&from, to, SEEN)?;
            copy_table(&from, to, GRANULARITIES)?;
            copy_table(&from, to, ENDS)?;
            copy_table(&from, to, HOLES)?;
            copy_table(&from, to, IN_HEAD)?;
            note_files(to, files)
        })?;
        Ok(())
    }

    fn last_in_table(&self) -> Result<u64, StoreError> {
        let txn = self.file.read()?;
        self.file.guard("read", || {
            let table = txn.open_table(RECORDS).map_err(fail("read"))?;
            Ok(table.last().map_err(fail("read"))?.map_or(0, |(number, _)| number.value()))
        })
    }
}

/// Has a copy of the journal hold records in its tables, and none in a log.
fn store_records(txn: &WriteTransaction, all: &[(u64, Vec<u8>)]) -> Result<(), StoreError> {
    const OPERATION: &str = "copy records";
    let mut records = txn.open_table(RECORDS).map_err(fail(OPERATION))?;
    for (number, record) in all {
        records.insert(number, &**record).map_err(fail(OPERATION))?;
    }
    let mut meta = txn.open_table(META).map_err(fail(OPERATION))?;
    meta.remove(LOG_KEY).map_err(fail(OPERATION))?;
    meta.remove(&*check_key(LOG_KEY)).map_err(fail(OPERATION))?;
    Ok(())
}

fn copy_table<K: redb::Key + 'static, V: redb::Value + 'static>(
    from: &ReadTransaction,
    to: &WriteTransaction,
    table: TableDefinition<'_, K, V>,
) -> Result<(), StoreError> {
    let source = match from.open_table(table) {
        // Nothing was put into it yet.
        Err(TableError::TableDoesNotExist(_)) => return Ok(()),
        outcome => outcome.map_err(fail("copy"))?,
    };
    let mut copy = to.open_table(table).map_err(fail("copy"))?;
    for entry in source.iter().map_err(fail("copy"))? {
        let (key, value) = entry.map_err(fail("copy"))?;
        copy.insert(key.value(), value.value()).map_err(fail("copy"))?;
    }
    Ok(())
}
