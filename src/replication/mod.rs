//! The replicated log of a shard: MongoDB orders, fences and keeps records, and nodes apply them.
//!
//! A **shard** is a part of the store. Its **records** have consecutive numbers, and are in MongoDB
//! until all **members** (nodes with a replica of the shard) applied them durably. One member is
//! the **holder**: it appends records and answers queries under a **lease**. Each holder has an
//! **epoch** of its own, and begins with a **fence**: an entry that takes the number at which a
//! holder of an earlier epoch would continue. The **cut** is the number up to which records may be
//! deleted; fences are never deleted.
//!
//! The roles in `roles` are pure state machines: the time is an argument, and they return commands
//! for a `medium` and accept its answers. `runner` runs the roles of one replica with real threads
//! and a real clock, and gathers the inserts of a node. `spreading` decides which nodes have which
//! shards. The simulation runs the same roles under late, lost and repeated commands, kills, sleeps
//! and rollbacks, and shows that each known weakening of the protocol breaks an invariant.
//!
//! `src/cluster` of the daemon runs the shards of a node. Missing: a digest record at
//! intervals. Must never know: what the bytes of a record mean.

#![allow(
    clippy::wildcard_enum_match_arm,
    reason = "code that expects one kind of command or answer treats all others alike"
)]

// Paths are those of the crate granary, which reexports these crates.
use crate as replication;
use granary_clock as clock;
use granary_publish as publish;

pub mod claim;
pub mod conformance;
pub mod entry;
pub mod gather;
pub mod medium;
mod mutants;
pub mod returning;
pub mod roles;
pub mod runner;
pub mod shard;
#[cfg(test)]
mod simulation;
pub mod spreading;

pub use entry::{Body, Entry, EntryId, NodeName, RECORD_BYTES_MAX, ShardRow};
pub use medium::{Answer, Command, Fault, Inserted, Medium};
pub use roles::{Event, Refusal, Replica, Timing};
pub use shard::{Origin, Shard, ShardFault};
