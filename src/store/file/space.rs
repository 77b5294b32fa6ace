//! The space of a file system.
//!
//! Must never know: who needs it.

use std::{io, path::Path};

/// The space of a file system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskSpace {
    /// The bytes that are free to this user.
    pub free: u64,
    /// The bytes of the file system.
    pub total: u64,
}

impl DiskSpace {
    /// Returns the space of the file system of a folder, which need not exist yet.
    ///
    /// # Errors
    /// When the system does not report it.
    pub fn of(folder: &Path) -> io::Result<Self> {
        let existing = folder.ancestors().find(|folder| folder.exists());
        let volume = rustix::fs::statvfs(existing.unwrap_or_else(|| Path::new(".")))?;
        let bytes = |blocks: u64| blocks.saturating_mul(volume.f_frsize);
        Ok(Self { free: bytes(volume.f_bavail), total: bytes(volume.f_blocks) })
    }
}
