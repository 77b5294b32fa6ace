//! The answers to a replica's commands.

use super::{Event, NameUse, Replica, Role};
use crate::replication::{
    entry::{STOPPED, ShardRow},
    medium::{Answer, Command, Fault},
    mutants::{Mutant, is_on},
    roles::{
        cutting::{Cut, Cutter},
        following::{Followed, Follower, floor_command, leave_command, waiting_command},
        insertion::Settled,
        lanes::{Lane, LaneState, Ticket},
        lease::{Lease, Watch},
        taking::{Taker, Took},
    },
    shard::{Shard, ShardFault},
};

impl Replica {
    /// Processes the outcome of a command.
    pub fn accept(
        &mut self,
        now_ms: u64,
        ticket: Ticket,
        outcome: Result<Answer, Fault>,
        state: &mut impl Shard,
    ) -> Vec<Event> {
        let mut events = Vec::new();
        if ticket.role != self.role_number {
            return events;
        }
        let applied = state.applied();
        match outcome {
            Err(_) => self.accept_fault(now_ms, ticket.lane),
            Ok(answer) => match ticket.lane {
                Lane::Log => self.accept_log(now_ms, answer, state, &mut events),
                Lane::Lease => self.accept_lease(now_ms, &answer, &mut events),
                Lane::Cut => self.accept_cut(now_ms, &answer, state, &mut events),
            },
        }
        let new = state.applied().saturating_sub(applied);
        if new > 0 {
            // A later lease of this node knows how long a member has held back the log.
            self.backlog.note(state.applied(), std::mem::take(&mut self.applied_bytes), now_ms);
        }
        self.counters.applied += new;
        events
    }

    fn accept_log(
        &mut self,
        now_ms: u64,
        answer: Answer,
        state: &mut impl Shard,
        events: &mut Vec<Event>,
    ) {
        self.lanes[Lane::Log as usize].note_answer(now_ms);
        if let Answer::Entries(entries) = &answer {
            self.applied_bytes = entries.iter().map(|entry| entry.body.len()).sum();
        }
        let nonce = self.nonces.i64(..);
        let result = match &mut self.role {
            Role::Following(follower) => {
                let timing = &self.timing;
                let free_in_ms =
                    self.rank.and_then(|rank| self.watch.free_in_ms(rank, now_ms, timing));
                let reads_row = free_in_ms == Some(0)
                    || self.row_ms.is_none_or(|last| now_ms >= last + timing.watch_ms);
                follower
                    .accept(answer, (reads_row, nonce), state)
                    .map(|followed| self.accept_followed(now_ms, followed, state, events))
            }
            Role::Taking(taker) => taker
                .accept(answer, state)
                .map(|took| self.accept_took(now_ms, took, state, events)),
            Role::Holding { .. } => self.accept_inserted(now_ms, &answer, state, events),
            Role::Damaged { .. } => {
                self.accept_damaged(now_ms, answer);
                Ok(())
            }
        };
        if let Err(ShardFault(text)) = result {
            self.damage(text, events);
        }
    }

    fn accept_inserted(
        &mut self,
        now_ms: u64,
        answer: &Answer,
        state: &mut impl Shard,
        events: &mut Vec<Event>,
    ) -> Result<(), ShardFault> {
        let Role::Holding { epoch, insertion, .. } = &mut self.role else { return Ok(()) };
        let Some(current) = insertion else { return Ok(()) };
        match current.judge(answer) {
            Settled::Undecided => {}
            Settled::Others => self.end_epoch(now_ms, events),
            Settled::Own => {
                let (number, epoch) = (current.entry().id.number, *epoch);
                let body = current.entry().body.clone();
                *insertion = None;
                self.applied_bytes = body.len();
                if self.stops {
                    self.lanes[Lane::Lease as usize].due_ms = now_ms;
                }
                state.apply(number, &body)?;
                self.counters.appended += 1;
                self.counters.appended_bytes += body.len() as u64;
                events.push(Event::Committed { number, epoch });
            }
        }
        Ok(())
    }

