//! The medium of the files: a folder, or in tests a medium that fails on purpose.
//!
//! Must never know: the content of the files.

use std::{fmt::Debug, io, path::Path};

use redb::StorageBackend;

use super::version::FORMAT_VERSION;

/// A store of files. Names are paths below the data directory, with `/`.
pub trait Medium: Send + Sync + Debug {
    /// Returns the version of the format to write. Tests return a later version, to act as a later
    /// release.
    fn format(&self) -> u64 {
        FORMAT_VERSION
    }
    /// Opens an existing file. First, pages that the system could not write are dropped from its
    /// cache, so that readers see the content of the medium.
    fn open(&self, name: &str) -> io::Result<Box<dyn StorageBackend>>;
    /// Creates an empty file; the name must be free. The name is durable after `settle`.
    fn create(&self, name: &str) -> io::Result<Box<dyn StorageBackend>>;
    /// Lists the files of a folder, sorted; empty when the folder is missing. Other entries, and
    /// names that the store does not use, are skipped.
    fn list(&self, folder: &str) -> io::Result<Vec<String>>;
    /// Lists the folders of a folder, by the rules of `list`.
    fn folders(&self, folder: &str) -> io::Result<Vec<String>>;
    /// Removes a file, if it exists, durably.
    fn remove(&self, name: &str) -> io::Result<()>;
    /// Returns whether a file exists.
    fn exists(&self, name: &str) -> io::Result<bool>;
    /// Renames a file durably, and replaces a file with the new name.
    fn rename(&self, from: &str, to: &str) -> io::Result<()>;
    /// Makes the name of an existing file durable. A failed rename may have changed the name
    /// without syncing it.
    fn settle(&self, name: &str) -> io::Result<()>;
    /// Allocates the blocks of a file, and blocks for `beyond` bytes after its end, `bytes_max` in
    /// all from its start, so that writes there need no free space. Changes neither the content nor
    /// the length.
    fn allocate(&self, name: &str, beyond: u64, bytes_max: u64) -> io::Result<()>;
    /// Returns the size of a file on the medium in bytes.
    fn allocated_bytes(&self, name: &str) -> io::Result<u64>;
    /// Copies a file out of the medium durably, and returns its size in bytes. The file must not be
    /// written in the meantime.
    fn copy(&self, name: &str, target: &Path) -> io::Result<u64>;
    /// Gives a file that never changes a second name out of the medium, or copies it. Returns its
    /// size in bytes.
    fn link(&self, name: &str, target: &Path) -> io::Result<u64> {
        self.copy(name, target)
    }
}
