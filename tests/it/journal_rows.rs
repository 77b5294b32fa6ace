//! One flipped bit in any row of the journal's tables: either no answer changes or the damage is
//! reported, and no sample counts twice.

use std::{fs, path::Path, sync::Arc};

use granary::{
    model::{
        AcceptedBatch, BatchNumber, BatchVerdict, Deduplication, GranularitySet, Kind, SeriesId,
        UnixMillis,
    },
    store::{Appender, Folder, Store, verify},
};
use proptest::{prelude::*, test_runner::TestRunner};
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition};

use crate::setup::{HOUR, MINUTE, NOW, define, open, series, slots};

const TABLES_BY_TEXT: [&str; 2] = ["senders", "granularities"];
const TABLES_BY_NUMBER: [&str; 4] = ["series", "series_changes", "states", "seen"];
const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");

/// Returns a batch of an agent, or with number 0 of a sender that does not number its batches.
fn batch(seq: u64, ids: [u32; 2], at: UnixMillis) -> AcceptedBatch {
    let deduplication = match seq {
        0 => Deduplication::ByTime { window_ms: HOUR },
        _ => Deduplication::ByNumber(BatchNumber { sender: "agent".into(), epoch: 5, seq }),
    };
    AcceptedBatch {
        deduplication,
        series: ids.map(SeriesId).to_vec(),
        times: vec![at.0],
        starts: vec![at.0 - MINUTE],
        values: vec![seq as f64, 1.0],
        ..AcceptedBatch::default()
    }
}

/// Returns the last batches, which `resend_and_count` sends again.
fn last_batches() -> [AcceptedBatch; 2] {
    [batch(5, [0, 1], NOW), batch(0, [2, 3], NOW)]
}

fn fill(dir: &Path) {
    let (store, mut appender) = open(dir, NOW);
    let kinds = [Kind::Counter, Kind::Delta, Kind::Counter, Kind::Delta];
    let all_series: Vec<_> =
        (0..4).map(|id| series("events", &[("id", &format!("number{id}"))], kinds[id])).collect();
    define(&mut appender, &all_series, NOW);
    for seq in 1..5 {
        let at = NOW.minus((5 - seq as i64) * MINUTE);
        let both = [batch(seq, [0, 1], at), batch(0, [2, 3], at)];
        let committed = appender.commit(&[], &both, at).unwrap();
        assert!(committed.batches.iter().all(|batch| batch.is_accepted()));
    }
    assert!(appender.commit(&[], &last_batches(), NOW).unwrap().batches[1].is_accepted());
    store.checkpoint(NOW).unwrap();
}

fn try_open(dir: &Path) -> Option<(Store, Appender)> {
    let medium = Arc::new(Folder::new(dir).unwrap());
    let opened = Store::open(medium, GranularitySet::default(), NOW);
    opened.ok().map(|(store, appender, _)| (store, appender))
}

/// Sends the last batches again and counts the samples of each series.
fn resend_and_count(store: &Store, appender: &mut Appender) -> Vec<u64> {
    appender.commit(&[], &last_batches(), NOW.plus(1)).unwrap();
    let count = |id| {
        // A series with a damaged key has no name that a sender could use.
        if store.dictionary().key(SeriesId(id)).is_none() {
            return 0;
        }
        let slots = slots(store, 0, NOW.minus(HOUR)..NOW.plus(HOUR), SeriesId(id));
        slots.iter().map(|slot| u64::from(slot.cell.n)).sum()
    };
    (0..4).map(count).collect()
}