    fn accept_followed(
        &mut self,
        now_ms: u64,
        followed: Followed,
        state: &mut impl Shard,
        events: &mut Vec<Event>,
    ) {
        let lane = &mut self.lanes[Lane::Log as usize];
        match followed {
            Followed::Continues => {}
            Followed::Foreign(text) => {
                lane.due_ms = now_ms + self.timing.cut_ms;
                (self.row, self.caught_up_ms) = (None, None);
                events.push(Event::Foreign(text));
            }
            Followed::Nothing => {
                self.lanes[Lane::Log as usize].due_ms = now_ms + self.pause_ms(now_ms);
                self.caught_up_ms = Some(now_ms);
            }
            Followed::Below(row) => {
                self.watch.note(&row, lane.sent_ms, now_ms, &self.timing);
                self.row = Some(row.clone());
                let first = if row.has_cut(&self.me) {
                    // This member's disk was lost, so it does not have what was cut.
                    leave_command(self.shard, &row, &self.me)
                } else {
                    // Otherwise the cut could pass the snapshot before it has arrived.
                    let joins = self.joins && !row.members.contains_key(&self.me);
                    joins.then(|| waiting_command(self.shard, &row, &self.me))
                };
                match (&mut self.role, first) {
                    (Role::Following(follower), Some(first)) => {
                        follower.send_floor(first);
                        self.lanes[Lane::Log as usize].due_ms = now_ms;
                    }
                    _ => self.seed(now_ms, &row, state, events),
                }
            }
            Followed::Row { row, has_more } => {
                let sent_ms = lane.sent_ms;
                self.row = Some(row.clone());
                self.row_ms = Some(now_ms);
                if !has_more {
                    self.caught_up_ms = Some(now_ms);
                }
                self.watch.note(&row, sent_ms, now_ms, &self.timing);
                self.lanes[Lane::Log as usize].due_ms =
                    now_ms + if has_more { 0 } else { self.pause_ms(now_ms) };
                if self.may_take(now_ms, &row, state.applied()) {
                    let taker = Taker::new(self.shard, &self.me, &row, self.nonces.i64(..));
                    self.become_role(Role::Taking(taker));
                } else if let Some(floor) = self.floor_to_send(&row, state)
                    && let Role::Following(follower) = &mut self.role
                {
                    follower.send_floor(floor);
                    self.lanes[Lane::Log as usize].due_ms = now_ms;
                }
            }
        }
    }

    /// Returns the time until the next pass of a follower: no later than the shard can be free.
    fn pause_ms(&self, now_ms: u64) -> u64 {
        let timing = &self.timing;
        let pause_ms = if self.follows() { timing.follow_ms } else { timing.watch_ms };
        let free_in_ms = self.rank.and_then(|rank| self.watch.free_in_ms(rank, now_ms, timing));
        free_in_ms.filter(|free_in_ms| *free_in_ms > 0).map_or(pause_ms, |ms| ms.min(pause_ms))
    }

    fn floor_to_send(&self, row: &ShardRow, state: &impl Shard) -> Option<Command> {
        let floor = state.durable_floor();
        self.follows().then(|| floor_command(self.shard, row, &self.me, floor)).flatten()
    }

    /// Returns true if a member that has what was cut can take the shard. A node that is named as
    /// the holder but does not hold restarted, or lost the answer to its claim.
    fn may_take(&self, now_ms: u64, row: &ShardRow, applied: u64) -> bool {
        let is_mine = self.name_use == NameUse::Own
            && row.holder.as_ref() == Some(&self.me)
            && row.beat != STOPPED;
        let is_member = row.members.contains_key(&self.me);
        is_member
            && (row.cut <= applied || is_on(Mutant::TakesBelowCut))
            && now_ms >= self.abstains_until_ms
            && self.rank.is_some_and(|rank| is_mine || self.watch.is_free(rank, &self.timing))
    }

