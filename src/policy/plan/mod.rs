//! The resources that a fleet will need, computed before the first sample.
//!
//! The numbers of the settings are exact. The costs of a slot and of a series are measured, and each
//! constant names its measurement. A test compares the planned disk space with that of a run. Must
//! never know: the machine.

mod costs;
mod course;

use crate::model::{Granularity, GranularitySet};
use costs::{
    CORE_SECONDS, HEAD_FREE, JOURNAL_BASE, JOURNAL_SERIES_BYTES, LOG_BYTES, LOG_ROOM_BYTES,
    MEMORY_BASE, MEMORY_SERIES_BYTES, RECORD_SAMPLE_BYTES, SHARE_MAX, sealed,
};
use course::{cell_bytes_due, checkpoint_ms, head_bytes, written, written_ms};

/// The senders.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fleet {
    /// Machines.
    pub hosts: u64,
    /// Series of each.
    pub metrics: u64,
    /// The interval between two samples of a series.
    pub interval_ms: i64,
}

/// The settings that matter, besides the granularities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlanBounds {
    /// `storage.checkpoint_interval`
    pub checkpoint_interval_ms: i64,
    /// `storage.catalog_bytes_max`
    pub cell_bytes_max: usize,
    /// `storage.cache_bytes_max`
    pub cache_bytes_max: usize,
}

/// The resources of a machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Machine {
    /// Bytes of memory.
    pub memory: u64,
    /// The free bytes of the file system with the data directory.
    pub disk_free: u64,
    /// Cores.
    pub cores: usize,
}

/// The resources that a fleet needs.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// All series.
    pub series: u64,
    /// Samples a second.
    pub samples_per_second: f64,
    /// The memory without queries, in bytes.
    pub memory: u64,
    /// The needs of each granularity, finest first.
    pub granularities: Vec<PlannedGranularity>,
    /// The maximum size of the head, in bytes.
    pub head: u64,
    /// The size of the journal's tables, including the names of series, in bytes.
    pub journal: u64,
    /// The maximum size of the journal's log, in bytes.
    pub log: u64,
    /// The average bytes written per second.
    pub written_per_second: u64,
    /// The average number of busy cores.
    pub cores: f64,
}

/// The resources that the documents of a granularity need.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedGranularity {
    /// The granularity's name.
    pub name: String,
    /// The maximum number of slots of each series: those within the retention, and those of the
    /// partition that is not dropped yet.
    pub slots: u64,
    /// Bytes a slot.
    pub bytes_per_slot: f64,
    /// The size of all series, in bytes.
    pub bytes: u64,
    /// The bytes when all values are random to the last bit.
    pub bytes_at_most: u64,
}

impl Plan {
    /// Plans for the time when all retentions are reached, or for a run of this age, in
    /// milliseconds.
    pub fn new(
        fleet: &Fleet,
        set: &GranularitySet,
        bounds: &PlanBounds,
        age_ms: Option<i64>,
    ) -> Self {
        let series = fleet.hosts.saturating_mul(fleet.metrics);
        let count = series as f64;
        let samples_per_second = count * 1000.0 / fleet.interval_ms as f64;
        let age_ms = age_ms.unwrap_or(i64::MAX) as f64;
        let checkpoint_ms = checkpoint_ms(fleet, count, set, bounds);
        let granularities: Vec<_> =
            set.iter().map(|own| planned(fleet, own, count, checkpoint_ms, age_ms)).collect();
        let head = head_bytes(fleet, set, checkpoint_ms, age_ms) * count * HEAD_FREE;
        let between = samples_per_second * checkpoint_ms.min(age_ms) / 1000.0;
        let log = (between * RECORD_SAMPLE_BYTES + LOG_BYTES)
            .min(samples_per_second * age_ms / 1000.0 * RECORD_SAMPLE_BYTES + LOG_ROOM_BYTES);
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
            written_per_second: written(fleet, set, count, checkpoint_ms) as u64,
            cores: samples_per_second * CORE_SECONDS,
        }
    }

    /// Bytes on disk.
    pub fn disk(&self) -> u64 {
        self.granularities.iter().map(|own| own.bytes).sum::<u64>() + self.rest()
    }

    /// The bytes on disk when all values are random to the last bit.
    pub fn disk_at_most(&self) -> u64 {
        let documents: u64 = self.granularities.iter().map(|own| own.bytes_at_most).sum();
        documents + self.rest()
    }

    fn rest(&self) -> u64 {
        self.head + self.journal + self.log
    }

    /// Returns the resources that a machine lacks, each with the remedy.
    pub fn lacks(&self, machine: &Machine) -> Vec<String> {
        let mut out = Vec::new();
        if self.memory as f64 > machine.memory as f64 * SHARE_MAX {
            out.push("memory: take a larger machine, or fewer series".to_owned());
        }
        if self.disk() as f64 > machine.disk_free as f64 * SHARE_MAX {
            out.push("disk: take a larger one, or shorten a granularity's retention".to_owned());
        }
        if self.cores > machine.cores as f64 * SHARE_MAX {
            out.push("cores: take more of them, or a longer interval".to_owned());
        }
        out
    }
}

