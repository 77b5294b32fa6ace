//! The metrics of people: logins, sessions, and the audit of changes and refused callers.

use prometheus::{IntCounter, IntCounterVec, IntGauge, Registry};

use super::registering::{counter, counters, gauge};

/// The metrics of people.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "METRIC_NAMES explains each metric")]
pub struct PeopleMetrics {
    pub logins: IntCounterVec,
    pub provider_logins: IntCounterVec,
    pub sessions: IntGauge,
    pub audit_records: IntCounter,
    pub audit_joined: IntCounter,
    pub audit_lost: IntCounter,
}

impl PeopleMetrics {
    pub(super) fn new(r: &Registry) -> Result<Self, prometheus::Error> {
        let logins = counters(r, "granary_logins_total", &["outcome"])?;
        for outcome in ["right", "wrong", "delayed", "busy"] {
            logins.with_label_values(&[outcome]);
        }
        let provider_logins = counters(r, "granary_provider_logins_total", &["outcome"])?;
        for outcome in [
            "right",
            "state",
            "denied",
            "token",
            "no_role",
            "disabled",
            "unavailable",
            "client",
            "busy",
            "delayed",
            "failed",
        ] {
            provider_logins.with_label_values(&[outcome]);
        }
        Ok(Self {
            logins,
            provider_logins,
            sessions: gauge(r, "granary_sessions")?,
            audit_records: counter(r, "granary_audit_records_total")?,
            audit_joined: counter(r, "granary_audit_joined_total")?,
            audit_lost: counter(r, "granary_audit_lost_total")?,
        })
    }
}
