//! Checking of files while they are in use: each document, row and object is read and compared with
//! its checksum, and damaged data becomes a hole.
//!
//! Must never know: when a file is due.

use super::Store;
use crate::{
    model::{GranularityIndex, PartitionId},
    store::{
        documents::Documents,
        error::StoreError,
        file::names::{HEAD_FILE, OBJECTS_FILE},
    },
};

/// The number of faults of a file that are named in the log.
const NAMED_MAX: usize = 10;

/// A file, or a part of it, that is checked at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckedFile {
    /// A partition with its segments.
    Partition(PartitionId),
    /// The rows of a granularity in the head.
    Head(GranularityIndex),
    /// The objects.
    Objects,
}

impl Store {
    /// Returns the files that can be checked, with their sizes in bytes. Each start and each
    /// checkpoint reads the journal.
    pub fn checked_files(&self) -> Vec<(CheckedFile, u64)> {
        let partitions = self.partitions().into_iter();
        let mut files: Vec<_> =
            partitions.map(|info| (CheckedFile::Partition(info.id), info.bytes)).collect();
        let count = self.all_granularities().len();
        let share = self.head_bytes() / count.max(1) as u64;
        files.extend((0..count).map(|index| (CheckedFile::Head(GranularityIndex(index)), share)));
        files.push((CheckedFile::Objects, self.objects_bytes()));
        files
    }

    /// Checks a file; returns the number of faults that were not known before. `go_on` is called
    /// with the bytes read since its last call; it may block, and returns false to stop.
    ///
    /// # Errors
    /// When the file cannot be read. A damaged file is set aside first.
    pub fn check_file(
        &self,
        file: CheckedFile,
        go_on: &dyn Fn(u64) -> bool,
    ) -> Result<u64, StoreError> {
        let inner = &*self.inner;
        let go_on = |bytes| {
            inner.counters.checked_bytes.add(bytes);
            go_on(bytes)
        };
        let mut named = 0;
        let mut name = |file: &str, problem: String| {
            named += 1;
            if named <= NAMED_MAX {
                tracing::error!(file, problem, "the checker found damage");
            }
        };
        let faults = match file {
            CheckedFile::Partition(id) => inner.documents.check_slowly(id, &mut name, &go_on)?,
            CheckedFile::Head(index) => {
                let checked = inner.head.check_rows(index, &go_on);
                let faults = self.or_replace_head(checked)?;
                if faults > 0 {
                    name(HEAD_FILE, format!("{faults} damaged rows"));
                }
                faults
            }
            CheckedFile::Objects => {
                let mut faults = 0;
                inner.objects.check(&mut |problem| {
                    faults += 1;
                    name(OBJECTS_FILE, problem);
                })?;
                go_on(self.objects_bytes());
                faults
            }
        };
        inner.counters.checked_files.add(1);
        inner.counters.checker_faults.add(faults);
        Ok(faults)
    }
}
