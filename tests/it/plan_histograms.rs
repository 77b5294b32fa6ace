//! The prediction of `granary plan` for native histograms is near the disk usage of a run on a
//! simulated clock.

use std::{
    fs,
    os::unix::fs::MetadataExt,
    path::{Path, PathBuf},
};

use granary::{
    model::{
        AcceptedBatch, BatchNumber, Deduplication, GranularitySet, Histogram, HistogramSample,
        Kind, SeriesId, SeriesInfo, UnixMillis,
    },
    policy::fleet_plan::{Fleet, Plan, PlanBounds, PlannedHistograms},
    store::{Appender, Store},
};

use crate::{
    fleet::disk_usage,
    setup::{HOUR, MINUTE, define, key, open_with, series},
};

/// 2026-09-12T00:00:00Z
const START: UnixMillis = UnixMillis(1_789_171_200_000);
/// The schema of clients' default resolution.
const SCHEMA: i8 = 3;
const CHECKPOINT_MS: i64 = 10 * MINUTE;
/// Observations before the run: the clients have run for a month.
const OBSERVATIONS_BEFORE: usize = 3000;
const WEIGHT_BEFORE: f64 = 1700.0;
const OBSERVATIONS_A_MINUTE: i64 = 120;
/// The planned size of the database of a partition.
const DATABASE_BYTES: u64 = 90_000;

/// A counter of latencies with one of three shapes.
struct Latencies {
    random: fastrand::Rng,
    shape: usize,
    histogram: Histogram,
}

impl Latencies {
    fn new(index: usize) -> Self {
        let random = fastrand::Rng::with_seed(index as u64);
        let mut latencies = Self { random, shape: index % 3, histogram: Histogram::empty(SCHEMA) };
        (0..OBSERVATIONS_BEFORE).for_each(|_| latencies.observe(WEIGHT_BEFORE));
        latencies
    }

    fn observe(&mut self, weight: f64) {
        let random = &mut self.random;
        // The normal distribution by Box and Muller.
        let (radius, angle) = (1.0 - random.f64(), random.f64());
        let normal = (-2.0 * radius.ln()).sqrt() * (std::f64::consts::TAU * angle).cos();
        let latency = match self.shape {
            0 => (0.8 * normal - 3.0).exp(),
            1 => 0.002 * (1.0 - random.f64()).powf(-1.0 / 1.2),
            _ if random.f64() < 0.7 => 0.01 * (0.1 * normal).exp(),
            _ => 0.9 * (0.3 * normal).exp(),
        };
        self.histogram.observe(latency, weight);
    }

    fn step(&mut self, interval_ms: i64) -> Histogram {
        let usual = (OBSERVATIONS_A_MINUTE * interval_ms / MINUTE) as usize;
        let count = self.random.usize(usual / 2..usual * 3 / 2);
        (0..count).for_each(|_| self.observe(1.0));
        self.histogram.clone()
    }
}

/// The length of a run, the interval of samples, and the number of hosts and of histograms of each.
#[derive(Clone, Copy)]
struct Run {
    duration_ms: i64,
    interval_ms: i64,
    hosts: usize,
    histograms: usize,
}

fn host_series(host: usize, count: usize) -> Vec<SeriesInfo> {
    let name = format!("web-{host:05}.example.com");
    let tags = [("datacenter", "west-1"), ("host", &*name), ("role", "frontend")];
    let series_of = |index: usize| SeriesInfo {
        key: key(&format!("http_request_{index:02}_seconds"), &tags),
        sender: name.as_str().into(),
        ..series("-", &[], Kind::Histogram)
    };
    (0..count).map(series_of).collect()
}

/// The largest sizes of a run, and the number of buckets of a histogram.
struct Used {
    log_max: u64,
    /// The bytes of partitions that are not sealed.
    open_max: u64,
    buckets: f64,
}