fn planned(
    fleet: &Fleet,
    own: &Granularity,
    series: f64,
    checkpoint_ms: f64,
    age_ms: f64,
) -> PlannedGranularity {
    let width = own.width_ms as f64;
    let interval = fleet.interval_ms as f64;
    let partition = own.partition.longest_ms() as f64;
    let kept =
        (own.retention.longest_ms() as f64 + partition).min(written_ms(own, checkpoint_ms, age_ms));
    // Slots without samples take almost no space.
    let filled = kept / width.max(interval);
    let blocks = (kept / partition).ceil();
    let form = sealed((width / interval).max(1.0));
    let of_series = filled * form.slot + blocks * form.block;
    PlannedGranularity {
        name: own.name.clone(),
        slots: (kept / width) as u64,
        bytes_per_slot: of_series / filled.max(1.0),
        bytes: (series * of_series) as u64,
        bytes_at_most: (series * (filled * form.random_slot + blocks * form.block)) as u64,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const BOUNDS: PlanBounds = PlanBounds {
        checkpoint_interval_ms: 600_000,
        cell_bytes_max: 32 << 20,
        cache_bytes_max: 64 << 20,
    };

    fn plan(hosts: u64, interval_ms: i64, age_ms: Option<i64>) -> Plan {
        let fleet = Fleet { hosts, metrics: 100, interval_ms };
        Plan::new(&fleet, &GranularitySet::default(), &BOUNDS, age_ms)
    }

    #[test]
    fn what_is_kept_is_the_retention_and_one_partition() {
        let full = plan(10, 60_000, None);
        let slots: Vec<_> = full.granularities.iter().map(|own| own.slots).collect();
        assert_eq!(slots, [54 * 60, 15 * 288, 70 * 24, 6 * 366]);
        // Twice the series take twice the documents; a run that is younger has less.
        let bytes = |plan: &Plan| plan.granularities.iter().map(|own| own.bytes).sum::<u64>();
        assert!(bytes(&plan(20, 60_000, None)).abs_diff(2 * bytes(&full)) < 8);
        let day = plan(10, 60_000, Some(86_400_000));
        // The documents of its last hour are not written.
        assert_eq!(day.granularities[0].slots, 23 * 60);
        // Documents of a day are written when the day is over; until then the head has their cells.
        let hours = |count: i64| plan(10, 60_000, Some(count * 3_600_000));
        assert_eq!([3, 5].map(|count| hours(count).granularities[1].slots), [0, 48]);
        assert!(hours(5).head > hours(1).head && hours(5).head <= full.head);
        assert!(day.disk() < full.disk() && full.disk() < full.disk_at_most());
    }

    #[test]
    fn a_machine_that_is_too_small_is_told_what_it_lacks() {
        let plan = plan(25_000, 60_000, None);
        assert_eq!(plan.series, 2_500_000);
        let machine = Machine { memory: 1 << 40, disk_free: 1 << 50, cores: 64 };
        assert!(plan.lacks(&machine).is_empty());
        let small = Machine { memory: 1 << 30, disk_free: 1 << 30, cores: 0 };
        assert_eq!(plan.lacks(&small).len(), 3);
    }
}
