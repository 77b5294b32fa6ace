//! Late samples for sealed documents: they take little space, are visible at once, and are merged
//! with the other samples.

use std::{fs, path::Path};

use granary::{
    model::{AcceptedBatch, Cell, Kind, SeriesId, UnixMillis},
    store::{Appender, Store, verify},
};

use crate::setup::{HOUR, MINUTE, NOW, SIX, define, open, send, series, slots};

const HOSTS: u32 = 600;
/// Samples from here to `END` are late; both times are relative to `SIX`.
const LATE_FROM: i64 = HOUR + 30 * MINUTE;
const END: i64 = 2 * HOUR;

/// Sends a reading of every host; counters and gauges alternate.
fn send_round(appender: &mut Appender, at: i64) {
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

fn open_fleet(dir: &Path) -> (Store, Appender) {
    let (store, mut appender) = open(dir, NOW);
    let names: Vec<_> = (0..HOSTS).map(|host| host.to_string()).collect();
    let kind = |host: usize| if host.is_multiple_of(2) { Kind::Counter } else { Kind::Gauge };
    let all = (0..).zip(&names).map(|(host, name)| series("m", &[("host", name)], kind(host)));
    define(&mut appender, &all.collect::<Vec<_>>(), NOW);
    (store, appender)
}

/// Returns the bytes of all partitions, and the number of files of 1m.
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
            let found = slots(store, level, SIX..SIX.plus(3 * HOUR), SeriesId(host));
            all.extend(found.into_iter().map(|slot| (host, level, slot.start, slot.cell)));
        }
    }
    all
}

#[test]
fn late_samples_of_a_fleet_take_little_space_and_are_merged() {
    let (dir, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (store, mut appender) = open_fleet(dir.path());
    let (in_order, mut ordered_appender) = open_fleet(other.path());
    (0..END).step_by(MINUTE as usize).for_each(|at| send_round(&mut ordered_appender, at));
    (0..LATE_FROM).step_by(MINUTE as usize).for_each(|at| send_round(&mut appender, at));
    // The last minute arrives before the late samples.
    send_round(&mut appender, END - MINUTE);
    store.checkpoint(NOW).unwrap();
    let (before, files) = usage(dir.path());
    for at in (LATE_FROM..END - MINUTE).step_by(MINUTE as usize) {
        send_round(&mut appender, at);
        store.checkpoint(NOW).unwrap();
    }
    let (after, files_with_late) = usage(dir.path());
    let bytes_per_sample = (after as f64 - before as f64) / f64::from(HOSTS * 29);
    // This includes the growth of the partition's redb file, which begins at 72 KiB.
    assert!(
        bytes_per_sample < 65.0,
        "{bytes_per_sample} bytes a late sample, of {before} and {after}"
    );
    assert!(files_with_late > files + 20, "{files_with_late} files");
    let expected = cells(&in_order);
    assert!(cells(&store) == expected);
    // The sealer merges this many overlapping segments without waiting for a quiet time.
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
    let (store, mut appender) = open_fleet(dir.path());
    for at in [0, 3, 1, 2] {
        send_round(&mut appender, at * MINUTE);
        store.checkpoint(NOW).unwrap();
    }
    let patched = store.counters().documents_patched.get();
    assert!(patched >= 3 * u64::from(HOSTS), "{patched} documents");
    drop((store, appender));
    let report = verify(dir.path(), NOW, &mut |_| {}).unwrap();
    assert_eq!(report.faults, []);
    // Each series has four minutes in one document of 1m, one of 5m, and the cells of the head.
    assert!(report.compared > u64::from(HOSTS), "{report:?}");
}
