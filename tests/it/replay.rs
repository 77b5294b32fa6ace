//! The clock at acceptance decides which granularities keep a sample, even when the sample is
//! replayed later.

use std::path::Path;

use granary::{
    model::{Kind, SeriesId, UnixMillis},
    store::{Appender, Store},
};

use crate::setup::{self, SECOND, SIX, granularities, samples, send, series, slots};

/// The partitions of 1s do not align with the slots of 10s and 1m.
const SPANS: [[&str; 4]; 4] = [
    ["1s", "5s", "5s", "5s"],
    ["10s", "10m", "1h", "6h"],
    ["1m", "1h", "6h", "48h"],
    ["1d", "1mo", "1y", "5y"],
];

fn open(dir: &Path, now: UnixMillis) -> (Store, Appender) {
    setup::open_with(dir, &granularities(&SPANS), now)
}

fn define(appender: &mut Appender) {
    setup::define(appender, &[series("events", &[], Kind::Delta)], SIX);
}

fn send_samples(appender: &mut Appender, seconds: &[i64], now: UnixMillis) {
    let points = seconds.iter().map(|at| (SIX.0 + at * SECOND, 1.0));
    send(appender, samples(SeriesId(0), points), now);
}

/// Returns the number of samples of a granularity in each slot of the first minute.
fn counts(store: &Store, level: usize) -> Vec<(i64, u32)> {
    let slots = slots(store, level, SIX..SIX.plus(60 * SECOND), SeriesId(0));
    slots.iter().map(|slot| ((slot.start.0 - SIX.0) / SECOND, slot.cell.n)).collect()
}

#[test]
fn each_sample_is_stored_in_the_finest_granularity_that_keeps_it() {
    let dir = tempfile::tempdir().unwrap();
    // 1s keeps samples since 06:00:05: it keeps the second sample of the batch, but not the first.
    let now = SIX.plus(10 * SECOND + 500);
    let (store, mut appender) = open(dir.path(), now);
    define(&mut appender);
    send_samples(&mut appender, &[3, 7, 9, 2], now);
    let check = |store: &Store| {
        assert_eq!(counts(store, 0), [(7, 1), (9, 1)]);
        assert_eq!(counts(store, 1), [(0, 4)]);
        assert_eq!(counts(store, 2), [(0, 4)]);
    };
    check(&store);
    store.checkpoint(now).unwrap();
    check(&store);
}

#[test]
fn a_replay_repeats_the_first_decision_whatever_the_clock() {
    for later in [0, 3 * 86_400 * SECOND, -3 * 86_400 * SECOND] {
        let dir = tempfile::tempdir().unwrap();
        let now = SIX.plus(10 * SECOND + 500);
        let (store, mut appender) = open(dir.path(), now);
        define(&mut appender);
        send_samples(&mut appender, &[3, 7, 9], now);
        drop((store, appender));
        let (store, _appender) = open(dir.path(), now.plus(later));
        assert_eq!(counts(&store, 0), [(7, 1), (9, 1)], "{later}");
        assert_eq!(counts(&store, 1), [(0, 3)], "{later}");
    }
}
