//! Migration of the senders of the daemon's roles to names with a reserved prefix.
//!
//! An evaluation that was written under the former name, and whose state was not stored before the
//! daemon ended, is due again at the first start with the new name; its samples must count once.
//! The former name is consulted only then, because any client can send under it. Must never know:
//! evaluations.

use std::{collections::HashMap, sync::Arc};

use crate::{
    model::{BatchNumber, SenderWindow, SequenceVerdict, UnixMillis, former_name, own_sender},
    store::Store,
};

/// The accepted batches of former names.
#[derive(Debug, Default)]
pub(super) struct FormerSenders {
    /// The windows of roles that have not yet sent under their current names, by these names.
    windows: HashMap<Arc<str>, SenderWindow>,
    /// The start of the daemon: samples of later times cannot have been written before it.
    started: UnixMillis,
}

impl FormerSenders {
    /// Returns the former senders of a store at a start.
    pub(super) fn new(store: &Store, started: UnixMillis) -> Self {
        let senders = store.senders();
        let has_new = senders.iter().any(|sender| former_name(&sender.name).is_some());
        let is_role = |name: &str| matches!(name, "hosts" | "rules") || name.starts_with("rules/");
        let former = senders.into_iter().filter(|sender| !has_new && is_role(&sender.name));
        let windows = former.map(|sender| (own_sender(&sender.name), sender.window)).collect();
        Self { windows, started }
    }

    /// Returns true when a batch for a time was written under its sender's former name.
    pub(super) fn contains(&self, number: &BatchNumber, at: UnixMillis) -> bool {
        let window = self.windows.get(&number.sender).filter(|_| at <= self.started);
        let verdict = window.map(|window| window.check(number.epoch, number.seq));
        verdict == Some(SequenceVerdict::Duplicate)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn samples_written_under_the_former_name_before_the_start_are_not_written_again() {
        let at = UnixMillis(1_763_683_200_000);
        let number = |sender: &str, seq: u64| BatchNumber { sender: sender.into(), epoch: 7, seq };
        let mut window = SenderWindow::default();
        window.mark(7, 5);
        // A client moved the window as far as it can.
        (0..4).for_each(|later| window.mark(at.0 - later, 1));
        let windows = [(own_sender("rules/a/1"), window.clone())].into();
        let poisoned = FormerSenders { windows, started: at };
        assert!(
            !poisoned.contains(&number("granary:rules/a/1", 5), at),
            "the window has forgotten the epoch"
        );
        let mut window = SenderWindow::default();
        window.mark(7, 5);
        let former =
            FormerSenders { windows: [(own_sender("rules/a/1"), window)].into(), started: at };
        assert!(former.contains(&number("granary:rules/a/1", 5), at));
        assert!(!former.contains(&number("granary:rules/a/1", 6), at), "another batch");
        assert!(!former.contains(&number("granary:rules/b/1", 5), at), "another group");
        assert!(!former.contains(&number("granary:rules/a/1", 5), at.plus(1)), "after the start");
    }
}
