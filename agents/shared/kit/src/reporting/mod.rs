//! Reporting: the agent's totals in a file, as series and as metrics at a port, and readings as
//! tables.
//!
//! Must never know: how batches are delivered.

pub(crate) mod metrics_port;
pub(crate) mod print;
pub(crate) mod self_metrics;
pub(crate) mod totals;
