//! What can go wrong with the spool, and which of it means that the file is broken.

use std::{
    any::Any,
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    path::{Path, PathBuf},
};

use redb::{DatabaseError, StorageError};

/// Why the spool cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum SpoolError {
    /// The folder cannot be made or written.
    #[error("spool folder {}: make it writable for this user or give another with --spool-dir", path.display())]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What the system said.
        #[source]
        cause: io::Error,
    },
    /// Another process has the file.
    #[error("{} is in use by another agent; give each its own --spool-dir", path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// The database failed.
    #[error("spool: {operation}")]
    Store {
        /// What was being done.
        operation: &'static str,
        /// What the database said.
        #[source]
        cause: Box<redb::Error>,
    },
}

impl SpoolError {
    /// Whether the file's content is broken, so that it must be set aside.
    pub(crate) fn is_damage(&self) -> bool {
        matches!(self, Self::Store { cause, .. } if is_damage(cause))
    }

    /// Whether the file cannot be written now, though nothing in it is broken.
    pub(super) fn is_of_medium(&self) -> bool {
        use redb::Error as E;
        let Self::Store { cause, .. } = self else { return matches!(self, Self::Folder { .. }) };
        matches!(**cause, E::Io(_) | E::PreviousIo | E::DatabaseClosed) && !is_damage(cause)
    }

    /// Whether there is no room to write.
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

/// Attaches the operation to whatever error redb has.
pub(super) fn at<E: Into<redb::Error>>(operation: &'static str) -> impl Fn(E) -> SpoolError {
    move |cause| SpoolError::Store { operation, cause: Box::new(cause.into()) }
}

/// The error of opening the file.
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

/// redb takes the form of its pages for granted and panics when a damaged file breaks it; the
/// caller needs an error to set the file aside.
pub(super) fn panics_are_damage<T>(
    operation: &'static str,
    work: impl FnOnce() -> Result<T, SpoolError>,
) -> Result<T, SpoolError> {
    // What `work` was building is dropped with the panic, so nothing half done is seen later.
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| {
        let text = format!("panic: {}", panic_text(&*panic));
        Err(SpoolError::Store { operation, cause: Box::new(redb::Error::Corrupted(text)) })
    })
}

fn panic_text(panic: &(dyn Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("without a message")
}
