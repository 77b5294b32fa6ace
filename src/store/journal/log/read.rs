//! Reading of the log: the search for its end at a start, and the replay of its records.
//!
//! Must never know: how records are appended.

use std::sync::Arc;

use redb::StorageBackend;

use super::{FILE_BYTES, Log, corrupt, fault, frame::Frames, name_of, numbers, remove};
use crate::store::{
    error::StoreError,
    file::{medium::Medium, names::JOURNAL_FILE},
};

/// The maximum size of a file: a record has at most 4 GB, and begins within [`FILE_BYTES`].
const FILE_BYTES_MAX: u64 = FILE_BYTES + (5 << 30);

impl Log {
    /// Deletes files whose numbers the journal's tables do not contain; they have no records.
    pub(super) fn remove_unused(&self, files: &[u64]) -> Result<(), StoreError> {
        for first in files.iter().copied() {
            if frames_of(&self.read(first)?, first)?.next().map_err(corrupt(first))?.is_some() {
                let problem =
                    format!("it has records, but {JOURNAL_FILE} does not contain its number");
                return Err(corrupt(first)(problem));
            }
            remove(&self.medium, first)?;
        }
        Ok(())
    }

    pub(super) fn find_end(&mut self, last: u64) -> Result<(), StoreError> {
        // A record that was written before the process was killed can be read but may not be
        // durable.
        self.with_file("sync", |file| file.sync_data())?;
        let bytes = self.read(last)?;
        let mut frames = frames_of(&bytes, last)?;
        while frames.next().map_err(corrupt(last))?.is_some() {}
        self.salt = frames.header().salt;
        (self.at, self.room_end) = (frames.at() as u64, bytes.len() as u64);
        self.is_unsure = frames.has_rest();
        if self.is_unsure {
            let (file, at) = (name_of(last), self.at);
            tracing::info!(
                file,
                at,
                "the last record is incomplete and removed: it was never acknowledged"
            );
        }
        Ok(())
    }

    /// Returns the number of the last file that has a record, or of the last file when none has a
    /// record.
    pub(in crate::journal) fn last_of(medium: &Arc<dyn Medium>) -> Result<Option<u64>, StoreError> {
        let files = numbers(medium)?;
        for first in files.iter().copied().rev() {
            let name = name_of(first);
            let file = medium.open(&name).map_err(fault("open", &name))?;
            let bytes = read_file(&*file, first)?;
            if frames_of(&bytes, first)?.next().map_err(corrupt(first))?.is_some() {
                return Ok(Some(first));
            }
        }
        Ok(files.last().copied())
    }

    /// Returns the number of the first record that the files have, or will have; `None` without a
    /// file.
    pub(in crate::journal) fn first_number(&self) -> Option<u64> {
        self.files.first().copied()
    }

    /// Returns the number of the first record in the log.
    pub(in crate::journal) fn first_record(&self) -> Result<Option<u64>, StoreError> {
        let Some(first) = self.files.first().copied() else { return Ok(None) };
        let bytes = self.read(first)?;
        let found = frames_of(&bytes, first)?.next().map_err(corrupt(first))?;
        Ok(found.map(|(number, _)| number))
    }

    /// Visits the records after `after`, in order.
    pub(in crate::journal) fn replay(
        &self,
        after: u64,
        mut out: impl FnMut(u64, &[u8]) -> Result<(), StoreError>,
    ) -> Result<(), StoreError> {
        let mut next = after + 1;
        for (index, first) in self.files.iter().copied().enumerate() {
            let until = self.files.get(index + 1).copied().unwrap_or(u64::MAX);
            if until <= next {
                continue;
            }
            if first > next {
                return Err(missing(first, next, first));
            }
            let bytes = self.read(first)?;
            let mut frames = frames_of(&bytes, first)?;
            while next < until {
                let Some((number, record)) = frames.next().map_err(corrupt(first))? else { break };
                if number > next {
                    return Err(missing(first, next, number));
                }
                if number == next {
                    out(number, record)?;
                    next += 1;
                }
            }
            if next < until && until != u64::MAX {
                return Err(missing(first, next, until));
            }
        }
        Ok(())
    }

    fn read(&self, first: u64) -> Result<Vec<u8>, StoreError> {
        let name = name_of(first);
        let is_last = self.files.last() == Some(&first);
        let opened = match &self.open {
            Some(_) if is_last => None,
            _ => Some(self.medium.open(&name).map_err(fault("open", &name))?),
        };
        let Some(file) = opened.as_ref().or(self.open.as_ref()) else { return Ok(Vec::new()) };
        read_file(&**file, first)
    }
}

fn read_file(file: &dyn StorageBackend, first: u64) -> Result<Vec<u8>, StoreError> {
    let name = name_of(first);
    let length = file.len().map_err(fault("read", &name))?;
    if length > FILE_BYTES_MAX {
        return Err(corrupt(first)("it is larger than any file of the log".to_owned()));
    }
    let mut bytes = vec![0; length as usize];
    file.read(0, &mut bytes).map_err(fault("read", &name))?;
    Ok(bytes)
}

/// Fuzz entry point: decodes bytes as a file of the log.
pub(crate) fn fuzz(bytes: &[u8]) {
    let Some(mut frames) = Frames::new(bytes) else { return };
    while let Ok(Some((_, record))) = frames.next() {
        assert!(record.len() <= bytes.len());
    }
}

fn frames_of(bytes: &[u8], first: u64) -> Result<Frames<'_>, StoreError> {
    let frames = Frames::new(bytes).filter(|frames| frames.header().first == first);
    frames.ok_or_else(|| corrupt(first)("its header is damaged".to_owned()))
}

fn missing(first: u64, number: u64, before: u64) -> StoreError {
    corrupt(first)(format!("record {number} is missing before {before}"))
}
