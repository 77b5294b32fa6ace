//! The metrics of the shards after the first one that a node holds, with the label `shard`.
//!
//! Must never know: clusters, how shards are held.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;
use prometheus::proto::{LabelPair, Metric, MetricFamily};

use super::Metrics;
use crate::store::Store;

/// The beginnings of the names that a store, or the collectors of its samples, count. The other
/// metrics are those of the process and of requests, which the first shard's metrics contain.
const OF_STORES: [&str; 22] = [
    "granary_samples_",
    "granary_writer_",
    "granary_commit",
    "granary_journal_",
    "granary_head_",
    "granary_catalog_",
    "granary_memory_",
    "granary_series",
    "granary_senders",
    "granary_checkpoint",
    "granary_cells_",
    "granary_documents_",
    "granary_shells_",
    "granary_partition",
    "granary_sealed_",
    "granary_sealing_",
    "granary_checker_",
    "granary_disk_missing_",
    "granary_disk_reserved_",
    "granary_disk_budget_",
    "granary_retention_",
    "granary_near_metric_",
];

/// The metrics of held shards. Clones are cheap.
#[derive(Debug, Clone, Default)]
pub struct ShardMetrics(Arc<Mutex<BTreeMap<u16, (Metrics, Store)>>>);

impl ShardMetrics {
    /// Shows the metrics of a shard from now on.
    pub fn insert(&self, shard: u16, metrics: Metrics, store: Store) {
        self.0.lock().insert(shard, (metrics, store));
    }

    /// Stops showing the metrics of a shard. The store is not in use afterwards.
    pub fn remove(&self, shard: u16) {
        self.0.lock().remove(&shard);
    }

    /// Adds the values of the shards to families, which have each name once.
    pub(super) fn add_to(&self, families: &mut Vec<MetricFamily>) {
        // The store must not outlive its removal, so the lock is held.
        for (shard, (metrics, store)) in &*self.0.lock() {
            let of_store = |family: &MetricFamily| {
                OF_STORES.iter().any(|beginning| family.name().starts_with(beginning))
            };
            for mut family in metrics.gather(store).into_iter().filter(of_store) {
                family.mut_metric().iter_mut().for_each(|metric| label(metric, *shard));
                match families.iter_mut().find(|known| known.name() == family.name()) {
                    Some(known) => known.mut_metric().append(family.mut_metric()),
                    None => families.push(family),
                }
            }
        }
        families.sort_by(|family, other| family.name().cmp(other.name()));
    }
}

fn label(metric: &mut Metric, shard: u16) {
    let mut labels = metric.take_label();
    let mut pair = LabelPair::default();
    pair.set_name("shard".to_owned());
    pair.set_value(shard.to_string());
    labels.push(pair);
    metric.set_label(labels);
}
