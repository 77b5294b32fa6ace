//! Errors of the store, by file and operation.
//!
//! Must never know: what is done about it.

use std::io;

use crate::model::chain;

/// A failed operation on the store, with the file it concerns.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A file could not be opened.
    #[error("open {file}")]
    Open {
        /// Path below the data directory.
        file: String,
        /// The error of redb.
        #[source]
        cause: redb::DatabaseError,
    },
    /// A read or write failed.
    #[error("{operation} in {file}")]
    Redb {
        /// The operation.
        operation: &'static str,
        /// Path below the data directory.
        file: String,
        /// The error of redb.
        #[source]
        cause: Box<redb::Error>,
    },
    /// A folder or file operation failed.
    #[error("{operation} {file}")]
    Io {
        /// The operation.
        operation: &'static str,
        /// Path below the data directory.
        file: String,
        /// The error of the system.
        #[source]
        cause: io::Error,
    },
    /// The bytes are not what FORMAT.md says.
    #[error("{file} is damaged: {problem}")]
    Corrupt {
        /// Path below the data directory.
        file: String,
        /// The fault.
        problem: String,
    },
    /// A damaged part of a file was met for the first time: from now on queries go round it.
    #[error(
        "{file}: {part} is damaged: ask again, and a coarser granularity answers where there is one"
    )]
    DamagedPart {
        /// Path below the data directory.
        file: String,
        /// The damaged part.
        part: String,
    },
    /// An object is not as it was written.
    #[error("{file}: {object} is damaged: make it again, or restore it from a snapshot")]
    DamagedObject {
        /// Path below the data directory.
        file: String,
        /// Kind and name.
        object: String,
    },
    /// A file of another format, or written with other settings.
    #[error("{file}: {problem}")]
    Mismatch {
        /// Path below the data directory.
        file: String,
        /// The difference, and the remedy.
        problem: String,
    },
}

impl StoreError {
    /// Turns a redb error into one that names the operation and the file.
    pub(crate) fn redb<E: Into<redb::Error>>(
        operation: &'static str,
        file: &str,
    ) -> impl FnOnce(E) -> Self {
        move |cause| Self::Redb { operation, file: file.to_owned(), cause: Box::new(cause.into()) }
    }

    /// The file that it concerns, below the data directory.
    pub fn file(&self) -> &str {
        match self {
            Self::Open { file, .. }
            | Self::Redb { file, .. }
            | Self::Io { file, .. }
            | Self::Corrupt { file, .. }
            | Self::DamagedPart { file, .. }
            | Self::DamagedObject { file, .. }
            | Self::Mismatch { file, .. } => file,
        }
    }

    /// Returns whether the bytes of this very file are to blame, see [`Self::is_damage`].
    pub(crate) fn is_damage_of(&self, file: &str) -> bool {
        self.file() == file && self.is_damage()
    }

    /// The error with its chain of causes.
    pub fn chain(&self) -> String {
        chain(self)
    }

    /// The error in words for an operator: a full disk is named first, with what to do.
    pub fn reason(&self) -> String {
        let chain = self.chain();
        if self.is_disk_full() {
            format!("the disk is full, free some space: {chain}")
        } else {
            chain
        }
    }

    /// Returns whether the bytes of the file are to blame, not the disk, the settings or another
    /// process.
    #[expect(clippy::wildcard_enum_match_arm, reason = "redb may add more errors")]
    pub fn is_damage(&self) -> bool {
        use redb::{DatabaseError, Error, StorageError};
        match self {
            Self::Open { cause, .. } => match cause {
                DatabaseError::RepairAborted
                | DatabaseError::Storage(StorageError::Corrupted(_)) => true,
                // A file that is too short, or does not begin as redb files do.
                DatabaseError::Storage(StorageError::Io(io)) => {
                    matches!(io.kind(), io::ErrorKind::UnexpectedEof | io::ErrorKind::InvalidData)
                }
                _ => false,
            },
            Self::Redb { cause, .. } => match &**cause {
                // A lock is poisoned when an assertion failed while another thread held it.
                Error::Corrupted(_)
                | Error::LockPoisoned(_)
                | Error::TableTypeMismatch { .. }
                | Error::TypeDefinitionChanged { .. }
                | Error::TableDoesNotExist(_) => true,
                Error::Io(io) => io.kind() == io::ErrorKind::UnexpectedEof,
                _ => false,
            },
            Self::Corrupt { .. } => true,
            Self::Io { .. }
            | Self::DamagedPart { .. }
            | Self::DamagedObject { .. }
            | Self::Mismatch { .. } => false,
        }
    }

    /// Returns true when running the query again may succeed: another operation failed on a file,
    /// which is open again by then, or the query found damage, which is recorded or set aside by
    /// then.
    pub fn is_transient(&self) -> bool {
        let is_closed = || match self {
            Self::Redb { cause, .. } => {
                matches!(**cause, redb::Error::PreviousIo | redb::Error::DatabaseClosed)
            }
            Self::Open { .. }
            | Self::Io { .. }
            | Self::Corrupt { .. }
            | Self::DamagedPart { .. }
            | Self::DamagedObject { .. }
            | Self::Mismatch { .. } => false,
        };
        matches!(self, Self::DamagedPart { .. }) || self.is_damage() || is_closed()
    }

    /// Returns whether the cause is a full disk.
    pub fn is_disk_full(&self) -> bool {
        self.io_error().is_some_and(is_disk_full)
    }

    fn io_error(&self) -> Option<&io::Error> {
        match self {
            Self::Open {
                cause: redb::DatabaseError::Storage(redb::StorageError::Io(io)), ..
            }
            | Self::Io { cause: io, .. } => Some(io),
            Self::Redb { cause, .. } => {
                if let redb::Error::Io(io) = &**cause {
                    Some(io)
                } else {
                    None
                }
            }
            Self::Open { .. }
            | Self::Corrupt { .. }
            | Self::DamagedPart { .. }
            | Self::DamagedObject { .. }
            | Self::Mismatch { .. } => None,
        }
    }
}

/// Returns whether the system refused an operation because the disk, or the user's quota of it, is
/// full.
pub fn is_disk_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}
