//! The metrics of users: their logins and sessions.

use prometheus::{IntCounterVec, IntGauge, Registry};

use super::registering::{counters, gauge};

/// The metrics of users.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "METRIC_NAMES explains each metric")]
pub struct PeopleMetrics {
    pub logins: IntCounterVec,
    pub sessions: IntGauge,
}

impl PeopleMetrics {
    pub(super) fn new(r: &Registry) -> Result<Self, prometheus::Error> {
        let logins = counters(r, "granary_logins_total", &["outcome"])?;
        for outcome in ["right", "wrong", "delayed", "busy"] {
            logins.with_label_values(&[outcome]);
        }
        Ok(Self { logins, sessions: gauge(r, "granary_sessions")? })
    }
}
