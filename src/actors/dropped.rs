//! The partitions that a run of retention dropped.
//!
//! Must never know: why they are dropped.

use crate::{
    model::PartitionId,
    store::{Store, StoreError},
};

/// The outcome of a retention run.
#[derive(Debug, Default)]
pub struct DroppedPartitions {
    /// The number of partitions that were dropped.
    pub partitions: u64,
    /// The first failure; the next run retries.
    pub failed: Option<StoreError>,
}

impl DroppedPartitions {
    /// Drops a partition, and counts it.
    pub(super) fn drop_partition(&mut self, store: &Store, id: PartitionId) {
        let (granularity, start) = (&store.granularity(id.granularity).name, id.start);
        match store.drop_partition(id) {
            Ok(existed) => {
                self.partitions += u64::from(existed);
                tracing::info!(granularity, %start, "dropped a partition");
            }
            Err(fault) => {
                let cause: &dyn std::error::Error = &fault;
                tracing::error!(granularity, %start, cause, "cannot drop a partition");
                self.failed = Some(fault);
            }
        }
    }
}
