//! The cost of preallocation and of reserved space: turns of an hour, the last of which is also
//! that of a day, with and without both.
//!
//! 50,000 series (or the number in the argument) send a sample every ten minutes, followed by a
//! checkpoint. Shells are inserted twice before each period, and space for the next turns is
//! reserved after each checkpoint, as the daemon does. Small batches are sent while the checkpoint
//! of a turn runs, and queries read the current hour. Runs with and without both alternate; the
//! output has a line for each run, the medians of both variants, and their difference next to the
//! range of equal runs.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark that prints")]

#[path = "../tests/support/setup.rs"]
#[allow(dead_code, clippy::panic, reason = "tests use more of it")]
mod setup;

use std::{fs, path::Path, thread};

use granary::{
    actors::{Forecast, SpaceKeeper, SpaceKeeperParts},
    clock::Stopwatch,
    model::{AcceptedBatch, GranularityIndex, Kind, SeriesId, UnixMillis},
    policy::preallocation::live_since,
    store::{Appender, Columns, Store},
    telemetry::{Health, Metrics},
};
use setup::{HOUR, MINUTE, define, open, series};

/// The number of series of a batch that is sent while a checkpoint runs.
const SMALL_BATCH_SERIES: u32 = 100;
/// The number of series of a query of the current hour, and the number of queries after each turn.
const QUERIED_SERIES: u32 = 1000;
const QUERIES: usize = 500;
/// 2026-11-21T21:00:00Z
const BEGIN: UnixMillis = UnixMillis(1_795_294_800_000);
const HOURS: i64 = 3;
/// The number of runs of each variant.
const RUNS: usize = 5;

fn batch_of_samples(count: u32, time: UnixMillis) -> AcceptedBatch {
    AcceptedBatch {
        series: (0..count).map(SeriesId).collect(),
        times: vec![time.0],
        values: (0..count).map(|id| f64::from(id) + (time.0 % 7_919) as f64).collect(),
        ..AcceptedBatch::default()
    }
}

/// Returns the bytes that the process has written to disks.
fn bytes_written() -> u64 {
    let io = fs::read_to_string("/proc/self/io").unwrap();
    io.lines().find_map(|line| line.strip_prefix("write_bytes: ")).unwrap().parse().unwrap()
}

/// Sends small batches until the work ends. Returns the seconds of the work, and appends the
/// seconds of each batch.
fn time_work_under_load(
    appender: &mut Appender,
    time: UnixMillis,
    batches: &mut Vec<f64>,
    work: impl FnOnce() + Send,
) -> f64 {
    thread::scope(|scope| {
        let work = scope.spawn(|| {
            let watch = Stopwatch::start();
            work();
            watch.seconds()
        });
        let mut sent = 0;
        while !work.is_finished() {
            let watch = Stopwatch::start();
            sent += 1;
            appender
                .commit(&[], &[batch_of_samples(SMALL_BATCH_SERIES, time.plus(sent))], time)
                .unwrap();
            batches.push(watch.seconds());
        }
        work.join().unwrap()
    })
}

/// Inserts the shells of the documents that begin at a time, as the preallocator does before it.
fn preallocate(store: &Store, now: UnixMillis, next: UnixMillis) {
    let live = store.live_series(live_since(&store.granularities()[GranularityIndex::FINEST], now));
    for (index, granularity) in store.granularities().indexed() {
        if granularity.document_start(next) == next {
            store.preallocate(index, next, &live).unwrap();
        }
    }
}

/// Reads the current hour of some series repeatedly; appends the seconds of each reading.
fn query_hour(store: &Store, hour: UnixMillis, seconds: &mut Vec<f64>) {
    let ids: Vec<_> = (0..QUERIED_SERIES).map(SeriesId).collect();
    let mut slots = Vec::new();
    for _ in 0..QUERIES {
        let watch = Stopwatch::start();
        let view = store.view(GranularityIndex::FINEST, hour..hour.plus(HOUR), &ids).unwrap();
        for id in &ids {
            view.slots_into(*id, Columns::ALL, &mut slots).unwrap();
            assert!(!slots.is_empty());
        }
        seconds.push(watch.seconds());
    }
}

fn quantile(numbers: &mut [f64], fraction: f64) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[((numbers.len() - 1) as f64 * fraction) as usize]
}

