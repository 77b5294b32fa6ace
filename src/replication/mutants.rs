//! Weakened variants of the protocol. Each must fail in the simulation; none can be selected
//! outside of this crate's tests.

/// A weakening.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[cfg_attr(not(test), expect(dead_code, reason = "some weaken the medium in memory"))]
pub(crate) enum Mutant {
    /// A new holder inserts no fence: unique numbers alone separate it from the previous one.
    NoFence,
    /// A duplicate key counts as the holder's own entry.
    DuplicateIsOwn,
    /// A holder continues behind a number whose insert has an unknown outcome.
    SkipsUnknown,
    /// The cut removes fences.
    CutsFences,
    /// The holder cuts at its own floor.
    OwnCut,
    /// The cut is set, not raised.
    SetsCut,
    /// Records are deleted before the cut is confirmed.
    DeletesFirst,
    /// A follower or a new holder judges by the row that it read before the entries.
    RowFirst,
    /// A new holder does not compare the cut with its first number.
    TakesBelowCut,
    /// Reads return entries that no majority confirmed.
    LocalReads,
    /// A node takes a shard whose beat changed since the node read it.
    TakesWithoutBeat,
    /// A replica does not compare the log with the one that it follows from.
    IgnoresOrigin,
    /// A lease counts from the answer to its renewal.
    LeaseFromAnswer,
    /// A holder answers up to the end of the TTL, however fast its clock is.
    NoMargin,
}

/// Returns true in a test of the mutant.
#[cfg(not(test))]
pub(crate) const fn is_on(_: Mutant) -> bool {
    false
}

#[cfg(test)]
pub(crate) use test_switch::{is_on, switch};

#[cfg(test)]
mod test_switch {
    use std::cell::Cell;

    use super::Mutant;

    thread_local! {
        static ACTIVE: Cell<Option<Mutant>> = const { Cell::new(None) };
    }

    /// Returns true if this thread tests the mutant.
    pub(crate) fn is_on(mutant: Mutant) -> bool {
        ACTIVE.get() == Some(mutant)
    }

    /// Selects the mutant that this thread tests.
    pub(crate) fn switch(mutant: Option<Mutant>) {
        ACTIVE.set(mutant);
    }
}
