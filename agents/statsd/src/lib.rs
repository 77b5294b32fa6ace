//! Receives StatsD metrics over UDP, aggregates them over each interval and delivers them to
//! granary with the guarantees of every agent: spooled on disk, sent until acknowledged, once.
//!
//! Must never know: how readings are spooled and sent; that is the kit's.

mod aggregate;
mod budget;
mod kernel_drops;
mod line;
mod receiver;
mod timer;

pub use aggregate::Limits;
pub use receiver::{StatsD, fuzz_datagrams};
