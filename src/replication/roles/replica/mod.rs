//! A replica: the roles of one shard on one node, of which one at a time is active.
//!
//! The caller sends the commands of [`Replica::poll`], passes their outcomes to
//! [`Replica::accept`], and owns the state of the shard. Must never know: threads, the medium.

mod accepting;
mod faults;
mod leasing;

use crate::replication::{
    entry::{Body, Entry, EntryId, NodeName, RECORD_BYTES_MAX, ShardRow},
    medium::Command,
    roles::{
        cutting::{Backlog, Cutter},
        following::Follower,
        insertion::Insertion,
        lanes::{Lane, LaneState, Ticket},
        lease::{Lease, Timing, Watch},
        taking::Taker,
    },
    shard::{Shard, ShardFault},
};

/// The reason why a record is not accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// Another node holds the shard, or no node does.
    #[error("this node does not hold the shard; send to its holder")]
    NoHolder,
    /// The previous record is not confirmed.
    #[error("the previous record is not confirmed yet; send again later")]
    Busy,
    /// The record is too large.
    #[error("a record has at most {RECORD_BYTES_MAX} bytes; send smaller batches")]
    TooLarge,
}

/// A change of a replica that its caller acts on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The proposed record is confirmed and applied: its sender can be answered.
    Committed {
        /// The number of the record.
        number: u64,
        /// The epoch of the holder.
        epoch: u64,
    },
    /// This node holds the shard, from an epoch's fence on.
    Took {
        /// The epoch that began.
        epoch: u64,
    },
    /// Another node ended the lease or the take. A record that was not confirmed may be in the log.
    Fenced,
    /// The lease ended in order; the next holder need not wait.
    Stopped,
    /// A snapshot replaced the state.
    Seeded,
    /// A snapshot could not be copied; the replica tries again.
    NotSeeded(ShardFault),
    /// The database has another log than the one that the replica follows, or an older state of
    /// it. The replica applies none of its entries, and reads the row again later.
    Foreign(String),
    /// The replica cannot continue.
    Damaged(String),
}

/// Counts for metrics, since the replica was opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counters {
    /// Entries that the state applied.
    pub applied: u64,
    /// Records that were confirmed for this holder.
    pub appended: u64,
    /// Bytes of these records.
    pub appended_bytes: u64,
    /// Commands with an unknown outcome.
    pub unknown: u64,
    /// Times that this node took the shard.
    pub takes: u64,
    /// Leases and takes that another node ended.
    pub fenced: u64,
    /// Snapshots that replaced the state.
    pub seeds: u64,
}

#[derive(Debug)]
enum Role {
    Following(Follower),
    Taking(Taker),
    Holding {
        epoch: u64,
        log: i64,
        insertion: Option<Insertion>,
        cutter: Cutter,
    },
    /// The state cannot be used. The node leaves the members, so that no member waits for it.
    Damaged {
        leaves: Option<Command>,
    },
}

/// The use of the node's name by processes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum NameUse {
    /// Before the first assignment, another process may use it.
    Unknown,
    /// The holder that the row names may be another process, whose lease may still be valid.
    WasOthers,
    /// Earlier processes have ended.
    Own,
}

/// The roles of a shard on a node.
#[derive(Debug)]
pub struct Replica {
    shard: u16,
    me: NodeName,
    timing: Timing,
    nonces: fastrand::Rng,
    role: Role,
    role_number: u64,
    lanes: [LaneState; 3],
    lease: Lease,
    watch: Watch,
    backlog: Backlog,
    /// The number of members that are preferred as holders; `None` if this node must not take, as
    /// before its first assignment.
    rank: Option<u32>,
    joins: bool,
    stops: bool,
    name_use: NameUse,
    /// The time before which the node does not take the shard again.
    abstains_until_ms: u64,
    /// The time of the last read of the row.
    row_ms: Option<u64>,
    row: Option<ShardRow>,
    /// The time at which the follower last read the end of the log.
    caught_up_ms: Option<u64>,
    /// The bytes of the records that the last search found.
    applied_bytes: usize,
    counters: Counters,
}

impl Replica {
    /// Creates a replica that follows. `seed` makes its nonces unique: a process passes a random
    /// number.
    ///
    /// # Panics
    /// The margin is not shorter than the TTL.
    pub fn new(shard: u16, me: NodeName, timing: Timing, seed: u64) -> Self {
        assert!(timing.margin_ms < timing.ttl_ms, "the margin must be shorter than the TTL");
        Self {
            shard,
            me,
            timing,
            nonces: fastrand::Rng::with_seed(seed),
            role: Role::Following(Follower::default()),
            role_number: 0,
            lanes: [LaneState::default(); 3],
            lease: Lease::default(),
            watch: Watch::default(),
            backlog: Backlog::default(),
            rank: None,
            joins: false,
            stops: false,
            name_use: NameUse::Unknown,
            abstains_until_ms: 0,
            row_ms: None,
            row: None,
            caught_up_ms: None,
            applied_bytes: 0,
            counters: Counters::default(),
        }
    }

    /// Sets the number of members that are preferred as holders (`None`: this node must not take
    /// the shard), and whether the node becomes a member.
    pub fn assign(&mut self, rank: Option<u32>, joins: bool) {
        (self.rank, self.joins) = (rank, joins);
        if self.name_use == NameUse::Unknown {
            self.name_use = NameUse::Own;
        }
    }

    /// Notes that another process used this node's name, whose lease may still be valid.
    pub fn note_other_process(&mut self) {
        self.name_use = NameUse::WasOthers;
    }

