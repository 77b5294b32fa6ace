//! Copies of the log's files for a snapshot.
//!
//! A file with a successor never changes, so it is copied while records are appended; only the last
//! file is copied while appends wait. Must never know: the other files of a snapshot.

use std::{collections::BTreeSet, path::Path};

use super::{FOLDER, Log, fault, name_of};
use crate::store::{
    error::StoreError,
    file::{durable::create_folders, medium::Medium},
};

/// The copies of log files.
#[derive(Debug, Default)]
pub(in crate::journal) struct LogCopies {
    copied: BTreeSet<u64>,
    /// The size of all copies in bytes.
    pub(in crate::journal) bytes: u64,
}

impl LogCopies {
    /// Returns the number of copies.
    pub(in crate::journal) fn files(&self) -> u64 {
        self.copied.len() as u64
    }

    /// Copies files of the medium into a folder, unless they are copied already.
    pub(in crate::journal) fn copy(
        &mut self,
        medium: &dyn Medium,
        files: Vec<u64>,
        folder: &Path,
    ) -> Result<(), StoreError> {
        create_folders(&folder.join(FOLDER)).map_err(fault("create", FOLDER))?;
        for first in files {
            if self.copied.insert(first) {
                let name = name_of(first);
                self.bytes +=
                    medium.copy(&name, &folder.join(&name)).map_err(fault("copy", &name))?;
            }
        }
        Ok(())
    }
}

impl Log {
    /// Returns the files with records after `through`, and always the last file.
    pub(in crate::journal) fn files_after(&self, through: u64) -> Vec<u64> {
        let covered = self.covered(through);
        self.files.iter().copied().filter(|first| !covered.contains(first)).collect()
    }

    /// Returns the new, empty file whose number may be stored in the journal although storing it
    /// failed.
    pub(in crate::journal) fn unnoted(&self) -> Option<u64> {
        self.made.as_ref().map(|(header, ..)| header.first)
    }
}
