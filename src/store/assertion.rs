//! Failed assertions of redb, told apart from bugs of our own.
//!
//! redb has assertions that the bytes of a damaged file can break. Such a panic is caught and
//! means that the file is damaged; a panic in Granary's own code is a bug and goes on.

use std::{
    cell::RefCell,
    panic::{self, AssertUnwindSafe},
    sync::Once,
};

thread_local! {
    /// Where this thread last panicked.
    static PLACE: RefCell<String> = const { RefCell::new(String::new()) };
}

/// Runs something that reads or writes a redb file; `Err` with the place when an assertion of
/// redb failed.
pub(super) fn catch<T>(run: impl FnOnce() -> T) -> Result<T, String> {
    note_places();
    match panic::catch_unwind(AssertUnwindSafe(run)) {
        Ok(out) => Ok(out),
        Err(payload) => {
            let place = PLACE.take();
            if is_own(&place) {
                panic::resume_unwind(payload);
            }
            Err(place)
        }
    }
}

/// The compiler names the files of this package by their path in it, those of others by where
/// they are.
fn is_own(place: &str) -> bool {
    place.starts_with("src/")
}

fn note_places() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |info| {
            let place = info.location().map(ToString::to_string).unwrap_or_default();
            PLACE.with(|own| *own.borrow_mut() = place);
            before(info);
        }));
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bug_of_our_own_goes_on_and_an_assertion_elsewhere_is_an_error() {
        assert_eq!(catch(|| 3), Ok(3));
        let own = panic::catch_unwind(|| catch(|| panic!("a bug")));
        assert!(own.is_err());
        assert!(is_own("src/store/partition.rs:1:1"));
        assert!(!is_own("/somewhere/redb-4.4.0/src/tree_store/btree.rs:1105:22"));
    }
}
