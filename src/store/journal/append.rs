//! Appends to the journal: a record, after its new series, or changes of known series.
//!
//! A successful append is durable as a whole. The next append removes the remains of a failed one.
//! Must never know: the bytes of a record.

use std::collections::BTreeMap;

use redb::WriteTransaction;

use super::{
    CHANGES, Journal, LOG_KEY, META, SERIES, fail, merged, series_row, set_number, with_check,
};
use crate::{
    model::SeriesInfo,
    store::{dictionary::changes::SeriesUpdate, error::StoreError},
};

/// A failed append, which may have reached the disk nevertheless. It was not acknowledged, and the
/// next append or change of series removes it.
#[derive(Debug, Default)]
pub(super) struct Unsure {
    /// True when series may be stored although their registration was never confirmed.
    has_series: bool,
    /// The rows in the table of changes before the failed append.
    changes: BTreeMap<u32, Option<Vec<u8>>>,
}

impl Unsure {
    fn is_empty(&self) -> bool {
        !self.has_series && self.changes.is_empty()
    }

    fn remove(&self, txn: &WriteTransaction, series_count: u32) -> Result<(), StoreError> {
        const OPERATION: &str = "remove a failed append";
        if self.has_series {
            let mut series = txn.open_table(SERIES).map_err(fail(OPERATION))?;
            series.retain_in(series_count.., |_, _| false).map_err(fail(OPERATION))?;
        }
        if !self.changes.is_empty() {
            let mut changes = txn.open_table(CHANGES).map_err(fail(OPERATION))?;
            for (id, before) in &self.changes {
                match before {
                    Some(row) => changes.insert(id, &**row).map_err(fail(OPERATION))?,
                    None => changes.remove(id).map_err(fail(OPERATION))?,
                };
            }
        }
        Ok(())
    }
}

impl Journal {
    /// Makes one record and new series durable. `series_count` is the number of existing series,
    /// and the ID of the first new series.
    pub(crate) fn append(
        &self,
        number: u64,
        record: &[u8],
        series_count: u32,
        new_series: &[SeriesInfo],
    ) -> Result<(), StoreError> {
        let mut log = self.log.lock();
        let mut unsure = self.unsure.lock();
        if !new_series.is_empty() || !unsure.is_empty() {
            // A failed record is removed first, because it may contain IDs of failed series.
            log.settle()?;
            unsure.has_series |= !new_series.is_empty();
            self.file.transact("append", |txn| {
                unsure.remove(txn, series_count)?;
                insert_series(txn, series_count, new_series)
            })?;
            *unsure = Unsure { has_series: !new_series.is_empty(), ..Unsure::default() };
        }
        log.append(number, record, |first| self.note_log(first))?;
        *unsure = Unsure::default();
        Ok(())
    }

    /// Stores the number of the log's last file.
    fn note_log(&self, first: u64) -> Result<(), StoreError> {
        const OPERATION: &str = "begin a file of the log";
        self.file.transact(OPERATION, |txn| {
            let mut meta = txn.open_table(META).map_err(fail(OPERATION))?;
            set_number(&mut meta, LOG_KEY, first).map_err(fail(OPERATION))
        })
    }

    /// Makes changes of known series durable in one transaction, with new series that replace some
    /// of them. `series_count` is the ID of the first new series.
    pub(crate) fn change_series(
        &self,
        series_count: u32,
        new_series: &[SeriesInfo],
        updates: &[SeriesUpdate],
    ) -> Result<(), StoreError> {
        const OPERATION: &str = "change series";
        self.log.lock().settle()?;
        let mut unsure = self.unsure.lock();
        unsure.has_series |= !new_series.is_empty();
        let mut before = Vec::with_capacity(updates.len());
        let outcome = self.file.transact(OPERATION, |txn| {
            unsure.remove(txn, series_count)?;
            insert_series(txn, series_count, new_series)?;
            update_series(txn, updates, &mut before)
        });
        match &outcome {
            Ok(()) => *unsure = Unsure::default(),
            Err(_) => before.into_iter().for_each(|(id, row)| {
                unsure.changes.entry(id).or_insert(row);
            }),
        }
        outcome
    }
}

/// Stores changes of known series; adds the rows before the changes to `before`.
pub(super) fn update_series(
    txn: &WriteTransaction,
    updates: &[SeriesUpdate],
    before: &mut Vec<(u32, Option<Vec<u8>>)>,
) -> Result<(), StoreError> {
    const OPERATION: &str = "change series";
    let mut changes = txn.open_table(CHANGES).map_err(fail(OPERATION))?;
    for update in updates {
        let row = with_check(update.row(), &update.id.0);
        let old = changes.insert(update.id.0, &*row).map_err(fail(OPERATION))?;
        before.push((update.id.0, old.map(|row| row.value().to_vec())));
    }
    merged::note(txn, updates)
}

/// Inserts the row of new series, if there are any.
pub(super) fn insert_series(
    txn: &WriteTransaction,
    series_count: u32,
    new_series: &[SeriesInfo],
) -> Result<(), StoreError> {
    const OPERATION: &str = "add series";
    if !new_series.is_empty() {
        let mut series = txn.open_table(SERIES).map_err(fail(OPERATION))?;
        let row = series_row::encode(series_count, new_series);
        series.insert(series_count, &*row).map_err(fail(OPERATION))?;
    }
    Ok(())
}
