//! Versions of the files' format: which are read, and what is said of others.
//!
//! Must never know: what differs between them.

use crate::store::error::StoreError;

/// The version that is written, of all files.
pub(crate) const FORMAT_VERSION: u64 = 9;
/// Where a file's table `meta` says its version.
pub(crate) const VERSION_KEY: &str = "format_version";
/// The oldest version that can be read.
const OLDEST_VERSION: u64 = 1;

/// No release will have a later one: such a number is damage.
const LAST_VERSION: u64 = 1000;

/// Refuses a file of a version that cannot be read.
pub(crate) fn check(file: &str, version: u64) -> Result<(), StoreError> {
    if (OLDEST_VERSION..=FORMAT_VERSION).contains(&version) {
        return Ok(());
    }
    if !(OLDEST_VERSION..=LAST_VERSION).contains(&version) {
        let problem = format!("format version {version}, which no release has");
        return Err(StoreError::Corrupt { file: file.to_owned(), problem });
    }
    let problem = format!(
        "format version {version}; this granary reads {FORMAT_VERSION}: use the release that \
         wrote it or a newer one"
    );
    Err(StoreError::Mismatch { file: file.to_owned(), problem })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_of_no_release_is_damage_and_a_newer_one_is_not() {
        assert!((OLDEST_VERSION..=FORMAT_VERSION).all(|version| check("a", version).is_ok()));
        assert!(!check("a", FORMAT_VERSION + 1).unwrap_err().is_damage());
        for version in [0, LAST_VERSION + 1, 7_869_248_049_358_663_538] {
            assert!(check("a", version).unwrap_err().is_damage(), "{version}");
        }
    }
}
