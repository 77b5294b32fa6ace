//! The commands of the protocol, and their outcomes.
//!
//! A fault means that the outcome is unknown: the command was executed, may be executed later, or
//! never. Every command may therefore be repeated. Must never know: why a command is sent.

mod commands;
#[cfg(test)]
pub(crate) mod memory;
mod mongo;
mod rows;

pub use mongo::MongoMedium;

use std::{future::Future, pin::Pin};

use crate::replication::entry::{Entry, EntryId, NodeName, ShardRow};

/// The maximum number of entries that a find returns.
pub const FOUND_ENTRIES_MAX: u32 = 1000;
/// The number of bytes after which a find returns no further entry.
pub const FOUND_BYTES_MAX: usize = 4 << 20;
/// The maximum number of nodes that are read.
pub const NODES_MAX: u32 = 256;

/// A command. Writes wait for the majority and its journals, reads return what a majority has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Command {
    /// Inserts entries, without an order among them.
    Insert(Vec<Entry>),
    /// Reads one entry.
    ReadEntry(EntryId),
    /// Finds the first entries of a shard after an entry, in the order of their numbers.
    Find(EntryId),
    /// Reads the row of a shard.
    ReadShard(u16),
    /// Finds the last fence up to a number.
    LastFence {
        /// The number.
        through: EntryId,
        /// True if its epoch must have had a holder.
        held: bool,
    },
    /// Notes that the epoch of a fence has a holder, before the holder appends.
    Hold {
        /// The fence.
        fence: EntryId,
        /// The nonce of the fence.
        nonce: i64,
    },
    /// Inserts the row of a shard unless it exists.
    CreateShard {
        /// The shard.
        shard: u16,
        /// The identity of the log.
        log: i64,
        /// The number after which the log begins.
        cut: u64,
    },
    /// Begins the next epoch, if epoch and beat are still these.
    Take {
        /// The shard.
        shard: u16,
        /// The epoch that ends.
        epoch: u64,
        /// The beat that the next holder saw.
        beat: i64,
        /// The log that the next holder saw.
        log: i64,
        /// The next holder.
        holder: NodeName,
    },
    /// Renews the lease of an epoch, or ends it in order.
    Beat {
        /// The shard.
        shard: u16,
        /// The epoch of the sender.
        epoch: u64,
        /// The log of the sender.
        log: i64,
        /// The number of renewals in this epoch that were confirmed. A row with a lower beat is
        /// older than the lease: it was restored from a backup.
        least: i64,
        /// True for the end of the lease.
        stops: bool,
    },
    /// Raises the cut, if the epoch is still this one.
    RaiseCut {
        /// The shard.
        shard: u16,
        /// The epoch of the sender.
        epoch: u64,
        /// The number up to which records may be deleted.
        cut: u64,
    },
    /// Deletes records with numbers above `after` and up to `through`; fences stay.
    Delete {
        /// The shard.
        shard: u16,
        /// The number up to which records are already deleted.
        after: u64,
        /// The number of the last deleted record.
        through: u64,
    },
    /// Raises the floor of a member.
    RaiseFloor {
        /// The shard.
        shard: u16,
        /// The member.
        node: NodeName,
        /// The number up to which the member's disk has all entries.
        floor: u64,
        /// True if a node that is no member becomes one.
        joins: bool,
    },
    /// Removes a member, if the epoch is still this one.
    Strike {
        /// The shard.
        shard: u16,
        /// The epoch of the sender.
        epoch: u64,
        /// The removed member.
        node: NodeName,
    },
    /// Removes the sender from the members, if the cut is still this one and another member has
    /// what was cut.
    Leave {
        /// The shard.
        shard: u16,
        /// The sender.
        node: NodeName,
        /// The member that has what was cut.
        heir: NodeName,
        /// The cut that the sender saw.
        cut: u64,
    },
    /// Lets a process beat under a node's name.
    ClaimNode {
        /// The node.
        node: NodeName,
        /// The process.
        run: i64,
        /// The process and the beat in the row; `None` without a row.
        seen: Option<(i64, i64)>,
    },
    /// Renews the row of a node, if the process may use its name.
    BeatNode {
        /// The node.
        node: NodeName,
        /// The process.
        run: i64,
        /// The address at which other nodes reach it.
        address: String,
        /// The digest of the rules that the node would evaluate.
        rules: String,
    },
    /// Reads the rows of all nodes.
    ReadNodes,
}

/// The row of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeRow {
    /// The node.
    pub node: NodeName,
    /// The address at which other nodes reach it.
    pub address: String,
    /// A number that the node increases while it runs.
    pub beat: i64,
    /// A random number of the process that uses the name.
    pub run: i64,
    /// The digest of the rules that the node would evaluate.
    pub rules: String,
}

/// The outcome of one inserted entry.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Inserted {
    /// A majority has the entry.
    Done,
    /// The number has an entry, perhaps one that no majority has yet.
    Duplicate,
}

/// The answer to a command that was executed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer {
    /// The outcomes of an insert, in the order of its entries.
    Inserted(Vec<Inserted>),
    /// The entry with an identifier.
    Entry(Option<Entry>),
    /// Entries in the order of their numbers.
    Entries(Vec<Entry>),
    /// The row of a shard.
    Shard(Option<ShardRow>),
    /// True if a guarded change found its row.
    Matched(bool),
    /// The rows of nodes.
    Nodes(Vec<NodeRow>),
    /// The end of a command without a result.
    Done,
}

/// The reason why the outcome of a command is unknown, without passwords.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Fault(pub String);

/// An outcome that is not there yet.
pub type Pending = Pin<Box<dyn Future<Output = Result<Answer, Fault>> + Send>>;

/// A database that executes commands.
pub trait Medium: Send + Sync {
    /// Executes a command.
    fn execute(&self, command: Command) -> Pending;
}
