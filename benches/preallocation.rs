//! The cost of shells, or with the argument `room` of reserved space: turns of an hour, the last
//! one also of a day, with and without it.
//!
//! 50,000 series (or the number in the argument) send a sample every ten minutes, followed by a
//! checkpoint. Shells are inserted twice before each period, and space is reserved after each
//! checkpoint, as the daemon does. Small batches are sent meanwhile, and queries read the current
//! hour. Runs with and without alternate; the output has a line for each run, the medians of both
//! variants, and their difference beside the range of equal runs.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark that prints")]

#[path = "../tests/support/setup.rs"]
#[allow(dead_code, clippy::panic, reason = "tests use more of it")]
mod setup;

use std::{fs, thread};

use granary::{
    clock::Stopwatch,
    model::{AcceptedBatch, GranularityIndex, Kind, SeriesId, UnixMillis},
    policy::{
        forecast::{MeasuredDocuments, turn_bytes, writes_segment},
        preallocation::live_since,
    },
    store::{Appender, Columns, DocumentSpace, Store},
};
use setup::{HOUR, MINUTE, define, open, series};

/// The number of series of a batch that is sent while a checkpoint runs.
const SMALL: u32 = 100;
/// The number of series of a query of the current hour, and the queries after each turn.
const ASKED: u32 = 1000;
const QUERIES: usize = 500;
/// 2026-11-21T21:00:00Z
const BEGIN: UnixMillis = UnixMillis(1_795_294_800_000);
const HOURS: i64 = 3;
/// The runs of each variant.
const RUNS: usize = 5;

fn samples(count: u32, at: UnixMillis) -> AcceptedBatch {
    AcceptedBatch {
        series: (0..count).map(SeriesId).collect(),
        times: vec![at.0],
        values: (0..count).map(|id| f64::from(id) + (at.0 % 7_919) as f64).collect(),
        ..AcceptedBatch::default()
    }
}

/// Returns the bytes that the process has written to disks.
fn bytes_written() -> u64 {
    let io = fs::read_to_string("/proc/self/io").unwrap();
    io.lines().find_map(|line| line.strip_prefix("write_bytes: ")).unwrap().parse().unwrap()
}

