//! Copies of a replica's files for another node: one node streams an archive, the other one
//! receives it beside its own files and replaces them.
//!
//! The archive is a tar file. Its first entry announces the format, the last record, and the number
//! and bytes of the files; its last entry has the checksum of all names, lengths and contents.
//! Files of an unfinished transfer are in the folder `transfer` of the data directory. Must never
//! know: HTTP, which node sends.

pub(crate) mod incoming;
pub(crate) mod outgoing;
pub(crate) mod replacing;
#[cfg(test)]
mod tests;

use std::{
    io,
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::{
    error::StoreError,
    file::names::{HEAD_FILE, JOURNAL_FILE, OBJECTS_FILE, PARTITIONS_FOLDER},
    journal::{
        log::{FOLDER as LOG_FOLDER, spare::FOLDER as SPARES_FOLDER},
        register::DAMAGED_FOLDER,
    },
};
pub use outgoing::OutgoingCopy;

/// The folder of unfinished transfers below the data directory.
const TRANSFER_FOLDER: &str = "transfer";
/// The name of the first entry.
const BEGIN: &str = "begin.json";
/// The name of the last entry.
const END: &str = "end.json";
/// The maximum length of the first and of the last entry.
const NOTE_BYTES_MAX: u64 = 4096;
/// The maximum number of files in a copy.
const FILES_MAX: u64 = 1 << 20;
/// The number of bytes that are read at once.
const CHUNK_BYTES: usize = 256 << 10;
/// The space that must stay free beside a copy.
const SPARE_BYTES: u64 = 64 << 20;
/// The files and folders that a replica consists of. The audit and the lock belong to the node.
const STORE_ENTRIES: [&str; 7] = [
    HEAD_FILE,
    OBJECTS_FILE,
    PARTITIONS_FOLDER,
    LOG_FOLDER,
    SPARES_FOLDER,
    DAMAGED_FOLDER,
    JOURNAL_FILE,
];

/// The first entry of a copy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Announcement {
    /// The version of the files' format.
    format: u64,
    /// The record after which the copy follows the log.
    through: u64,
    files: u64,
    bytes: u64,
}

/// The last entry of a copy.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
struct Ending {
    checksum: String,
}

/// The limits of a received copy.
#[derive(Debug, Clone, Copy)]
pub struct CopyLimits {
    /// The least record that the copy must include: the cut of the log.
    pub least_through: u64,
    /// The maximum number of bytes of all files.
    pub bytes_max: u64,
}

/// A copy that was received and checked.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReceivedCopy {
    /// The record after which the copy follows the log.
    pub through: u64,
    /// The number of its files.
    pub files: u64,
    /// The bytes of its files.
    pub bytes: u64,
}

/// The reason why a copy was not sent or received. The files of this node are unchanged.
#[derive(Debug, thiserror::Error)]
pub enum TransferError {
    /// The connection to the other node ended.
    #[error("the connection ended before the copy of the store was complete")]
    Broken(#[source] io::Error),
    /// The caller ended the transfer.
    #[error("the transfer of the store was ended")]
    Ended,
    /// The copy, or this node, cannot be part of the transfer.
    #[error("{0}")]
    Unfit(String),
    /// A file of this node cannot be read or written.
    #[error(transparent)]
    Store(#[from] StoreError),
}

fn unfit(problem: impl Into<String>) -> TransferError {
    TransferError::Unfit(problem.into())
}

/// Returns the folder of unfinished transfers.
fn transfer_folder(data_dir: &Path) -> PathBuf {
    data_dir.join(TRANSFER_FOLDER)
}

/// Checks that a disk has room for a copy.
fn check_space(folder: &Path, bytes: u64) -> Result<(), TransferError> {
    use super::file::space::DiskSpace;
    let shown = || folder.display().to_string();
    let space = DiskSpace::of(folder).map_err(|cause| {
        let (operation, file) = ("read the free space of", shown());
        StoreError::Io { operation, file, cause }
    })?;
    let needed = bytes.saturating_add(SPARE_BYTES);
    if space.free >= needed {
        return Ok(());
    }
    let missing = (needed - space.free).div_ceil(1 << 20);
    Err(unfit(format!(
        "the disk of {} has no room for a copy of the store of {} MiB: free {missing} MiB",
        shown(),
        bytes.div_ceil(1 << 20)
    )))
}
