//! What a checkpoint and the raising of a journal cost with many series: run by hand. Knows nothing of
//! what is right.
#![expect(clippy::print_stderr, reason = "it prints what it measured")]

use std::{fs, path::Path, time::Instant};

use granary::model::{AcceptedBatch, Kind};
use redb::{Database, ReadableTable, TableDefinition};

use crate::setup::{MINUTE, NOW, define, open, send, series};

const SERIES: usize = 500_000;
const AT_ONCE: usize = 10_000;
const CHECK_BYTES: usize = 8;
const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");

/// Makes a journal of version 8 of one of version 9: nothing has a checksum.
fn lower(journal: &Path) {
    let db = Database::open(journal).unwrap();
    let txn = db.begin_write().unwrap();
    for name in ["states", "seen", "series_changes"] {
        let table: TableDefinition<'_, u32, &[u8]> = TableDefinition::new(name);
        let mut table = txn.open_table(table).unwrap();
        let rows: Vec<_> = table.iter().unwrap().map(|row| row.unwrap().0.value()).collect();
        for key in rows {
            let row = table.get(key).unwrap().unwrap().value().to_vec();
            table.insert(key, &row[..row.len() - CHECK_BYTES]).unwrap();
        }
    }
    for name in ["senders", "granularities"] {
        let table: TableDefinition<'_, &str, &[u8]> = TableDefinition::new(name);
        let mut table = txn.open_table(table).unwrap();
        let read = |row: Result<(redb::AccessGuard<'_, &str>, redb::AccessGuard<'_, &[u8]>), _>| {
            let (key, row) = row.unwrap();
            (key.value().to_owned(), row.value().to_vec())
        };
        let rows: Vec<_> = table.iter().unwrap().map(read).collect();
        for (key, row) in rows {
            table.insert(&*key, &row[..row.len() - CHECK_BYTES]).unwrap();
        }
    }
    {
        let table: TableDefinition<'_, u32, &[u8]> = TableDefinition::new("series");
        let mut table = txn.open_table(table).unwrap();
        let rows: Vec<_> = table.iter().unwrap().map(|row| row.unwrap().0.value()).collect();
        for key in rows {
            let (row, mut old) = (table.get(key).unwrap().unwrap().value().to_vec(), Vec::new());
            let mut rest = &*row;
            while let Some((length, _)) = rest.split_first_chunk::<4>() {
                let bytes = 4 + u32::from_le_bytes(*length) as usize;
                old.extend_from_slice(&rest[..bytes]);
                rest = &rest[bytes + CHECK_BYTES..];
            }
            table.insert(key, &*old).unwrap();
        }
        let mut meta = txn.open_table(META).unwrap();
        meta.retain(|key, _| !key.ends_with("_check")).unwrap();
        meta.insert("format_version", 8).unwrap();
    }
    txn.commit().unwrap();
}

/// Memory of this process, at most since this was last asked, in MiB.
fn memory_max() -> u64 {
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM")).unwrap();
    fs::write("/proc/self/clear_refs", "5").unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() / 1024
}

#[test]
#[ignore = "measures; run it alone"]
fn a_checkpoint_and_raising_with_many_series() {
    let dir = tempfile::tempdir().unwrap();
    let journal = dir.path().join("journal.redb");
    let (store, mut appender) = open(dir.path(), NOW);
    for first in (0..SERIES).step_by(AT_ONCE) {
        let name = |id: usize| {
            series("requests_total", &[("host", &format!("host-{id:07}"))], Kind::Counter)
        };
        let new: Vec<_> = (first..first + AT_ONCE).map(name).collect();
        define(&mut appender, &new, NOW);
    }
    memory_max();
    for round in 0..3 {
        let at = NOW.plus(round * MINUTE);
        for first in (0..SERIES as u32).step_by(AT_ONCE) {
            let ids: Vec<_> =
                (first..first + AT_ONCE as u32).map(granary::model::SeriesId).collect();
            let values = ids.iter().map(|id| f64::from(id.0) + round as f64).collect();
            send(
                &mut appender,
                AcceptedBatch {
                    series: ids,
                    times: vec![at.0],
                    values,
                    ..AcceptedBatch::default()
                },
                at,
            );
        }
        let (began, before) = (Instant::now(), memory_max());
        store.checkpoint(at).unwrap();
        eprintln!(
            "checkpoint {round}: {:?}, memory {before} MiB before, {} MiB meanwhile; journal {} MiB",
            began.elapsed(),
            memory_max(),
            fs::metadata(&journal).unwrap().len() >> 20
        );
    }
    drop((store, appender));
    let began = Instant::now();
    drop(open(dir.path(), NOW));
    eprintln!("a start: {:?}", began.elapsed());
    lower(&journal);
    eprintln!("journal of version 8: {} MiB", fs::metadata(&journal).unwrap().len() >> 20);
    memory_max();
    let (began, before) = (Instant::now(), memory_max());
    drop(open(dir.path(), NOW));
    eprintln!(
        "a start that raises: {:?}, memory {before} MiB before, {} MiB meanwhile; journal {} MiB",
        began.elapsed(),
        memory_max(),
        fs::metadata(&journal).unwrap().len() >> 20
    );
}
