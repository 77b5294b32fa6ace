//! The foundation of all Granary agents: sampling, the spool on disk, delivery with retries.
//!
//! An agent parses [`AgentArgs`], builds its [`Source`]s and calls [`run`]. The samples of a round
//! become one or several numbered batches in the spool. A separate thread delivers the batches, the
//! oldest first, and removes them when the daemon has acknowledged them. This crate depends on the
//! protocol, but neither on the daemon nor on the metrics of a source.

/// The allocator of all agents. glibc would keep freed memory in an arena for each thread.
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
pub use granary_https::{
    FailureReason, Https, HttpsArgs, ReloadingAgent, RequestFailure, TrustOptions, read_small,
};
pub use granary_protocol::EnrollBody;
pub use program::{
    args::{AgentArgs, ClockOf, LogFormat, parse_url},
    confined::memory_limit,
    exit::exit_code,
    faults::fault_in,
    limited::{FinishedProgram, run_program},
    spans::{some_span, span},
};
pub use reporting::self_metrics::SELF_METRICS;
pub use sampling::{
    plan::{Plan, PlannedSource, Planner},
    readings::{KnownReading, Reading, Readings, Source, SourceError},
    relabel,
    series::Series,
    side_by_side::{ROUND_DEADLINE, SideBySide},
    watched::WatchedHost,
};
pub use sending::{address::hosts_of, enroll::enroll};
pub use spool::SpoolError;
