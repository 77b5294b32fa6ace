//! The version of the files' format: the versions that can be read, and the errors for other
//! versions.
//!
//! Must never know: how versions differ.

use crate::store::error::StoreError;

/// The version of all files that this release writes.
pub const FORMAT_VERSION: u64 = 2;
/// The key of the version in a file's table `meta`.
pub(crate) const VERSION_KEY: &str = "format";
/// The key in files of builds before the first release.
pub(crate) const PRERELEASE_KEY: &str = "format_version";
/// The oldest version that can be read.
const OLDEST_VERSION: u64 = 1;

/// The latest version that any release may have; a larger number is damage.
const LAST_VERSION: u64 = 1000;

/// Refuses a file whose version cannot be read by a release that writes `present`.
pub(crate) fn check(file: &str, version: u64, present: u64) -> Result<(), StoreError> {
    if (OLDEST_VERSION..=present).contains(&version) {
        return Ok(());
    }
    if !(OLDEST_VERSION..=LAST_VERSION).contains(&version) {
        let problem = format!("format {version}, which no release has");
        return Err(StoreError::Corrupt { file: file.to_owned(), problem });
    }
    let problem = format!(
        "format {version} of a newer release; this granary reads format {present}: use the release \
         that wrote it or a newer one"
    );
    Err(StoreError::Mismatch { file: file.to_owned(), problem })
}

/// Returns the error for a file of a build before the first release.
pub(crate) fn prerelease(file: &str, version: u64) -> StoreError {
    let problem = format!(
        "format {version} of a build before the first release, which no release reads: use an \
         empty data directory; to keep the data, run that build on the old directory, export the \
         data with `granary export` and import the files with `granary import`"
    );
    StoreError::Mismatch { file: file.to_owned(), problem }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_impossible_version_is_damage_and_a_newer_version_is_not() {
        for present in [FORMAT_VERSION, FORMAT_VERSION + 1] {
            assert!((OLDEST_VERSION..=present).all(|version| check("a", version, present).is_ok()));
            assert!(!check("a", present + 1, present).unwrap_err().is_damage());
            for version in [0, LAST_VERSION + 1, 7_869_248_049_358_663_538] {
                assert!(check("a", version, present).unwrap_err().is_damage(), "{version}");
            }
        }
    }
}
