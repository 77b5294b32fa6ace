//! Reporting: the agent's account of itself, as totals in a file, series, metrics at a port and
//! tables.
//!
//! Must never know: how batches are delivered.

pub(crate) mod metrics_port;
pub(crate) mod print;
pub(crate) mod self_metrics;
pub(crate) mod totals;
