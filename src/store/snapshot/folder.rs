//! The folder of snapshots, each in a folder named after its time.
//!
//! Entries with other names are not touched. Must never know: which snapshots expire.

use std::{
    fs, io,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use super::unfinished::UNFINISHED;
use crate::{model::UnixMillis, store::file::space::DiskSpace};

/// A folder of snapshots.
#[derive(Debug, Clone)]
pub struct SnapshotFolder {
    root: PathBuf,
}

impl SnapshotFolder {
    /// Creates the handle of a folder, which need not exist yet.
    pub fn new(root: PathBuf) -> Self {
        Self { root }
    }

    /// Returns the path of the snapshot of a time.
    pub fn path(&self, at: UnixMillis) -> PathBuf {
        self.root.join(name(at))
    }

    /// Returns the existing snapshots, each with its size in bytes.
    ///
    /// # Errors
    /// When the folder cannot be read.
    pub fn list(&self) -> io::Result<Vec<(UnixMillis, u64)>> {
        let mut found = Vec::new();
        for (file_name, path) in entries(&self.root)? {
            if let Some(at) = time(&file_name) {
                found.push((at, allocated_bytes(&path)?));
            }
        }
        found.sort_unstable();
        Ok(found)
    }

    /// Removes a snapshot. A snapshot whose removal was interrupted is no longer listed.
    ///
    /// # Errors
    /// When a file of the snapshot cannot be removed.
    pub fn remove(&self, at: UnixMillis) -> io::Result<()> {
        fs::remove_dir_all(self.retire(at)?)
    }

    /// Renames a snapshot to the name of an unfinished one, durably, before the first file is
    /// removed.
    fn retire(&self, at: UnixMillis) -> io::Result<PathBuf> {
        let mut retired = self.path(at).into_os_string();
        retired.push(UNFINISHED);
        let retired = PathBuf::from(retired);
        if retired.exists() {
            fs::remove_dir_all(&retired)?;
        }
        fs::rename(self.path(at), &retired)?;
        fs::File::open(&self.root)?.sync_all()?;
        Ok(retired)
    }

    /// Removes the remains of snapshots whose creation or removal was interrupted; returns their
    /// number. No snapshot may be created in the meantime.
    ///
    /// # Errors
    /// When the remains of a snapshot cannot be removed.
    pub fn remove_unfinished(&self) -> io::Result<usize> {
        let mut removed = 0;
        for (file_name, path) in entries(&self.root)? {
            if file_name.strip_suffix(UNFINISHED).and_then(time).is_some() {
                fs::remove_dir_all(path)?;
                removed += 1;
            }
        }
        Ok(removed)
    }

    /// Returns the free bytes of the folder's file system.
    ///
    /// # Errors
    /// When the file system does not report its free bytes.
    pub fn free_bytes(&self) -> io::Result<u64> {
        Ok(DiskSpace::of(&self.root)?.free)
    }
}

/// Returns the names and paths of the folders in a folder; none when it does not exist. Links are
/// not followed.
fn entries(folder: &Path) -> io::Result<Vec<(String, PathBuf)>> {
    let listed = match fs::read_dir(folder) {
        Ok(listed) => listed,
        Err(cause) if cause.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        Err(cause) => return Err(cause),
    };
    let mut out = Vec::new();
    for entry in listed {
        let entry = entry?;
        if entry.file_type()?.is_dir() {
            out.push((entry.file_name().to_string_lossy().into_owned(), entry.path()));
        }
    }
    Ok(out)
}

fn allocated_bytes(folder: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    for entry in fs::read_dir(folder)? {
        let entry = entry?;
        let metadata = entry.metadata()?;
        bytes += metadata.blocks() * 512;
        if metadata.is_dir() {
            bytes += allocated_bytes(&entry.path())?;
        }
    }
    Ok(bytes)
}

/// Returns the name of the snapshot of a time, such as `2026-11-21T123456.789Z`.
fn name(at: UnixMillis) -> String {
    at.timestamp().strftime("%Y-%m-%dT%H%M%S%.3fZ").to_string()
}

fn time(name: &str) -> Option<UnixMillis> {
    let read = jiff::fmt::strtime::parse("%Y-%m-%dT%H%M%S%.fZ", name).ok()?;
    let utc = read.to_datetime().ok()?.to_zoned(jiff::tz::TimeZone::UTC).ok()?;
    Some(UnixMillis(utc.timestamp().as_millisecond()))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::setup::WITHIN;

    #[test]
    fn snapshots_are_named_after_times_and_entries_with_other_names_stay() {
        let dir = tempfile::tempdir().unwrap();
        let folder = SnapshotFolder::new(dir.path().join("snapshots"));
        assert_eq!(folder.list().unwrap(), []);
        assert_eq!(folder.remove_unfinished().unwrap(), 0);
        assert!(folder.free_bytes().unwrap() > 0);
        let at = WITHIN;
        assert!(folder.path(at).ends_with("2026-11-21T123456.789Z"));
        let interrupted =
            folder.path(at.plus(1)).into_os_string().into_string().unwrap() + UNFINISHED;
        let other = dir.path().join("snapshots/monthly");
        for path in [folder.path(at), interrupted.into(), other.clone()] {
            fs::create_dir_all(path.join("partitions")).unwrap();
            fs::write(path.join("partitions/file"), [1; 9000]).unwrap();
        }
        let listed = folder.list().unwrap();
        assert_eq!(listed.len(), 1);
        assert!(listed[0].0 == at && listed[0].1 >= 9000, "{listed:?}");
        assert_eq!(folder.remove_unfinished().unwrap(), 1);
        folder.remove(at).unwrap();
        assert_eq!(folder.list().unwrap(), []);
        assert!(other.exists());
    }

    /// Regression: a snapshot was still listed when the daemon was killed during its removal.
    #[test]
    fn a_snapshot_is_no_longer_listed_when_its_first_file_is_removed() {
        let dir = tempfile::tempdir().unwrap();
        let folder = SnapshotFolder::new(dir.path().to_owned());
        let make = |at| {
            fs::create_dir(folder.path(at)).unwrap();
            fs::write(folder.path(at).join("journal.redb"), "x").unwrap();
        };
        // The process dies right after the renaming, and the next process creates a snapshot with
        // the same name.
        for _ in 0..2 {
            make(WITHIN);
            let retired = folder.retire(WITHIN).unwrap();
            assert_eq!(fs::read(retired.join("journal.redb")).unwrap(), b"x");
            assert_eq!(folder.list().unwrap(), []);
        }
        assert_eq!(folder.remove_unfinished().unwrap(), 1);
        assert_eq!(entries(dir.path()).unwrap(), []);
        make(WITHIN);
        folder.remove(WITHIN).unwrap();
        assert_eq!(entries(dir.path()).unwrap(), []);
    }
}
