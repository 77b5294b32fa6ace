//! Tests of the audit: order, limits of files, cut and damaged lines, failed writes.

use super::*;
use crate::{
    model::{AuditKind, AuditOutcome},
    store::faulty::{Call, EIO, Effect, Fault, FaultyMedium},
};

fn record(object: &str) -> AuditRecord {
    AuditRecord {
        seq: 0,
        at: 1_764_000_000_000,
        kind: AuditKind::Key,
        who: "root".to_owned(),
        address: "127.0.0.1".to_owned(),
        action: "DELETE /api/v1/series".to_owned(),
        object: object.to_owned(),
        outcome: AuditOutcome::Done,
        status: 200,
        reason: String::new(),
        count: 1,
    }
}

fn open(medium: &FaultyMedium) -> AuditLog {
    AuditLog::open(Arc::new(medium.clone())).unwrap()
}

/// Returns the objects of all records below a number, newest first, with the damaged lines.
fn objects(log: &AuditLog, before: u64) -> (Vec<String>, u64) {
    let mut found = Vec::new();
    let damaged = log.visit_backwards(before, &mut |record| {
        found.push(format!("{}:{}", record.seq, record.object));
        ControlFlow::Continue(())
    });
    (found, damaged.unwrap())
}

#[test]
fn records_are_numbered_and_read_backwards_also_after_a_restart() {
    let medium = FaultyMedium::new(1);
    let log = open(&medium);
    assert_eq!(objects(&log, u64::MAX), (vec![], 0));
    log.append(vec![record("a"), record("b")]).unwrap();
    log.append(vec![record("c")]).unwrap();
    assert_eq!(objects(&log, u64::MAX).0, ["3:c", "2:b", "1:a"]);
    drop(log);
    let log = open(&medium);
    log.append(vec![record("d")]).unwrap();
    assert_eq!(objects(&log, 4).0, ["3:c", "2:b", "1:a"]);
    assert_eq!(
        objects(&log, u64::MAX),
        (["4:d", "3:c", "2:b", "1:a"].map(str::to_owned).into(), 0)
    );
}

#[test]
fn a_cut_last_line_is_removed_and_a_damaged_one_is_skipped() {
    let medium = FaultyMedium::new(1);
    let log = open(&medium);
    log.append(vec![record("a"), record("b"), record("c")]).unwrap();
    let name = log.file_names().remove(0);
    drop(log);
    let file = medium.open(&name).unwrap();
    let length = file.len().unwrap();
    file.set_len(length - 5).unwrap();
    // A byte of the first record.
    file.write(100, b"#").unwrap();
    drop(file);
    let log = open(&medium);
    assert_eq!(objects(&log, u64::MAX), (vec!["2:b".to_owned()], 1));
    log.append(vec![record("d")]).unwrap();
    assert_eq!(objects(&log, u64::MAX), (vec!["3:d".to_owned(), "2:b".to_owned()], 1));
    drop(log);
    let content = read_file(&medium, name.rsplit('/').next().unwrap()).unwrap();
    assert!(content.ends_with(b"\n") && !content.contains(&0), "the cut line is removed");
}

#[test]
fn a_failed_write_counts_for_nothing() {
    for call in [Call::Sync, Call::Write] {
        let medium = FaultyMedium::new(1);
        let log = open(&medium);
        log.append(vec![record("a")]).unwrap();
        medium.arm(Fault { call, after: 0, times: u64::MAX, effect: Effect::Error(EIO) });
        assert!(log.append(vec![record("lost")]).is_err());
        medium.lift();
        log.append(vec![record("b")]).unwrap();
        assert_eq!(objects(&log, u64::MAX), (vec!["2:b".to_owned(), "1:a".to_owned()], 0));
    }
}

#[test]
fn the_oldest_file_is_removed_beyond_the_limit() {
    let medium = FaultyMedium::new(1);
    let log = open(&medium);
    // Each append fills more than half of a file.
    let count = 16_000;
    for _ in 0..FILES_MAX + 3 {
        log.append((0..count).map(|_| record("x")).collect()).unwrap();
    }
    let files = log.file_names();
    assert_eq!(files.len(), FILES_MAX);
    assert!(log.allocated_bytes() <= FILES_MAX as u64 * FILE_BYTES_MAX);
    let (found, damaged) = objects(&log, u64::MAX);
    assert_eq!((found.len(), damaged), (FILES_MAX * count as usize, 0));
    assert_eq!(found[0], format!("{}:x", (FILES_MAX + 3) * count as usize));
    drop(log);
    assert_eq!(objects(&open(&medium), u64::MAX).0.len(), found.len());
}
