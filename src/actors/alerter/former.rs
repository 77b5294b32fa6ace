//! Samples of the daemon's own roles, accepted before their names had a prefix that no request can use.
//!
//! An evaluation that was written under the former name, and whose state was not stored when the
//! daemon ended, is due again at the start of the version with the new name: its samples count once.
//! Only then the former name is looked at, because anybody can send under it. Must never know: what
//! is evaluated.

use std::{collections::HashMap, sync::Arc};

use crate::{
    model::{BatchNumber, SenderWindow, SequenceVerdict, UnixMillis, former_name, own_sender},
    store::Store,
};

/// See the file's head.
#[derive(Debug, Default)]
pub(super) struct Former {
    /// By the names that count now, of roles that have sent nothing under these yet.
    windows: HashMap<Arc<str>, SenderWindow>,
    /// The start of the daemon: samples of a later time were not written before.
    started: UnixMillis,
}

impl Former {
    /// The former senders of a store at a start.
    pub(super) fn of(store: &Store, started: UnixMillis) -> Self {
        let senders = store.senders();
        let has_new = senders.iter().any(|own| former_name(&own.name).is_some());
        let is_role = |name: &str| matches!(name, "hosts" | "rules") || name.starts_with("rules/");
        let former = senders.into_iter().filter(|own| !has_new && is_role(&own.name));
        let windows = former.map(|own| (own_sender(&own.name), own.window)).collect();
        Self { windows, started }
    }

    /// True when a batch of a time was written under its sender's former name.
    pub(super) fn has(&self, number: &BatchNumber, at: UnixMillis) -> bool {
        let window = self.windows.get(&number.sender).filter(|_| at <= self.started);
        let verdict = window.map(|own| own.check(number.epoch, number.seq));
        verdict == Some(SequenceVerdict::Duplicate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_written_before_the_start_under_the_former_name_is_not_written_again() {
        let at = UnixMillis(1_763_683_200_000);
        let number = |sender: &str, seq: u64| BatchNumber { sender: sender.into(), epoch: 7, seq };
        let mut window = SenderWindow::default();
        window.mark(7, 5);
        // Somebody made the window as late as it can be.
        (0..4).for_each(|later| window.mark(at.0 - later, 1));
        let windows = [(own_sender("rules/a/1"), window.clone())].into();
        let poisoned = Former { windows, started: at };
        assert!(!poisoned.has(&number("granary:rules/a/1", 5), at), "it is forgotten there");
        let mut window = SenderWindow::default();
        window.mark(7, 5);
        let former = Former { windows: [(own_sender("rules/a/1"), window)].into(), started: at };
        assert!(former.has(&number("granary:rules/a/1", 5), at));
        assert!(!former.has(&number("granary:rules/a/1", 6), at), "it was not written");
        assert!(!former.has(&number("granary:rules/b/1", 5), at), "another group");
        assert!(!former.has(&number("granary:rules/a/1", 5), at.plus(1)), "after the start");
    }
}
