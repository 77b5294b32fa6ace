//! The disk budget: drops the oldest partitions when the store exceeds `storage.disk_max`, and
//! reports a day ahead that it will.
//!
//! Part of the retention role. Must never know: who reads the report.

use std::{path::PathBuf, sync::Arc};

use parking_lot::Mutex;

use super::{dropped::DroppedPartitions, space_keeper::measured};
use crate::{
    kept::LiveValue,
    model::{GranularityIndex, Moment, UnixMillis, with_noun},
    policy::{
        forecast::turn_bytes,
        retention::budget::{DiskMax, SizedPartition, growth, over_budget},
    },
    store::{DiskSpace, PartitionInfo, Store},
    telemetry::{Health, Metrics, Shortfall},
};

/// The time by which the budget reports drops in advance.
const AHEAD_MS: i64 = 86_400_000;

/// The use of the disk budget. Sizes are in bytes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BudgetUse {
    /// The budget.
    pub bytes_max: u64,
    /// The size of the store's files.
    pub bytes: u64,
    /// The size that the files would have in a day without drops for the budget.
    pub bytes_ahead: u64,
    /// The partitions that the budget drops within a day, in this order.
    pub drops: Vec<SizedPartition>,
}

/// The latest use of the budget; `None` without a budget. Clones are cheap.
#[derive(Debug, Clone, Default)]
pub struct BudgetReport(Arc<Mutex<Option<BudgetUse>>>);

impl BudgetReport {
    /// Returns the use at the last retention run.
    pub fn last(&self) -> Option<BudgetUse> {
        self.0.lock().clone()
    }

    /// Returns a warning when partitions will be dropped for the budget within a day.
    pub fn warning(&self) -> Option<String> {
        let BudgetUse { bytes_max, bytes_ahead, drops, .. } = self.last()?;
        let first = drops.first()?;
        let count = with_noun(drops.len() as u64, "partition");
        Some(format!(
            "the store will take {bytes_ahead} bytes in a day, and storage.disk_max is {bytes_max}: \
             {count} will be dropped before their retention ends, the oldest begins at {}; raise \
             storage.disk_max, or shorten the retention to what fits",
            first.id.start
        ))
    }
}

/// The setting of the budget.
const SETTING: &str = "storage.disk_max";

/// The part of retention that keeps the store within its budget.
#[derive(Debug)]
#[expect(missing_docs, reason = "the types describe the fields")]
pub struct DiskBudget {
    /// The budget; `None` for no limit.
    pub max: LiveValue<Option<DiskMax>>,
    pub data_dir: PathBuf,
    pub metrics: Metrics,
    pub health: Health,
    pub report: BudgetReport,
}

/// The store's partitions and its growth.
struct StoreSizes {
    partitions: Vec<SizedPartition>,
    bytes: u64,
    /// The size of a period's documents of each level.
    turn_bytes: Vec<u64>,
}

impl StoreSizes {
    fn new(store: &Store, now: UnixMillis) -> Self {
        let sized =
            |info: PartitionInfo| SizedPartition { id: info.id, end: info.end, bytes: info.bytes };
        let finest_ms = store.granularities()[GranularityIndex::FINEST].width_ms;
        let written = measured(store, now);
        let turns = store.levels().iter().zip(&written);
        Self {
            partitions: store.partitions().into_iter().map(sized).collect(),
            bytes: store.file_bytes(),
            turn_bytes: turns
                .map(|(level, written)| turn_bytes(level, *written, finest_ms))
                .collect(),
        }
    }

    /// Returns the size of the store at a time.
    fn bytes_at(&self, store: &Store, now: UnixMillis, at: UnixMillis) -> u64 {
        let all = store.all_granularities();
        let growth = growth(all, &self.turn_bytes, &self.partitions, now, at);
        self.bytes.saturating_add_signed(growth)
    }

    /// Returns the partitions to drop so that the store fits at a time.
    fn drops(
        &self,
        store: &Store,
        max: u64,
        now: UnixMillis,
        at: UnixMillis,
    ) -> Vec<SizedPartition> {
        let excess = self.bytes_at(store, now, at).saturating_sub(max);
        over_budget(store.all_granularities(), &self.partitions, excess, now)
    }
}

impl DiskBudget {
    /// Drops the oldest partitions until the store fits its budget after the next turn of the
    /// finest granularity. While the clock is doubted, drops nothing.
    pub fn enforce(&self, store: &Store, now: Moment) -> DroppedPartitions {
        let mut dropped = DroppedPartitions::default();
        if now.is_doubted() {
            return dropped;
        }
        let Some(max) = *self.max.get() else {
            self.health.set_shortfall(Shortfall::Disk, SETTING, None);
            self.metrics.disk_budget_excess_bytes.set(0);
            *self.report.0.lock() = None;
            return dropped;
        };
        let (max, now) = match DiskSpace::of(&self.data_dir) {
            Ok(space) => (max.bytes(space.total), now.clock),
            Err(cause) => {
                tracing::warn!(%cause, "cannot measure the disk; the next run retries");
                return dropped;
            }
        };
        let finest = &store.granularities()[GranularityIndex::FINEST];
        let turn = finest.document.next(finest.document_start(now));
        let mut measured = StoreSizes::new(store, now);
        for partition in measured.drops(store, max, now, turn) {
            let granularity = &store.granularity(partition.id.granularity).name;
            tracing::info!(granularity, "storage.disk_max requires that a partition is dropped");
            dropped.drop_partition(store, partition.id);
        }
        if dropped.partitions > 0 {
            self.metrics.retention_budget_drops.inc_by(dropped.partitions);
            measured = StoreSizes::new(store, now);
        }
        let excess = measured.bytes_at(store, now, turn).saturating_sub(max);
        let reason = (excess > 0).then(|| {
            format!(
                "the next documents exceed it by {excess} bytes, and only the newest partition of \
                 each granularity is left: raise it, or send fewer series"
            )
        });
        self.health.set_shortfall(Shortfall::Disk, SETTING, reason);
        self.publish(store, &measured, max, now);
        dropped
    }

    /// Publishes the state a day ahead.
    fn publish(&self, store: &Store, measured: &StoreSizes, bytes_max: u64, now: UnixMillis) {
        let tomorrow = now.plus(AHEAD_MS);
        let bytes_ahead = measured.bytes_at(store, now, tomorrow);
        let drops = measured.drops(store, bytes_max, now, tomorrow);
        let before = self.report.last().is_some_and(|last| !last.drops.is_empty());
        if !drops.is_empty() && !before {
            let partitions = drops.len();
            tracing::warn!(
                bytes_max,
                bytes_ahead,
                partitions,
                "storage.disk_max will be exceeded within a day; partitions will be dropped"
            );
        }
        let excess = bytes_ahead.saturating_sub(bytes_max);
        self.metrics.disk_budget_excess_bytes.set(excess as i64);
        let bytes = measured.bytes;
        *self.report.0.lock() = Some(BudgetUse { bytes_max, bytes, bytes_ahead, drops });
    }
}
