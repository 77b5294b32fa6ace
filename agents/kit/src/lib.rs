//! What every granary agent shares: sampling, the spool on disk, delivery with retry.
//!
//! An agent parses [`AgentArgs`], builds its [`Source`]s and calls [`run`]. Each round's samples
//! become one numbered batch in the spool, in one durable commit; a thread of its own delivers
//! the spool's batches, oldest first, and removes them when the daemon has acknowledged them.
//! This crate knows the protocol, never the daemon, and never what a source measures.

mod address;
mod agent;
mod args;
mod client;
mod clock;
mod confined;
mod exit;
mod faults;
mod logging;
mod own_metrics;
mod pinger;
mod plan;
mod print;
mod problems;
mod readings;
mod refs;
pub mod relabel;
mod report;
mod request;
mod schedule;
mod self_metrics;
mod sender;
mod series;
mod side_by_side;
mod signals;
mod skew;
mod spans;
mod spool;
#[cfg(test)]
mod test_server;
mod tls;
mod watched;

pub use address::hosts_of;
pub use agent::{AgentError, run, run_planned};
pub use args::{AgentArgs, ClockOf, LogFormat};
pub use clock::{Stopwatch, unix_ms};
pub use confined::memory_limit;
pub use exit::exit_code;
pub use faults::fault_in;
pub use plan::{Plan, Planned, Planner};
pub use readings::{KnownReading, Reading, Readings, Source, SourceError};
pub use self_metrics::SELF_METRICS;
pub use series::Series;
pub use side_by_side::{ROUND_DEADLINE, SideBySide};
pub use spans::{some_span, span};
pub use spool::SpoolError;
pub use tls::{TlsFiles, read_small};
pub use watched::WatchedHost;
