//! A folder that is filled under a temporary name, and renamed when its content is durable.
//!
//! Must never know: what the folder contains.

use std::{
    fs::{self, File},
    io,
    path::{Path, PathBuf},
};

use super::SnapshotReport;
use crate::store::{
    error::StoreError,
    file::durable::{create_folders, settle_above},
};

/// The end of the name of an unfinished folder.
pub(super) const UNFINISHED: &str = ".partial";

/// Makes the names in a folder, and in the folders below, durable.
pub(crate) fn sync_folders(folder: &Path) -> Result<(), StoreError> {
    for entry in fs::read_dir(folder).map_err(fault("list", folder))? {
        let path = entry.map_err(fault("list", folder))?.path();
        if path.is_dir() {
            sync_folders(&path)?;
        }
    }
    sync(folder)
}

/// Makes the content of a file, or the names in a folder, durable.
pub(crate) fn sync(path: &Path) -> Result<(), StoreError> {
    File::open(path).and_then(|file| file.sync_all()).map_err(fault("sync", path))
}

/// Fills a folder under a temporary name, and renames it when its content is durable.
pub(super) fn make_folder(
    target: &Path,
    fill: impl FnOnce(&Path) -> Result<SnapshotReport, StoreError>,
) -> Result<SnapshotReport, StoreError> {
    // Without a slash at the end, so that the temporary name is beside the target.
    let target: &Path = &target.components().collect::<PathBuf>();
    let occupied = fs::read_dir(target).is_ok_and(|mut entries| entries.next().is_some());
    if occupied {
        return Err(StoreError::Mismatch {
            file: target.display().to_string(),
            problem: "the folder is not empty: use another one".to_owned(),
        });
    }
    let mut unfinished = target.as_os_str().to_owned();
    unfinished.push(UNFINISHED);
    let unfinished = PathBuf::from(unfinished);
    if unfinished.exists() {
        fs::remove_dir_all(&unfinished).map_err(fault("remove", &unfinished))?;
    }
    create_folders(&unfinished).map_err(fault("create", &unfinished))?;
    settle_above(&unfinished).map_err(fault("sync the folders above", &unfinished))?;
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
        tracing::warn!(folder = %unfinished.display(), %cause, "cannot remove an unfinished copy");
    }
    filled
}

/// Returns a function that adds the operation and the path to an error.
pub(crate) fn fault<'a>(
    operation: &'static str,
    path: &'a Path,
) -> impl FnOnce(io::Error) -> StoreError + 'a {
    move |cause| StoreError::Io { operation, file: path.display().to_string(), cause }
}
