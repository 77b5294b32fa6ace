//! The metrics of dashboards in files.

use prometheus::{IntGauge, Registry};

use super::registering::gauge;

/// The metrics of dashboards in files.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "METRIC_NAMES explains each metric")]
pub struct DashboardMetrics {
    pub files: IntGauge,
    pub files_failed: IntGauge,
}

impl DashboardMetrics {
    pub(super) fn new(r: &Registry) -> Result<Self, prometheus::Error> {
        Ok(Self {
            files: gauge(r, "granary_dashboard_files")?,
            files_failed: gauge(r, "granary_dashboard_files_failed")?,
        })
    }
}
