//! Errors of the store, by file and operation.
//!
//! Must never know: the reaction to an error.

use std::io;

use crate::model::with_causes;

/// The name of the shared log in errors.
pub(crate) const SHARED_LOG: &str = "the shared log";

/// A failed operation on the store, with its file.
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
    /// A record could not be appended to the shared log.
    #[error("append to {SHARED_LOG}")]
    Log(#[source] Box<LogFault>),
    /// The bytes violate FORMAT.md.
    #[error("{file} is damaged: {problem}")]
    Corrupt {
        /// Path below the data directory.
        file: String,
        /// The fault.
        problem: String,
    },
    /// An operation found a damaged part of a file for the first time; later queries avoid it.
    #[error("{file}: {part} is damaged: run the query again to read it from a coarser granularity")]
    DamagedPart {
        /// Path below the data directory.
        file: String,
        /// The damaged part.
        part: String,
    },
    /// The bytes of an object do not match their checksum.
    #[error("{file}: {object} is damaged: create it again, or restore it from a snapshot")]
    DamagedObject {
        /// Path below the data directory.
        file: String,
        /// The kind and name of the object.
        object: String,
    },
    /// The file has another format, or was written with other settings.
    #[error("{file}: {problem}")]
    Mismatch {
        /// Path below the data directory.
        file: String,
        /// The difference, and the remedy.
        problem: String,
    },
}

/// The reason why a log refused a call.
#[derive(Debug, thiserror::Error)]
pub enum LogFault {
    /// The record may be in the log or not.
    #[error("it is unknown whether record {number} is in the log: append the same record again")]
    Unknown {
        /// The number of the record.
        number: u64,
        /// The cause.
        #[source]
        cause: Box<dyn std::error::Error + Send + Sync>,
    },
    /// Another number follows, or the number has another record.
    #[error("record {number} cannot be appended: record {next} is next")]
    OutOfOrder {
        /// The refused number.
        number: u64,
        /// The number of the next record.
        next: u64,
    },
    /// Another writer continues the log.
    #[error("another node continues the log from record {number} on: follow it")]
    Fenced {
        /// The number of the refused record.
        number: u64,
    },
    /// The record after this number was removed.
    #[error("the log begins after record {cut}: copy the replica from another node")]
    Cut {
        /// The last removed record.
        cut: u64,
    },
    /// The log cannot be read or written; it is unchanged.
    #[error("the log cannot be used")]
    Store(#[from] StoreError),
}

impl StoreError {
    /// Converts an error of redb to a store error with the operation and the file.
    pub(crate) fn redb<E: Into<redb::Error>>(
        operation: &'static str,
        file: &str,
    ) -> impl FnOnce(E) -> Self {
        move |cause| Self::Redb { operation, file: file.to_owned(), cause: Box::new(cause.into()) }
    }

    /// Returns the path of the file below the data directory.
    pub fn file(&self) -> &str {
        match self {
            Self::Open { file, .. }
            | Self::Redb { file, .. }
            | Self::Io { file, .. }
            | Self::Corrupt { file, .. }
            | Self::DamagedPart { file, .. }
            | Self::DamagedObject { file, .. }
            | Self::Mismatch { file, .. } => file,
            Self::Log(_) => SHARED_LOG,
        }
    }

    /// Returns true when the error is damage, see [`Self::is_damage`], of this file.
    pub(crate) fn is_damage_of(&self, file: &str) -> bool {
        self.file() == file && self.is_damage()
    }

    /// Returns the error with its chain of causes.
    pub fn with_causes(&self) -> String {
        with_causes(self)
    }

    /// Returns the error for an operator; when the disk is full, the remedy precedes it.
    pub fn reason(&self) -> String {
        let chain = self.with_causes();
        if self.is_disk_full() {
            format!("the disk is full, free some space: {chain}")
        } else {
            chain
        }
    }

    /// Returns true when the cause is damaged bytes of the file, not the disk, the settings or
    /// another process.
    #[expect(clippy::wildcard_enum_match_arm, reason = "redb may add more errors")]
    pub fn is_damage(&self) -> bool {
        use redb::{DatabaseError, Error, StorageError};
        match self {
            Self::Open { cause, .. } => match cause {
                DatabaseError::RepairAborted
                | DatabaseError::Storage(StorageError::Corrupted(_)) => true,
                // The file is too short, or does not begin like a file of redb.
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
            | Self::Log(_)
            | Self::DamagedPart { .. }
            | Self::DamagedObject { .. }
            | Self::Mismatch { .. } => false,
        }
    }

    /// Returns true when running the query again may succeed: another operation failed on the file,
    /// and the next use reopens it, or the query found damage, which the next query avoids.
    pub fn is_transient(&self) -> bool {
        let is_closed = || match self {
            Self::Redb { cause, .. } => {
                matches!(**cause, redb::Error::PreviousIo | redb::Error::DatabaseClosed)
            }
            Self::Open { .. }
            | Self::Io { .. }
            | Self::Log(_)
            | Self::Corrupt { .. }
            | Self::DamagedPart { .. }
            | Self::DamagedObject { .. }
            | Self::Mismatch { .. } => false,
        };
        matches!(self, Self::DamagedPart { .. }) || self.is_damage() || is_closed()
    }

    /// Returns true when the cause is a full disk.
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
            Self::Log(fault) => match &**fault {
                LogFault::Store(cause) => cause.io_error(),
                LogFault::Unknown { .. }
                | LogFault::OutOfOrder { .. }
                | LogFault::Fenced { .. }
                | LogFault::Cut { .. } => None,
            },
            Self::Open { .. }
            | Self::Corrupt { .. }
            | Self::DamagedPart { .. }
            | Self::DamagedObject { .. }
            | Self::Mismatch { .. } => None,
        }
    }
}

/// Returns true when the system refused an operation because the disk or the user's quota is full.
pub fn is_disk_full(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}