/// Sends the histograms of each host in each interval, and runs checkpoints and the sealer.
fn run(store: &Store, appender: &mut Appender, run: Run, folder: &Path) -> Used {
    let ids: Vec<Vec<SeriesId>> = (0..run.hosts)
        .map(|host| define(appender, &host_series(host, run.histograms), START))
        .collect();
    let mut all: Vec<_> = (0..run.hosts * run.histograms).map(Latencies::new).collect();
    let (mut log_max, mut open_max) = (0, 0);
    let mut upkeep = |now: UnixMillis| {
        log_max = log_max.max(disk_usage(&folder.join("journal")).0);
        store.checkpoint(now).unwrap();
        let partitions = folder.join("partitions");
        open_max = open_max.max(disk_usage(&partitions).0 - sealed_bytes(&partitions));
        store.seal(now, CHECKPOINT_MS, &|_| true).unwrap();
    };
    for step in 0..run.duration_ms / run.interval_ms {
        let at = START.plus(step * run.interval_ms);
        let hosts = ids.iter().zip(all.chunks_mut(run.histograms)).enumerate();
        let batches: Vec<_> = hosts
            .map(|(host, (ids, all))| {
                let number = BatchNumber {
                    sender: format!("web{host}").into(),
                    epoch: 1,
                    seq: step as u64 + 1,
                };
                let histograms = all.iter_mut().map(|latencies| latencies.step(run.interval_ms));
                batch(number, ids, at, histograms)
            })
            .collect();
        let now = at.plus(run.interval_ms);
        let verdicts = appender.commit(&[], &batches, now).unwrap().batches;
        assert!(verdicts.iter().all(|verdict| verdict.is_accepted()), "{verdicts:?}");
        if now.0 % CHECKPOINT_MS == 0 {
            upkeep(now);
        }
    }
    // The next checkpoints write and seal the partitions whose period is over.
    (1..4).for_each(|later| upkeep(START.plus(run.duration_ms + later * CHECKPOINT_MS)));
    let buckets = |latencies: &Latencies| latencies.histogram.positive.len();
    let buckets: usize = all.iter().map(buckets).sum();
    Used { log_max, open_max, buckets: buckets as f64 / all.len() as f64 }
}

fn batch(
    number: BatchNumber,
    ids: &[SeriesId],
    at: UnixMillis,
    histograms: impl Iterator<Item = Histogram>,
) -> AcceptedBatch {
    let histograms = (0..).zip(histograms);
    let histograms: Vec<_> =
        histograms.map(|(index, histogram)| HistogramSample { index, histogram }).collect();
    AcceptedBatch {
        deduplication: Deduplication::ByNumber(number),
        series: ids.to_vec(),
        times: vec![at.0],
        values: histograms.iter().map(|sample| sample.histogram.count).collect(),
        histograms,
        ..AcceptedBatch::default()
    }
}

/// Returns the disk usage of the sealed files of a folder and its subfolders.
fn sealed_bytes(folder: &Path) -> u64 {
    let size = |path: PathBuf| match path.extension() {
        _ if path.is_dir() => sealed_bytes(&path),
        Some(extension) if extension == "sealed" => fs::metadata(path).unwrap().blocks() * 512,
        _ => 0,
    };
    fs::read_dir(folder).into_iter().flatten().map(|entry| size(entry.unwrap().path())).sum()
}

fn plan(set: &GranularitySet, run: Run, buckets: f64) -> Plan {
    let (hosts, series) = (run.hosts as u64, run.histograms as u64);
    let fleet = Fleet { hosts, metrics: series, interval_ms: run.interval_ms };
    let bounds = PlanBounds {
        checkpoint_interval_ms: CHECKPOINT_MS,
        cell_bytes_max: 32 << 20,
        cache_bytes_max: 64 << 20,
    };
    let histograms = PlannedHistograms { series, buckets: buckets.round() as u64 };
    // The duration includes the three checkpoints at the end of the run.
    let age_ms = Some(run.duration_ms + 3 * CHECKPOINT_MS);
    let plan = Plan::new(&fleet, (set, &[]), &bounds, age_ms);
    plan.with_histograms(&fleet, histograms, (set, &bounds), age_ms)
}

/// Compares a run of 64 histograms with its plan.
fn check(interval_ms: i64) {
    let set = GranularitySet::default();
    let settings = Run { duration_ms: 5 * HOUR, interval_ms, hosts: 8, histograms: 8 };
    let dir = tempfile::tempdir().unwrap();
    let (store, mut appender) = open_with(dir.path(), &set, START);
    let used = run(&store, &mut appender, settings, dir.path());
    let planned = plan(&set, settings, used.buckets);
    let file = |name: &str| fs::metadata(dir.path().join(name)).unwrap().blocks() * 512;
    let mut parts = vec![
        ("the log".to_owned(), planned.log, used.log_max),
        ("the head".to_owned(), planned.head, file("head.redb")),
        ("the journal".to_owned(), planned.journal, file("journal.redb")),
        ("open histograms".to_owned(), planned.open, used.open_max),
    ];
    // The planned size of a database exceeds that of a partition whose documents are all sealed.
    for level in &planned.granularities[..2] {
        let sealed = sealed_bytes(&dir.path().join("partitions").join(&level.name));
        parts.push((level.name.clone(), level.bytes - DATABASE_BYTES, sealed));
    }
    let ratio = |(_, planned, used): &(String, u64, u64)| *planned as f64 / *used as f64;
    let wrong: Vec<_> = parts.iter().filter(|part| !(0.85..=1.15).contains(&ratio(part))).collect();
    let ratios: Vec<_> = parts.iter().map(|part| (&part.0, ratio(part))).collect();
    assert!(wrong.is_empty(), "{wrong:?} of {ratios:?}");
}

#[test]
fn the_disk_usage_of_histograms_every_10_seconds_is_near_the_plan() {
    check(10_000);
}

#[test]
fn the_disk_usage_of_histograms_every_minute_is_near_the_plan() {
    check(MINUTE);
}
