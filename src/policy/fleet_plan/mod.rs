//! Capacity planning: what a fleet needs from a machine, computed before the first sample.
//!
//! The figures of the settings are exact. The costs of a slot and a series are measured; each such
//! constant names its measurement, and a test compares the plan with the disk usage of a real run.
//! Must never know: the machine.

mod course;
mod histograms;

use super::costs::{
    CORE_SECONDS, HEAD_FREE, JOURNAL_BASE, JOURNAL_SERIES_BYTES, MEMORY_BASE, MEMORY_SERIES_BYTES,
    PARTITION_BYTES, RECORD_SAMPLE_BYTES, SHARE_MAX, SPARE_LOG_BYTES, document_bytes, sealed,
};
use super::forecast::{MeasuredDocuments, turn_bytes};
use crate::model::{Granularity, GranularitySet, RetentionRule};
use course::{cell_bytes_due, checkpoint_ms, head_bytes, log_bytes, written, written_ms};
pub use histograms::PlannedHistograms;

/// The senders, which are all equal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fleet {
    /// The number of hosts.
    pub hosts: u64,
    /// The number of series per host.
    pub metrics: u64,
    /// The time between two samples of a series.
    pub interval_ms: i64,
}

/// Series of a fleet with the same levels.
struct PlannedClass {
    levels: GranularitySet,
    series: f64,
}

/// The settings that a plan depends on, apart from the granularities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlanBounds {
    /// The value of `storage.checkpoint_interval`.
    pub checkpoint_interval_ms: i64,
    /// The size of cells at which a checkpoint starts, in bytes.
    pub cell_bytes_max: usize,
    /// The value of `storage.cache_bytes_max`.
    pub cache_bytes_max: usize,
}

/// The resources of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Machine {
    /// Bytes of memory.
    pub memory: u64,
    /// Free bytes on the disk of the data directory.
    pub disk_free: u64,
    /// The disk budget in bytes, if there is one.
    pub disk_max: Option<u64>,
    /// The number of cores.
    pub cores: usize,
}

/// The resources that a fleet needs.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// The number of all series.
    pub series: u64,
    /// Samples per second.
    pub samples_per_second: f64,
    /// Bytes of memory, without queries.
    pub memory: u64,
    /// The documents of each granularity, finest first, followed by those of each rule's levels.
    pub granularities: Vec<PlannedGranularity>,
    /// The maximum size of the head, in bytes.
    pub head: u64,
    /// The size of the journal's tables, including the names of the series, in bytes.
    pub journal: u64,
    /// The maximum size of the journal's log, in bytes.
    pub log: u64,
    /// The bytes of histograms in documents that are not compressed yet.
    pub open: u64,
    /// The bytes that are reserved for the next documents of each level and for the log.
    pub reserve: u64,
    /// The bytes that are reserved when the values are random to the last bit.
    pub reserve_at_most: u64,
    /// Bytes written per second, on average.
    pub written_per_second: u64,
    /// Cores in use, on average.
    pub cores: f64,
}

/// The size of one granularity's documents.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedGranularity {
    /// The name of the granularity.
    pub name: String,
    /// The maximum number of slots per series: the retention and the partition that is not dropped
    /// yet.
    pub slots: u64,
    /// Bytes per slot.
    pub bytes_per_slot: f64,
    /// Bytes of all series.
    pub bytes: u64,
    /// Bytes of all series when the values are random to the last bit.
    pub bytes_at_most: u64,
    /// The bytes that a checkpoint writes when a document period ends.
    pub turn_bytes: u64,
}

impl Plan {
    /// Computes the plan for the time when all retentions are reached, or for a run of this age in
    /// milliseconds. Each rule of retention comes with the number of its series in the fleet.
    pub fn new(
        fleet: &Fleet,
        (set, rules): (&GranularitySet, &[(RetentionRule, u64)]),
        bounds: &PlanBounds,
        age_ms: Option<i64>,
    ) -> Self {
        let series = fleet.series();
        let count = series as f64;
        let classes = classes(series, set, rules);
        let samples_per_second = count * 1000.0 / fleet.interval_ms as f64;
        let age_ms = age_ms.unwrap_or(i64::MAX) as f64;
        let checkpoint_ms = checkpoint_ms(fleet, count, set, bounds);
        let granularities = classes.iter().flat_map(|class| {
            let planned = |level| planned(fleet, level, class.series, checkpoint_ms, age_ms);
            class.levels.iter().map(planned)
        });
        let granularities: Vec<_> = granularities.collect();
        let [reserve, reserve_at_most] = reserved(fleet, &classes, &granularities);
        let head_of = |class: &PlannedClass| {
            head_bytes(fleet, &class.levels, checkpoint_ms, age_ms) * class.series * HEAD_FREE
        };
        let head: f64 = classes.iter().map(head_of).sum();
        let log = log_bytes(samples_per_second * RECORD_SAMPLE_BYTES, checkpoint_ms, age_ms);
        let cells = cell_bytes_due(count, bounds);
        let memory =
            MEMORY_BASE + count * MEMORY_SERIES_BYTES + cells + bounds.cache_bytes_max as f64;
        Self {
            series,
            samples_per_second,
            memory: memory as u64,
            granularities,
            head: head as u64,
            journal: (JOURNAL_BASE + count * JOURNAL_SERIES_BYTES) as u64,
            log: log as u64,
            open: 0,
            reserve,
            reserve_at_most,
            written_per_second: written(fleet, &classes, checkpoint_ms) as u64,
            cores: samples_per_second * CORE_SECONDS,
        }
    }

