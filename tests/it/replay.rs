//! Which granularities take in a sample: decided once, by the clock when it was accepted.

use std::{path::Path, sync::Arc};

use granary::{
    model::{
        AcceptedBatch, Granularity, GranularityIndex, GranularitySet, Kind, SeriesId, SeriesInfo,
        SeriesKey, SeriesLimits, UnixMillis,
    },
    store::{Appender, Folder, Store},
};

/// 2026-11-21T06:00:00Z
const SIX: UnixMillis = UnixMillis(1_795_240_800_000);
const SECOND: i64 = 1000;

/// The partitions of 1s do not align with the slots of 10s and 1m.
fn granularities() -> GranularitySet {
    let span = |text: &str| text.parse().unwrap();
    let level = |width_s: i64, document: &str, partition: &str, retention: &str| {
        let [document, partition, retention] = [document, partition, retention].map(span);
        Granularity::new(width_s * SECOND, document, partition, retention)
    };
    let levels = vec![
        level(1, "5s", "5s", "5s"),
        level(10, "10m", "1h", "6h"),
        level(60, "1h", "6h", "48h"),
        level(86_400, "1mo", "1y", "5y"),
    ];
    GranularitySet::new(levels).unwrap()
}

fn open(dir: &Path, now: UnixMillis) -> (Store, Appender) {
    let medium = Arc::new(Folder::new(dir).unwrap());
    let (store, appender, _) = Store::open(medium, granularities(), now).unwrap();
    (store, appender)
}

fn define(appender: &mut Appender) {
    let key = SeriesKey::new("events", [], &SeriesLimits::default()).unwrap();
    let definition = SeriesInfo { key, kind: Kind::Delta, unit: "".into(), sender: "".into() };
    appender.commit(&[definition], &[], SIX).unwrap();
}

fn add(appender: &mut Appender, seconds: &[i64], now: UnixMillis) {
    let batch = AcceptedBatch {
        series: vec![SeriesId(0); seconds.len()],
        times: seconds.iter().map(|at| SIX.0 + at * SECOND).collect(),
        values: vec![1.0; seconds.len()],
        ..AcceptedBatch::default()
    };
    appender.commit(&[], &[batch], now).unwrap();
}

/// Samples of a granularity within the minute.
fn counts(store: &Store, level: usize) -> Vec<(i64, u32)> {
    let view =
        store.view(GranularityIndex(level), SIX..SIX.plus(60 * SECOND), &[SeriesId(0)]).unwrap();
    let slots = view.slots(SeriesId(0)).unwrap();
    slots.iter().map(|slot| ((slot.start.0 - SIX.0) / SECOND, slot.cell.n)).collect()
}

#[test]
fn each_sample_goes_to_the_finest_granularity_that_keeps_it_also_within_one_coarser_slot() {
    let dir = tempfile::tempdir().unwrap();
    // 1s is kept since 06:00:05: the second sample of the batch is, the first is not.
    let now = SIX.plus(10 * SECOND + 500);
    let (store, mut appender) = open(dir.path(), now);
    define(&mut appender);
    add(&mut appender, &[3, 7, 9, 2], now);
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
fn a_replay_decides_as_it_was_decided_first_whatever_the_clock_says() {
    for later in [0, 3 * 86_400 * SECOND, -3 * 86_400 * SECOND] {
        let dir = tempfile::tempdir().unwrap();
        let now = SIX.plus(10 * SECOND + 500);
        let (store, mut appender) = open(dir.path(), now);
        define(&mut appender);
        add(&mut appender, &[3, 7, 9], now);
        drop((store, appender));
        let (store, _appender) = open(dir.path(), now.plus(later));
        assert_eq!(counts(&store, 0), [(7, 1), (9, 1)], "{later}");
        assert_eq!(counts(&store, 1), [(0, 3)], "{later}");
    }
}
