//! The replacement of a store's files by a received copy.
//!
//! The data directory may be a mount point, which cannot be renamed, so the files are moved one by
//! one. The folder's name says how far the replacement is: after a kill, the next start continues
//! before it opens a file. Must never know: where the copy came from.

use std::{fs, io, path::Path};

use super::{
    STORE_ENTRIES,
    outgoing::{OUTGOING, outgoing_name},
    transfer_folder,
};
use crate::store::{
    error::StoreError,
    snapshot::{fault, sync},
};

/// An incomplete copy.
pub(super) const PARTIAL: &str = "incoming.partial";
/// A complete copy; files of the replaced store may be missing.
pub(super) const RECEIVED: &str = "incoming";
/// A complete copy whose files are being moved; the replaced store is gone.
const MOVED: &str = "incoming.moved";

/// Finishes the replacement of a store by a received copy, and removes the remains of transfers. A
/// node calls it before it opens the store, while it has the lock of the directory.
///
/// # Errors
/// When a file cannot be moved or removed; the next call continues.
pub fn finish_transfer(data_dir: &Path) -> Result<(), StoreError> {
    finish_by_steps(data_dir, &mut || Ok(()))
}

/// Removes the files of a replica; the node then begins as one without a replica. The store must be
/// closed.
///
/// # Errors
/// When a file cannot be removed.
pub fn discard_replica(data_dir: &Path) -> Result<(), StoreError> {
    for entry in STORE_ENTRIES {
        let path = data_dir.join(entry);
        remove(&path).map_err(fault("remove", &path))?;
    }
    sync(data_dir)
}

/// Finishes a replacement; `step` is called before each change, and can fail in its place.
pub(super) fn finish_by_steps(
    data_dir: &Path,
    step: &mut dyn FnMut() -> io::Result<()>,
) -> Result<(), StoreError> {
    let above = transfer_folder(data_dir);
    if !above.exists() {
        return Ok(());
    }
    let (received, moved) = (above.join(RECEIVED), above.join(MOVED));
    if received.exists() {
        for entry in STORE_ENTRIES {
            let path = data_dir.join(entry);
            step().and_then(|()| remove(&path)).map_err(fault("remove", &path))?;
        }
        sync(data_dir)?;
        let rename = step().and_then(|()| fs::rename(&received, &moved));
        rename.map_err(fault("rename", &received))?;
        sync(&above)?;
    }
    if moved.exists() {
        for entry in STORE_ENTRIES {
            let (from, to) = (moved.join(entry), data_dir.join(entry));
            match step().and_then(|()| fs::rename(&from, &to)) {
                // It was moved before, or the copy does not have it.
                Err(cause) if cause.kind() == io::ErrorKind::NotFound => {}
                outcome => outcome.map_err(fault("rename", &from))?,
            }
        }
        sync(&moved)?;
        sync(data_dir)?;
        step().and_then(|()| remove(&moved)).map_err(fault("remove", &moved))?;
        sync(&above)?;
        let data_dir = data_dir.display().to_string();
        tracing::info!(data_dir, "the copy of another node replaced the store");
    }
    for entry in fs::read_dir(&above).map_err(fault("list", &above))? {
        let entry = entry.map_err(fault("list", &above))?;
        let name = entry.file_name();
        let name = name.to_string_lossy();
        if name == PARTIAL || is_left_over(&name) {
            let path = entry.path();
            step().and_then(|()| remove(&path)).map_err(fault("remove", &path))?;
        }
    }
    Ok(())
}

/// Returns true for an outgoing copy of a process that has ended.
fn is_left_over(name: &str) -> bool {
    let own = outgoing_name();
    name.starts_with(OUTGOING) && !name.starts_with(&own)
}

/// Removes a file or folder, if it exists.
fn remove(path: &Path) -> io::Result<()> {
    let removed = match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs::remove_dir_all(path),
        Ok(_) => fs::remove_file(path),
        Err(cause) => Err(cause),
    };
    match removed {
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => Ok(()),
        outcome => outcome,
    }
}
