//! The replay of records after the last checkpoint, at a start and by a follower.
//!
//! Files may be ahead of the last finished checkpoint. If a checkpoint was interrupted, the catalog
//! is frozen again at the checkpoint's record: marks and the head show which files already have the
//! frozen cells. Must never know: where the records come from.

use super::{Effect, Step, lost_cells::LostCells};
use crate::{
    model::{AcceptedBatch, SeriesId, UnixMillis},
    store::{
        documents::Documents,
        encoding::lanes::row_of,
        error::StoreError,
        file::names::{HEAD_FILE, JOURNAL_FILE},
        handle::Store,
        journal::{in_head::InHead, record::Record},
    },
};

/// A replay: what files have, and what was applied.
#[derive(Debug)]
pub(crate) struct Replay {
    /// The record of the last finished checkpoint.
    after: u64,
    /// The last record that any file contains, and the file.
    files_through: u64,
    file: String,
    /// The states of rows below `states_rows` include records up to `states_through`.
    states_through: u64,
    states_rows: u32,
    lost: LostCells,
    latest: Option<UnixMillis>,
    records: u64,
    samples: u64,
}

impl Replay {
    /// Begins a replay after the last finished checkpoint.
    pub(crate) fn begin(store: &Store) -> Result<Self, StoreError> {
        let after = store.inner.catalog.read().applied();
        let in_files = store.last_record_in_files()?;
        let (states_through, states_rows) = store.inner.journal.states_ahead()?;
        let lost = store.cells_of_lost_head(states_through)?;
        let (files_through, file) = in_files.max((states_through, JOURNAL_FILE.into()));
        let (latest, records, samples) = (None, 0, 0);
        Ok(Self {
            after,
            files_through,
            file,
            states_through,
            states_rows,
            lost,
            latest,
            records,
            samples,
        })
    }

    /// Returns the number of the last record before the replay.
    pub(crate) fn after(&self) -> u64 {
        self.after
    }

    /// Returns the last record that any file contains.
    pub(crate) fn files_through(&self) -> u64 {
        self.files_through
    }

    /// Returns the slots that were lost with a head, by level.
    pub(crate) fn lost(&self) -> &[InHead] {
        &self.lost.slots
    }

    /// Returns the time of the latest sample of the records.
    pub(crate) fn latest(&self) -> Option<UnixMillis> {
        self.latest
    }

    /// Returns the number of applied records.
    pub(crate) fn records(&self) -> u64 {
        self.records
    }

    /// Returns the number of samples in the applied records.
    pub(crate) fn samples(&self) -> u64 {
        self.samples
    }

    /// Applies the next record.
    ///
    /// # Errors
    /// When the record does not fit the store.
    pub(crate) fn apply(
        &mut self,
        store: &Store,
        number: u64,
        mut record: Record,
        is_in_dictionary: bool,
    ) -> Result<Effect, StoreError> {
        store.check_record(number, &record, is_in_dictionary)?;
        self.records += 1;
        self.latest = self.latest.max(latest_of(&record.batches));
        let samples = |batch: &AcceptedBatch| batch.values.len() as u64;
        self.samples += record.batches.iter().map(samples).sum::<u64>();
        if number <= self.states_through {
            // The states of series in earlier rows include the record, and its cells are in files
            // already.
            let is_missing = |id: SeriesId| row_of(id) >= self.states_rows;
            for batch in &mut record.batches {
                self.lost.note(batch, |id| !is_missing(id));
                batch.retain(is_missing);
            }
        }
        let freezes = number == self.files_through;
        // Samples beyond every retention were counted when they were accepted.
        Ok(store.apply_record(Step { number: Some(number), is_in_dictionary, freezes }, record))
    }

    /// Checks that the replay included all records that files contain.
    pub(crate) fn check_end(&self, store: &Store) -> Result<(), StoreError> {
        let applied = store.inner.catalog.read().applied();
        if self.files_through <= applied {
            return Ok(());
        }
        let (last, file) = (self.files_through, &self.file);
        Err(StoreError::Corrupt {
            file: JOURNAL_FILE.to_owned(),
            problem: format!(
                "the journal ends with record {applied}, but {file} contains record {last}: restore \
                 the journal that belongs to {file}"
            ),
        })
    }
}

impl Store {
    /// Returns the last record that any file contains, and the file.
    fn last_record_in_files(&self) -> Result<(u64, String), StoreError> {
        let inner = &*self.inner;
        let mut last = (0, String::new());
        for index in inner.classes.indexes() {
            let through = match inner.head.read(index) {
                Ok(head) => head.through,
                Err(fault) if inner.head.replace_if_damaged(&fault)? => 0,
                Err(fault) => return Err(fault),
            };
            last = last.max((through, HEAD_FILE.to_owned()));
        }
        last = last.max(inner.documents.last_record()?.unwrap_or_default());
        Ok(last)
    }
}

/// Returns the time of the latest sample of some batches.
fn latest_of(batches: &[AcceptedBatch]) -> Option<UnixMillis> {
    let times =
        |batch: &AcceptedBatch| (0..batch.series.len()).map(|index| batch.time(index)).max();
    batches.iter().filter_map(times).max()
}
