//! Limits that are not settings, because no operator had a reason to change them. Each limit has a
//! counter and a message.
//!
//! Must never know: what the roles do.

use std::{num::NonZero, thread::available_parallelism, time::Duration};

use super::{
    Settings,
    sections::{DECOMPRESSED_FACTOR, REQUEST_BYTES_MIN},
};
use crate::{
    policy::{SnapshotPolicy, TrustRules},
    store::{CheckpointBounds, StoreLimits},
};

/// The maximum idle time between two requests of a connection.
pub const KEEP_ALIVE: Duration = Duration::from_secs(75);
/// The longest time limit for a TLS handshake; a shorter `server.client_timeout` also limits it.
const HANDSHAKE_TIMEOUT_MAX: Duration = Duration::from_secs(10);
/// The timeout of a clean stop; acknowledged samples are safe in any case.
pub const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(30);
/// The maximum size of batches that wait for the journal; further batches are refused with 429.
pub const QUEUE_BYTES_MAX: usize = 64 << 20;
/// The maximum number of new series in a request.
pub const REQUEST_SERIES_MAX: usize = 100_000;
/// The maximum number of concurrent live tails.
pub const TAILS_MAX: usize = 16;
/// The maximum number of annotations; new annotations replace the oldest.
pub const ANNOTATIONS_MAX: usize = 5000;
/// The time for which expired silences are kept.
pub const SILENCES_KEPT: Duration = Duration::from_secs(5 * 86_400);
/// The maximum time by which a sample may be ahead of the clock. Later samples are refused and
/// counted as `too_new`.
pub const FUTURE_SKEW: Duration = Duration::from_secs(600);
/// The sizes at which a checkpoint starts; with many series, cells may take 96 bytes per series.
/// At twice either size, batches are refused with 429 and counted.
pub const CHECKPOINT_BOUNDS: CheckpointBounds =
    CheckpointBounds { cell_bytes_max: 32 << 20, journal_bytes_max: 256 << 20 };
/// The time without samples after which the state of a counter is packed in memory.
pub const IDLE_AFTER: Duration = Duration::from_secs(3600);
/// The longest time between two searches for expired partitions.
const RETENTION_INTERVAL_MAX: Duration = Duration::from_secs(60);
/// The clock is doubted when it differs by more than this from the time of the last run, or when it
/// steps by more than this while the daemon runs.
const CLOCK_STEP_MAX_MS: i64 = 86_400_000;
/// The number of senders that must agree with a doubted clock; they must also outnumber the senders
/// that contradict the clock.
const CLOCK_SENDERS_MIN: usize = 2;
/// The maximum number of snapshots; further snapshots are refused.
const SNAPSHOTS_MAX: usize = 30;
/// The time that a sender must have been silent before a new sender may replace it: when a replaced
/// sender repeats a batch, the batch counts again.
const SENDER_IDLE_MS: i64 = 7 * 86_400_000;

/// The divisor of `limits.series_max` that yields the maximum number of series of one sender.
const SENDER_SERIES_DIVISOR: usize = 5;
/// The divisor of `limits.series_max` that yields the maximum number of senders, and of hosts, of
/// each project: an agent defines at least 50 series.
const SERIES_PER_SENDER: usize = 50;
/// The least maximum number of senders, and of hosts, of each project, unless there are fewer
/// series: senders that define few series need room in a small store, too.
const SENDERS_MIN: usize = 10_000;

/// The number of requests of the maximum size whose bodies, as sent, fit into
/// `ingest.body_memory_max`: with 256 MiB of memory, a request may have 8 MiB.
const REQUESTS_IN_MEMORY: usize = 32;

/// The share of `ingest.body_memory_max` that a packed body may take, decompressed: its decoding
/// takes up to 48 times its size, and its decompression up to five times.
const PACKED_SHARE: usize = 64;

/// The share of `limits.query_memory_max` of each concurrent query. The default of 512 MiB allows
/// 16 queries at a time; they share half of the cores, so more of them would end no sooner.
const QUERY_MEMORY: usize = 32 << 20;
/// The maximum number of concurrent queries, however much memory they have: each HTTP worker may
/// start as many threads.
pub const QUERIES_MAX: usize = 1000;

