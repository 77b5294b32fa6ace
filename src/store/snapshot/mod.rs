//! Snapshots of a running store, and their restoration.
//!
//! A snapshot is a complete data directory. The head and partitions change only in checkpoints, by
//! sealing, and when shells are added. First, the partitions are copied while checkpoints continue.
//! Then checkpoints pause, and the head, the objects, and the partitions that have changed are
//! copied, while batches are accepted as usual. The journal is copied last, with the files of its
//! log and a view of its tables, so that it contains every record and series to which the
//! partitions refer.
//!
//! Must never know: when a snapshot is due, which snapshots expire.

mod copies;
pub(crate) mod folder;
mod restore;
mod unfinished;

use std::{
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::Serialize;

use super::{
    error::StoreError,
    file::{
        folder::Folder,
        medium::Medium,
        names::{HEAD_FILE, JOURNAL_FILE, OBJECTS_FILE},
    },
    handle::Store,
};
use crate::model::Moment;
pub(crate) use copies::Segments;
use copies::{Copies, copy_audit};
pub use restore::restore;
use unfinished::make_folder;
pub(crate) use unfinished::{fault, sync, sync_folders};

/// The number of passes over changed partitions before checkpoints pause.
const PASSES: usize = 2;

/// The files of a snapshot or a restored directory.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SnapshotReport {
    /// The folder.
    pub path: PathBuf,
    /// The number of files in the folder.
    pub files: u64,
    /// Bytes of all files.
    pub bytes: u64,
}

impl Store {
    /// Copies a consistent state of the store into a folder, which must be empty or missing.
    ///
    /// # Errors
    /// When the folder is not empty or cannot be written; the copied files are then removed.
    pub fn snapshot(
        &self,
        target: &Path,
        now: impl Into<Moment>,
        progress: &mut dyn FnMut(&str),
    ) -> Result<SnapshotReport, StoreError> {
        self.copy_files(target, now.into(), (Segments::Copied, &|| false), progress)
    }

    /// Copies a consistent state; see [`Self::snapshot`]. Copies with linked segments need little
    /// space, and have no audit. The copy ends with an error when `stops` returns true.
    pub(crate) fn copy_files(
        &self,
        target: &Path,
        now: Moment,
        (kind, stops): (Segments, &dyn Fn() -> bool),
        progress: &mut dyn FnMut(&str),
    ) -> Result<SnapshotReport, StoreError> {
        make_folder(target, |folder| {
            let mut copies = Copies::new(self, folder, kind, stops);
            for _ in 0..PASSES {
                copies.copy_changed(false, progress)?;
            }
            // The journal's records up to this checkpoint need not be copied.
            self.checkpoint(now)?;
            // The lock of sealing is taken first: waiting for it may take long, and checkpoints
            // continue in the meantime.
            let _no_sealing = self.inner.sealing.lock();
            let _no_checkpoint = self.inner.checkpointing.lock();
            let (mut files, segments, mut bytes) = {
                // Retention and the creation of partitions also wait, so that every copied
                // partition has its segments.
                let _no_created_or_removed = self.inner.documents.hold();
                copies.copy_changed(true, progress)?;
                copies.finish()?
            };
            progress(HEAD_FILE);
            let to = folder.join(HEAD_FILE);
            let copy = || self.inner.medium.copy(HEAD_FILE, &to);
            bytes += self.inner.head.while_unwritten(copy)?.map_err(fault("copy", &to))?;
            files.push(HEAD_FILE.to_owned());
            let to = folder.join(OBJECTS_FILE);
            if let Some(copied) =
                self.inner.objects.copy(|| self.inner.medium.copy(OBJECTS_FILE, &to))?
            {
                progress(OBJECTS_FILE);
                bytes += copied.map_err(fault("copy", &to))?;
                files.push(OBJECTS_FILE.to_owned());
            }
            let (audit, audit_bytes) = match kind {
                Segments::Copied => copy_audit(self, folder, progress)?,
                Segments::Linked => (0, 0),
            };
            bytes += audit_bytes;
            progress(JOURNAL_FILE);
            let medium: Arc<dyn Medium> = Arc::new(Folder::at(folder));
            let (logs, log_bytes) = self.inner.journal.copy_to(&medium, folder, &files)?;
            bytes += medium.allocated_bytes(JOURNAL_FILE).unwrap_or(0) + log_bytes;
            let marks = self.inner.register.mark_lost_in(&medium)?;
            let files = files.len() as u64 + segments + marks + logs + audit + 1;
            Ok(SnapshotReport { path: target.to_owned(), files, bytes })
        })
    }
}
