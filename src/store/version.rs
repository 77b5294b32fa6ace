//! Versions of the files' format: which are read, and what is said of others.
//!
//! Must never know: what differs between them.

use super::StoreError;

/// The version that is written.
pub(crate) const FORMAT_VERSION: u64 = 3;
/// The oldest version that can be read.
const OLDEST_VERSION: u64 = 1;

/// Refuses a file of a version that cannot be read.
pub(crate) fn check(file: &str, version: u64) -> Result<(), StoreError> {
    if (OLDEST_VERSION..=FORMAT_VERSION).contains(&version) {
        return Ok(());
    }
    let problem = format!(
        "format version {version}; this granary reads {FORMAT_VERSION}: use the release that \
         wrote it or a newer one"
    );
    Err(StoreError::Mismatch { file: file.to_owned(), problem })
}
