//! Secrets of receivers and Alertmanagers, read at each use, so that a change takes effect at once.
//!
//! Must never know: the purpose of a secret.

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
            let in_file = |cause: io::Error| {
                io::Error::new(cause.kind(), format!("read {}: {cause}", path.display()))
            };
            if fs::metadata(path).map_err(in_file)?.len() > SECRET_BYTES_MAX {
                return Err(in_file(io::ErrorKind::FileTooLarge.into()));
            }
            Ok(fs::read_to_string(path).map_err(in_file)?.trim().to_owned())
        }
    }
}
