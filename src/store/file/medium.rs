//! The medium: where the files are, a folder, or in tests one that fails on purpose.
//!
//! Must never know: what is in the files.

use std::{fmt::Debug, io, path::Path};

use redb::StorageBackend;

use super::version::FORMAT_VERSION;

/// A place for redb files. Names are paths below the data directory, with `/`.
pub trait Medium: Send + Sync + Debug {
    /// The version of the format that is written here. Tests stand in for a later release with
    /// another one.
    fn format(&self) -> u64 {
        FORMAT_VERSION
    }
    /// Opens an existing file; never makes one. Pages that the system could not write are dropped
    /// from its memory first, so that readers see what is on the medium.
    fn open(&self, name: &str) -> io::Result<Box<dyn StorageBackend>>;
    /// Makes an empty file; there must be none of this name. Its name is durable after `settle`.
    fn create(&self, name: &str) -> io::Result<Box<dyn StorageBackend>>;
    /// Files in a folder, sorted; none when the folder is not there. What is no file, or has a
    /// name that no file here has, is passed over.
    fn list(&self, folder: &str) -> io::Result<Vec<String>>;
    /// Folders in a folder, likewise.
    fn folders(&self, folder: &str) -> io::Result<Vec<String>>;
    /// Removes a file, if it exists; durable when it returns.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Returns whether there is such a file.
    fn exists(&self, name: &str) -> io::Result<bool>;
    /// Gives a file another name, replacing what has that name; durable when it returns.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Makes the name of an existing file durable: it may not be, when a rename failed late.
    fn settle(&self, name: &str) -> io::Result<()>;
    /// Bytes that a file takes on the medium.
    fn allocated_bytes(&self, name: &str) -> io::Result<u64>;
    /// Copies a file that nobody writes to meanwhile out of the medium, durably; returns its
    /// bytes.
    fn copy(&self, name: &str, target: &Path) -> io::Result<u64>;
}