/// Returns the maximum size of a request's body as sent.
pub fn request_bytes_max(settings: &Settings) -> usize {
    (settings.ingest.body_memory_max / REQUESTS_IN_MEMORY).max(REQUEST_BYTES_MIN)
}

/// Returns the maximum size of a decompressed body.
pub fn decompressed_bytes_max(settings: &Settings) -> usize {
    request_bytes_max(settings).saturating_mul(DECOMPRESSED_FACTOR)
}

/// Returns the maximum size of a packed body, decompressed.
pub fn packed_bytes_max(settings: &Settings) -> usize {
    settings.ingest.body_memory_max / PACKED_SHARE
}

/// Returns a warning if full requests of agents exceed the maximum size of a packed body.
pub(super) fn small_memory(settings: &Settings) -> Option<String> {
    let (max, memory) = (packed_bytes_max(settings), settings.ingest.body_memory_max);
    let least = PACKED_SHARE * REQUEST_BYTES_MIN;
    (memory < least).then(|| {
        format!(
            "ingest.body_memory_max = {memory}: packed requests of agents above {max} bytes are \
             refused, and sent again in another format; use {least} (64 MiB) or more"
        )
    })
}

/// Returns the number of concurrent queries.
pub fn queries_max(settings: &Settings) -> usize {
    settings.limits.query_memory_max.div_ceil(QUERY_MEMORY).min(QUERIES_MAX)
}

/// Returns the number of HTTP worker threads: the cores that this process may use, which a
/// container's quota and the unit's `CPUAffinity` limit.
pub fn worker_threads() -> usize {
    available_parallelism().map_or(2, NonZero::get)
}

/// Returns the time limit for a TLS handshake.
pub fn handshake_timeout(settings: &Settings) -> Duration {
    settings.server.client_timeout.min(HANDSHAKE_TIMEOUT_MAX)
}

/// Returns the time between two searches for expired partitions.
pub fn retention_interval(settings: &Settings) -> Duration {
    settings.storage.checkpoint_interval.min(RETENTION_INTERVAL_MAX)
}

/// Returns the rules for trusting the machine's clock. A sender's clock may be as far ahead as its
/// samples.
pub fn trust_rules() -> TrustRules {
    TrustRules {
        step_max_ms: CLOCK_STEP_MAX_MS,
        sender_skew_ms: millis(FUTURE_SKEW),
        senders_min: CLOCK_SENDERS_MIN,
    }
}

/// Returns the limits of the number and age of snapshots.
pub fn snapshot_policy(settings: &Settings) -> SnapshotPolicy {
    SnapshotPolicy { count_max: SNAPSHOTS_MAX, retention_ms: millis(settings.snapshots.retention) }
}

/// Returns the limits of series and senders.
pub fn store_limits(settings: &Settings) -> StoreLimits {
    let series_max = settings.limits.series_max;
    StoreLimits {
        series_max,
        sender_series_max: series_max.div_ceil(SENDER_SERIES_DIVISOR),
        senders_max: series_max.div_ceil(SERIES_PER_SENDER).max(series_max.min(SENDERS_MIN)),
        sender_idle_ms: SENDER_IDLE_MS,
    }
}

/// Describes the limits that follow from settings, one per line, each with its setting.
pub fn derived(settings: &Settings) -> Vec<String> {
    let StoreLimits { series_max: _, sender_series_max, senders_max, sender_idle_ms: _ } =
        store_limits(settings);
    let (series, body_memory) = ("limits.series_max", "ingest.body_memory_max");
    let (points, query_memory) = ("limits.query_points_max", "limits.query_memory_max");
    [
        ("series of one sender", sender_series_max, series),
        ("senders of a project", senders_max, series),
        ("hosts of a project", senders_max, series),
        ("bytes of a request", request_bytes_max(settings), body_memory),
        ("bytes of a decompressed request", decompressed_bytes_max(settings), body_memory),
        ("bytes of a packed request, decompressed", packed_bytes_max(settings), body_memory),
        ("series of a query", settings.query_series_max(), points),
        ("concurrent queries", queries_max(settings), query_memory),
    ]
    .map(|(name, max, setting)| format!("{name}: at most {max} (from {setting})"))
    .into()
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}
