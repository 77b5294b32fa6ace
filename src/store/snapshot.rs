//! Snapshots of a running store, and their way back.
//!
//! A snapshot is a data directory of its own. The head and partitions change only in
//! checkpoints and when shells are added, so with checkpoints held back each file is copied as it is, while batches
//! are accepted as always; the journal is copied last, through a read transaction, and so holds
//! every record and series that the partitions may know.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
    sync::Arc,
};

use serde::Serialize;

use super::{
    Store, StoreError,
    head::HEAD_FILE,
    journal::JOURNAL_FILE,
    medium::{Folder, Medium, copy_file, create_folders},
};
use crate::model::Moment;

/// End of the name of a folder that is being made.
pub(super) const UNFINISHED: &str = ".partial";

/// What was copied.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct SnapshotReport {
    /// The folder.
    pub path: PathBuf,
    /// Files in it.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
}

impl Store {
    /// Copies the store, as it is at one moment, into a folder that must not exist yet.
    ///
    /// # Errors
    /// When the folder exists or cannot be written; what was copied is removed again then.
    pub fn snapshot(
        &self,
        target: &Path,
        now: impl Into<Moment>,
        progress: &mut dyn FnMut(&str),
    ) -> Result<SnapshotReport, StoreError> {
        // What a checkpoint takes up need not be copied as records.
        self.checkpoint(now)?;
        let _no_checkpoint = self.inner.checkpointing.lock();
        make_folder(target, |folder| {
            let mut report = SnapshotReport { path: target.to_owned(), files: 0, bytes: 0 };
            let mut copied_files = vec![HEAD_FILE.to_owned()];
            for partition in self.inner.partitions.all() {
                let name = partition.file_path();
                progress(name);
                let to = folder.join(name);
                if let Some(parent) = to.parent() {
                    create_folders(parent).map_err(fault("create", parent))?;
                }
                let copied =
                    partition.file.while_unwritten(|| self.inner.medium.copy(name, &to))?;
                match copied {
                    Ok(bytes) => {
                        copied_files.push(name.to_owned());
                        report.files += 1;
                        report.bytes += bytes;
                    }
                    // Retention dropped it meanwhile.
                    Err(cause) if cause.kind() == io::ErrorKind::NotFound => {}
                    Err(cause) => return Err(fault("copy", &to)(cause)),
                }
            }
            progress(HEAD_FILE);
            let to = folder.join(HEAD_FILE);
            let copy = || self.inner.medium.copy(HEAD_FILE, &to);
            report.bytes += self.inner.head.while_unwritten(copy)?.map_err(fault("copy", &to))?;
            report.files += 1;
            progress(JOURNAL_FILE);
            let medium: Arc<dyn Medium> = Arc::new(Folder::at(folder));
            self.inner.journal.copy_to(&medium, &copied_files)?;
            report.files += 1;
            report.bytes += medium.allocated_bytes(JOURNAL_FILE).unwrap_or(0);
            Ok(report)
        })
    }
}

/// Makes a data directory of a snapshot. The folder must be empty or not exist yet.
///
/// # Errors
/// When the snapshot cannot be read or the folder not be written.
pub fn restore(
    snapshot: &Path,
    target: &Path,
    progress: &mut dyn FnMut(&str),
) -> Result<SnapshotReport, StoreError> {
    make_folder(target, |folder| {
        let mut report = SnapshotReport { path: target.to_owned(), files: 0, bytes: 0 };
        copy_folder(snapshot, folder, &mut report, progress)?;
        Ok(report)
    })
}

fn copy_folder(
    from: &Path,
    to: &Path,
    report: &mut SnapshotReport,
    progress: &mut dyn FnMut(&str),
) -> Result<(), StoreError> {
    let mut entries = fs::read_dir(from)
        .and_then(Iterator::collect::<io::Result<Vec<_>>>)
        .map_err(fault("list", from))?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let (source, copy) = (entry.path(), to.join(entry.file_name()));
        let kind = entry.file_type().map_err(fault("look at", &source))?;
        if !kind.is_dir() && !kind.is_file() {
            let problem =
                "it is neither file nor folder: this is no snapshot of granary".to_owned();
            return Err(StoreError::Mismatch { file: source.display().to_string(), problem });
        }
        if kind.is_dir() {
            create_folders(&copy).map_err(fault("create", &copy))?;
            copy_folder(&source, &copy, report, progress)?;
            continue;
        }
        progress(&source.strip_prefix(from).unwrap_or(&source).to_string_lossy());
        report.bytes += copy_file(&source, &copy).map_err(fault("copy", &source))?;
        report.files += 1;
    }
    Ok(())
}

/// Makes the names in a folder, and in the folders below, durable.
fn sync_folders(folder: &Path) -> Result<(), StoreError> {
    for entry in fs::read_dir(folder).map_err(fault("list", folder))? {
        let path = entry.map_err(fault("list", folder))?.path();
        if path.is_dir() {
            sync_folders(&path)?;
        }
    }
    sync(folder)
}

fn sync(path: &Path) -> Result<(), StoreError> {
    File::open(path).and_then(|file| file.sync_all()).map_err(fault("sync", path))
}

/// Fills a folder under another name and gives it its name when it is whole and durable.
fn make_folder(
    target: &Path,
    fill: impl FnOnce(&Path) -> Result<SnapshotReport, StoreError>,
) -> Result<SnapshotReport, StoreError> {
    let occupied = fs::read_dir(target).is_ok_and(|mut entries| entries.next().is_some());
    if occupied {
        return Err(StoreError::Mismatch {
            file: target.display().to_string(),
            problem: "the folder is not empty: name another one".to_owned(),
        });
    }
    let mut unfinished = target.as_os_str().to_owned();
    unfinished.push(UNFINISHED);
    let unfinished = PathBuf::from(unfinished);
    if unfinished.exists() {
        fs::remove_dir_all(&unfinished).map_err(fault("remove", &unfinished))?;
    }
    create_folders(&unfinished).map_err(fault("create", &unfinished))?;
    let parent = target.parent().filter(|parent| !parent.as_os_str().is_empty());
    let parent = parent.unwrap_or_else(|| Path::new("."));
    let filled = fill(&unfinished).and_then(|report| {
        sync_folders(&unfinished)?;
        fs::rename(&unfinished, target).map_err(fault("rename", &unfinished))?;
        sync(parent)?;
        Ok(report)
    });
    if filled.is_err()
        && let Err(cause) = fs::remove_dir_all(&unfinished)
    {
        tracing::warn!(folder = %unfinished.display(), %cause, "cannot remove what was copied");
    }
    filled
}

fn fault<'a>(operation: &'static str, path: &'a Path) -> impl FnOnce(io::Error) -> StoreError + 'a {
    move |cause| StoreError::Io { operation, file: path.display().to_string(), cause }
}
