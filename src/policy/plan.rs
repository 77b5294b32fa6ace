//! What a fleet will take of a machine, computed before there is a sample.
//!
//! The numbers of the settings are exact; what a slot or a series takes was measured, and each such
//! constant says with what. A test holds the disk to what a run takes. Must never know: the machine.

use crate::model::{Granularity, GranularitySet};

/// Samples in a slot, and what the slots of one series then take in a sealed block: bytes a slot,
/// bytes a block, and bytes a slot of values that are random to the last bit. Measured with the
/// history of `benches/disk_peers.py`, and with random doubles, a sample a minute.
const SEALED: [(f64, SealedBytes); 4] = [
    (1.0, SealedBytes { slot: 1.79, block: 19.0, random_slot: 7.0 }),
    (5.0, SealedBytes { slot: 6.84, block: 37.0, random_slot: 29.2 }),
    (60.0, SealedBytes { slot: 8.01, block: 30.0, random_slot: 34.6 }),
    (1440.0, SealedBytes { slot: 9.54, block: 32.0, random_slot: 35.9 }),
];
/// Bytes of a series in a row of the head: where a slot has one sample, and where it has more, with
/// the room that is left in pages of 4 KiB.
const HEAD_SLOT_BYTES: [f64; 2] = [6.5, 16.0];
/// The head's file beside its rows: pages that are free after a change (redb is copy-on-write).
/// Both measured by `tests/it/plan.rs`.
const HEAD_FREE: f64 = 1.1;
/// What a checkpoint writes beside the rows that it changes: 90 bytes of a series were measured with
/// 2,500,000 of them and three slots a checkpoint, in all four granularities.
const HEAD_WRITTEN: f64 = 1.3;
/// How long documents wait for what is late before they are written.
const LATENESS_MS: f64 = 120_000.0;
/// Bytes of the journal's tables: of none, and of a series, its name and its counter's state, which is
/// written to another place before its pages are free. Measured by the same test, and with 2,600,000
/// series. And of the state, which each checkpoint writes: `granary bench --like host` by 12 rounds,
/// all in one checkpoint.
const JOURNAL_BASE: f64 = 130e3;
const JOURNAL_SERIES_BYTES: f64 = 160.0;
const STATE_BYTES: f64 = 25.0;
/// Bytes that a file of the log gets, at most, before there is another one, and of a sample there, packed.
const LOG_BYTES: f64 = 4e6;
/// Zeros at its end.
const LOG_ROOM_BYTES: f64 = 256e3;
const RECORD_SAMPLE_BYTES: f64 = 6.5;
/// Bytes of a commit to the log beside its record: the rest of its pages. Measured with 2,600,000
/// series, each host a request a minute at a moment of its own.
const COMMIT_BYTES: f64 = 5e3;
/// Seconds that a commit takes with what it waits for, as a rule and where two requests and more come
/// while a group waits long; with so many samples it does not.
const COMMIT_SECONDS: f64 = 0.003;
const LONG_COMMIT_SECONDS: f64 = 0.0105;
const LONG_REQUESTS: f64 = 250.0;
const GROUP_SAMPLES: f64 = 2048.0;
/// Memory of a daemon without series, and of each one: its name and the index of its tags, its
/// counter's state. Measured with 2,500,000 series (1.39 GB, with two slots of cells), and with
/// 100,000 by `granary bench --protocol remote-write` (195 MB).
const MEMORY_BASE: f64 = 60e6;
const MEMORY_SERIES_BYTES: f64 = 400.0;
/// Bytes of a cell in memory, of one sample and of more; and for each series that may wait for a checkpoint.
const CELL_BYTES: [f64; 2] = [32.0, 64.0];
const SERIES_CELL_BYTES: f64 = 96.0;
/// Seconds of one core for a sample, from the request to the sealed document. Measured with
/// 2,500,000 series at a sample a minute for 49 minutes.
const CORE_SECONDS: f64 = 3.1e-6;
/// Of a core, a machine or a disk no more than this is planned for: queries and others need some.
const SHARE_MAX: f64 = 0.8;

#[derive(Debug, Clone, Copy)]
struct SealedBytes {
    slot: f64,
    block: f64,
    random_slot: f64,
}