fn copy_folder(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy_folder(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}

fn flip_bit(row: &[u8], bit: prop::sample::Index) -> Vec<u8> {
    let (mut row, bit) = (row.to_vec(), bit.index(row.len() * 8));
    row[bit / 8] ^= 1 << (bit % 8);
    row
}

/// Flips a bit of some row of a table; returns false for an empty table.
fn flip_bit_in_table(
    dir: &Path,
    table: usize,
    row: prop::sample::Index,
    bit: prop::sample::Index,
) -> bool {
    let db = Database::open(dir.join("journal.redb")).unwrap();
    let txn = db.begin_write().unwrap();
    if let Some(name) = TABLES_BY_TEXT.get(table) {
        let definition: TableDefinition<'_, &str, &[u8]> = TableDefinition::new(name);
        let mut rows = txn.open_table(definition).unwrap();
        let to_owned_row =
            |entry: Result<(redb::AccessGuard<'_, &str>, redb::AccessGuard<'_, &[u8]>), _>| {
                let (key, value) = entry.unwrap();
                (key.value().to_owned(), value.value().to_vec())
            };
        let all: Vec<_> = rows.iter().unwrap().map(to_owned_row).collect();
        let (key, value) = &all[row.index(all.len())];
        rows.insert(&**key, &*flip_bit(value, bit)).unwrap();
    } else if let Some(name) = TABLES_BY_NUMBER.get(table - TABLES_BY_TEXT.len()) {
        let definition: TableDefinition<'_, u32, &[u8]> = TableDefinition::new(name);
        let mut rows = txn.open_table(definition).unwrap();
        let to_owned_row =
            |entry: Result<(redb::AccessGuard<'_, u32>, redb::AccessGuard<'_, &[u8]>), _>| {
                let (key, value) = entry.unwrap();
                (key.value(), value.value().to_vec())
            };
        let all: Vec<_> = rows.iter().unwrap().map(to_owned_row).collect();
        if all.is_empty() {
            return false;
        }
        let (key, value) = &all[row.index(all.len())];
        rows.insert(key, &*flip_bit(value, bit)).unwrap();
    } else {
        let mut rows = txn.open_table(META).unwrap();
        let all: Vec<_> = {
            let entries = rows.iter().unwrap().map(Result::unwrap);
            entries.map(|(key, value)| (key.value().to_owned(), value.value())).collect()
        };
        let (key, value) = &all[row.index(all.len())];
        rows.insert(&**key, value ^ 1 << bit.index(64)).unwrap();
    }
    txn.commit().unwrap();
    true
}

#[test]
fn a_flipped_bit_in_a_row_of_the_journal_changes_no_answer_or_is_reported() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    fill(&path("whole"));
    copy_folder(&path("whole"), &path("sound"));
    let (store, mut appender) = try_open(&path("sound")).unwrap();
    let expected = resend_and_count(&store, &mut appender);
    assert_eq!(expected, [5; 4]);
    drop((store, appender));
    let config = ProptestConfig { cases: 120, failure_persistence: None, ..Default::default() };
    let cases =
        (0..=TABLES_BY_TEXT.len() + TABLES_BY_NUMBER.len(), any::<[prop::sample::Index; 2]>());
    let mut runner = TestRunner::new(config);
    let outcome = runner.run(&cases, |(table, [row, bit])| {
        let folder = path("flipped");
        fs::remove_dir_all(&folder).ok();
        copy_folder(&path("whole"), &folder);
        if !flip_bit_in_table(&folder, table, row, bit) {
            return Ok(());
        }
        let report = verify(&folder, NOW, &mut |_| {}).unwrap();
        // `verify` explains a refused start; a damaged number is never the reason.
        let Some((store, mut appender)) = try_open(&folder) else {
            prop_assert!(
                !report.is_sound() && table < TABLES_BY_TEXT.len() + TABLES_BY_NUMBER.len()
            );
            return Ok(());
        };
        let (rows, count) = store.damaged_journal_rows();
        let found = resend_and_count(&store, &mut appender);
        prop_assert!(
            found.iter().zip(&expected).all(|(count, maximum)| count <= maximum),
            "{:?}",
            found
        );
        if count == 0 {
            prop_assert_eq!(&found, &expected);
        } else {
            prop_assert!(!report.is_sound() && rows[0].contains("is damaged"), "{:?}", rows);
        }
        // The next checkpoint does not increase the damage.
        store.checkpoint(NOW.plus(2)).unwrap();
        drop((store, appender));
        let (store, mut appender) = try_open(&folder).unwrap();
        prop_assert_eq!(resend_and_count(&store, &mut appender), found);
        Ok(())
    });
    outcome.unwrap();
}

