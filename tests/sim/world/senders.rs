//! The state of senders in a naive model, with sets of accepted numbers and times.

use std::collections::{BTreeMap, BTreeSet};

/// The number of batch numbers in the window, which ends at the highest number.
const NUMBERS_WINDOW: u64 = 1024;
/// The maximum number of remembered epochs.
const EPOCHS_MAX: usize = 4;

/// The outcome of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The batch is accepted; the field counts samples that did not count.
    Accepted(u64),
    Duplicate,
    Stale,
    /// The batch has no samples left, and its number stays free.
    Empty,
}

/// The numbers of one sender.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Numbers(BTreeMap<i64, BTreeSet<u64>>);

impl Numbers {
    /// Returns the verdict on a batch, and records a new batch.
    pub(super) fn note(&mut self, epoch: i64, seq: u64) -> Verdict {
        let seen = self.0.get(&epoch);
        let highest = seen.and_then(|seen| seen.last().copied()).unwrap_or(0);
        let is_forgotten = seen.is_none()
            && self.0.len() == EPOCHS_MAX
            && self.0.keys().all(|known| epoch < *known);
        if is_forgotten || seq + NUMBERS_WINDOW <= highest {
            return Verdict::Stale;
        }
        if seen.is_some_and(|seen| seen.contains(&seq)) {
            return Verdict::Duplicate;
        }
        self.0.entry(epoch).or_default().insert(seq);
        if self.0.len() > EPOCHS_MAX {
            self.0.pop_first();
        }
        Verdict::Accepted(0)
    }
}

/// The times of one series of senders that do not number their batches.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Times(BTreeSet<i64>);

impl Times {
    /// Returns true if a time counts, and records it.
    pub(super) fn note(&mut self, at: i64, window_ms: i64) -> bool {
        let is_late = self.0.last().is_some_and(|latest| at < latest - window_ms);
        !is_late && self.0.insert(at)
    }
}