/// Sends small batches until the work ends. Returns the result of the work, and appends the
/// seconds of each batch.
fn time_work_under_load(
    appender: &mut Appender,
    at: UnixMillis,
    batches: &mut Vec<f64>,
    work: impl FnOnce() -> f64 + Send,
) -> f64 {
    thread::scope(|scope| {
        let work = scope.spawn(work);
        let mut sent = 0;
        while !work.is_finished() {
            let watch = Stopwatch::start();
            sent += 1;
            appender.commit(&[], &[samples(SMALL, at.plus(sent))], at).unwrap();
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

/// The roles whose work is measured.
#[derive(Debug, Clone, Copy)]
struct Roles {
    has_shells: bool,
    has_room: bool,
}

/// Runs a checkpoint, and returns its seconds. Then reserves space, as the daemon does.
fn checkpoint(store: &Store, at: UnixMillis, roles: Roles, reserving: &mut Vec<f64>) -> f64 {
    let watch = Stopwatch::start();
    store.checkpoint(at).unwrap();
    let seconds = watch.seconds();
    if roles.has_room {
        let watch = Stopwatch::start();
        let (set, series) = (store.granularities(), store.dictionary().len() as u64);
        let needed = set.indexed().map(|(index, level)| {
            let last = store.last_periods(index, at, 2);
            let is_young = last.len() < 2;
            let last = last.into_iter().max().unwrap_or(0);
            let written = MeasuredDocuments { series, last, is_young, reserved: 0 };
            assert!(writes_segment(written));
            let bytes = turn_bytes(level, written, set[GranularityIndex::FINEST].width_ms);
            DocumentSpace { bytes, is_segment: true }
        });
        let (reserved, outcome) = store.reserve_documents(at, &needed.collect::<Vec<_>>());
        outcome.and(store.reserve_journal()).unwrap();
        assert!(reserved.iter().all(|bytes| *bytes > 0));
        reserving.push(watch.seconds());
    }
    seconds
}

/// Reads the current hour of some series, again and again; appends the seconds of each reading.
fn query(store: &Store, hour: UnixMillis, seconds: &mut Vec<f64>) {
    let ids: Vec<_> = (0..ASKED).map(SeriesId).collect();
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

fn quantile(numbers: &mut [f64], part: f64) -> f64 {
    numbers.sort_by(f64::total_cmp);
    numbers[((numbers.len() - 1) as f64 * part) as usize]
}

/// The measured numbers by name.
type Measurements = [(&'static str, f64); 10];

fn run(series_count: u32, roles: Roles) -> Measurements {
    let dir = tempfile::tempdir_in("target").unwrap();
    let (store, mut appender) = open(dir.path(), BEGIN);
    let host = |id: u32| series("cpu", &[("host", &format!("host{id}"))], Kind::Gauge);
    let all: Vec<_> = (0..series_count).map(host).collect();
    for part in all.chunks(100_000) {
        define(&mut appender, part, BEGIN);
    }
    drop(all);
    let (mut ahead, mut turns, mut queries) = (Vec::new(), Vec::new(), Vec::new());
    let (mut batches, mut reserving) = (Vec::new(), Vec::new());
    let written_before = bytes_written();
    let mut day = 0.0;
    for hour in 0..HOURS {
        let start = BEGIN.plus(hour * HOUR);
        let next = start.plus(HOUR);
        for part in 1..6 {
            let at = start.plus(part * 10 * MINUTE);
            appender.commit(&[], &[samples(series_count, at)], at).unwrap();
            checkpoint(&store, at, roles, &mut reserving);
            if roles.has_shells && (part == 3 || part == 5) {
                let watch = Stopwatch::start();
                preallocate(&store, at, next);
                ahead.push(watch.seconds());
            }
        }
        let at = next.plus(10 * MINUTE);
        appender.commit(&[], &[samples(series_count, at)], at).unwrap();
        query(&store, next, &mut queries);
        let turn = time_work_under_load(&mut appender, at, &mut batches, || {
            checkpoint(&store, at, roles, &mut reserving)
        });
        query(&store, next, &mut queries);
        if hour == HOURS - 1 { day = turn } else { turns.push(turn) }
    }
    let partitions: u64 = store.partitions().iter().map(|partition| partition.bytes).sum();
    let longest = |seconds: &[f64]| seconds.iter().copied().fold(0.0, f64::max);
    [
        ("checkpoint at an hour's turn, s", quantile(&mut turns, 0.5)),
        ("checkpoint at the day's turn, s", day),
        ("acknowledgement p50 meanwhile, ms", quantile(&mut batches, 0.5) * 1e3),
        ("acknowledgement p99 meanwhile, ms", quantile(&mut batches, 0.99) * 1e3),
        ("query of the current hour p50, ms", quantile(&mut queries, 0.5) * 1e3),
        ("query of the current hour p99, ms", quantile(&mut queries, 0.99) * 1e3),
        ("written, MiB", (bytes_written() - written_before) as f64 / f64::from(1 << 20)),
        ("partitions, KiB", partitions as f64 / 1024.0),
        ("longest pass over the series, ms", longest(&ahead) * 1e3),
        ("longest reservation, ms", longest(&reserving) * 1e3),
    ]
}

fn main() {
    let compares_room = std::env::args().any(|argument| argument == "room");
    let mut numbers = std::env::args().filter_map(|argument| argument.parse::<u32>().ok());
    let series_count = numbers.next().unwrap_or(50_000);
    let runs = numbers.next().map_or(RUNS, |runs| runs as usize);
    let mut all: [Vec<Measurements>; 2] = Default::default();
    for round in 0..runs * 2 {
        let is_on = round % 2 == 1;
        let roles = Roles { has_shells: compares_room || is_on, has_room: compares_room && is_on };
        let measured = run(series_count, roles);
        println!("{roles:?}: {measured:.2?}");
        all[usize::from(is_on)].push(measured);
    }
    println!("{series_count} series, medians of {runs} runs (least to most): off, on, difference");
    for (index, (name, _)) in all[0][0].iter().enumerate() {
        let [off, on] = [0, 1].map(|variant: usize| {
            let mut found: Vec<_> = all[variant].iter().map(|run| run[index].1).collect();
            [0.5, 0.0, 1.0].map(|part| quantile(&mut found, part))
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
