//! Bounds that no operator has had a reason to turn, so they are no settings. Each is counted and has a message
//! where it is reached.
//!
//! Must never know: what the roles do.

use std::time::Duration;

use super::Settings;
use crate::{
    policy::{SnapshotPolicy, TrustRules},
    store::StoreLimits,
};

/// Time between two requests of a connection.
pub const KEEP_ALIVE: Duration = Duration::from_secs(75);
/// Time of an ordered stop; acknowledged samples are safe in any case.
pub const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(30);
/// Bytes of batches that wait for the journal; more are refused with 429.
pub const QUEUE_BYTES_MAX: usize = 64 << 20;
/// New series of one request.
pub const REQUEST_SERIES_MAX: usize = 100_000;
/// Live tails at the same time.
pub const TAILS_MAX: usize = 16;
/// Annotations; the oldest make room for new ones.
pub const ANNOTATIONS_MAX: usize = 5000;
/// Time that expired silences are kept.
pub const SILENCES_KEPT: Duration = Duration::from_secs(5 * 86_400);
/// Time without samples after which the state of a counter is packed in memory.
pub const IDLE_AFTER: Duration = Duration::from_secs(3600);
/// Empty documents inserted in a second.
pub const SHELLS_PER_SECOND: u32 = 20_000;
/// Bytes of empty documents ahead; finer granularities come first.
pub const SHELL_BYTES_MAX: u64 = 1 << 30;
/// Longest time between two searches for expired partitions.
const RETENTION_INTERVAL_MAX: Duration = Duration::from_secs(60);
/// Senders that must agree with a clock that is not trusted, while fewer do not.
const CLOCK_SENDERS_MIN: usize = 2;
/// Snapshots in the folder; a new one beyond is refused.
const SNAPSHOTS_MAX: usize = 30;
/// Time that a sender must have been silent before it makes room for a new one: a batch that a forgotten
/// sender sends again counts again.
const SENDER_IDLE_MS: i64 = 7 * 86_400_000;

/// Time between two searches for expired partitions.
pub fn retention_interval(settings: &Settings) -> Duration {
    settings.storage.checkpoint_interval.min(RETENTION_INTERVAL_MAX)
}

/// The rules by which the machine's clock is trusted. A sender may be as far ahead as its samples may.
pub fn trust_rules(settings: &Settings) -> TrustRules {
    TrustRules {
        step_max_ms: millis(settings.clock.step_max),
        sender_skew_ms: millis(settings.ingest.future_skew),
        senders_min: CLOCK_SENDERS_MIN,
    }
}

/// The number, size and age of snapshots.
pub fn snapshot_policy(settings: &Settings) -> SnapshotPolicy {
    SnapshotPolicy {
        count_max: SNAPSHOTS_MAX,
        bytes_max: settings.snapshots.bytes_max,
        retention_ms: millis(settings.snapshots.retention),
    }
}

/// The limits of series and senders.
pub fn store_limits(settings: &Settings) -> StoreLimits {
    let limits = &settings.limits;
    StoreLimits {
        series_max: limits.series_max,
        sender_series_max: limits.sender_series_max,
        senders_max: limits.senders_max,
        sender_idle_ms: SENDER_IDLE_MS,
        ha_failover_ms: millis(settings.ingest.ha_failover),
    }
}

fn millis(time: Duration) -> i64 {
    i64::try_from(time.as_millis()).unwrap_or(i64::MAX)
}
