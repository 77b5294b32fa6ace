//! The interface of a replica's state: it applies entries in their order.
//!
//! Must never know: where entries come from.

use crate::replication::entry::{Body, ShardRow};

/// The reason why a shard's state cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ShardFault(pub String);

/// The log that a replica follows, as the replica's disk remembers it.
///
/// Numbers alone do not distinguish logs: another database, a database that was created again, and
/// a database that was restored from a backup have entries with the same numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Origin {
    /// The identity of the log.
    pub log: i64,
    /// True once the database had this log; before, the replica may found it.
    pub is_founded: bool,
    /// The number and the nonce of the last fence that was applied; `None` before the first one.
    pub fence: Option<(u64, i64)>,
}

/// The state of a shard on one node, which follows from its entries alone.
///
/// Only confirmed entries are applied, so the state is never ahead of the log.
pub trait Shard {
    /// Returns the number of the last entry that was applied.
    fn applied(&self) -> u64;

    /// Applies the next entry: `number` is always `applied() + 1`.
    ///
    /// # Errors
    /// The entry cannot be applied; the replica stops until it is opened again.
    fn apply(&mut self, number: u64, body: &Body) -> Result<(), ShardFault>;

    /// Returns the number up to which all entries are durable on this node's disk.
    fn durable_floor(&self) -> u64;

    /// Returns the log that the state follows from; `None` for a state without entries, and for one
    /// that was restored from a backup.
    fn origin(&self) -> Option<Origin>;

    /// Remembers the log durably, before the state depends on it.
    ///
    /// # Errors
    /// The origin cannot be written.
    fn set_origin(&mut self, origin: Origin) -> Result<(), ShardFault>;

    /// Replaces the state by a snapshot from a member, with at least the entries up to the row's
    /// cut.
    ///
    /// # Errors
    /// No member has a snapshot that is new enough, or the copy failed. The replica tries again.
    fn seed(&mut self, row: &ShardRow) -> Result<(), ShardFault>;
}