/// The measured numbers by name.
type Measurements = [(&'static str, f64); 10];

/// Checkpoints, and the reservation of space after each one if there is a space keeper.
struct Checkpoints<'a> {
    store: &'a Store,
    keeper: Option<SpaceKeeper>,
    /// The seconds of each reservation.
    reserving: Vec<f64>,
}

impl<'a> Checkpoints<'a> {
    fn new(store: &'a Store, data_dir: &Path, reserves: bool) -> Self {
        let parts = || SpaceKeeperParts {
            store: store.clone(),
            data_dir: data_dir.to_owned(),
            metrics: Metrics::new().unwrap(),
            health: Health::default(),
            forecast: Forecast::default(),
        };
        Self { store, keeper: reserves.then(|| SpaceKeeper::new(parts())), reserving: Vec::new() }
    }

    fn run(&mut self, now: UnixMillis) {
        self.store.checkpoint(now).unwrap();
        self.reserve(now);
    }

    fn reserve(&mut self, now: UnixMillis) {
        let Some(keeper) = &mut self.keeper else { return };
        let watch = Stopwatch::start();
        keeper.note_checkpoint(now);
        keeper.run(now);
        self.reserving.push(watch.seconds());
    }
}

fn run(series_count: u32, is_on: bool) -> Measurements {
    let dir = tempfile::tempdir_in("target").unwrap();
    let (store, mut appender) = open(dir.path(), BEGIN);
    let host = |id: u32| series("cpu", &[("host", &format!("host{id}"))], Kind::Gauge);
    let all_series: Vec<_> = (0..series_count).map(host).collect();
    for chunk in all_series.chunks(100_000) {
        define(&mut appender, chunk, BEGIN);
    }
    drop(all_series);
    let (mut pass_seconds, mut turn_seconds, mut queries) = (Vec::new(), Vec::new(), Vec::new());
    let mut batches = Vec::new();
    let written_before = bytes_written();
    let mut checkpoints = Checkpoints::new(&store, dir.path(), is_on);
    let mut day_turn_seconds = 0.0;
    for hour in 0..HOURS {
        let start = BEGIN.plus(hour * HOUR);
        let next = start.plus(HOUR);
        for step in 1..6 {
            let time = start.plus(step * 10 * MINUTE);
            appender.commit(&[], &[batch_of_samples(series_count, time)], time).unwrap();
            checkpoints.run(time);
            if is_on && (step == 3 || step == 5) {
                let watch = Stopwatch::start();
                preallocate(&store, time, next);
                pass_seconds.push(watch.seconds());
            }
        }
        let time = next.plus(10 * MINUTE);
        appender.commit(&[], &[batch_of_samples(series_count, time)], time).unwrap();
        query_hour(&store, next, &mut queries);
        let turn = time_work_under_load(&mut appender, time, &mut batches, || {
            store.checkpoint(time).unwrap();
        });
        checkpoints.reserve(time);
        query_hour(&store, next, &mut queries);
        if hour == HOURS - 1 { day_turn_seconds = turn } else { turn_seconds.push(turn) }
    }
    let partitions: u64 = store.partitions().iter().map(|partition| partition.bytes).sum();
    let longest =
        |seconds: &mut [f64]| if seconds.is_empty() { 0.0 } else { quantile(seconds, 1.0) };
    [
        ("checkpoint at an hour's turn, s", quantile(&mut turn_seconds, 0.5)),
        ("checkpoint at the day's turn, s", day_turn_seconds),
        ("acknowledgement p50 at a turn, ms", quantile(&mut batches, 0.5) * 1e3),
        ("acknowledgement p99 at a turn, ms", quantile(&mut batches, 0.99) * 1e3),
        ("query of the current hour p50, ms", quantile(&mut queries, 0.5) * 1e3),
        ("query of the current hour p99, ms", quantile(&mut queries, 0.99) * 1e3),
        ("written, MiB", (bytes_written() - written_before) as f64 / f64::from(1 << 20)),
        ("partitions, KiB", partitions as f64 / 1024.0),
        ("longest pass over the series, ms", longest(&mut pass_seconds) * 1e3),
        ("longest reservation of space, ms", longest(&mut checkpoints.reserving) * 1e3),
    ]
}

fn main() {
    let mut numbers = std::env::args().filter_map(|argument| argument.parse::<u32>().ok());
    let series_count = numbers.next().unwrap_or(50_000);
    let runs = numbers.next().map_or(RUNS, |runs| runs as usize);
    let mut runs_by_variant: [Vec<Measurements>; 2] = Default::default();
    for round in 0..runs * 2 {
        let is_on = round % 2 == 1;
        let measurements = run(series_count, is_on);
        println!("on={is_on}: {measurements:.2?}");
        runs_by_variant[usize::from(is_on)].push(measurements);
    }
    println!("{series_count} series, medians of {runs} runs (least to most): off, on, difference");
    for (index, (name, _)) in runs_by_variant[0][0].iter().enumerate() {
        let [off, on] = [0, 1].map(|variant: usize| {
            let mut values: Vec<_> =
                runs_by_variant[variant].iter().map(|run| run[index].1).collect();
            [0.5, 0.0, 1.0].map(|fraction| quantile(&mut values, fraction))
        });
        println!(
            "{name:36} {:9.2} ({:.2} to {:.2}) {:9.2} ({:.2} to {:.2}) {:+.1} %",
            off[0],
            off[1],
            off[2],
            on[0],
            on[1],
            on[2],
            (on[0] / off[0] - 1.0) * 100.0
        );
    }
}
