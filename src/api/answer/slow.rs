//! Clients that read slowly: what is handed to them at a time, and when they lose their answer.
//!
//! Must never know: what is answered.

use std::time::Duration;

use crate::telemetry::{Metrics, QueryOutcome};

/// Bytes that are handed to the connection at a time.
pub(in crate::api) const CHUNK_BYTES: usize = 64 << 10;

/// A client may take so many times `server.client_timeout` over a chunk: at least 2 KB a second on
/// the defaults.
const TIMEOUTS_FOR_A_CHUNK: u32 = 3;

/// What becomes of clients that read slowly.
#[derive(Debug, Clone)]
pub(in crate::api) struct Slow {
    /// How long a client may take over a chunk; then the answer is broken off.
    pub(in crate::api) chunk_within: Duration,
    /// Counts answers that were broken off.
    pub(in crate::api) broken_off: prometheus::IntCounter,
}

impl Slow {
    /// As the settings have it.
    pub(in crate::api) fn of(metrics: &Metrics, client_timeout: Duration) -> Self {
        let outcome = QueryOutcome::Slow.as_str();
        Self {
            chunk_within: client_timeout * TIMEOUTS_FOR_A_CHUNK,
            broken_off: metrics.queries_refused.with_label_values(&[outcome]),
        }
    }
}
