//! The benefit of shells: six turns of an hour, one of them also of a day, with and without shells.
//!
//! 50,000 series send a sample every ten minutes, followed by a checkpoint. At each turn, small
//! batches continue while the checkpoint runs. The output has for each variant: the seconds of
//! creating shells, of the checkpoints at the turns of an hour (median, longest) and of the day,
//! and of the small batches; the bytes written by the process, and the bytes of the files.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark that prints")]

#[path = "../tests/support/setup.rs"]
#[allow(dead_code, clippy::panic, reason = "tests use more of it")]
mod setup;

use std::{fs, thread};

use granary::{
    clock::Stopwatch,
    model::{AcceptedBatch, Kind, SeriesId, UnixMillis},
    store::{Appender, Store},
};
use setup::{define, open, series};

const SERIES: u32 = 50_000;
/// The number of series of a batch that is sent while a checkpoint runs.
const SMALL: u32 = 100;
const MINUTE: i64 = 60_000;
const HOUR: i64 = 60 * MINUTE;
/// 2026-11-21T21:00:00Z
const BEGIN: UnixMillis = UnixMillis(1_795_294_800_000);
const HOURS: i64 = 6;

fn samples(count: u32, at: UnixMillis) -> AcceptedBatch {
    AcceptedBatch {
        series: (0..count).map(SeriesId).collect(),
        times: vec![at.0],
        values: (0..count).map(|id| f64::from(id) + (at.0 % 7_919) as f64).collect(),
        ..AcceptedBatch::default()
    }
}

/// Returns the bytes that the process has written to disks.
fn written() -> u64 {
    let io = fs::read_to_string("/proc/self/io").unwrap();
    io.lines().find_map(|line| line.strip_prefix("write_bytes: ")).unwrap().parse().unwrap()
}

/// The duration of a turn in seconds: of the checkpoint, and of each small batch meanwhile.
struct Turn {
    checkpoint: f64,
    batches: Vec<f64>,
}

fn turn(store: &Store, appender: &mut Appender, at: UnixMillis) -> Turn {
    thread::scope(|scope| {
        let checkpoint = scope.spawn(|| {
            let watch = Stopwatch::start();
            store.checkpoint(at).unwrap();
            watch.seconds()
        });
        let mut batches = Vec::new();
        while !checkpoint.is_finished() {
            let watch = Stopwatch::start();
            let time = at.plus(batches.len() as i64 + 1);
            appender.commit(&[], &[samples(SMALL, time)], at).unwrap();
            batches.push(watch.seconds());
        }
        Turn { checkpoint: checkpoint.join().unwrap(), batches }
    })
}

/// Creates the documents that begin at a time, as the preallocator does before it.
fn preallocate(store: &Store, at: UnixMillis) {
    let ids: Vec<_> = (0..SERIES).map(SeriesId).collect();
    for (index, granularity) in store.granularities().indexed() {
        if granularity.document_start(at) == at {
            for part in ids.chunks(2000) {
                store.preallocate(index, at, part).unwrap();
            }
        }
    }
}

fn quantile(sorted: &[f64], part: f64) -> f64 {
    sorted[((sorted.len() - 1) as f64 * part) as usize]
}

fn run(with_shells: bool) {
    let dir = tempfile::tempdir_in("target").unwrap();
    let (store, mut appender) = open(dir.path(), BEGIN);
    let host = |id: u32| series("cpu", &[("host", &format!("host{id}"))], Kind::Gauge);
    define(&mut appender, &(0..SERIES).map(host).collect::<Vec<_>>(), BEGIN);
    let (mut ahead, mut hours, mut day, mut batches) = (0.0, Vec::new(), 0.0, Vec::new());
    let written_before = written();
    for hour in 0..HOURS {
        let start = BEGIN.plus(hour * HOUR);
        for part in 1..6 {
            let at = start.plus(part * 10 * MINUTE);
            appender.commit(&[], &[samples(SERIES, at)], at).unwrap();
            store.checkpoint(at).unwrap();
        }
        let next = start.plus(HOUR);
        if with_shells {
            let watch = Stopwatch::start();
            preallocate(&store, next);
            ahead += watch.seconds();
        }
        let found = turn(&store, &mut appender, next.plus(10 * MINUTE));
        batches.extend(found.batches);
        if next.0 % (24 * HOUR) == 0 {
            day = found.checkpoint;
        } else {
            hours.push(found.checkpoint);
        }
    }
    let written = written() - written_before;
    let bytes: u64 = store.partitions().iter().map(|partition| partition.bytes).sum();
    hours.sort_by(f64::total_cmp);
    batches.sort_by(f64::total_cmp);
    println!(
        "shells={with_shells}: ahead {ahead:.1} s; checkpoint at an hour's turn {:.2} s, longest \
         {:.2} s, at the day's {day:.2} s; batches meanwhile p50 {:.1} ms, p99 {:.1} ms, longest \
         {:.0} ms; written {} MiB, partitions {} MiB",
        quantile(&hours, 0.5),
        quantile(&hours, 1.0),
        quantile(&batches, 0.5) * 1e3,
        quantile(&batches, 0.99) * 1e3,
        quantile(&batches, 1.0) * 1e3,
        written >> 20,
        bytes >> 20
    );
}

fn main() {
    for with_shells in [false, true, false, true] {
        run(with_shells);
    }
}
