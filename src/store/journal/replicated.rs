//! The tables of a replicated store, whose log is elsewhere: each record's changes are stored in
//! one transaction with the number of the record.
//!
//! A start reads the log again after the last checkpoint. The tables may contain the changes of
//! some of these records already, up to the stored number, and the replay skips these changes.
//! Must never know: the log, batches.

use redb::{ReadTransaction, ReadableTable};

use super::{
    CHANGES_THROUGH_KEY, Journal, META, RECORD_TIME_KEY, SERIES,
    append::{insert_series, update_series},
    checked::{check_key, stored},
    corrupt, erasures, fail,
    granularity_rows::{NewRetention, set_retentions},
    record::Record,
    set_number,
};
use crate::{
    model::UnixMillis,
    store::{error::StoreError, file::names::JOURNAL_FILE},
};

impl Journal {
    /// Returns the last record whose changes are in the tables; `None` for an embedded store.
    pub(crate) fn changes_through(&self) -> Result<Option<u64>, StoreError> {
        self.number_of_replica(CHANGES_THROUGH_KEY)
    }

    /// Returns the latest time of a record at the last checkpoint of a replica; `None` before the
    /// first one.
    pub(crate) fn record_time(&self) -> Result<Option<UnixMillis>, StoreError> {
        let time = self.number_of_replica(RECORD_TIME_KEY)?;
        Ok(time.map(|time| UnixMillis(time as i64)))
    }

    fn number_of_replica(&self, key: &str) -> Result<Option<u64>, StoreError> {
        let txn = self.file.read()?;
        let stored = self
            .file
            .guard("read", || stored(&txn.open_table(META).map_err(fail("read"))?, key))?;
        if stored.is_sound(key) {
            return Ok(stored.number);
        }
        Err(corrupt(format!(
            "the number {key} is damaged: copy the replica again from another node"
        )))
    }

    /// Refuses an embedded store, which has records or series of its own.
    pub(crate) fn refuse_embedded(&self) -> Result<(), StoreError> {
        if self.checkpointed_through()? == 0
            && self.first_record()?.is_none()
            && !self.has_series()?
        {
            return Ok(());
        }
        let problem = "it belongs to an embedded store, with a log of its own: use an empty data \
                       directory for a replica";
        Err(StoreError::Mismatch { file: JOURNAL_FILE.to_owned(), problem: problem.to_owned() })
    }

    /// Makes a new store a replica of a log that is elsewhere.
    pub(crate) fn begin_replica(&self) -> Result<(), StoreError> {
        self.store_changes(0, &Record::of_changes(UnixMillis(0)), &[])
    }

    /// Makes an embedded store with these records a replica, or a replica an embedded store.
    pub(crate) fn set_changes_through(&self, through: Option<u64>) -> Result<(), StoreError> {
        const OPERATION: &str = "store the kind of the log";
        self.file.transact(OPERATION, |txn| {
            let mut meta = txn.open_table(META).map_err(fail(OPERATION))?;
            if let Some(through) = through {
                return set_number(&mut meta, CHANGES_THROUGH_KEY, through)
                    .map_err(fail(OPERATION));
            }
            for key in [CHANGES_THROUGH_KEY, RECORD_TIME_KEY] {
                meta.remove(key).map_err(fail(OPERATION))?;
                meta.remove(&*check_key(key)).map_err(fail(OPERATION))?;
            }
            Ok(())
        })
    }

    /// Returns the time since which a level has all samples, whenever retention deleted others: the
    /// limit of the retention before the last change.
    pub(crate) fn kept_since(&self, level: &str) -> Result<UnixMillis, StoreError> {
        let (txn, key) = (self.file.read()?, kept_key(level));
        let stored = self
            .file
            .guard("read", || stored(&txn.open_table(META).map_err(fail("read"))?, &key))?;
        Ok(UnixMillis(stored.number.filter(|_| stored.is_sound(&key)).unwrap_or(0) as i64))
    }

    fn has_series(&self) -> Result<bool, StoreError> {
        let txn = self.file.read()?;
        self.file.guard("read", || {
            let series = txn.open_table(SERIES).map_err(fail("read"))?;
            Ok(series.first().map_err(fail("read"))?.is_some())
        })
    }

    /// Stores the changes of a record other than its batches, with its number. A repetition has no
    /// further effect.
    pub(crate) fn store_changes<B>(
        &self,
        number: u64,
        record: &Record<B>,
        retentions: &[NewRetention<'_>],
    ) -> Result<(), StoreError> {
        const OPERATION: &str = "store the changes of a record";
        self.file.transact(OPERATION, |txn| {
            insert_series(txn, record.first_series, &record.new_series)?;
            update_series(txn, &record.updates, &mut Vec::new())?;
            if let Some(erasure) = &record.erasure {
                erasures::set(txn, erasure, OPERATION)?;
            }
            set_retentions(txn, retentions.iter().copied())?;
            let mut meta = txn.open_table(META).map_err(fail(OPERATION))?;
            for (level, _, since) in retentions {
                let key = kept_key(level);
                let before = stored(&meta, &key)?.number.unwrap_or(0);
                let since = before.max(since.0.max(0) as u64);
                set_number(&mut meta, &key, since).map_err(fail(OPERATION))?;
            }
            set_number(&mut meta, CHANGES_THROUGH_KEY, number).map_err(fail(OPERATION))
        })
    }
}

/// The key of the time since which a level has all samples.
fn kept_key(level: &str) -> String {
    format!("kept_since/{level}")
}

/// Returns true when the tables are those of a replica.
pub(crate) fn is_replica(txn: &ReadTransaction) -> Result<bool, StoreError> {
    let meta = txn.open_table(META).map_err(fail("read"))?;
    Ok(stored(&meta, CHANGES_THROUGH_KEY)?.number.is_some())
}