    /// Returns the epoch that this node holds.
    pub fn epoch(&self) -> Option<u64> {
        if let Role::Holding { epoch, .. } = &self.role { Some(*epoch) } else { None }
    }

    /// Returns the last read row of the shard.
    pub fn row(&self) -> Option<&ShardRow> {
        self.row.as_ref()
    }

    /// Returns the time at which the follower last read the end of the log.
    pub fn caught_up_ms(&self) -> Option<u64> {
        self.caught_up_ms
    }

    /// Returns the counts for metrics.
    pub fn counters(&self) -> Counters {
        self.counters
    }

    /// Returns true if a record can be proposed.
    pub fn is_ready(&self) -> bool {
        matches!(self.role, Role::Holding { insertion: None, .. }) && !self.stops
    }

    /// Returns the bytes of the record that is not confirmed.
    pub fn proposed(&self) -> Option<&[u8]> {
        let Role::Holding { insertion: Some(insertion), .. } = &self.role else { return None };
        let Body::Record(bytes) = &insertion.entry().body else { return None };
        Some(bytes)
    }

    /// Proposes the next record, which must follow from the present state.
    ///
    /// # Errors
    /// The node does not hold the shard, waits for the previous record, or the record is too large.
    pub fn propose(&mut self, bytes: &[u8], state: &impl Shard) -> Result<(), Refusal> {
        if bytes.len() > RECORD_BYTES_MAX {
            return Err(Refusal::TooLarge);
        }
        let Role::Holding { epoch, insertion, .. } = &mut self.role else {
            return Err(Refusal::NoHolder);
        };
        if self.stops {
            return Err(Refusal::NoHolder);
        }
        if insertion.is_some() {
            return Err(Refusal::Busy);
        }
        let id = EntryId::new(self.shard, state.applied() + 1);
        let (nonce, body) = (self.nonces.i64(..), Body::Record(bytes.into()));
        *insertion = Some(Insertion::new(Entry { id, epoch: *epoch, nonce, body }));
        self.lanes[Lane::Log as usize].note_answer(0);
        Ok(())
    }

    /// Ends the lease or the take in order, after the record in flight; a stop of the node, or a
    /// move of the shard. The node takes the shard again at the earliest after a TTL.
    pub fn hand_over(&mut self) {
        self.stops = self.has_lease();
        self.lanes[Lane::Lease as usize].due_ms = 0;
    }

    /// Removes another member from the shard, if this node holds it.
    pub fn strike(&mut self, node: NodeName) {
        if let Role::Holding { cutter, .. } = &mut self.role {
            cutter.request_strike(node);
            self.lanes[Lane::Cut as usize].due_ms = 0;
        }
    }

    /// Returns the time of the next command; `None` while all lanes wait for answers.
    pub fn next_due_ms(&self) -> Option<u64> {
        let is_active = |lane: &Lane| match &self.role {
            Role::Following(_) | Role::Damaged { .. } => *lane == Lane::Log,
            Role::Taking(taker) => {
                *lane == Lane::Log || *lane == Lane::Lease && !taker.is_claiming()
            }
            Role::Holding { insertion, .. } => *lane != Lane::Log || insertion.is_some(),
        };
        let lanes = Lane::ALL.iter().filter(|lane| is_active(lane));
        let lanes = lanes.map(|lane| &self.lanes[*lane as usize]);
        lanes.filter(|lane| !lane.is_in_flight).map(|lane| lane.due_ms).min()
    }

    /// Returns the commands that are due.
    pub fn poll(&mut self, now_ms: u64, state: &impl Shard) -> Vec<(Ticket, Command)> {
        let mut commands = Vec::new();
        for lane in Lane::ALL {
            if !self.lanes[lane as usize].is_due(now_ms) {
                continue;
            }
            let Some(command) = self.command(lane, now_ms, state) else { continue };
            self.lanes[lane as usize].note_sent(now_ms);
            commands.push((Ticket { lane, role: self.role_number }, command));
        }
        commands
    }

    /// Returns true for a member, and for a node that becomes one.
    fn follows(&self) -> bool {
        let is_member = |row: &ShardRow| row.members.contains_key(&self.me);
        self.name_use != NameUse::Unknown
            && (self.joins || self.row.as_ref().is_some_and(is_member))
    }

    fn command(&mut self, lane: Lane, now_ms: u64, state: &impl Shard) -> Option<Command> {
        let (shard, follows) = (self.shard, self.follows());
        match (lane, &mut self.role) {
            (Lane::Log, Role::Following(follower)) => Some(follower.command(shard, follows, state)),
            (Lane::Log, Role::Taking(taker)) => Some(taker.command()),
            (Lane::Log, Role::Damaged { leaves }) => {
                Some(leaves.clone().unwrap_or(Command::ReadShard(shard)))
            }
            (Lane::Log, Role::Holding { insertion, .. }) => {
                insertion.as_ref().map(Insertion::command)
            }
            (Lane::Lease, Role::Taking(taker)) if !taker.is_claiming() => {
                self.lease.note_sent(now_ms, self.stops);
                let (epoch, log, least) = (taker.epoch(), taker.log(), self.lease.least_beat());
                Some(Command::Beat { shard, epoch, log, least, stops: self.stops })
            }
            (Lane::Lease, Role::Holding { epoch, log, insertion, .. }) => {
                let stops = self.stops && insertion.is_none();
                self.lease.note_sent(now_ms, stops);
                let (epoch, log, least) = (*epoch, *log, self.lease.least_beat());
                Some(Command::Beat { shard, epoch, log, least, stops })
            }
            (Lane::Cut, Role::Holding { cutter, .. }) => Some(cutter.command()),
            _ => None,
        }
    }
}
