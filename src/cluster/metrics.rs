//! The metrics of a node, which follow from the status of its replica.
//!
//! Must never know: how they are shown.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::{
    replication::{
        roles::Counters,
        runner::{Status, now_ms},
    },
    telemetry::ClusterMetrics,
};

/// The metrics of a node. Each membership counts from zero; the metrics go on. Clones are cheap.
#[derive(Debug, Clone)]
pub struct NodeMetrics {
    /// The metrics.
    pub shown: ClusterMetrics,
    seen: Arc<Mutex<Counters>>,
}

impl NodeMetrics {
    /// Registers the metrics.
    ///
    /// # Errors
    /// When a name is registered twice, which a test rules out.
    pub fn new() -> Result<Self, prometheus::Error> {
        Ok(Self { shown: ClusterMetrics::new()?, seen: Arc::default() })
    }

    /// Begins a membership, whose counters are zero.
    pub(super) fn begin(&self) {
        *self.seen.lock() = Counters::default();
    }

    /// Shows a status of the present membership.
    pub(super) fn show(&self, status: &Status) {
        let (shown, now) = (&self.shown, status.counters);
        let mut seen = self.seen.lock();
        for (counter, now, seen) in [
            (&shown.takes, now.takes, seen.takes),
            (&shown.losses, now.fenced, seen.fenced),
            (&shown.seeds, now.seeds, seen.seeds),
            (&shown.records, now.appended, seen.appended),
            (&shown.record_bytes, now.appended_bytes, seen.appended_bytes),
            (&shown.unknown, now.unknown, seen.unknown),
        ] {
            counter.inc_by(now.saturating_sub(seen));
        }
        *seen = now;
        let row_epoch = status.row.as_ref().map_or(0, |row| row.epoch);
        let lag_ms = status.caught_up_ms.map_or(0, |at| now_ms().saturating_sub(at));
        let lag_ms = if status.epoch.is_some() { 0 } else { lag_ms };
        shown.holds.set(i64::from(status.epoch.is_some()));
        shown.epoch.set(status.epoch.unwrap_or(row_epoch) as i64);
        shown.applied.set(status.applied as i64);
        shown.durable.set(status.durable as i64);
        shown.lag_seconds.set((lag_ms / 1000) as i64);
    }
}
