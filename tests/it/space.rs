//! The store releases space that it no longer needs while the daemon runs.

use std::{fs, os::unix::fs::MetadataExt};

use granary::{
    model::{AcceptedBatch, GranularityIndex, Kind, SeriesId},
    store::{Appender, Store},
};

use crate::setup::{HOUR, NOW, SECOND, SIX, define, open, send, series};

/// The number of records, a second apart up to `SIX`.
const RECORDS: i64 = 40;
const SAMPLES: usize = 100_000;
const MIB: u64 = 1 << 20;

fn journal_bytes_after_a_checkpoint(store: &Store) -> u64 {
    store.checkpoint(SIX).unwrap();
    store.journal_bytes()
}

/// Sends all records.
fn send_records(appender: &mut Appender) {
    for record in 0..RECORDS {
        let at = SIX.0 - record * SECOND;
        let batch = AcceptedBatch {
            series: vec![SeriesId(0); SAMPLES],
            times: vec![at],
            values: (0..SAMPLES).map(|value| value as f64 / 7.0).collect(),
            ..AcceptedBatch::default()
        };
        send(appender, batch, SIX);
    }
}

#[test]
fn a_checkpoint_removes_unneeded_files_of_the_journal() {
    let dir = tempfile::tempdir().unwrap();
    let (store, mut appender) = open(dir.path(), SIX);
    define(&mut appender, &[series("m", &[], Kind::Gauge)], SIX);
    for _ in 0..3 {
        send_records(&mut appender);
        let before = store.journal_bytes();
        assert!(before > 30 * MIB, "{before}");
        let after = journal_bytes_after_a_checkpoint(&store);
        assert!(after < 6 * MIB, "{before} bytes before, {after} after");
    }
    send_records(&mut appender);
    drop((store, appender));
    let (store, _) = open(dir.path(), SIX);
    assert!(store.journal_bytes() > 30 * MIB);
    assert!(journal_bytes_after_a_checkpoint(&store) < 6 * MIB);
}

#[test]
fn a_partition_read_during_sealing_releases_its_space_later() {
    const HOSTS: u32 = 300;
    let dir = tempfile::tempdir().unwrap();
    let (store, mut appender) = open(dir.path(), NOW);
    store.set_segment_documents_min(usize::MAX);
    let names: Vec<_> = (0..HOSTS).map(|host| host.to_string()).collect();
    let all: Vec<_> =
        names.iter().map(|host| series("m", &[("host", host)], Kind::Gauge)).collect();
    define(&mut appender, &all, NOW);
    for hour in 0..6 {
        let batch = AcceptedBatch {
            series: (0..HOSTS).map(SeriesId).collect(),
            times: vec![SIX.0 + hour * HOUR],
            values: vec![1.5; HOSTS as usize],
            ..AcceptedBatch::default()
        };
        send(&mut appender, batch, NOW);
    }
    store.checkpoint(NOW).unwrap();
    let file = dir.path().join("partitions/1m/2026-11-21T0600.redb");
    let bytes = || fs::metadata(&file).unwrap().blocks() * 512;
    let seal = |hours: i64| store.seal(NOW.plus(hours * HOUR), HOUR, &|_| true).unwrap().partitions;
    assert_eq!(seal(0), 0, "the partition has not been unchanged for long enough");
    let open_bytes = bytes();
    assert!(open_bytes > 6 * MIB, "{open_bytes}");
    let range = SIX..SIX.plus(6 * HOUR);
    let view = store.view(GranularityIndex(0), range, &[SeriesId(0)]).unwrap();
    assert!(seal(1) > 0);
    let read_bytes = bytes();
    assert!(read_bytes > MIB, "{read_bytes}");
    assert_eq!(view.slots(SeriesId(0)).unwrap().len(), 6);
    drop(view);
    // Sealing changed the partition: one run notes the change, and a later run releases the space.
    assert_eq!([seal(2), seal(3)], [0, 0]);
    let after = bytes();
    assert!(
        after < MIB / 4,
        "{open_bytes} bytes open, {read_bytes} while it was read, {after} after"
    );
}
