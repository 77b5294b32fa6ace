//! Secrets of receivers, read at each use, so that a new one takes effect at once.
//!
//! Must never know: what a secret is for.

use std::{fs, io};

use crate::alerts::Secret;

/// The maximum size of a file with a secret, in bytes.
const SECRET_BYTES_MAX: u64 = 64 << 10;

/// Returns the current value of a secret.
///
/// # Errors
/// When its file cannot be read.
pub(super) fn read(secret: &Secret) -> io::Result<String> {
    match secret {
        Secret::Text(text) => Ok(text.clone()),
        Secret::File(path) => {
            let named = |cause: io::Error| {
                io::Error::new(cause.kind(), format!("read {}: {cause}", path.display()))
            };
            if fs::metadata(path).map_err(named)?.len() > SECRET_BYTES_MAX {
                return Err(named(io::ErrorKind::FileTooLarge.into()));
            }
            Ok(fs::read_to_string(path).map_err(named)?.trim().to_owned())
        }
    }
}
