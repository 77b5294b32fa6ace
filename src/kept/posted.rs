//! Alerts that other programs post, for the API, the notifier and the page.
//!
//! Posted alerts are in memory only, as in Alertmanager, because their senders repeat them. Must
//! never know: HTTP.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::{
    alerts::{MessageAlert, PostOutcome, PostableAlert, PostedAlerts, PostedFiring},
    model::UnixMillis,
    telemetry::Metrics,
};

/// The posted alerts. Clones are cheap.
#[derive(Debug, Clone)]
pub struct KnownPostedAlerts(Arc<SharedAlerts>);

#[derive(Debug)]
struct SharedAlerts {
    posted: Mutex<PostedAlerts>,
    metrics: Metrics,
}

impl KnownPostedAlerts {
    /// Returns an empty set of alerts.
    pub fn new(metrics: Metrics) -> Self {
        Self(Arc::new(SharedAlerts { posted: Mutex::default(), metrics }))
    }

    /// Accepts alerts; an alert without an end expires after `resolve_timeout_ms` milliseconds.
    pub fn put(
        &self,
        alerts: Vec<PostableAlert>,
        resolve_timeout_ms: i64,
        now: UnixMillis,
    ) -> PostOutcome {
        let mut posted = self.0.posted.lock();
        let outcome = posted.put(alerts, resolve_timeout_ms, now);
        let metrics = &self.0.metrics;
        metrics.posted_alerts_known.set(posted.len() as i64);
        drop(posted);
        for (outcome_label, count) in [
            ("taken", outcome.accepted),
            ("invalid", outcome.invalid),
            ("refused", outcome.refused),
        ] {
            metrics.posted_alerts.with_label_values(&[outcome_label]).inc_by(count as u64);
        }
        outcome
    }

    /// Returns the number of changes of the notified alerts.
    pub fn changes(&self, now: UnixMillis) -> u64 {
        let mut posted = self.0.posted.lock();
        let changes = posted.changes(now);
        self.0.metrics.posted_alerts_known.set(posted.len() as i64);
        changes
    }

    /// Returns all firing alerts, and those that ended recently.
    pub fn message_alerts(&self, now: UnixMillis) -> Vec<MessageAlert> {
        self.0.posted.lock().message_alerts(now)
    }

    /// Returns the firing alerts.
    pub fn firing(&self, now: UnixMillis) -> Vec<PostedFiring> {
        self.0.posted.lock().firing(now)
    }
}
