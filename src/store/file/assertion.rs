//! Panics of redb's assertions, as opposed to bugs of our own.
//!
//! redb has assertions that a damaged file can violate. Such a panic is caught and means that the
//! file is damaged; a panic anywhere else, in Granary's code or in another library, is a bug and
//! continues.
//!
//! Must never know: files.

use std::{
    cell::RefCell,
    panic::{self, AssertUnwindSafe},
    sync::Once,
};

thread_local! {
    /// The location of this thread's last panic.
    static LOCATION: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Runs a function that reads or writes a redb file. Returns `Err` with the location when an
/// assertion of redb failed.
pub(crate) fn catch<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    note_locations();
    match panic::catch_unwind(AssertUnwindSafe(run)) {
        Ok(out) => Ok(out),
        Err(payload) => {
            let location = LOCATION.take();
            if is_of_redb(&location) {
                return Err(location);
            }
            panic::resume_unwind(payload)
        }
    }
}

/// Returns true for a location in redb's code. The compiler names the files of other packages by
/// their paths: the folder has the name of the package, and its version unless the package is
/// vendored.
fn is_of_redb(location: &str) -> bool {
    let Some((package, _)) = location.rsplit_once("/src/") else { return false };
    let name = package.rsplit('/').next().unwrap_or_default();
    name == "redb"
        || name.strip_prefix("redb-").is_some_and(|version| {
            version.bytes().next().is_some_and(|first| first.is_ascii_digit())
        })
}

fn note_locations() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let location = info.location().map(ToString::to_string).unwrap_or_default();
            LOCATION.with(|current| *current.borrow_mut() = location);
            before(info);
        }));
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_an_assertion_of_redb_means_damage() {
        assert_eq!(catch(|| 3), Ok(3));
        let outcome = panic::catch_unwind(|| catch(|| panic!("a bug")));
        assert!(outcome.is_err());
        assert!(is_of_redb("/somewhere/redb-4.4.0/src/tree_store/btree.rs:1105:22"));
        assert!(is_of_redb("vendor/redb/src/tree_store/btree.rs:1105:22"));
        for other in [
            "src/store/partition.rs:1:1",
            "/somewhere/bson-3.0.0/src/raw/iter.rs:7:1",
            "/somewhere/redb-like-1.0.0/elsewhere/src/lib.rs:1:1",
            "/rustc/abc/library/alloc/src/raw_vec/mod.rs:28:5",
            "",
        ] {
            assert!(!is_of_redb(other), "{other}");
        }
    }
}
