//! Decisions, as pure functions of their arguments: what to accept, preallocate, drop and read.
//!
//! Must never know: files, sockets, actors, the clock. Callers pass the time and carry out the
//! decisions.

// The shared times of tests refer to this crate as `granary`.
#[cfg(test)]
extern crate self as granary;
#[cfg(test)]
#[path = "../../tests/support/times.rs"]
#[allow(dead_code, reason = "other tests use more of it")]
mod test_times;

// Paths such as `crate::model` are the same as in the crate granary, which reexports this crate.
use granary_model as model;

pub mod admission;
mod check_pass;
pub mod clock_trust;
mod costs;
pub mod coverage;
pub mod fleet_plan;
pub mod forecast;
pub mod hosts;
pub mod preallocation;
pub mod query_plan;
pub mod retention;
mod sample_quota;
pub mod snapshots;
mod times;

pub use admission::{Admission, KindConflicts, RefusalReason};
pub use check_pass::CheckPass;
pub use clock_trust::{ClockDoubt, Trust, TrustChange, TrustRules};
pub use forecast::TurnForecast;
pub use hosts::{ChangedHosts, DOWN_AFTER_MS, Hosts, HostsVersion, LATE_AFTER_MS, ListeningTime};
pub use sample_quota::SampleQuota;
pub use snapshots::{KeptSnapshot, SnapshotPolicy, SnapshotRefusal, SnapshotRoom};
