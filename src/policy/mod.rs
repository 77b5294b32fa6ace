//! Decisions, as pure functions of their arguments: what to accept, preallocate, drop and read.
//!
//! Must never know: files, sockets, actors, the clock. Callers pass the time and carry out the
//! decisions.

pub mod admission;
pub mod coverage;
pub mod hosts;
pub mod plan;
pub mod preallocation;
pub mod query_plan;
pub mod retention;
pub mod snapshots;
mod times;
pub mod trust;

pub use admission::{Admission, KindConflicts, RefusalReason};
pub use hosts::{DOWN_AFTER_MS, Hearing, Hosts, LATE_AFTER_MS};
pub use snapshots::{KeptSnapshot, SnapshotPolicy, SnapshotRefusal, SnapshotRoom};
pub use trust::{Change, Doubt, Trust, TrustRules};
