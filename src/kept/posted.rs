//! Alerts that other programs send: what the API takes, and the messenger and others ask.
//!
//! In memory, as Alertmanager has them: their senders send them again. Must never know: HTTP.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::{
    alerts::{MessageAlert, PostOutcome, PostableAlert, Posted, PostedFiring},
    model::UnixMillis,
    telemetry::Metrics,
};

/// The alerts. Cheap to clone.
#[derive(Debug, Clone)]
pub struct KnownPosted(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    posted: Mutex<Posted>,
    metrics: Metrics,
}

impl KnownPosted {
    /// None yet.
    pub fn new(metrics: Metrics) -> Self {
        Self(Arc::new(Inner { posted: Mutex::default(), metrics }))
    }

    /// Takes alerts; one without an end counts as over after a time, in milliseconds.
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
        for (word, count) in
            [("taken", outcome.taken), ("invalid", outcome.invalid), ("refused", outcome.refused)]
        {
            metrics.posted_alerts.with_label_values(&[word]).inc_by(count as u64);
        }
        outcome
    }

    /// The number of changes of the notified alerts.
    pub fn changes(&self, now: UnixMillis) -> u64 {
        let mut posted = self.0.posted.lock();
        let changes = posted.changes(now);
        self.0.metrics.posted_alerts_known.set(posted.len() as i64);
        changes
    }

    /// All alerts that fire, and those that have ended lately.
    pub fn told(&self, now: UnixMillis) -> Vec<MessageAlert> {
        self.0.posted.lock().told(now)
    }

    /// The alerts that fire.
    pub fn firing(&self, now: UnixMillis) -> Vec<PostedFiring> {
        self.0.posted.lock().firing(now)
    }
}
