//! Self-metrics and logging.

mod labels;
mod log_limit;
mod logging;
mod metrics;

pub use labels::{DatagramLoss, IngestOutcome, Protocol, QueryOutcome};
pub use logging::init_logging;
pub use metrics::{METRIC_NAMES, Metrics};