    fn accept_took(
        &mut self,
        now_ms: u64,
        took: Took,
        state: &mut impl Shard,
        events: &mut Vec<Event>,
    ) {
        let Role::Taking(taker) = &self.role else { return };
        let (epoch, log) = (taker.epoch(), taker.log());
        match took {
            Took::Continues => self.note_claim(),
            Took::Lost => self.end_epoch(now_ms, events),
            Took::Gap(text) => self.damage(text, events),
            Took::Below(row) => {
                self.follow(now_ms);
                self.seed(now_ms, &row, state, events);
            }
            Took::Holds => {
                let cutter = Cutter::new(self.shard, epoch, self.me.clone());
                // The lease of the take continues.
                let (lease, stops) = (std::mem::take(&mut self.lease), self.stops);
                let lane = self.lanes[Lane::Lease as usize];
                self.become_role(Role::Holding { epoch, log, insertion: None, cutter });
                self.name_use = NameUse::Own;
                (self.lease, self.stops) = (lease, stops);
                self.lanes[Lane::Lease as usize].due_ms =
                    if lane.is_in_flight { 0 } else { lane.due_ms };
                self.counters.takes += 1;
                events.push(Event::Took { epoch });
            }
        }
    }

    /// Notes in the row that this node's epoch has begun: nothing is sent to the last holder any more.
    fn note_claim(&mut self) {
        if let (Role::Taking(taker), Some(row)) = (&self.role, &mut self.row)
            && !taker.is_claiming()
        {
            (row.epoch, row.holder, row.beat) = (taker.epoch(), Some(self.me.clone()), 0);
        }
    }

    fn accept_lease(&mut self, now_ms: u64, answer: &Answer, events: &mut Vec<Event>) {
        let lane = &mut self.lanes[Lane::Lease as usize];
        let next_ms = lane.sent_ms + self.timing.beat_ms;
        lane.note_answer(next_ms);
        if *answer != Answer::Matched(true) {
            self.end_epoch(now_ms, events);
            return;
        }
        self.lease.note_confirmed(now_ms);
        if self.lease.is_stopping() {
            self.abstains_until_ms = now_ms + self.timing.ttl_ms;
            events.push(Event::Stopped);
            self.follow(now_ms);
        }
    }

    fn accept_cut(
        &mut self,
        now_ms: u64,
        answer: &Answer,
        state: &impl Shard,
        events: &mut Vec<Event>,
    ) {
        let Role::Holding { cutter, .. } = &mut self.role else { return };
        if let Answer::Shard(row) = answer {
            self.row.clone_from(row);
        }
        let floor = state.durable_floor();
        let cut = cutter.accept(answer, floor, &self.backlog, now_ms, &self.timing);
        let lane = &mut self.lanes[Lane::Cut as usize];
        match cut {
            Cut::Continues => lane.note_answer(now_ms),
            Cut::Rests => lane.note_answer(now_ms + self.timing.cut_ms),
            Cut::Fenced => self.end_epoch(now_ms, events),
        }
    }

    fn seed(
        &mut self,
        now_ms: u64,
        row: &ShardRow,
        state: &mut impl Shard,
        events: &mut Vec<Event>,
    ) {
        match state.seed(row) {
            Ok(()) => {
                self.counters.seeds += 1;
                events.push(Event::Seeded);
            }
            Err(fault) => {
                self.lanes[Lane::Log as usize].note_fault(now_ms, &self.timing);
                events.push(Event::NotSeeded(fault));
            }
        }
    }

    fn end_epoch(&mut self, now_ms: u64, events: &mut Vec<Event>) {
        self.counters.fenced += 1;
        events.push(Event::Fenced);
        self.follow(now_ms);
    }

    pub(super) fn follow(&mut self, now_ms: u64) {
        self.become_role(Role::Following(Follower::default()));
        self.lanes[Lane::Log as usize].due_ms = now_ms;
    }

    pub(super) fn become_role(&mut self, role: Role) {
        self.role = role;
        self.role_number += 1;
        self.lanes = [LaneState::default(); 3];
        (self.lease, self.watch) = (Lease::default(), Watch::default());
        (self.stops, self.row_ms) = (false, None);
    }
}
