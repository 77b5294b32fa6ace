//! What comes late for sealed documents: it takes little, is there at once, and becomes one with them.

use std::{fs, path::Path};

use granary::{
    model::{AcceptedBatch, Cell, Kind, SeriesId, UnixMillis},
    store::{Appender, Store, verify},
};

use crate::setup::{HOUR, MINUTE, NOW, SIX, define, open, send, series, slots};

const HOSTS: u32 = 600;
/// The hours from six on, of which the last one is late from here on.
const LATE_FROM: i64 = HOUR + 30 * MINUTE;
const END: i64 = 2 * HOUR;

/// A reading of every host, counters and gauges by turns.
fn round(appender: &mut Appender, at: i64) {
    let minute = at / MINUTE;
    let value = |host: u32| f64::from(host % 7) * minute as f64 + f64::from(host) / 8.0;
    let batch = AcceptedBatch {
        series: (0..HOSTS).map(SeriesId).collect(),
        times: vec![SIX.0 + at],
        values: (0..HOSTS).map(value).collect(),
        ..AcceptedBatch::default()
    };
    send(appender, batch, NOW);
}

fn fleet(dir: &Path) -> (Store, Appender) {
    let (store, mut appender) = open(dir, NOW);
    let names: Vec<_> = (0..HOSTS).map(|host| host.to_string()).collect();
    let kind = |host: usize| if host.is_multiple_of(2) { Kind::Counter } else { Kind::Gauge };
    let all = (0..).zip(&names).map(|(host, name)| series("m", &[("host", name)], kind(host)));
    define(&mut appender, &all.collect::<Vec<_>>(), NOW);
    (store, appender)
}

/// Bytes of all partitions, and how many files of minutes there are.
fn usage(dir: &Path) -> (u64, usize) {
    let mut bytes = 0;
    for level in ["1m", "5m", "1h", "1d"] {
        for entry in fs::read_dir(dir.join("partitions").join(level)).into_iter().flatten() {
            bytes += entry.unwrap().metadata().unwrap().len();
        }
    }
    (bytes, fs::read_dir(dir.join("partitions/1m")).unwrap().count())
}

fn cells(store: &Store) -> Vec<(u32, usize, UnixMillis, Cell)> {
    let mut all = Vec::new();
    for host in 0..HOSTS {
        for level in 0..4 {
            let own = slots(store, level, SIX..SIX.plus(3 * HOUR), SeriesId(host));
            all.extend(own.into_iter().map(|slot| (host, level, slot.start, slot.cell)));
        }
    }
    all
}

#[test]
fn half_an_hour_of_a_fleet_that_comes_late_takes_little_and_becomes_one_with_the_rest() {
    let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (store, mut appender) = fleet(dir.path());
    let (in_order, mut ordered) = fleet(other.path());
    (0..END).step_by(MINUTE as usize).for_each(|at| round(&mut ordered, at));
    (0..LATE_FROM).step_by(MINUTE as usize).for_each(|at| round(&mut appender, at));
    // Its neighbours, which lose to it what lies between.
    round(&mut appender, END - MINUTE);
    store.checkpoint(NOW).unwrap();
    let (before, files) = usage(dir.path());
    for at in (LATE_FROM..END - MINUTE).step_by(MINUTE as usize) {
        round(&mut appender, at);
        store.checkpoint(NOW).unwrap();
    }
    let (after, layers) = usage(dir.path());
    let a_cell = (after as f64 - before as f64) / f64::from(HOSTS * 29);
    assert!(a_cell < 60.0, "{a_cell} bytes a late sample, of {before} and {after}");
    assert!(layers > files + 20, "{layers} files");
    let expected = cells(&in_order);
    assert!(cells(&store) == expected);
    // Too many lie over each other to wait until it is quiet.
    assert!(store.seal(NOW, HOUR, &|_| true).unwrap().partitions > 0);
    let (_, merged) = usage(dir.path());
    assert!(merged <= files + 1, "{merged} files, {files} before");
    assert!(cells(&store) == expected);
    store.seal(NOW.plus(HOUR), HOUR, &|_| true).unwrap();
    store.seal(NOW.plus(2 * HOUR), HOUR, &|_| true).unwrap();
    assert!(cells(&store) == expected);
    drop((store, appender));
    assert_eq!(verify(dir.path(), NOW, &mut |_| {}).unwrap().faults, []);
    let (store, _) = open(dir.path(), NOW);
    assert!(cells(&store) == expected);
}

#[test]
fn verify_reads_a_document_of_several_segments_as_one() {
    let dir = tempfile::tempdir().unwrap();
    let (store, mut appender) = fleet(dir.path());
    for at in [0, 3, 1, 2] {
        round(&mut appender, at * MINUTE);
        store.checkpoint(NOW).unwrap();
    }
    let whole = store.counters().documents_patched.get();
    assert!(whole >= 3 * u64::from(HOSTS), "{whole} documents");
    drop((store, appender));
    let report = verify(dir.path(), NOW, &mut |_| {}).unwrap();
    assert_eq!(report.faults, []);
    // Of each series four minutes in one document of 1m, one of 5m, and what the head has.
    assert!(report.compared > u64::from(HOSTS), "{report:?}");
}
