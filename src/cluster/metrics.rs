//! The metrics of a node, which follow from the status of its replicas.
//!
//! Must never know: how they are shown.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;

use crate::{
    replication::{
        roles::Counters,
        runner::{Status, now_ms},
    },
    telemetry::ClusterMetrics,
};

/// The metrics of a node. Each membership counts from zero; the metrics continue. Clones are cheap.
#[derive(Debug, Clone)]
pub struct NodeMetrics {
    /// The metrics.
    pub shown: ClusterMetrics,
    seen: Arc<Mutex<BTreeMap<u16, Seen>>>,
}

/// The values of a shard that the metrics contain.
#[derive(Debug, Clone, Copy, Default)]
struct Seen {
    counters: Counters,
    holds: bool,
    epoch: u64,
    applied: u64,
    durable: u64,
    lag_ms: u64,
}

impl NodeMetrics {
    /// Registers the metrics.
    ///
    /// # Errors
    /// When a name is registered twice, which a test rules out.
    pub fn new() -> Result<Self, prometheus::Error> {
        Ok(Self { shown: ClusterMetrics::new()?, seen: Arc::default() })
    }

    /// Begins a membership in a shard, whose counters are zero.
    pub(super) fn begin(&self, shard: u16) {
        self.seen.lock().entry(shard).or_default().counters = Counters::default();
    }

    /// Shows a status of the present membership in a shard. The metrics are sums over all shards,
    /// and the longest lag.
    pub(super) fn show(&self, shard: u16, status: &Status) {
        let (shown, now) = (&self.shown, status.counters);
        let mut all = self.seen.lock();
        let seen = all.entry(shard).or_default();
        for (counter, now, seen) in [
            (&shown.takes, now.takes, seen.counters.takes),
            (&shown.losses, now.fenced, seen.counters.fenced),
            (&shown.seeds, now.seeds, seen.counters.seeds),
            (&shown.records, now.appended, seen.counters.appended),
            (&shown.record_bytes, now.appended_bytes, seen.counters.appended_bytes),
            (&shown.unknown, now.unknown, seen.counters.unknown),
        ] {
            counter.inc_by(now.saturating_sub(seen));
        }
        let row_epoch = status.row.as_ref().map_or(0, |row| row.epoch);
        let lag_ms = status.caught_up_ms.map_or(0, |at| now_ms().saturating_sub(at));
        *seen = Seen {
            counters: now,
            holds: status.epoch.is_some(),
            epoch: status.epoch.unwrap_or(row_epoch),
            applied: status.applied,
            durable: status.durable,
            lag_ms: if status.epoch.is_some() { 0 } else { lag_ms },
        };
        let sum = |of: fn(&Seen) -> u64| all.values().map(of).sum::<u64>() as i64;
        shown.holds.set(sum(|seen| u64::from(seen.holds)));
        shown.epoch.set(sum(|seen| seen.epoch));
        shown.applied.set(sum(|seen| seen.applied));
        shown.durable.set(sum(|seen| seen.durable));
        let lag_ms = all.values().map(|seen| seen.lag_ms).max().unwrap_or_default();
        shown.lag_seconds.set((lag_ms / 1000) as i64);
    }
}
