//! The daemon's own metrics, logs and health.
//!
//! Must never know: the roles that count and log, settings.

mod health;
mod labels;
mod last_lines;
mod log_limit;
mod logging;
mod metrics;
mod readings;
mod redaction;
mod shard_health;
mod summary;

pub use health::{Condition, Health, Shortfall};
pub use labels::{DatagramLoss, IngestOutcome, Protocol, QueryOutcome};
pub use last_lines::last_log_lines;
pub use log_limit::LogFormat;
pub use logging::{Logging, check_filter, init_logging};
pub use metrics::{
    CLUSTER_METRICS, ClusterMetrics, DashboardMetrics, HOST_METRICS, METRIC_NAMES, Metrics,
    PeopleMetrics, PublishMetrics, ShardMetrics, TlsMetrics,
};
pub use readings::SelfReading;
pub use redaction::without_secrets;
pub use shard_health::ShardHealth;
pub use summary::{RefusedCount, SampleCounts, Timing, resident_bytes};
