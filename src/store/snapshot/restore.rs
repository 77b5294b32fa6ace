//! The restoration of a snapshot: a copy of its folder.
//!
//! Must never know: the content of the files.

use std::{fs, io, path::Path};

use super::{
    SnapshotReport,
    unfinished::{fault, make_folder},
};
use crate::store::{
    error::StoreError,
    file::durable::{copy_file, create_folders},
};

/// Creates a data directory from a snapshot. The folder must be empty or missing.
///
/// # Errors
/// When the snapshot cannot be read, or the folder is not empty or cannot be written.
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
        let kind = entry.file_type().map_err(fault("read the type of", &source))?;
        if !kind.is_dir() && !kind.is_file() {
            let problem =
                "it is neither a file nor a folder: this is not a snapshot of granary".to_owned();
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
