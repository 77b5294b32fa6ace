//! The metrics of a node of a cluster, in a registry of their own: they outlive the store, which a
//! node opens again whenever it stops holding it.

use prometheus::{Encoder, IntCounter, IntGauge, Registry, TextEncoder};

use super::{
    of_shards::ShardMetrics,
    registering::{counter, gauge},
};

/// The metrics of a node. Clones are cheap.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "CLUSTER_METRICS explains each metric")]
pub struct ClusterMetrics {
    pub(super) registry: Registry,
    pub of_shards: ShardMetrics,
    pub holds: IntGauge,
    pub epoch: IntGauge,
    pub applied: IntGauge,
    pub durable: IntGauge,
    pub lag_seconds: IntGauge,
    pub rules_differ: IntGauge,
    pub takes: IntCounter,
    pub losses: IntCounter,
    pub seeds: IntCounter,
    pub copy_received_bytes: IntCounter,
    pub copies_sent: IntCounter,
    pub copy_sent_bytes: IntCounter,
    pub records: IntCounter,
    pub record_bytes: IntCounter,
    pub unknown: IntCounter,
    pub forwarded: IntCounter,
    pub not_forwarded: IntCounter,
}

impl ClusterMetrics {
    /// Registers the metrics.
    ///
    /// # Errors
    /// When a name is registered twice, which a test rules out.
    pub fn new() -> Result<Self, prometheus::Error> {
        let r = &Registry::new();
        Ok(Self {
            holds: gauge(r, "granary_cluster_holds")?,
            epoch: gauge(r, "granary_cluster_epoch")?,
            applied: gauge(r, "granary_cluster_applied_record")?,
            durable: gauge(r, "granary_cluster_durable_record")?,
            lag_seconds: gauge(r, "granary_cluster_lag_seconds")?,
            rules_differ: gauge(r, "granary_cluster_nodes_with_other_rules")?,
            takes: counter(r, "granary_cluster_takes_total")?,
            losses: counter(r, "granary_cluster_losses_total")?,
            seeds: counter(r, "granary_cluster_seeds_total")?,
            copy_received_bytes: counter(r, "granary_cluster_copy_received_bytes_total")?,
            copies_sent: counter(r, "granary_cluster_copies_sent_total")?,
            copy_sent_bytes: counter(r, "granary_cluster_copy_sent_bytes_total")?,
            records: counter(r, "granary_cluster_records_total")?,
            record_bytes: counter(r, "granary_cluster_record_bytes_total")?,
            unknown: counter(r, "granary_cluster_unknown_outcomes_total")?,
            forwarded: counter(r, "granary_cluster_forwarded_requests_total")?,
            not_forwarded: counter(r, "granary_cluster_unforwarded_requests_total")?,
            registry: r.clone(),
            of_shards: ShardMetrics::default(),
        })
    }

    /// Returns the metrics in Prometheus' text format.
    ///
    /// # Errors
    /// When the encoder fails.
    pub fn render(&self) -> Result<Vec<u8>, prometheus::Error> {
        let mut text = Vec::new();
        let mut families = self.registry.gather();
        self.of_shards.add_to(&mut families);
        TextEncoder::new().encode(&families, &mut text)?;
        Ok(text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::metrics::names::CLUSTER_METRICS;

    #[test]
    fn every_metric_of_a_node_has_a_help_text() {
        let families = ClusterMetrics::new().unwrap().registry.gather();
        let mut expected = CLUSTER_METRICS.to_vec();
        expected.sort_unstable();
        let found: Vec<_> = families.iter().map(|family| (family.name(), family.help())).collect();
        assert_eq!(found, expected);
    }
}