/// Regression: any damaged number prevented the daemon from starting.
#[test]
fn a_damaged_number_of_the_journal_is_reported_and_repaired_without_loss() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    fill(&path("whole"));
    {
        // Some series are only in the journal.
        let (_store, mut appender) = try_open(&path("whole")).unwrap();
        let late = [batch(6, [0, 1], NOW.plus(1)), batch(0, [2, 3], NOW.plus(1))];
        appender.commit(&[], &late, NOW.plus(1)).unwrap();
    }
    let numbers: Vec<String> = {
        let db = Database::open(path("whole").join("journal.redb")).unwrap();
        let meta = db.begin_read().unwrap().open_table(META).unwrap();
        meta.iter().unwrap().map(|entry| entry.unwrap().0.value().to_owned()).collect()
    };
    assert_eq!(numbers.len(), 12, "{numbers:?}");
    for key in &numbers {
        for damage in [|number| number ^ 4, |_| 0, |number| number + 1, |_| u64::MAX, |_| 77] {
            let folder = path("damaged");
            fs::remove_dir_all(&folder).ok();
            copy_folder(&path("whole"), &folder);
            {
                let db = Database::open(folder.join("journal.redb")).unwrap();
                let txn = db.begin_write().unwrap();
                {
                    let mut meta = txn.open_table(META).unwrap();
                    let number = meta.get(&**key).unwrap().unwrap().value();
                    if number == damage(number) {
                        continue;
                    }
                    meta.insert(&**key, damage(number)).unwrap();
                }
                txn.commit().unwrap();
            }
            let report = verify(&folder, NOW, &mut |_| {}).unwrap();
            let name = key.trim_end_matches("_check");
            let is_named = |problem: &str| problem.contains(&format!("the number {name}:"));
            assert!(report.faults.iter().any(|fault| is_named(&fault.problem)), "{key} {report:?}");
            let (store, mut appender) = try_open(&folder).unwrap();
            assert_eq!(resend_and_count(&store, &mut appender), [6; 4], "{key}");
            assert!(is_named(&store.damaged_journal_rows().0[0]));
            store.checkpoint(NOW.plus(2)).unwrap();
            appender.commit(&[], &[batch(7, [0, 1], NOW.plus(3))], NOW.plus(3)).unwrap();
            drop((store, appender));
            if name != "log" {
                assert!(verify(&folder, NOW, &mut |_| {}).unwrap().is_sound(), "{key}");
            }
            let (store, mut appender) = try_open(&folder).unwrap();
            assert_eq!(resend_and_count(&store, &mut appender), [7, 7, 6, 6], "{key}");
        }
    }
}

/// Only the head has another copy of the record up to which a checkpoint was finished.
#[test]
fn without_a_head_a_damaged_checkpoint_number_prevents_the_start_and_a_snapshot_is_the_remedy() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    fill(&path("data"));
    let (store, _) = try_open(&path("data")).unwrap();
    store.snapshot(&path("copy"), NOW, &mut |_| {}).unwrap();
    drop(store);
    {
        let db = Database::open(path("data").join("journal.redb")).unwrap();
        let txn = db.begin_write().unwrap();
        txn.open_table(META).unwrap().insert("checkpointed_through", 3).unwrap();
        txn.commit().unwrap();
    }
    fs::remove_file(path("data").join("head.redb")).unwrap();
    let medium = Arc::new(Folder::new(&path("data")).unwrap());
    let refused = Store::open(medium, GranularitySet::default(), NOW).unwrap_err().with_causes();
    assert!(refused.contains("checkpointed_through") && refused.contains("`granary restore`"));
    granary::store::restore(&path("copy"), &path("restored"), &mut |_| {}).unwrap();
    let (store, mut appender) = try_open(&path("restored")).unwrap();
    assert_eq!(resend_and_count(&store, &mut appender), [5; 4]);
}

/// Only the damaged window of a sender is affected: batches of its new epoch are accepted.
#[test]
fn a_sender_with_a_damaged_window_is_refused_until_it_begins_a_new_epoch() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path());
    {
        let senders: TableDefinition<'_, &str, &[u8]> = TableDefinition::new("senders");
        let db = Database::open(dir.path().join("journal.redb")).unwrap();
        let row = {
            let table = db.begin_read().unwrap().open_table(senders).unwrap();
            let mut row = table.get("agent").unwrap().unwrap().value().to_vec();
            // This is the bit of number 5.
            row[24] ^= 1 << 5;
            row
        };
        let txn = db.begin_write().unwrap();
        txn.open_table(senders).unwrap().insert("agent", &*row).unwrap();
        txn.commit().unwrap();
    }
    for _ in 0..2 {
        let (store, mut appender) = open(dir.path(), NOW);
        let mut send = |batch| appender.commit(&[], &[batch], NOW).unwrap().batches[0];
        for seq in [5, 6] {
            assert_eq!(send(batch(seq, [0, 1], NOW)), BatchVerdict::StaleNumber);
        }
        store.checkpoint(NOW).unwrap();
    }
    let (_store, mut appender) = open(dir.path(), NOW);
    let mut later = batch(7, [0, 1], NOW.plus(5));
    let number = BatchNumber { sender: "agent".into(), epoch: NOW.0 + 1, seq: 7 };
    later.deduplication = Deduplication::ByNumber(number);
    assert!(appender.commit(&[], &[later], NOW.plus(5)).unwrap().batches[0].is_accepted());
}
