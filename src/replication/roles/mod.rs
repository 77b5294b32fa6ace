//! The roles of a replica as state machines. The time is an argument, and nothing waits.

mod cutting;
mod following;
mod insertion;
mod lanes;
mod lease;
mod origin;
mod replica;
mod taking;

pub(crate) use insertion::{Insertion, Settled};
pub use lanes::{Lane, Ticket};
pub use lease::Timing;
pub use replica::{Counters, Event, Refusal, Replica};
