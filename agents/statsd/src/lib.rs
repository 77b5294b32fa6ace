//! Receives StatsD metrics over UDP, aggregates them by interval and delivers them to granary with
//! the guarantees of all agents: spooled on disk, retried until acknowledged, counted once.
//!
//! Must never know: how readings are spooled and sent, which is the kit's task.

mod aggregate;
mod budget;
mod kernel_drops;
mod line;
mod receiver;
mod timer;

pub use aggregate::Limits;
pub use receiver::{StatsD, fuzz_datagrams};
