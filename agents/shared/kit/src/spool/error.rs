//! Errors of the spool, and which of them mean that the file is damaged.

use std::{
    any::Any,
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
};

use redb::{DatabaseError, StorageError};

/// The reason why the spool is unusable.
#[derive(Debug, thiserror::Error)]
pub enum SpoolError {
    /// The folder cannot be created or written.
    #[error(
        "spool folder {}: make it writable for this user, or set another folder with --spool-dir",
        path.display()
    )]
    Folder {
        /// The folder.
        path: PathBuf,
        /// The error of the operating system.
        #[source]
        cause: io::Error,
    },
    /// Another process uses the file.
    #[error(
        "{} is in use by another agent; set a different --spool-dir for each agent",
        path.display()
    )]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// The database failed.
    #[error("spool: {operation}")]
    Store {
        /// The operation that failed.
        operation: &'static str,
        /// The error of the database.
        #[source]
        cause: Box<redb::Error>,
    },
}

impl SpoolError {
    /// Returns true when the file is damaged, so that it must be set aside.
    pub(crate) fn is_damage(&self) -> bool {
        matches!(self, Self::Store { cause, .. } if is_damage(cause))
    }

    /// Returns true when the file cannot be written at the moment, but is not damaged.
    pub(super) fn is_write_obstacle(&self) -> bool {
        use redb::Error as E;
        let Self::Store { cause, .. } = self else { return matches!(self, Self::Folder { .. }) };
        matches!(**cause, E::Io(_) | E::PreviousIo | E::DatabaseClosed) && !is_damage(cause)
    }

    /// Returns true when the disk is full.
    pub(super) fn is_full(&self) -> bool {
        use io::ErrorKind::{FileTooLarge, QuotaExceeded, StorageFull};
        let Self::Store { cause, .. } = self else { return false };
        let full = [FileTooLarge, QuotaExceeded, StorageFull];
        matches!(&**cause, redb::Error::Io(cause) if full.contains(&cause.kind()))
    }
}

fn is_damage(cause: &redb::Error) -> bool {
    use redb::Error as E;
    if let E::Io(cause) = cause {
        return matches!(cause.kind(), io::ErrorKind::InvalidData | io::ErrorKind::UnexpectedEof);
    }
    matches!(
        cause,
        E::Corrupted(_)
            | E::UpgradeRequired(_)
            | E::RepairAborted
            | E::TableTypeMismatch { .. }
            | E::TypeDefinitionChanged { .. }
            | E::TableIsMultimap(_)
    )
}

/// Adds the operation to an error of redb.
pub(super) fn at<E: Into<redb::Error>>(operation: &'static str) -> impl Fn(E) -> SpoolError {
    move |cause| SpoolError::Store { operation, cause: Box::new(cause.into()) }
}

/// Converts an error of opening the file.
pub(super) fn cannot_open(file: &Path, cause: DatabaseError) -> SpoolError {
    if matches!(cause, DatabaseError::DatabaseAlreadyOpen) {
        return SpoolError::InUse { path: file.to_owned() };
    }
    match cause {
        DatabaseError::Storage(StorageError::Io(cause))
            if cause.kind() == io::ErrorKind::PermissionDenied =>
        {
            SpoolError::Folder { path: file.parent().unwrap_or(file).to_owned(), cause }
        }
        cause @ (DatabaseError::Storage(_) | _) => at("open the file")(cause),
    }
}

/// Turns a panic into an error: redb panics on some damaged pages, and the caller needs an error to
/// set the file aside.
pub(super) fn panics_are_damage<T>(
    operation: &'static str,
    work: impl FnOnce() -> Result<T, SpoolError>,
) -> Result<T, SpoolError> {
    // The panic drops the state of `work`, so no partial result remains.
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = format!("panic: {}", panic_text(&*panic));
        Err(SpoolError::Store { operation, cause: Box::new(redb::Error::Corrupted(text)) })
    })
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a message")
}
