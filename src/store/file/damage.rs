//! What was found damaged within a file that is otherwise sound: documents, and rows of the head.
//!
//! Each is noted once, so that its loss is said once and counted. Must never know: what they hold.

use std::collections::BTreeSet;

use parking_lot::Mutex;

/// Places that are named in the log; more are only counted.
const NAMED_MAX: usize = 100;

/// Keys of damaged places.
#[derive(Debug, Default)]
pub(crate) struct Damage(Mutex<BTreeSet<u64>>);

impl Damage {
    /// Notes a place by its key; `say` names it when it is new. Returns whether it is.
    pub(crate) fn note(&self, key: u64, say: impl FnOnce()) -> bool {
        let mut places = self.0.lock();
        let is_new = places.insert(key);
        if is_new && places.len() <= NAMED_MAX {
            say();
        }
        is_new
    }

    /// The keys, ascending.
    pub(crate) fn keys(&self) -> Vec<u64> {
        self.0.lock().iter().copied().collect()
    }

    /// Whether a place was noted.
    pub(crate) fn has(&self, key: u64) -> bool {
        self.0.lock().contains(&key)
    }

    /// Number of places.
    pub(crate) fn count(&self) -> u64 {
        self.0.lock().len() as u64
    }
}
