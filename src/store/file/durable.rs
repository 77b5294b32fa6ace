//! Folders and files that are created durably, for the daemon's user alone.
//!
//! Must never know: the content of the files.

use std::{
    fs::{self, DirBuilder, File, OpenOptions},
    io,
    os::unix::fs::{DirBuilderExt, OpenOptionsExt},
    path::Path,
};

use rustix::fs::OFlags;

/// The mode of files: only the daemon's user has access.
pub(super) const FILE_MODE: u32 = 0o600;
/// The mode of folders.
pub(super) const FOLDER_MODE: u32 = 0o700;

/// Creates a folder and its missing parents durably, for the daemon's user alone.
pub(crate) fn create_folders(path: &Path) -> io::Result<()> {
    if path.as_os_str().is_empty() || path.is_dir() {
        return Ok(());
    }
    let parent = path.parent().unwrap_or_else(|| Path::new(""));
    create_folders(parent)?;
    match DirBuilder::new().mode(FOLDER_MODE).create(path) {
        Err(cause) if cause.kind() == io::ErrorKind::AlreadyExists && path.is_dir() => Ok(()),
        Ok(()) => {
            let above = if parent.as_os_str().is_empty() { Path::new(".") } else { parent };
            File::open(above)?.sync_all()
        }
        Err(cause) => Err(cause),
    }
}

/// Makes the names of a folder and of all its parents durable, because the process that created one
/// of them may have been stopped before the sync.
pub(crate) fn settle_above(folder: &Path) -> io::Result<()> {
    sync_above(&folder.canonicalize()?, &mut |above| File::open(above)?.sync_all())
}

/// Syncs the parents of a path, the nearest first. Folders that this user may not read, and folders
/// of file systems without writes or syncs, were not created by this user.
fn sync_above(path: &Path, sync: &mut dyn FnMut(&Path) -> io::Result<()>) -> io::Result<()> {
    for above in path.ancestors().skip(1) {
        match sync(above) {
            Err(cause)
                if !matches!(
                    cause.kind(),
                    io::ErrorKind::PermissionDenied
                        | io::ErrorKind::ReadOnlyFilesystem
                        | io::ErrorKind::InvalidInput
                        | io::ErrorKind::Unsupported
                ) =>
            {
                return Err(cause);
            }
            Ok(()) | Err(_) => {}
        }
    }
    Ok(())
}

/// Creates a file, for the daemon's user alone.
pub(crate) fn create_file(path: &Path) -> io::Result<File> {
    let flags = OFlags::NOFOLLOW.bits() as i32;
    let mut options = OpenOptions::new();
    options.read(true).write(true).create_new(true).mode(FILE_MODE).custom_flags(flags);
    options.open(path)
}

/// Copies a file to a new file durably. Returns its size in bytes. A failed copy leaves no file.
pub(crate) fn copy_file(from: &Path, to: &Path) -> io::Result<u64> {
    let mut source = File::open(from)?;
    let mut copy = create_file(to)?;
    let copied = io::copy(&mut source, &mut copy).and_then(|bytes| copy.sync_all().map(|()| bytes));
    if copied.is_err()
        && let Err(cause) = fs::remove_file(to)
    {
        tracing::warn!(file = %to.display(), %cause, "cannot remove an incomplete copy");
    }
    copied
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Regression: after `mkdir -p` had created three folders, a power failure lost their names.
    #[test]
    fn the_names_of_all_folders_above_are_synced() {
        let synced = |refused: io::ErrorKind| {
            let mut synced = Vec::new();
            let outcome = sync_above(Path::new("/srv/granary/data"), &mut |above| {
                synced.push(above.display().to_string());
                if above == Path::new("/srv") { Err(refused.into()) } else { Ok(()) }
            });
            (synced, outcome.is_ok())
        };
        let all = ["/srv/granary", "/srv", "/"].map(str::to_owned);
        assert_eq!(synced(io::ErrorKind::PermissionDenied), (all.to_vec(), true));
        assert_eq!(synced(io::ErrorKind::StorageFull), (all[..2].to_vec(), false));
    }
}
