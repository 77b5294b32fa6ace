//! Self-metrics and logging.

mod logging;
mod metrics;

pub use logging::init_logging;
pub use metrics::{IngestOutcome, METRIC_NAMES, Metrics, Protocol, QueryOutcome};
