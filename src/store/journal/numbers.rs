//! The journal's numbers, and substitutes for damaged numbers.
//!
//! A substitute never makes a sample count twice: the head and the partitions store the last record
//! whose cells they contain, and a replay of such a record does not change them. The next
//! checkpoint replaces a damaged number, and the next file of the log replaces `log`. Must never
//! know: the content of other files.

use std::{collections::BTreeMap, sync::Arc};

use super::{
    Journal, LAST_RUN_KEY, LOG_KEY, META, STATES_ROWS_KEY, STATES_THROUGH_KEY, THROUGH_KEY,
    checked::{DamagedRows, StoredNumber, stored},
    corrupt, fail,
    log::Log,
    set_number,
};
use crate::{
    model::UnixMillis,
    store::{
        error::StoreError,
        file::{
            database::DatabaseFile,
            medium::Medium,
            names::JOURNAL_FILE,
            version::{self, PRERELEASE_KEY, VERSION_KEY},
        },
    },
};
use parking_lot::Mutex;
use redb::{ReadTransaction, WriteTransaction};

/// The substitutes for damaged numbers, until new numbers are written.
pub(super) type Settled = Mutex<BTreeMap<&'static str, Option<u64>>>;

/// The extent of other files, in records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RecordsInFiles {
    /// The last record whose cells are in the head, for each granularity that accepts samples.
    pub(crate) heads: Vec<u64>,
    /// The last record whose cells are in any file.
    pub(crate) last: u64,
}

impl RecordsInFiles {
    /// Returns the last record of the last finished checkpoint, and true when it is certain.
    /// `first` is the first existing record, if there is one.
    ///
    /// A checkpoint raises the number of each granularity of the head from the record of the
    /// previous checkpoint to its own. If some file is ahead of a granularity of the head, a
    /// checkpoint was interrupted, and the previous checkpoint's record is the lowest number.
    /// Otherwise, the files contain the cells of all checkpoints, and they ignore records that are
    /// read again. With a third number, a granularity was removed from the settings for a while,
    /// and the result is `None`.
    fn through(&self, first: Option<u64>) -> Option<(u64, bool)> {
        let lowest = self.heads.iter().copied().min()?;
        let is_expected = |number: &u64| [lowest, self.last].contains(number);
        if !self.heads.iter().all(is_expected) {
            return None;
        }
        let before_first = first.map_or(lowest, |first| first.saturating_sub(1));
        let is_interrupted = lowest < self.last;
        // The records after the last checkpoint exist.
        let through =
            if is_interrupted { lowest.max(before_first) } else { lowest.min(before_first) };
        Some((through, is_interrupted))
    }
}

/// Checks the version of the format, and upgrades an older file.
pub(super) fn check_version(
    file: &DatabaseFile,
    format: u64,
    damaged: &DamagedRows,
) -> Result<(), StoreError> {
    let stored = read(file, VERSION_KEY)?;
    let mut version = stored.number.unwrap_or(0);
    if stored.number.is_none() && stored.check.is_none() {
        let before = read(file, PRERELEASE_KEY)?.number;
        return Err(before.map_or_else(
            || corrupt("the number of its format is missing".to_owned()),
            |version| version::prerelease(JOURNAL_FILE, version),
        ));
    }
    if !stored.is_sound(VERSION_KEY) {
        if !stored.proves(VERSION_KEY, format) {
            return Err(refused(VERSION_KEY));
        }
        note(damaged, VERSION_KEY, "the number or its checksum is that of this release's format");
        version = format;
    }
    version::check(JOURNAL_FILE, version, format)?;
    if version < format {
        const OPERATION: &str = "upgrade the format";
        file.transact(OPERATION, |txn| {
            let mut meta = txn.open_table(META).map_err(fail(OPERATION))?;
            set_number(&mut meta, VERSION_KEY, format).map_err(fail(OPERATION))
        })?;
        tracing::info!(file = file.name(), version, format, "upgraded a file to this format");
    }
    Ok(())
}

/// Returns the version of the format, without any change of the file.
///
/// # Errors
/// When the version is damaged.
pub(crate) fn sound_version(txn: &ReadTransaction) -> Result<u64, StoreError> {
    let meta = txn.open_table(META).map_err(fail("read"))?;
    let found = stored(&meta, VERSION_KEY)?;
    found.number.filter(|_| found.is_sound(VERSION_KEY)).ok_or_else(|| {
        corrupt(
            "the number of its format is damaged or missing: start the daemon once, which \
             rewrites a damaged number"
                .to_owned(),
        )
    })
}

/// Stores another version of the format within a transaction.
pub(crate) fn set_version(txn: &WriteTransaction, version: u64) -> Result<(), StoreError> {
    const OPERATION: &str = "change the format";
    let mut meta = txn.open_table(META).map_err(fail(OPERATION))?;
    set_number(&mut meta, VERSION_KEY, version).map_err(fail(OPERATION))
}

