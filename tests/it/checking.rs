//! The checker finds damage while the store is in use, and records it as a hole at once.

use std::{
    path::Path,
    sync::atomic::{AtomicU64, Ordering},
};

use granary::{
    model::GranularityIndex,
    store::{CheckedFile, Store},
};
use redb::{Database, ReadableTable, TableDefinition};

use crate::{
    document_damage::damage_document,
    rebuild::{damage_bytes, fill, partition},
    setup::{NOW, open},
};

const HOURS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("rows/1h");

/// Checks all files; returns the numbers of new faults and of bytes read.
fn check_all(store: &Store) -> (u64, u64) {
    let bytes = AtomicU64::new(0);
    let count = |read_bytes| {
        bytes.fetch_add(read_bytes, Ordering::Relaxed);
        true
    };
    let files = store.checked_files().into_iter();
    let faults = files.map(|(file, _)| store.check_file(file, &count).unwrap()).sum();
    (faults, bytes.into_inner())
}

fn hole_count(store: &Store) -> usize {
    store.gaps().iter().map(|gaps| gaps.holes.len()).sum()
}

/// Checks that the checker finds the damage once and records it as a hole.
fn check(sealed: bool, damage: &dyn Fn(&Path)) {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path(), sealed);
    let store = open(dir.path(), NOW).0;
    let (faults, bytes) = check_all(&store);
    assert!(faults == 0 && bytes > 1000, "{faults} faults, {bytes} bytes");
    drop(store);
    damage(dir.path());
    let store = open(dir.path(), NOW).0;
    assert_eq!(hole_count(&store), 0);
    assert!(check_all(&store).0 > 0);
    assert!(hole_count(&store) > 0);
    assert_eq!(check_all(&store).0, 0, "the same damage is not found again");
    assert_eq!(store.counters().checked_files.get(), 2 * store.checked_files().len() as u64);
}

#[test]
fn damaged_documents_are_found_in_rows_and_in_segments() {
    check(false, &|dir| damage_document(&partition(dir, "5m", ".redb")));
    check(true, &|dir| damage_bytes(&partition(dir, "1m", ".sealed"), 90));
}

#[test]
fn damaged_rows_of_the_head_are_found() {
    check(false, &|dir| {
        let db = Database::open(dir.join("head.redb")).unwrap();
        let txn = db.begin_write().unwrap();
        {
            let mut table = txn.open_table(HOURS).unwrap();
            let (key, mut row) = {
                let (key, row) = table.last().unwrap().unwrap();
                (key.value(), row.value().to_vec())
            };
            row[12] ^= 1;
            table.insert(key, &*row).unwrap();
        }
        txn.commit().unwrap();
    });
}

#[test]
fn a_check_ends_when_its_callback_returns_false() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path(), false);
    let store = open(dir.path(), NOW).0;
    let calls = AtomicU64::new(0);
    let is_later_call = |_: u64| calls.fetch_add(1, Ordering::Relaxed) > 0;
    let is_first_call = |bytes| !is_later_call(bytes);
    let largest = store.checked_files().into_iter().max_by_key(|(_, bytes)| *bytes).unwrap().0;
    assert!(matches!(largest, CheckedFile::Partition(_) | CheckedFile::Head(GranularityIndex(_))));
    store.check_file(largest, &is_first_call).unwrap();
    assert_eq!(calls.into_inner(), 2);
}
