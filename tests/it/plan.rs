//! What `granary plan` computes is what a run on a simulated clock takes on disk.

use std::{os::unix::fs::MetadataExt, path::Path};

use granary::{
    model::{AcceptedBatch, GranularitySet, Kind, SeriesId, UnixMillis},
    policy::plan::{Fleet, Plan, PlanBounds},
    store::{Appender, Store},
};

use crate::setup::{HOUR, MINUTE, define, granularities, open_with, send, series};

const HOSTS: usize = 20;
const METRICS: usize = 100;
/// 2026-09-12T00:00:00Z
const START: UnixMillis = UnixMillis(1_789_171_200_000);

/// Bytes that the files of a folder take, those of the folders in it too.
fn used(folder: &Path) -> u64 {
    let entries = std::fs::read_dir(folder).into_iter().flatten().map(Result::unwrap);
    let bytes = |path: &Path| std::fs::metadata(path).map_or(0, |own| own.blocks() * 512);
    entries
        .map(|own| if own.path().is_dir() { used(&own.path()) } else { bytes(&own.path()) })
        .sum()
}

/// The values of `benches/disk_peers.py`: three of five series are counters that grow by an irregular
/// amount, two are gauges that wander with one decimal.
struct Values {
    random: fastrand::Rng,
    now: Vec<f64>,
}

impl Values {
    fn new() -> Self {
        let mut random = fastrand::Rng::with_seed(1);
        let now = (0..HOSTS * METRICS).map(|_| (random.f64() * 1000.0).floor()).collect();
        Self { random, now }
    }

    fn is_counter(index: usize) -> bool {
        index % 5 < 3
    }

    /// The next values of all series.
    fn step(&mut self) -> &[f64] {
        for index in 0..self.now.len() {
            // Box and Muller's normal distribution.
            let (one, two) = (1.0 - self.random.f64(), self.random.f64());
            let step = (-2.0 * one.ln()).sqrt() * (std::f64::consts::TAU * two).cos();
            let value = &mut self.now[index];
            if Self::is_counter(index) {
                *value += (10_000.0 * (index % METRICS + 1) as f64 * step.abs()).floor();
            } else {
                *value = ((*value + step).clamp(0.0, 1000.0) * 10.0).round() / 10.0;
            }
        }
        &self.now
    }
}

/// How long a run is, and how often there is a checkpoint.
#[derive(Clone, Copy)]
struct Run {
    length_ms: i64,
    checkpoint_ms: i64,
}

/// Sends a sample a minute of all series, with what a daemon does besides.
fn run(store: &Store, appender: &mut Appender, Run { length_ms, checkpoint_ms }: Run) {
    let all: Vec<_> = (0..HOSTS * METRICS)
        .map(|index| {
            let kind = if Values::is_counter(index) { Kind::Counter } else { Kind::Gauge };
            let (host, metric) = (index / METRICS, index % METRICS);
            series(&format!("m{metric:02}"), &[("host", &format!("web{host}"))], kind)
        })
        .collect();
    let ids: Vec<SeriesId> = all.chunks(500).flat_map(|own| define(appender, own, START)).collect();
    let mut values = Values::new();
    let mut waiting = AcceptedBatch::default();
    for minute in 0..length_ms / MINUTE {
        let at = START.plus(minute * MINUTE);
        waiting.series.extend_from_slice(&ids);
        waiting.values.extend_from_slice(values.step());
        waiting.times.resize(waiting.series.len(), at.0);
        let now = at.plus(MINUTE);
        if now.0 % checkpoint_ms == 0 {
            send(appender, std::mem::take(&mut waiting), now);
            store.checkpoint(now).unwrap();
            store.seal(now, checkpoint_ms, &|_| true).unwrap();
        }
    }
    // What is over is written and sealed.
    for later in 1..4 {
        let now = START.plus(length_ms + later * checkpoint_ms);
        store.checkpoint(now).unwrap();
        store.seal(now, checkpoint_ms, &|_| true).unwrap();
    }
}

fn plan(set: &GranularitySet, run: Run) -> Plan {
    let fleet = Fleet { hosts: HOSTS as u64, metrics: METRICS as u64, interval_ms: MINUTE };
    let bounds = PlanBounds {
        checkpoint_interval_ms: run.checkpoint_ms,
        cell_bytes_max: 32 << 20,
        cache_bytes_max: 64 << 20,
    };
    Plan::new(&fleet, set, &bounds, Some(run.length_ms))
}

#[test]
fn a_run_takes_the_disk_that_was_planned_within_a_tenth() {
    let set = granularities(&[["1m", "1h", "6h", "12h"], ["5m", "4h", "12h", "24h"]]);
    let dir = tempfile::tempdir().unwrap();
    let (store, mut appender) = open_with(dir.path(), &set, START);
    let length = Run { length_ms: 12 * HOUR, checkpoint_ms: 10 * MINUTE };
    run(&store, &mut appender, length);
    let planned = plan(&set, length);
    let mut wrong = Vec::new();
    let mut compare = |what: &str, planned: u64, used: u64| {
        let share = planned as f64 / used as f64;
        if !(0.9..=1.1).contains(&share) {
            wrong.push(format!("{what}: planned {planned}, used {used}"));
        }
    };
    for own in &planned.granularities {
        compare(&own.name, own.bytes, used(&dir.path().join("partitions").join(&own.name)));
    }
    let of_file = |name: &str| std::fs::metadata(dir.path().join(name)).unwrap().blocks() * 512;
    compare("the head", planned.head, of_file("head.redb"));
    compare("the journal", planned.journal, of_file("journal.redb"));
    compare("all", planned.disk(), used(dir.path()));
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn the_journal_takes_what_was_planned_when_more_waits_for_a_checkpoint() {
    let set = granularities(&[["1m", "1h", "6h", "12h"], ["5m", "4h", "12h", "24h"]]);
    let dir = tempfile::tempdir().unwrap();
    let (store, mut appender) = open_with(dir.path(), &set, START);
    let length = Run { length_ms: 2 * HOUR, checkpoint_ms: 30 * MINUTE };
    run(&store, &mut appender, length);
    let used = std::fs::metadata(dir.path().join("journal.redb")).unwrap().blocks() * 512;
    let share = plan(&set, length).journal as f64 / used as f64;
    assert!((0.9..=1.1).contains(&share), "planned {share} of {used}");
}
