//! What shells are worth: the checkpoint at the turn of an hour, with and without them.
//!
//! Prints one line for each variant: seconds of preallocation, seconds of the first checkpoint of
//! the hour, seconds of the next one, shells missed, and bytes of the files.
#![allow(clippy::unwrap_used, clippy::print_stdout, reason = "a benchmark that prints")]

#[path = "../tests/support/setup.rs"]
#[allow(dead_code, clippy::panic, reason = "tests use more of it")]
mod setup;

use granary::{
    clock::Stopwatch,
    model::{AcceptedBatch, GranularityIndex, Kind, SeriesId, UnixMillis},
};
use setup::{define, open, series};

const SERIES: u32 = 50_000;
/// 2026-11-21T13:00:00Z
const HOUR: UnixMillis = UnixMillis(1_795_266_000_000);

fn samples(at: UnixMillis) -> AcceptedBatch {
    AcceptedBatch {
        series: (0..SERIES).map(SeriesId).collect(),
        times: vec![at.0],
        values: vec![1.0; SERIES as usize],
        ..AcceptedBatch::default()
    }
}

fn run(preallocate: bool) {
    let dir = tempfile::tempdir().unwrap();
    let before = HOUR.minus(60_000);
    let (store, mut appender) = open(dir.path(), before);
    let host = |id: u32| series("cpu", &[("host", &format!("host{id}"))], Kind::Gauge);
    define(&mut appender, &(0..SERIES).map(host).collect::<Vec<_>>(), before);
    appender.commit(&[], &[samples(before)], before).unwrap();
    store.checkpoint(before).unwrap();
    let watch = Stopwatch::start();
    if preallocate {
        let ids: Vec<_> = (0..SERIES).map(SeriesId).collect();
        for part in ids.chunks(2000) {
            store.preallocate(GranularityIndex(0), HOUR, part).unwrap();
        }
    }
    let ahead = watch.seconds();
    let missed = store.counters().shells_missed.get();
    let mut checkpoints = [0.0; 2];
    for (minute, seconds) in checkpoints.iter_mut().enumerate() {
        let now = HOUR.plus(minute as i64 * 60_000);
        appender.commit(&[], &[samples(now)], now).unwrap();
        let watch = Stopwatch::start();
        store.checkpoint(now).unwrap();
        *seconds = watch.seconds();
    }
    let missed = store.counters().shells_missed.get() - missed;
    let bytes: u64 = store.partitions().iter().map(|partition| partition.bytes).sum();
    let [first, second] = checkpoints;
    println!(
        "preallocate={preallocate}: ahead {ahead:.2} s, first checkpoint {first:.2} s, next \
         {second:.2} s, shells missed {missed}, files {} MiB",
        bytes >> 20
    );
}

fn main() {
    for preallocate in [false, true, false, true] {
        run(preallocate);
    }
}
