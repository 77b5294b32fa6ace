//! Slow readers: the size of a chunk, and the time in which a client must read it.
//!
//! Must never know: what is answered.

use std::time::Duration;

use crate::telemetry::{Metrics, QueryOutcome};

/// The size of the chunks of a body.
pub(in crate::api) const CHUNK_BYTES: usize = 64 << 10;

/// The time for a chunk in multiples of `server.client_timeout`: with the defaults, a client must
/// read at least 2 KB a second.
const TIMEOUTS_PER_CHUNK: u32 = 3;

/// The limit for slow readers.
#[derive(Debug, Clone)]
pub(in crate::api) struct SlowReaders {
    /// The maximum time for reading a chunk; after that, the answer is aborted.
    pub(in crate::api) chunk_timeout: Duration,
    /// The counter of aborted answers.
    pub(in crate::api) aborted: prometheus::IntCounter,
}

impl SlowReaders {
    /// Derives the limit from the settings.
    pub(in crate::api) fn new(metrics: &Metrics, client_timeout: Duration) -> Self {
        let outcome = QueryOutcome::Slow.as_str();
        Self {
            chunk_timeout: client_timeout * TIMEOUTS_PER_CHUNK,
            aborted: metrics.queries_refused.with_label_values(&[outcome]),
        }
    }
}
