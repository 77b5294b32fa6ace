//! What is appended to the journal: a record with its new series, or changes of known series.
//!
//! Each is durable whole or, once the next one is, not there. Must never know: the bytes of a record.

use std::collections::BTreeMap;

use redb::WriteTransaction;

use super::{CHANGES, Journal, RECORDS, SERIES, cut::remove_covered, fail, series_row};
use crate::{
    model::SeriesInfo,
    store::{dictionary::changes::SeriesUpdate, error::StoreError},
};

/// What failed may have reached the disk all the same. It was not acknowledged, and the next
/// append or change of series removes it.
#[derive(Debug, Default)]
pub(super) struct Unsure {
    append: bool,
    /// What the table of changes said of the series before.
    changes: BTreeMap<u32, Option<Vec<u8>>>,
}

impl Unsure {
    fn remove(
        &self,
        txn: &WriteTransaction,
        sequence: u64,
        series_count: u32,
    ) -> Result<(), StoreError> {
        const OPERATION: &str = "remove what failed";
        if self.append {
            let mut records = txn.open_table(RECORDS).map_err(fail(OPERATION))?;
            records.retain_in(sequence.., |_, _| false).map_err(fail(OPERATION))?;
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
    /// Makes one record and new series durable. There were `series_count` series before, so this
    /// is the id of the first new one.
    pub(crate) fn append(
        &self,
        sequence: u64,
        record: &[u8],
        series_count: u32,
        new_series: &[SeriesInfo],
    ) -> Result<(), StoreError> {
        let mut unsure = self.unsure.lock();
        let part = self.ride.begin();
        let outcome = self.file.transact("append", |txn| {
            unsure.remove(txn, sequence, series_count)?;
            part.as_ref().map_or(Ok(()), |part| part.store(txn))?;
            remove_covered(txn)?;
            let mut records = txn.open_table(RECORDS).map_err(fail("append"))?;
            records.insert(sequence, record).map_err(fail("append"))?;
            if !new_series.is_empty() {
                let mut series = txn.open_table(SERIES).map_err(fail("append"))?;
                series
                    .insert(series_count, &*series_row::encode(new_series))
                    .map_err(fail("append"))?;
            }
            Ok(())
        });
        self.ride.end(part.is_some(), outcome.is_ok());
        match &outcome {
            Ok(()) => {
                *unsure = Unsure::default();
                self.free.note_appended(record.len());
            }
            Err(_) => unsure.append = true,
        }
        outcome
    }

    /// Makes changes of known series durable, all or none. `sequence` and `series_count` say what
    /// the next append will begin with.
    pub(crate) fn change_series(
        &self,
        sequence: u64,
        series_count: u32,
        updates: &[SeriesUpdate],
    ) -> Result<(), StoreError> {
        const OPERATION: &str = "change series";
        let mut unsure = self.unsure.lock();
        let mut before = Vec::with_capacity(updates.len());
        let outcome = self.file.transact(OPERATION, |txn| {
            unsure.remove(txn, sequence, series_count)?;
            let mut changes = txn.open_table(CHANGES).map_err(fail(OPERATION))?;
            for update in updates {
                let old = changes.insert(update.id.0, update.row()).map_err(fail(OPERATION))?;
                before.push((update.id.0, old.map(|row| row.value().to_vec())));
            }
            Ok(())
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