    /// Returns the bytes on disk.
    pub fn disk(&self) -> u64 {
        self.documents() + self.rest() + self.reserve
    }

    /// Returns the bytes on disk when the values are random to the last bit.
    pub fn disk_at_most(&self) -> u64 {
        let documents: u64 =
            self.granularities.iter().map(|granularity| granularity.bytes_at_most).sum();
        documents + self.rest() + self.reserve_at_most
    }

    fn documents(&self) -> u64 {
        self.granularities.iter().map(|granularity| granularity.bytes).sum()
    }

    /// Returns the bytes of the store without documents and reserve.
    fn rest(&self) -> u64 {
        self.head + self.journal + self.log + self.open
    }

    /// Returns the share of the documents that fits a disk budget, from 0 to 1; granularities keep
    /// about this share of their retention. The reserve does not count for the budget.
    pub fn share_within(&self, budget: u64) -> f64 {
        let documents = self.documents();
        let left = budget.saturating_sub(self.rest());
        if left >= documents { 1.0 } else { left as f64 / documents as f64 }
    }

    /// Returns the resources that a machine lacks, each with a remedy.
    pub fn lacks(&self, machine: &Machine) -> Vec<String> {
        let mut out = Vec::new();
        if self.memory as f64 > machine.memory as f64 * SHARE_MAX {
            out.push("memory: use a larger machine or fewer series".to_owned());
        }
        let kept = self.documents() + self.rest();
        let disk = kept.min(machine.disk_max.unwrap_or(u64::MAX)).saturating_add(self.reserve);
        if disk as f64 > machine.disk_free as f64 * SHARE_MAX {
            out.push("disk: use a larger one or shorten a granularity's retention".to_owned());
        }
        if self.cores > machine.cores as f64 * SHARE_MAX {
            out.push("cores: use more of them or a longer interval".to_owned());
        }
        out
    }
}

impl Fleet {
    /// Returns the number of all series.
    pub fn series(&self) -> u64 {
        self.hosts.saturating_mul(self.metrics)
    }
}

/// Returns the classes of the fleet's series: those that no rule selects, then those of each rule.
fn classes(series: u64, set: &GranularitySet, rules: &[(RetentionRule, u64)]) -> Vec<PlannedClass> {
    let of_rules: u64 = rules.iter().map(|(_, series)| series).sum();
    let others = series.saturating_sub(of_rules) as f64;
    let of_rule = |(rule, series): &(RetentionRule, u64)| {
        let levels = rule.levels.iter().map(|level| level.of_class(&rule.name)).collect();
        let levels = GranularitySet::of_checked(levels)?;
        Some(PlannedClass { levels, series: *series as f64 })
    };
    let first = PlannedClass { levels: set.clone(), series: others };
    std::iter::once(first).chain(rules.iter().filter_map(of_rule)).collect()
}

fn planned(
    fleet: &Fleet,
    granularity: &Granularity,
    series: f64,
    checkpoint_ms: f64,
    age_ms: f64,
) -> PlannedGranularity {
    let width = granularity.width_ms as f64;
    let interval = fleet.interval_ms as f64;
    let partition = granularity.partition.longest_ms() as f64;
    let kept = (granularity.retention().longest_ms() as f64 + partition).min(written_ms(
        granularity,
        checkpoint_ms,
        age_ms,
    ));
    // Slots without a sample need almost no space.
    let filled = kept / width.max(interval);
    let blocks = (kept / partition).ceil();
    let cost = sealed((width / interval).max(1.0));
    let series_bytes = filled * cost.slot + blocks * cost.block;
    let files = if series > 0.0 { blocks * PARTITION_BYTES } else { 0.0 };
    PlannedGranularity {
        name: granularity.name.clone(),
        slots: (kept / width) as u64,
        bytes_per_slot: series_bytes / filled.max(1.0),
        bytes: (series * series_bytes + files) as u64,
        bytes_at_most: (series * (filled * cost.random_slot + blocks * cost.block) + files) as u64,
        turn_bytes: (series * document_bytes(granularity, interval)) as u64,
    }
}

/// Returns the bytes that are reserved, and the bytes when the values are random to the last bit.
fn reserved<'a>(
    fleet: &Fleet,
    classes: &'a [PlannedClass],
    planned: &[PlannedGranularity],
) -> [u64; 2] {
    let (mut bytes, mut at_most) = (SPARE_LOG_BYTES, SPARE_LOG_BYTES);
    let of_class = |class: &'a PlannedClass| {
        let series = class.series as u64;
        class.levels.iter().map(move |level| (series, level))
    };
    for ((series, level), planned) in classes.iter().flat_map(of_class).zip(planned) {
        let young = MeasuredDocuments { series, is_young: true, ..MeasuredDocuments::default() };
        let turn = turn_bytes(level, young, fleet.interval_ms);
        bytes = bytes.saturating_add(turn);
        let random = planned.bytes_at_most as f64 / planned.bytes.max(1) as f64;
        at_most = at_most.saturating_add((turn as f64 * random) as u64);
    }
    [bytes, at_most]
}

#[cfg(test)]
mod tests;