/// What sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fleet {
    /// Machines.
    pub hosts: u64,
    /// Series of each.
    pub metrics: u64,
    /// Between two samples of a series.
    pub interval_ms: i64,
}

/// What the settings say, besides the granularities.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PlanBounds {
    /// `storage.checkpoint_interval`
    pub checkpoint_interval_ms: i64,
    /// `storage.catalog_bytes_max`
    pub cell_bytes_max: usize,
    /// `storage.cache_bytes_max`
    pub cache_bytes_max: usize,
}

/// What a machine has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Machine {
    /// Bytes of memory.
    pub memory: u64,
    /// Bytes that are free where the data lies, or would lie.
    pub disk_free: u64,
    /// Cores.
    pub cores: usize,
}

/// What a fleet takes.
#[derive(Debug, Clone, PartialEq)]
pub struct Plan {
    /// All series.
    pub series: u64,
    /// Samples a second.
    pub samples_per_second: f64,
    /// Bytes of memory, without queries.
    pub memory: u64,
    /// Of each granularity, finest first.
    pub granularities: Vec<PlannedGranularity>,
    /// Bytes of the head, at most.
    pub head: u64,
    /// Bytes of the journal's tables, with the names of the series.
    pub journal: u64,
    /// Bytes of the journal's log, at most.
    pub log: u64,
    /// Bytes written in a second, on average.
    pub written_per_second: u64,
    /// Cores in use, on average.
    pub cores: f64,
}

/// What the documents of a granularity take.
#[derive(Debug, Clone, PartialEq)]
pub struct PlannedGranularity {
    /// Its name.
    pub name: String,
    /// Slots of each series, at most: the retention, and the partition that is not dropped yet.
    pub slots: u64,
    /// Bytes a slot.
    pub bytes_per_slot: f64,
    /// Bytes of all series.
    pub bytes: u64,
    /// The same of values that are random to the last bit.
    pub bytes_at_most: u64,
}

impl Plan {
    /// Plans for the time when all retentions are reached, or for a run of so many milliseconds.
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

    /// The same of values that are random to the last bit.
    pub fn disk_at_most(&self) -> u64 {
        let documents: u64 = self.granularities.iter().map(|own| own.bytes_at_most).sum();
        documents + self.rest()
    }

    fn rest(&self) -> u64 {
        self.head + self.journal + self.log
    }

