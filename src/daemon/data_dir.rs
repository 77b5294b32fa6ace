//! The data directory, which is created and locked before anything in it is opened.
//!
//! Must never know: its content, except the lock file.

use std::{
    fs::{File, OpenOptions},
    io::{self, Read, Write},
    os::unix::fs::{OpenOptionsExt, PermissionsExt},
    path::Path,
};

use anyhow::{Context, bail};
use rustix::fs::{FlockOperation, flock};

use crate::store::{Folder, is_disk_full};

/// The name of the lock file, which contains the process id of the holder.
const LOCK_FILE: &str = "granary.pid";

/// The length of the lock file's text. It is constant, so that a start overwrites the previous id
/// in place and needs no disk space.
const PID_CHARS: usize = 20;

/// The lock of the directory; the kernel releases it when the process ends.
#[derive(Debug)]
pub struct DataDir {
    _lock: File,
}

impl DataDir {
    /// Creates the directory if it is missing, and locks it.
    ///
    /// # Errors
    /// When the directory cannot be written, or another process has locked it.
    pub fn claim(folder: &Path) -> anyhow::Result<Self> {
        let folder_text = folder.display();
        let remedy = || {
            format!(
                "the data directory {folder_text} cannot be written: give this user write access, or set \
                 another directory with --data-dir or storage.data_dir"
            )
        };
        let full = || {
            format!(
                "the data directory {folder_text} cannot be created: the disk is full; free some space, \
                 or set another one with --data-dir or storage.data_dir"
            )
        };
        let explain = |cause: io::Error| {
            let text = if is_disk_full(&cause) { full() } else { remedy() };
            anyhow::Error::new(cause).context(text)
        };
        // The directory is private, and its creation survives a power cut.
        Folder::new(folder).map_err(explain)?;
        let path = folder.join(LOCK_FILE);
        let mut options = OpenOptions::new();
        options.read(true).write(true).create(true).truncate(false).mode(0o600);
        let mut lock = options.open(&path).map_err(explain)?;
        if flock(&lock, FlockOperation::NonBlockingLockExclusive).is_err() {
            let pid = pid(&lock);
            bail!(
                "the data directory {folder_text} is in use by process {pid}: stop it, or set another \
                 directory with --data-dir or storage.data_dir"
            );
        }
        // The kernel holds the lock. The id is only for messages, so a full disk does not prevent a
        // start.
        let pid = format!("{:<PID_CHARS$}", std::process::id());
        match lock.write_all(pid.as_bytes()) {
            Err(cause) if is_disk_full(&cause) => {
                let cause: &dyn std::error::Error = &cause;
                tracing::warn!(cause, "the lock file does not contain the process id");
            }
            written => written.with_context(remedy)?,
        }
        if is_shared(folder) {
            let data_dir = folder_text.to_string();
            tracing::warn!(data_dir, "other users may open the data directory: chmod it to 0700");
        }
        Ok(Self { _lock: lock })
    }
}

/// Returns true if other users than its owner may open or list a directory.
fn is_shared(folder: &Path) -> bool {
    folder.metadata().is_ok_and(|found| found.permissions().mode() & 0o077 != 0)
}

/// Returns the id of the process that has locked a directory; `None` when no process has locked it.
pub fn process_using(folder: &Path) -> Option<String> {
    let file = File::open(folder.join(LOCK_FILE)).ok()?;
    // The lock is released when the file is closed.
    match flock(&file, FlockOperation::NonBlockingLockShared) {
        Ok(()) => None,
        Err(_) => Some(pid(&file)),
    }
}

fn pid(mut file: impl Read) -> String {
    let mut pid = String::new();
    file.by_ref().take(PID_CHARS as u64).read_to_string(&mut pid).unwrap_or_default();
    let pid = pid.trim();
    if pid.is_empty() { "?".to_owned() } else { pid.to_owned() }
}

#[cfg(test)]
mod tests {
    use std::{
        fs,
        sync::atomic::{AtomicUsize, Ordering},
        thread,
    };

    use super::*;

    #[test]
    fn a_directory_has_one_process_at_a_time() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("below/data");
        let lock = DataDir::claim(&folder).unwrap();
        let refused = DataDir::claim(&folder).unwrap_err().to_string();
        let in_use = format!("is in use by process {}: stop it", std::process::id());
        assert!(refused.contains(&in_use), "{refused}");
        assert_eq!(process_using(&folder), Some(std::process::id().to_string()));
        drop(lock);
        assert_eq!(process_using(&folder), None);
        assert_eq!(process_using(dir.path()), None, "the directory was never locked");
        DataDir::claim(&folder).unwrap();
        // Several threads race for the lock.
        let holders = AtomicUsize::new(0);
        let race = || {
            let mut claims = 0;
            while claims < 5 {
                let Ok(claim) = DataDir::claim(&folder) else { continue };
                assert_eq!(
                    holders.fetch_add(1, Ordering::SeqCst),
                    0,
                    "the directory is locked twice"
                );
                claims += 1;
                holders.fetch_sub(1, Ordering::SeqCst);
                drop(claim);
            }
        };
        thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(race);
            }
        });
        assert!(!is_shared(&folder), "the directory is created for its owner");
        fs::set_permissions(&folder, fs::Permissions::from_mode(0o750)).unwrap();
        assert!(is_shared(&folder));
        let file = dir.path().join("file");
        fs::write(&file, "").unwrap();
        let refused = DataDir::claim(&file).unwrap_err().to_string();
        assert!(refused.contains("cannot be written: give this user write access"), "{refused}");
    }
}
