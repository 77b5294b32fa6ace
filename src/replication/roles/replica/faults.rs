//! Unknown outcomes, and a replica whose state cannot be used.
//!
//! The node of a damaged replica may still be well and be preferred by the shard: it leaves the
//! members, so that no holder hands over to it, and no record waits for its disk.

use super::{Event, Replica, Role};
use crate::replication::{
    entry::{Entry, EntryId},
    medium::Answer,
    mutants::{Mutant, is_on},
    roles::{following::leave_command, insertion::Insertion, lanes::Lane},
};

impl Replica {
    /// Returns true while the outcome of an append is unknown.
    pub fn is_unsure(&self) -> bool {
        self.proposed().is_some() && self.lanes[Lane::Log as usize].has_failed()
    }

    /// Ends a command whose outcome is unknown.
    pub(super) fn accept_fault(&mut self, now_ms: u64, lane: Lane) {
        self.counters.unknown += 1;
        self.lanes[lane as usize].note_fault(now_ms, &self.timing);
        if lane != Lane::Log {
            return;
        }
        match &mut self.role {
            Role::Following(follower) => {
                follower.restart();
                self.watch.note_fault();
            }
            // The row shows whether the epoch began.
            Role::Taking(taker) if taker.is_claiming() => self.follow(now_ms),
            // Renewals that succeed would keep the shard from a member that can read.
            Role::Taking(_)
                if self.lanes[lane as usize].has_failed_for(self.timing.ttl_ms, now_ms) =>
            {
                self.abstains_until_ms = now_ms + 2 * self.timing.ttl_ms;
                self.follow(now_ms);
            }
            Role::Holding { insertion, .. } if is_on(Mutant::SkipsUnknown) => {
                if let Some(skipped) = insertion {
                    let entry = skipped.entry().clone();
                    let id = EntryId::new(self.shard, entry.id.number + 1);
                    *skipped = Insertion::new(Entry { id, ..entry });
                }
            }
            Role::Taking(_) | Role::Holding { .. } | Role::Damaged { .. } => {}
        }
    }

    /// Leaves the members, now and whenever the row has this node again.
    pub(super) fn accept_damaged(&mut self, now_ms: u64, answer: Answer) {
        let mut next = None;
        if let Answer::Shard(row) = answer {
            self.row = row;
            next = self.row.as_ref().and_then(|row| leave_command(self.shard, row, &self.me));
        }
        let pause_ms = if next.is_some() { 0 } else { self.timing.cut_ms };
        self.lanes[Lane::Log as usize].due_ms = now_ms + pause_ms;
        self.role = Role::Damaged { leaves: next };
    }

    pub(super) fn damage(&mut self, text: String, events: &mut Vec<Event>) {
        self.become_role(Role::Damaged { leaves: None });
        events.push(Event::Damaged(text));
    }
}