    /// What a machine lacks, each with what to do.
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

/// What the slots of one series take where so many samples fall into one: between the points that
/// were measured by the logarithm.
fn sealed(samples: f64) -> SealedBytes {
    let behind = SEALED.iter().position(|(own, _)| *own >= samples);
    let behind = behind.unwrap_or(SEALED.len() - 1);
    let (to, high) = SEALED[behind];
    let (from, low) = SEALED[behind.saturating_sub(1)];
    if samples >= to || samples <= from {
        return if samples >= to { high } else { low };
    }
    let part = (samples / from).ln() / (to / from).ln();
    let between = |low: f64, high: f64| low + (high - low) * part;
    SealedBytes {
        slot: between(low.slot, high.slot),
        block: between(low.block, high.block),
        random_slot: between(low.random_slot, high.random_slot),
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
    // Slots without a sample take next to nothing.
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

/// How long a document waits for what is late, and for the next checkpoint.
fn wait_ms(checkpoint_ms: f64) -> f64 {
    LATENESS_MS + checkpoint_ms
}

/// How much of a run of such an age documents have: those whose period is over.
fn written_ms(own: &Granularity, checkpoint_ms: f64, age_ms: f64) -> f64 {
    let document = own.document.longest_ms() as f64;
    ((age_ms - wait_ms(checkpoint_ms)) / document).floor().max(0.0) * document
}

/// Bytes of a series in the rows of the head, the most that they came to in a run of such an age: its
/// file keeps what it took. They are most when a document's period was over and it is not written yet.
fn head_bytes(fleet: &Fleet, set: &GranularitySet, checkpoint_ms: f64, age_ms: f64) -> f64 {
    let longest = set.iter().map(|own| own.document.longest_ms() as f64).fold(0.0, f64::max);
    // By then all of them were over at the same time.
    let age_ms = age_ms.min(longest + wait_ms(checkpoint_ms));
    let ends = set.iter().flat_map(|own| {
        let document = own.document.longest_ms() as f64;
        let over = (written_ms(own, checkpoint_ms, age_ms) / document) as u32;
        (1..=over).map(move |n| f64::from(n) * document + wait_ms(checkpoint_ms))
    });
    let at = |time: f64| -> f64 {
        let rows = |own| head_slots(fleet, own, checkpoint_ms, time) * row_bytes(fleet, own);
        set.iter().map(rows).sum()
    };
    ends.chain([age_ms]).map(at).fold(0.0, f64::max)
}

/// Slots of a granularity that the head has rows of at a time, just before a document is written.
fn head_slots(fleet: &Fleet, own: &Granularity, checkpoint_ms: f64, time_ms: f64) -> f64 {
    let document = own.document.longest_ms() as f64;
    let before = ((time_ms - wait_ms(checkpoint_ms)) / document).ceil() - 1.0;
    let width = (own.width_ms as f64).max(fleet.interval_ms as f64);
    ((time_ms - before.max(0.0) * document) / width).ceil()
}

/// Bytes of a series in a row of the head.
fn row_bytes(fleet: &Fleet, own: &Granularity) -> f64 {
    let [of_one, of_more] = HEAD_SLOT_BYTES;
    if own.width_ms <= fleet.interval_ms { of_one } else { of_more }
}

fn cell_bytes_due(series: f64, bounds: &PlanBounds) -> f64 {
    (bounds.cell_bytes_max as f64).max(SERIES_CELL_BYTES * series)
}

/// Milliseconds between two checkpoints: the interval, or until so many cells wait.
fn checkpoint_ms(fleet: &Fleet, series: f64, set: &GranularitySet, bounds: &PlanBounds) -> f64 {
    let finest = set.as_slice().first().map_or(1, |own| own.width_ms) as f64;
    let slot_ms = finest.max(fleet.interval_ms as f64);
    let [of_one, of_more] = CELL_BYTES;
    let cell_bytes = if finest <= fleet.interval_ms as f64 { of_one } else { of_more };
    let slots = cell_bytes_due(series, bounds) / (cell_bytes * series.max(1.0));
    (bounds.checkpoint_interval_ms as f64).min(slots * slot_ms)
}

/// Commits of the journal in a second: requests share them.
fn commits_per_second(fleet: &Fleet) -> f64 {
    let requests = fleet.hosts as f64 * 1000.0 / fleet.interval_ms as f64;
    if requests < LONG_REQUESTS {
        return requests / (1.0 + requests * COMMIT_SECONDS);
    }
    let full = requests * fleet.metrics as f64 / GROUP_SAMPLES;
    full.max(1.0 / LONG_COMMIT_SECONDS).min(requests)
}

/// Bytes written in a second: to the journal, to the head by each checkpoint, and to segments, once by
/// the checkpoint and once when the partition is over.
fn written(fleet: &Fleet, set: &GranularitySet, series: f64, checkpoint_ms: f64) -> f64 {
    let interval = fleet.interval_ms as f64;
    let commits = commits_per_second(fleet) / 1000.0;
    let records = commits * COMMIT_BYTES + series / interval * RECORD_SAMPLE_BYTES;
    let journal = records + series / checkpoint_ms * STATE_BYTES;
    let of_granularity = |own: &Granularity| {
        let width = (own.width_ms as f64).max(interval);
        let rows = (checkpoint_ms / width + 1.0) * row_bytes(fleet, own);
        let form = sealed((width / interval).max(1.0));
        series * (rows * HEAD_WRITTEN / checkpoint_ms + 2.0 * form.slot / width)
    };
    (journal + set.iter().map(of_granularity).sum::<f64>()) * 1000.0
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
    fn a_slot_takes_what_was_measured_and_in_between_something_between() {
        for (samples, bytes) in SEALED {
            assert_eq!(sealed(samples).slot, bytes.slot);
        }
        assert!(sealed(2.0).slot > sealed(1.0).slot && sealed(2.0).slot < sealed(5.0).slot);
        assert_eq!(sealed(1e9).slot, sealed(1440.0).slot);
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
        // Those of a day are when it is over: until then the head has what is under way.
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
