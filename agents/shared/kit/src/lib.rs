//! The foundation of all Granary agents: sampling, the spool on disk, delivery with retries.
//!
//! An agent parses [`AgentArgs`], builds its [`Source`]s and calls [`run`]. Each round's samples
//! become a numbered batch in the spool, or several when one is full. A separate thread delivers
//! the batches, oldest first, and removes them when the daemon has acknowledged them. This crate
//! knows the protocol, but neither the daemon nor what a source measures.

/// The allocator of all agents: glibc keeps what threads have freed in an arena of each thread.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

mod agent;
mod clock;
mod program;
mod reporting;
mod sampling;
mod sending;
mod spool;

pub use agent::{AgentError, run, run_planned};
pub use clock::{Stopwatch, unix_ms};
pub use program::{
    args::{AgentArgs, ClockOf, LogFormat},
    confined::memory_limit,
    exit::exit_code,
    faults::fault_in,
    spans::{some_span, span},
};
pub use reporting::self_metrics::SELF_METRICS;
pub use sampling::{
    plan::{Plan, Planned, Planner},
    readings::{KnownReading, Reading, Readings, Source, SourceError},
    relabel,
    series::Series,
    side_by_side::{ROUND_DEADLINE, SideBySide},
    watched::WatchedHost,
};
pub use sending::{
    address::hosts_of,
    tls::{TlsFiles, read_small},
};
pub use spool::SpoolError;
