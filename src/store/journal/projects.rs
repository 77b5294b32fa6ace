//! The projects and the histograms in the journal's tables, for a downgrade to a format without
//! them.
//!
//! Must never know: who belongs to a project.

use redb::{ReadTransaction, ReadableTable, WriteTransaction};

use super::{
    CHANGES, SENDERS, SERIES, fail,
    series_row::{self, ReadRow},
};
use crate::{
    model::{DEFAULT_PROJECT, split_stored_name},
    store::error::StoreError,
};

/// Returns true when a series of histograms was ever defined.
pub(crate) fn has_histograms(txn: &ReadTransaction) -> Result<bool, StoreError> {
    let series = txn.open_table(SERIES).map_err(fail("read"))?;
    for entry in series.iter().map_err(fail("read"))? {
        let (first, row) = entry.map_err(fail("read"))?;
        let row = ReadRow::new(first.value(), row.value(), None).unwrap_or_default();
        let mut list = &*row.series;
        while let Some(read) = series_row::take(&mut list) {
            if read.is_some_and(|read| read.kind.is_histogram()) {
                return Ok(true);
            }
        }
    }
    Ok(false)
}

/// Returns a project other than `default` that has a series that is not deleted.
pub(crate) fn with_series(txn: &ReadTransaction) -> Result<Option<String>, StoreError> {
    let series = txn.open_table(SERIES).map_err(fail("read"))?;
    let changes = txn.open_table(CHANGES).map_err(fail("read"))?;
    let is_deleted = |id: u32| {
        let change = changes.get(id).map_err(fail("read"))?;
        // The row of a deleted series is a checksum alone.
        Ok::<_, StoreError>(change.is_some_and(|row| row.value().len() == size_of::<u64>()))
    };
    for entry in series.iter().map_err(fail("read"))? {
        let (first, row) = entry.map_err(fail("read"))?;
        let row = ReadRow::new(first.value(), row.value(), None).unwrap_or_default();
        let mut list = &*row.series;
        let mut id = first.value();
        while let Some(read) = series_row::take(&mut list) {
            let project = read.map_or(DEFAULT_PROJECT, |read| split_stored_name(read.sender).0);
            if project != DEFAULT_PROJECT && !is_deleted(id)? {
                return Ok(Some(project.to_owned()));
            }
            id += 1;
        }
    }
    Ok(None)
}

/// Removes the senders of projects other than `default`.
pub(crate) fn remove_senders(txn: &WriteTransaction) -> Result<(), StoreError> {
    const OPERATION: &str = "remove senders";
    let mut senders = txn.open_table(SENDERS).map_err(fail(OPERATION))?;
    let is_default = |name: &str, _: &[u8]| split_stored_name(name).0 == DEFAULT_PROJECT;
    senders.retain(is_default).map_err(fail(OPERATION))
}
