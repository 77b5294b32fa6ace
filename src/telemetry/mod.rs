//! The daemon's own metrics, logs and health.
//!
//! Must never know: the roles that count and log, settings.

mod health;
mod labels;
mod log_limit;
mod logging;
mod metrics;
mod readings;
mod summary;

pub use health::{Condition, Health, Shortfall};
pub use labels::{DatagramLoss, IngestOutcome, Protocol, QueryOutcome};
pub use log_limit::LogFormat;
pub use logging::init_logging;
pub use metrics::{HOST_METRICS, METRIC_NAMES, Metrics};
pub use readings::SelfReading;
pub use summary::{RefusedCount, SampleCounts, Timing, resident_bytes};
