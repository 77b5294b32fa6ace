//! The journal's numbers, and the substitutes for damaged ones.
//!
//! A substitute never makes a sample count twice: other files define up to which record they have
//! cells, and records that are read again do not count there. The next checkpoint, or file of the
//! log, writes a sound number. Must never know: other files.

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

/// The substitutes for damaged numbers, until sound ones are written.
pub(super) type Settled = Mutex<BTreeMap<&'static str, Option<u64>>>;

/// The extent of other files, in records.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct RecordsInFiles {
    /// The last record whose cells are in the head, by active granularity.
    pub(crate) heads: Vec<u64>,
    /// The latest record of which any file has cells.
    pub(crate) last: u64,
}

impl RecordsInFiles {
    /// Returns the last record of a finished checkpoint, and whether that is certain. `first` is
    /// the first existing record, if there is one.
    ///
    /// A checkpoint moves the heads of all granularities from the last one's record to its own. If
    /// some file is ahead of a head, a checkpoint was interrupted there, and the last one is the
    /// head's. Otherwise the files contain everything of any checkpoint, and it does not matter to
    /// them which records are read again. A third number is that of a granularity that was removed
    /// for a while.
    fn through(&self, first: Option<u64>) -> Option<(u64, bool)> {
        let lowest = self.heads.iter().copied().min()?;
        let is_of_two = |number: &u64| [lowest, self.last].contains(number);
        if !self.heads.iter().all(is_of_two) {
            return None;
        }
        let before_first = first.map_or(lowest, |first| first.saturating_sub(1));
        let is_cut_short = lowest < self.last;
        // The records after the last checkpoint exist.
        let through =
            if is_cut_short { lowest.max(before_first) } else { lowest.min(before_first) };
        Some((through, is_cut_short))
    }
}

/// Checks the version, and raises the file to the present one.
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
            || corrupt("it does not say its format".to_owned()),
            |version| version::prerelease(JOURNAL_FILE, version),
        ));
    }
    if !stored.is_sound(VERSION_KEY) {
        if !stored.proves(VERSION_KEY, format) {
            return Err(refused(VERSION_KEY));
        }
        note(damaged, VERSION_KEY, "it is this release's by its checksum, or but for that");
        version = format;
    }
    version::check(JOURNAL_FILE, version, format)?;
    if version < format {
        const OPERATION: &str = "raise the format";
        file.transact(OPERATION, |txn| {
            let mut meta = txn.open_table(META).map_err(fail(OPERATION))?;
            set_number(&mut meta, VERSION_KEY, format).map_err(fail(OPERATION))
        })?;
        tracing::info!(file = file.name(), version, format, "raised to this format");
    }
    Ok(())
}

/// Finds the last file of the log, and the damaged numbers.
pub(super) fn settle(
    file: &DatabaseFile,
    medium: &Arc<dyn Medium>,
    damaged: &DamagedRows,
) -> Result<(Settled, Option<u64>), StoreError> {
    let mut settled = BTreeMap::new();
    let unknown = [
        (LAST_RUN_KEY, "the latest sample tells when the store was last run"),
        (STATES_THROUGH_KEY, "states are read again from the log"),
        (STATES_ROWS_KEY, "states are read again from the log"),
    ];
    for (key, what) in unknown {
        if !read(file, key)?.is_sound(key) {
            note(damaged, key, what);
            settled.insert(key, None);
        }
    }
    let stored = read(file, LOG_KEY)?;
    let mut last = stored.number;
    if !stored.is_sound(LOG_KEY) {
        last = Log::last_of(medium)?;
        note(damaged, LOG_KEY, "the log ends with its last file that has a record");
        settled.insert(LOG_KEY, last);
    }
    Ok((Mutex::new(settled), last))
}

impl Journal {
    /// The time of the last run; `None` for a new store.
    pub(crate) fn last_run(&self) -> Result<Option<UnixMillis>, StoreError> {
        Ok(self.number(LAST_RUN_KEY)?.map(|time| UnixMillis(time as i64)))
    }

    /// The last record that a finished checkpoint covers.
    pub(crate) fn checkpointed_through(&self) -> Result<u64, StoreError> {
        Ok(self.number(THROUGH_KEY)?.unwrap_or(0))
    }

    /// The record and the row up to which states are ahead of the last cut.
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
        let what = format!(
            "the head tells which records are in files, and nothing of them counts twice: the log is \
             read from record {} on",
            through + 1
        );
        note(&self.damaged, THROUGH_KEY, &what);
        self.settled.lock().insert(THROUGH_KEY, Some(through));
        Ok(())
    }

    /// Returns whether a damaged number of the last finished checkpoint still has to be replaced.
    pub(crate) fn is_through_damaged(&self) -> Result<bool, StoreError> {
        let stored = self.file.guard("read", || read(&self.file, THROUGH_KEY))?;
        Ok(!stored.is_sound(THROUGH_KEY))
    }

    /// The first record in the log.
    fn first_record(&self) -> Result<Option<u64>, StoreError> {
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

fn note(damaged: &DamagedRows, key: &str, what: &str) {
    damaged.note("meta", &format!("the number {key}: {what}"));
}

/// The error of a start without a number that decides which batches count.
fn refused(key: &str) -> StoreError {
    corrupt(format!(
        "the number {key} is not as it was written, no other file tells it, and batches might count \
         twice or never: make a new data directory of a snapshot with `granary restore`"
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_files_have_tells_the_last_checkpoint_or_that_it_does_not_matter() {
        let check = |heads: &[u64], last, first, expected| {
            let in_files = RecordsInFiles { heads: heads.to_vec(), last };
            assert_eq!(in_files.through(first), expected, "{heads:?} {last} {first:?}");
        };
        // A checkpoint was interrupted among the heads, and another among the partitions.
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
