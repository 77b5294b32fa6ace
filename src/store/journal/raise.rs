//! Raising a journal that an older release wrote: rows and numbers get their checksums, once.
//!
//! Must never know: what rows say.

use redb::{ReadableTable, TableDefinition, TableError, WriteTransaction};

use super::{
    CHANGES, GRANULARITIES, META, SEEN, SENDERS, SERIES, STATES,
    checked::{RowKey, sealed, set_number},
    corrupt, create, fail, series_row,
};
use crate::store::{
    error::StoreError,
    file::{
        database::DatabaseFile,
        version::{FORMAT_VERSION, VERSION_KEY},
    },
};

const OPERATION: &str = "raise the version";

/// Raises the file in one transaction. Releases that know older formats only must not open it any
/// more.
pub(super) fn raise(file: &DatabaseFile, version: u64) -> Result<(), StoreError> {
    let before = file.read()?;
    file.transact(OPERATION, |txn| {
        create(txn)?;
        let mut numbers = Vec::new();
        let table = before.open_table(META).map_err(fail(OPERATION))?;
        for entry in table.iter().map_err(fail(OPERATION))? {
            let (key, number) = entry.map_err(fail(OPERATION))?;
            numbers.push((key.value().to_owned(), number.value()));
        }
        let mut meta = txn.open_table(META).map_err(fail(OPERATION))?;
        for (key, number) in numbers {
            set_number(&mut meta, &key, number).map_err(fail(OPERATION))?;
        }
        set_number(&mut meta, VERSION_KEY, FORMAT_VERSION).map_err(fail(OPERATION))?;
        seal_rows(&before, txn, SENDERS)?;
        seal_rows(&before, txn, STATES)?;
        seal_rows(&before, txn, SEEN)?;
        seal_rows(&before, txn, CHANGES)?;
        seal_rows(&before, txn, GRANULARITIES)?;
        seal_series(&before, txn)
    })?;
    tracing::info!(file = file.name(), version, "raised to this format");
    Ok(())
}

/// Puts a checksum behind each row; older releases lack some tables.
fn seal_rows<K: redb::Key + 'static>(
    before: &redb::ReadTransaction,
    txn: &WriteTransaction,
    table: TableDefinition<'_, K, &'static [u8]>,
) -> Result<(), StoreError>
where
    for<'a> K::SelfType<'a>: RowKey,
{
    let rows = match before.open_table(table) {
        Err(TableError::TableDoesNotExist(_)) => return Ok(()),
        outcome => outcome.map_err(fail(OPERATION))?,
    };
    let mut out = txn.open_table(table).map_err(fail(OPERATION))?;
    for entry in rows.iter().map_err(fail(OPERATION))? {
        let (key, row) = entry.map_err(fail(OPERATION))?;
        let key = key.value();
        let row = sealed(row.value(), &key);
        out.insert(key, &*row).map_err(fail(OPERATION))?;
    }
    Ok(())
}

/// Puts a checksum behind each series.
fn seal_series(before: &redb::ReadTransaction, txn: &WriteTransaction) -> Result<(), StoreError> {
    let rows = before.open_table(SERIES).map_err(fail(OPERATION))?;
    let mut out = txn.open_table(SERIES).map_err(fail(OPERATION))?;
    for entry in rows.iter().map_err(fail(OPERATION))? {
        let (first, row) = entry.map_err(fail(OPERATION))?;
        let first = first.value();
        let row = series_row::with_checks(first, row.value())
            .ok_or_else(|| corrupt(format!("series from {first} on cannot be read")))?;
        out.insert(first, &*row).map_err(fail(OPERATION))?;
    }
    Ok(())
}
