//! What can go wrong with the files.

use std::io;

/// A failed operation on the store, with the file it concerns.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// A file could not be opened.
    #[error("open {file}")]
    Open {
        /// Path below the data directory.
        file: String,
        /// What redb says.
        #[source]
        cause: redb::DatabaseError,
    },
    /// A read or write failed.
    #[error("{operation} in {file}")]
    Redb {
        /// What was being done.
        operation: &'static str,
        /// Path below the data directory.
        file: String,
        /// What redb says.
        #[source]
        cause: Box<redb::Error>,
    },
    /// A folder or file operation failed.
    #[error("{operation} {file}")]
    Io {
        /// What was being done.
        operation: &'static str,
        /// Path below the data directory.
        file: String,
        /// What the system says.
        #[source]
        cause: io::Error,
    },
    /// The bytes are not what FORMAT.md says.
    #[error("{file} is damaged: {problem}")]
    Corrupt {
        /// Path below the data directory.
        file: String,
        /// What is wrong.
        problem: String,
    },
    /// A file of another format, or written with other settings.
    #[error("{file}: {problem}")]
    Mismatch {
        /// Path below the data directory.
        file: String,
        /// What differs and what to do.
        problem: String,
    },
}

impl StoreError {
    /// Met a damaged part of a file for the first time: from now on it is gone round.
    pub(crate) fn newly_damaged(file: &str, place: &str) -> Self {
        let problem = format!(
            "{place} is damaged: ask again, and a coarser granularity answers where there is one"
        );
        Self::Mismatch { file: file.to_owned(), problem }
    }

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
            | Self::Mismatch { file, .. } => file,
        }
    }

    /// Whether the bytes of this very file are to blame, see [`Self::is_damage`].
    pub(crate) fn is_damage_of(&self, file: &str) -> bool {
        self.file() == file && self.is_damage()
    }

    /// The error with its chain of causes.
    pub fn chain(&self) -> String {
        let mut text = self.to_string();
        let mut source = std::error::Error::source(self);
        while let Some(cause) = source {
            text = format!("{text}: {cause}");
            source = cause.source();
        }
        text
    }

    /// Whether the bytes of the file are to blame, not the disk, the settings or another process.
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
                Error::Corrupted(_)
                | Error::TableTypeMismatch { .. }
                | Error::TypeDefinitionChanged { .. }
                | Error::TableDoesNotExist(_) => true,
                Error::Io(io) => io.kind() == io::ErrorKind::UnexpectedEof,
                _ => false,
            },
            Self::Corrupt { .. } => true,
            Self::Io { .. } | Self::Mismatch { .. } => false,
        }
    }

    /// Whether the cause is a full disk.
    pub fn is_disk_full(&self) -> bool {
        self.io_error().is_some_and(|io| {
            matches!(io.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
        })
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
            Self::Open { .. } | Self::Corrupt { .. } | Self::Mismatch { .. } => None,
        }
    }
}
