//! The interface of a replica's state: it applies entries in their order.
//!
//! Must never know: where entries come from.

use crate::replication::entry::{Body, ShardRow};

/// The reason why a shard's state cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct ShardFault(pub String);

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

    /// Replaces the state by a snapshot from a member, with at least the entries up to the row's
    /// cut.
    ///
    /// # Errors
    /// No member has a snapshot that is new enough, or the copy failed. The replica tries again.
    fn seed(&mut self, row: &ShardRow) -> Result<(), ShardFault>;
}