/// Finds the number of the log's last file, and substitutes for damaged numbers.
pub(super) fn settle(
    file: &DatabaseFile,
    medium: &Arc<dyn Medium>,
    damaged: &DamagedRows,
) -> Result<(Settled, Option<u64>), StoreError> {
    let mut settled = BTreeMap::new();
    let unknown = [
        (LAST_RUN_KEY, "the time of the latest sample counts as the end of the last run"),
        (STATES_THROUGH_KEY, "states are read again from the log"),
        (STATES_ROWS_KEY, "states are read again from the log"),
    ];
    for (key, consequence) in unknown {
        if !read(file, key)?.is_sound(key) {
            note(damaged, key, consequence);
            settled.insert(key, None);
        }
    }
    let stored = read(file, LOG_KEY)?;
    let mut last = stored.number;
    if !stored.is_sound(LOG_KEY) {
        last = Log::last_of(medium)?;
        note(damaged, LOG_KEY, "the last file with a record is the last file of the log");
        settled.insert(LOG_KEY, last);
    }
    Ok((Mutex::new(settled), last))
}

impl Journal {
    /// Returns the time of the last run; `None` when it is unknown, as in a new store.
    pub(crate) fn last_run(&self) -> Result<Option<UnixMillis>, StoreError> {
        Ok(self.number(LAST_RUN_KEY)?.map(|time| UnixMillis(time as i64)))
    }

    /// Returns the last record that a finished checkpoint covers.
    pub(crate) fn checkpointed_through(&self) -> Result<u64, StoreError> {
        Ok(self.number(THROUGH_KEY)?.unwrap_or(0))
    }

    /// Returns the record up to which, and the row below which, states are ahead of the last cut.
    pub(crate) fn states_ahead(&self) -> Result<(u64, u32), StoreError> {
        let number = |key| Ok::<_, StoreError>(self.number(key)?.unwrap_or(0));
        Ok((number(STATES_THROUGH_KEY)?, number(STATES_ROWS_KEY)? as u32))
    }

    /// Determines the last record of a finished checkpoint if its number is damaged; `in_files`
    /// returns the extent of other files.
    pub(crate) fn settle_through(
        &self,
        in_files: impl FnOnce() -> Result<Option<RecordsInFiles>, StoreError>,
    ) -> Result<(), StoreError> {
        let stored = self.file.guard("read", || read(&self.file, THROUGH_KEY))?;
        if stored.is_sound(THROUGH_KEY) {
            return Ok(());
        }
        let in_files = in_files()?.ok_or_else(|| refused(THROUGH_KEY))?;
        let first = self.first_record()?;
        let (mut through, is_certain) =
            in_files.through(first).ok_or_else(|| refused(THROUGH_KEY))?;
        if !is_certain && stored.proves(THROUGH_KEY, in_files.last) {
            through = in_files.last;
        }
        let consequence = format!(
            "the head replaces the number: the log is read from record {} on, and no sample counts \
             twice",
            through + 1
        );
        note(&self.damaged, THROUGH_KEY, &consequence);
        self.settled.lock().insert(THROUGH_KEY, Some(through));
        Ok(())
    }

    /// Returns true while the number of the last finished checkpoint is damaged.
    pub(crate) fn is_through_damaged(&self) -> Result<bool, StoreError> {
        let stored = self.file.guard("read", || read(&self.file, THROUGH_KEY))?;
        Ok(!stored.is_sound(THROUGH_KEY))
    }

    /// Returns the number of the first record of the log's first file; `None` without a file.
    pub(super) fn first_number(&self) -> Option<u64> {
        self.log.lock().first_number()
    }

    /// Returns the number of the first record in the log.
    pub(super) fn first_record(&self) -> Result<Option<u64>, StoreError> {
        self.log.lock().first_record()
    }

    fn number(&self, key: &'static str) -> Result<Option<u64>, StoreError> {
        let stored = self.file.guard("read", || read(&self.file, key))?;
        if stored.is_sound(key) {
            return Ok(stored.number);
        }
        self.settled.lock().get(key).copied().ok_or_else(|| refused(key))
    }
}

fn read(file: &DatabaseFile, key: &str) -> Result<StoredNumber, StoreError> {
    let txn = file.read()?;
    let meta = txn.open_table(META).map_err(fail("read"))?;
    stored(&meta, key)
}

fn note(damaged: &DamagedRows, key: &str, consequence: &str) {
    damaged.note("meta", &format!("the number {key}: {consequence}"));
}

/// Returns the error of a start without a number that decides which batches count.
fn refused(key: &str) -> StoreError {
    corrupt(format!(
        "the number {key} is damaged, no other file replaces it, and batches might count twice or \
         never: create a new data directory from a snapshot with `granary restore`"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_checkpoint_follows_from_the_records_in_files() {
        let check = |heads: &[u64], last, first, expected| {
            let in_files = RecordsInFiles { heads: heads.to_vec(), last };
            assert_eq!(in_files.through(first), expected, "{heads:?} {last} {first:?}");
        };
        // One checkpoint was interrupted while it wrote the head, another while it wrote
        // partitions.
        check(&[9, 7, 7], 9, Some(2), Some((7, true)));
        check(&[7, 7, 7], 9, Some(2), Some((7, true)));
        check(&[9, 7], 9, Some(10), Some((9, true)));
        // One granularity was removed for a while.
        check(&[9, 7, 3], 9, Some(8), None);
        check(&[7, 7, 3], 9, Some(8), None);
        // All existing records are read again.
        check(&[9, 9, 9], 9, Some(2), Some((1, false)));
        check(&[9, 9, 9], 9, Some(10), Some((9, false)));
        check(&[9, 9, 9], 9, None, Some((9, false)));
        check(&[], 9, Some(1), None);
    }
}
