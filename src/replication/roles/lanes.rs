//! Lanes: a replica has one command in flight in each of them.
//!
//! An append whose outcome is unknown delays neither the renewal of the lease nor the cut.

use crate::replication::roles::Timing;

/// A lane.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lane {
    /// Entries: following, taking, appending.
    Log,
    /// Renewals of the lease.
    Lease,
    /// Cuts, floors of the holder, and removed members.
    Cut,
}

impl Lane {
    /// All lanes.
    pub const ALL: [Self; 3] = [Self::Log, Self::Lease, Self::Cut];
}

/// The sender of a command within a replica.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticket {
    /// The lane.
    pub lane: Lane,
    /// The role that sent the command; answers to earlier roles are ignored.
    pub(super) role: u64,
}

/// The state of a lane.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct LaneState {
    pub(super) is_in_flight: bool,
    /// The time at which the command in flight was sent.
    pub(super) sent_ms: u64,
    /// The time of the next command.
    pub(super) due_ms: u64,
    failures: u32,
}

impl LaneState {
    pub(super) fn is_due(&self, now_ms: u64) -> bool {
        !self.is_in_flight && now_ms >= self.due_ms
    }

    /// Returns true if the last command had an unknown outcome.
    pub(super) fn has_failed(&self) -> bool {
        self.failures > 0
    }

    pub(super) fn note_sent(&mut self, now_ms: u64) {
        (self.is_in_flight, self.sent_ms) = (true, now_ms);
    }

    /// Ends the command in flight and schedules the next one.
    pub(super) fn note_answer(&mut self, next_ms: u64) {
        *self = Self { due_ms: next_ms, sent_ms: self.sent_ms, ..Self::default() };
    }

    /// Ends the command in flight, and delays the next one, longer after each fault.
    pub(super) fn note_fault(&mut self, now_ms: u64, timing: &Timing) {
        self.is_in_flight = false;
        let delay_ms = timing.retry_ms << self.failures.min(16);
        self.due_ms = now_ms + delay_ms.min(timing.retry_max_ms);
        self.failures += 1;
    }
}
