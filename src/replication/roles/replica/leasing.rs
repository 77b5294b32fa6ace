//! The lease of a replica, as its caller sees it.

use super::{Replica, Role};

impl Replica {
    /// Returns true while this node holds the shard, or takes it.
    pub fn has_lease(&self) -> bool {
        matches!(self.role, Role::Holding { .. } | Role::Taking(_))
    }

    /// Returns true while queries can be answered: no other node can have confirmed a record.
    pub fn may_answer(&self, now_ms: u64) -> bool {
        self.answers_until_ms().is_some_and(|until_ms| now_ms < until_ms)
    }

    /// Returns the time until which queries can be answered.
    pub fn answers_until_ms(&self) -> Option<u64> {
        let answers = self.epoch().is_some() && !self.stops;
        answers.then(|| self.lease.until_ms(&self.timing)).flatten()
    }
}
