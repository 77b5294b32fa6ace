//! Files that are lost, damaged, or temporarily impossible to read or remove.

use std::{
    fs,
    path::Path,
    sync::{Arc, atomic::Ordering},
};

use granary::{
    model::{
        AcceptedBatch, GranularityIndex, GranularitySet, Kind, PartitionId, SeriesId, UnixMillis,
    },
    query::{Budget, run_with_retries},
    store::{Appender, Folder, Store, StoreError, restore, verify},
};
use redb::{Builder, Database, ReadableDatabase, ReadableTable, TableDefinition};

use crate::{
    media::{Faults, HookedFolder},
    setup::{self, HOUR, MINUTE, NOW, samples, send, series},
};

const FILES: TableDefinition<'_, &str, ()> = TableDefinition::new("files");

fn open(dir: &Path) -> (Store, Appender) {
    setup::open(dir, NOW)
}

/// Opens a store on a medium whose operations fail on demand.
fn open_with_faults(dir: &Path) -> (Store, Appender, Arc<Faults>) {
    let faults = Arc::new(Faults::default());
    let medium = Arc::new(HookedFolder::new(dir, faults.clone()));
    let (store, appender) = setup::open_on(medium, &GranularitySet::default(), NOW);
    (store, appender, faults)
}

/// Fills a store with one series: one sample per minute for 30 hours, in documents and in the head.
fn fill(dir: &Path) {
    let (store, mut appender) = open(dir);
    define(&mut appender);
    assert!(try_commit(&mut appender, (0..1800).map(|minute| NOW.0 - minute * MINUTE)));
    store.checkpoint(NOW).unwrap();
}

fn define(appender: &mut Appender) {
    setup::define(appender, &[series("m", &[("host", "a")], Kind::Delta)], NOW);
}

fn try_commit(appender: &mut Appender, times: impl IntoIterator<Item = i64>) -> bool {
    let batch = samples(SeriesId(0), times.into_iter().map(|at| (at, 1.0)));
    appender.commit(&[], &[batch], NOW).is_ok()
}

fn commit(appender: &mut Appender, at: i64) {
    assert!(try_commit(appender, [at]));
}

/// Returns the number of samples of the last 100 days at a granularity.
fn count(store: &Store, level: usize) -> u64 {
    setup::count(store, level, NOW.minus(100 * 24 * HOUR)..NOW.plus(HOUR), SeriesId(0))
}

fn faults(dir: &Path) -> Vec<String> {
    let report = verify(dir, NOW, &mut |_| {}).unwrap();
    report.faults.into_iter().map(|fault| format!("{}: {}", fault.file, fault.problem)).collect()
}

#[test]
fn a_lost_journal_is_not_replaced_by_an_empty_one() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path());
    let journal = dir.path().join("journal.redb");
    let journal_bytes = fs::read(&journal).unwrap();
    let start_error = || {
        fs::remove_file(&journal).unwrap();
        let medium = Arc::new(Folder::new(dir.path()).unwrap());
        let error = Store::open(medium, GranularitySet::default(), NOW).unwrap_err().with_causes();
        assert!(!journal.exists());
        fs::write(&journal, &journal_bytes).unwrap();
        error
    };
    let message = start_error();
    assert!(message.contains("it is missing, but head.redb exists"), "{message}");
    fs::remove_file(dir.path().join("head.redb")).unwrap();
    let message = start_error();
    assert!(message.contains("it is missing, but partitions/1"), "{message}");
}

#[test]
fn missing_files_are_reported_until_their_mark_is_removed() {
    let start_of = |width: i64| UnixMillis(NOW.0 - NOW.0 % width);
    for file in ["head.redb", "partitions/1m/2026-11-20T1200.redb"] {
        let dir = tempfile::tempdir().unwrap();
        fill(dir.path());
        assert_eq!(open(dir.path()).0.damaged_partitions(), [""; 0]);
        fs::remove_file(dir.path().join(file)).unwrap();
        let reported = faults(dir.path());
        let expected = format!("{file}: it is missing, although the journal lists it");
        assert!(reported.contains(&expected), "{reported:?}");
        let mark = format!("{}.missing", file.trim_start_matches("partitions/").replace('/', "-"));
        for _ in 0..2 {
            let (store, mut appender) = open(dir.path());
            assert_eq!(store.damaged_partitions(), [mark.as_str()]);
            let hole = UnixMillis(NOW.0 - NOW.0 % (6 * HOUR) - 24 * HOUR);
            let hole = match file {
                // Slots of the current hour.
                "head.redb" => start_of(HOUR)..start_of(MINUTE).plus(MINUTE),
                _ => hole..hole.plus(6 * HOUR),
            };
            assert_eq!(store.gaps()[0].holes, [hole]);
            commit(&mut appender, NOW.0);
            store.checkpoint(NOW).unwrap();
        }
        fs::remove_file(dir.path().join("damaged").join(mark)).unwrap();
        assert_eq!(open(dir.path()).0.damaged_partitions(), [""; 0]);
    }
}

/// Removes a file from the register.
fn unregister(dir: &Path, file: &str) {
    let journal = Builder::new().open(dir.join("journal.redb")).unwrap();
    let txn = journal.begin_write().unwrap();
    assert!(txn.open_table(FILES).unwrap().remove(file).unwrap().is_some());
    txn.commit().unwrap();
}

/// The directory looks as after a kill between the removal of partition files and of their
/// segments. In addition, one partition file is lost.
#[test]
fn files_of_an_unconfigured_granularity_are_removed_at_a_start() {
    let dir = tempfile::tempdir().unwrap();
    {
        let (store, mut appender) = open(dir.path());
        store.set_segment_documents_min(1);
        define(&mut appender);
        assert!(try_commit(&mut appender, (0..1800).map(|minute| NOW.0 - minute * MINUTE)));
        store.checkpoint(NOW).unwrap();
    }
    let folder = dir.path().join("partitions/1m");
    let names = |end: &str| {
        let names = fs::read_dir(&folder).unwrap().map(|entry| entry.unwrap().file_name());
        let mut names: Vec<_> = names.map(|name| name.into_string().unwrap()).collect();
        names.retain(|name| name.ends_with(end));
        names
    };
    let lost = "2026-11-20T1200.redb";
    assert!(names(".sealed").len() > 3 && names(".redb").contains(&lost.to_owned()));
    for name in names(".redb") {
        if name != lost {
            unregister(dir.path(), &format!("partitions/1m/{name}"));
        }
        fs::remove_file(folder.join(name)).unwrap();
    }
    let coarser = GranularitySet::default().iter().skip(1).cloned().collect();
    let coarser = GranularitySet::new(coarser).unwrap();
    let reopen = || setup::open_with(dir.path(), &coarser, NOW).0.damaged_partitions();
    // The segments of the lost file may still help an operator: they remain until the mark is
    // removed.
    assert_eq!(reopen(), [format!("1m-{lost}.missing")]);
    assert!(names("").iter().all(|name| name.starts_with("2026-11-20T1200.")), "{:?}", names(""));
    assert!(!names("").is_empty());
    assert!(!faults(dir.path()).iter().any(|fault| fault.contains("the journal lists it")));
    fs::remove_file(dir.path().join(format!("damaged/1m-{lost}.missing"))).unwrap();
    assert_eq!(reopen(), [""; 0]);
    assert_eq!(names(""), [""; 0]);
}

/// The directory looks as after a kill between creating a file and registering it, or between
/// unregistering a file and deleting it.
#[test]
fn an_unregistered_file_is_accepted_as_it_is() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path());
    let file = "partitions/5m/2026-11-20.redb";
    unregister(dir.path(), file);
    let before = count(&open(dir.path()).0, 1);
    assert_eq!(before, 1800);
    assert_eq!(faults(dir.path()), [""; 0]);
    // The file is registered from then on.
    fs::remove_file(dir.path().join(file)).unwrap();
    assert_eq!(open(dir.path()).0.damaged_partitions(), ["5m-2026-11-20.redb.missing"]);
}

#[test]
fn every_damaged_file_is_kept() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("partitions/1h/2026-11-16.redb");
    for turn in 1..=3_u8 {
        fill(dir.path());
        fs::write(&file, vec![turn; 8192]).unwrap();
        drop(open(dir.path()));
    }
    let names = ["1h-2026-11-16.redb", "1h-2026-11-16.redb.2", "1h-2026-11-16.redb.3"];
    assert_eq!(open(dir.path()).0.damaged_partitions(), names);
    for (name, turn) in names.iter().zip(1..) {
        assert_eq!(fs::read(dir.path().join("damaged").join(name)).unwrap(), [turn; 8192]);
    }
}

#[test]
fn a_failed_removal_is_repeated() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path());
    let (store, appender, faults) = open_with_faults(dir.path());
    let id = PartitionId {
        granularity: GranularityIndex(0),
        start: UnixMillis(NOW.0 - NOW.0 % (6 * HOUR) - 24 * HOUR),
    };
    let exists = || store.partitions().iter().any(|partition| partition.id == id);
    assert!(exists());
    faults.removals.store(true, Ordering::Relaxed);
    store.drop_partition(id).unwrap_err();
    assert!(exists());
    faults.removals.store(false, Ordering::Relaxed);
    assert!(store.drop_partition(id).unwrap());
    assert!(!exists() && !store.drop_partition(id).unwrap());
    drop((store, appender));
    assert_eq!(open(dir.path()).0.damaged_partitions(), [""; 0]);
}

#[test]
fn a_file_that_disappeared_while_open_is_not_created_again() {
    let dir = tempfile::tempdir().unwrap();
    let (store, mut appender, faults) = open_with_faults(dir.path());
    define(&mut appender);
    commit(&mut appender, NOW.0);
    // The mount disappears and uncovers the folder below.
    faults.syncs.store(true, Ordering::Relaxed);
    assert!(!try_commit(&mut appender, [NOW.0 + 1]));
    let aside = dir.path().join("aside");
    let log = dir.path().join("journal");
    fs::rename(&log, &aside).unwrap();
    faults.syncs.store(false, Ordering::Relaxed);
    assert!(!try_commit(&mut appender, [NOW.0 + 2]));
    assert!(!log.exists());
    // The mount returns.
    fs::rename(&aside, &log).unwrap();
    commit(&mut appender, NOW.0 + 3);
    assert_eq!(count(&store, 0), 2);
}

#[test]
fn a_single_failed_read_stops_no_work() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path());
    let (store, mut appender, faults) = open_with_faults(dir.path());
    commit(&mut appender, NOW.0 - 20 * HOUR);
    faults.reads.store(true, Ordering::Relaxed);
    store.checkpoint(NOW).unwrap_err();
    faults.reads.store(false, Ordering::Relaxed);
    store.checkpoint(NOW).unwrap();
    assert_eq!(count(&store, 0), 1801);
    assert_eq!(store.damaged_partitions(), [""; 0]);
}

/// A failed write makes redb refuse even reads of the file.
#[test]
fn a_failed_write_breaks_no_running_query() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path());
    // A view reads the first series when it begins.
    let other = SeriesId(1);
    {
        let (store, mut appender) = open(dir.path());
        setup::define(&mut appender, &[series("m", &[("host", "b")], Kind::Delta)], NOW);
        let readings = (0..1800).map(|minute| (NOW.0 - minute * MINUTE, 1.0));
        appender.commit(&[], &[samples(other, readings)], NOW).unwrap();
        store.checkpoint(NOW).unwrap();
    }
    let (store, mut appender, faults) = open_with_faults(dir.path());
    commit(&mut appender, NOW.0 - 20 * HOUR);
    let range = NOW.minus(100 * 24 * HOUR)..NOW.plus(HOUR);
    let mut failures = Vec::new();
    let sum = || {
        let view = store.view(GranularityIndex(0), range.clone(), &[other])?;
        if failures.is_empty() {
            faults.syncs.store(true, Ordering::Relaxed);
            store.checkpoint(NOW).unwrap_err();
            faults.syncs.store(false, Ordering::Relaxed);
        }
        let slots = view.slots(other).inspect_err(|fault| failures.push(fault.with_causes()))?;
        Ok(slots.iter().map(|slot| u64::from(slot.cell.n)).sum::<u64>())
    };
    assert_eq!(run_with_retries(&Budget::UNLIMITED, sum, StoreError::is_transient).unwrap(), 1800);
    assert_eq!(failures.len(), 1, "the query failed once: {failures:?}");
    store.checkpoint(NOW).unwrap();
    assert_eq!(count(&store, 0), 1801);
    assert_eq!(store.damaged_partitions(), [""; 0]);
}

/// Flips one bit at the first occurrence of these bytes in a file.
fn flip_bit(file: &Path, bytes: &[u8]) {
    let mut content = fs::read(file).unwrap();
    let occurrences = content.windows(bytes.len()).filter(|window| *window == bytes).count();
    assert!(occurrences > 0, "{}", file.display());
    let at = content.windows(bytes.len()).position(|window| window == bytes).unwrap();
    content[at + 6] ^= 0x10;
    fs::write(file, content).unwrap();
}

#[test]
fn a_document_with_a_flipped_bit_is_never_served() {
    const VALUE: f64 = 12_345.678;
    let dir = tempfile::tempdir().unwrap();
    let at = NOW.0 - 20 * HOUR;
    {
        let (store, mut appender) = open(dir.path());
        define(&mut appender);
        for hours in [0, 5] {
            send(&mut appender, samples(SeriesId(0), [(at + hours * HOUR, VALUE)]), NOW);
        }
        store.checkpoint(NOW).unwrap();
    }
    let file = "partitions/1m/2026-11-20T1200.redb";
    flip_bit(&dir.path().join(file), &VALUE.to_le_bytes());
    let found = faults(dir.path());
    let expected = format!("{file}: document of series 0 at 2026-11-20T16:00:00Z: its checksum");
    assert!(found.iter().any(|fault| fault.starts_with(&expected)), "{found:?}");

    let (store, mut appender) = open(dir.path());
    let range = UnixMillis(at - at % HOUR)..UnixMillis(at - at % HOUR + HOUR);
    let view = store.view(GranularityIndex(0), range.clone(), &[SeriesId(0)]).unwrap();
    let message = view.slots(SeriesId(0)).unwrap_err().to_string();
    assert!(
        message.contains("series 0 at 2026-11-20T16:00:00Z is damaged: run the query again"),
        "{message}"
    );
    // Queries avoid the document from now on.
    assert_eq!(store.gaps()[0].holes, [range]);
    assert!(store.gaps()[1..].iter().all(|gaps| gaps.holes.is_empty()));
    // The other document, and the other granularities, are intact.
    assert_eq!([0, 1, 2, 3].map(|level| count(&store, level)), [1, 2, 2, 2]);
    assert_eq!([0, 0].map(|level| count(&store, level)), [1; 2]);
    assert_eq!((store.damaged_documents(), store.damaged_partitions()), (1, vec![]));
    // A late sample begins a new document.
    commit(&mut appender, at + 1);
    store.checkpoint(NOW).unwrap();
    assert_eq!([0, 1, 2, 3].map(|level| count(&store, level)), [2, 3, 3, 3]);
    assert_eq!(store.damaged_partitions(), [""; 0]);
}

#[test]
fn a_head_row_with_a_flipped_bit_is_never_served() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path());
    let counts = [0, 1, 2, 3].map(|level| count(&open(dir.path()).0, level));
    let head = dir.path().join("head.redb");
    let row_of_the_current_hour = {
        let rows: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("rows/1h");
        let db = Database::open(&head).unwrap();
        let table = db.begin_read().unwrap().open_table(rows).unwrap();
        table.last().unwrap().unwrap().1.value().to_vec()
    };
    flip_bit(&head, &row_of_the_current_hour);
    let found = faults(dir.path());
    assert!(
        found.iter().any(|fault| fault.starts_with("head.redb: the row that begins with series 0")),
        "{found:?}"
    );
    let (store, mut appender) = open(dir.path());
    let all = NOW.minus(100 * 24 * HOUR)..NOW.plus(HOUR);
    let refused = (0..4)
        .filter(|level| store.view(GranularityIndex(*level), all.clone(), &[SeriesId(0)]).is_err());
    assert_eq!(refused.count(), 1);
    assert_eq!(store.gaps().iter().map(|gaps| gaps.holes.len()).sum::<usize>(), 1);
    let now = [0, 1, 2, 3].map(|level| count(&store, level));
    let lost: Vec<_> = counts.iter().zip(now).map(|(before, now)| before - now).collect();
    assert_eq!(lost.iter().filter(|lost| **lost > 0).count(), 1, "{lost:?}");
    assert_eq!((store.damaged_documents(), store.damaged_partitions()), (1, vec![]));
    commit(&mut appender, NOW.0);
    store.checkpoint(NOW).unwrap();
    let after = [0, 1, 2, 3].map(|level| count(&store, level));
    assert_eq!(after, now.map(|count| count + 1));
}

#[test]
fn a_partially_applied_record_is_in_no_checkpoint() {
    let dir = tempfile::tempdir().unwrap();
    let (store, mut appender) = open(dir.path());
    define(&mut appender);
    commit(&mut appender, NOW.0);
    let broken = AcceptedBatch {
        series: vec![SeriesId(0), SeriesId(9)],
        times: vec![NOW.0 + 1],
        values: vec![1.0; 2],
        ..AcceptedBatch::default()
    };
    let outcome = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
        appender.commit(&[], &[broken], NOW)
    }));
    assert!(outcome.is_err());
    let refused = store.checkpoint(NOW).unwrap_err().to_string();
    assert!(refused.contains("restart the daemon; no batch is lost"), "{refused}");
    store.snapshot(&dir.path().join("copy"), NOW, &mut |_| {}).unwrap_err();
}

#[test]
fn a_snapshot_during_changes_of_partitions_has_every_registered_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    fill(&path("data"));
    let (store, _appender) = open(&path("data"));
    let mut is_preallocated = false;
    let other_store = store.clone();
    store
        .snapshot(&path("copy"), NOW, &mut |_| {
            if !std::mem::replace(&mut is_preallocated, true) {
                let start = UnixMillis(NOW.0 - NOW.0 % HOUR + 24 * HOUR);
                other_store.preallocate(GranularityIndex(0), start, &[SeriesId(0)]).unwrap();
            }
        })
        .unwrap();
    restore(&path("copy"), &path("restored"), &mut |_| {}).unwrap();
    assert_eq!(faults(&path("restored")), [""; 0]);
    assert_eq!(open(&path("restored")).0.damaged_partitions(), [""; 0]);
}

#[test]
fn a_snapshot_has_the_segments_of_a_replaced_partition() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let (store, mut appender) = open(&path("data"));
    store.set_segment_documents_min(1);
    define(&mut appender);
    let at = NOW.0 - 4 * HOUR;
    commit(&mut appender, at);
    store.checkpoint(NOW).unwrap();
    let (other, mut is_replaced) = (store.clone(), false);
    store
        .snapshot(&path("copy"), NOW, &mut |file| {
            // The segment is copied by now.
            if file.ends_with("1m/2026-11-21T0600.redb")
                && !std::mem::replace(&mut is_replaced, true)
            {
                let id = PartitionId { granularity: GranularityIndex(0), start: setup::SIX };
                assert!(other.drop_partition(id).unwrap());
                assert!(try_commit(&mut appender, [at + MINUTE, at + 2 * MINUTE]));
                other.checkpoint(NOW).unwrap();
            }
        })
        .unwrap();
    assert!(is_replaced);
    restore(&path("copy"), &path("restored"), &mut |_| {}).unwrap();
    let restored = open(&path("restored")).0;
    assert_eq!((count(&store, 0), count(&restored, 0)), (2, 2));
}

#[test]
fn a_number_with_a_flipped_bit_is_not_trusted() {
    const HEAD: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
    const PARTITION: TableDefinition<'_, &str, i64> = TableDefinition::new("meta");
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path());
    let full_count = count(&open(dir.path()).0, 3);
    assert_eq!(full_count, 1800);
    let database = |name: &str| Builder::new().open(dir.path().join(name)).unwrap();
    let txn = database("head.redb").begin_write().unwrap();
    {
        let mut meta = txn.open_table(HEAD).unwrap();
        let through = meta.get("through/1m").unwrap().unwrap().value();
        meta.insert("through/1m", through ^ 16).unwrap();
    }
    txn.commit().unwrap();
    let txn = database("partitions/1m/2026-11-21T0600.redb").begin_write().unwrap();
    {
        let mut meta = txn.open_table(PARTITION).unwrap();
        let through = meta.get("applied_through").unwrap().unwrap().value();
        meta.insert("applied_through", through ^ 16).unwrap();
    }
    txn.commit().unwrap();
    // Regression: the start was refused, as if the journal had lost records. Only the damaged
    // numbers are set aside.
    let (store, _appender) = open(dir.path());
    let message = store.damaged_partitions();
    for file in ["head", "2026-11-21T0600"] {
        assert!(message.iter().any(|name| name.contains(file)), "{file}: {message:?}");
    }
    assert!(count(&store, 0) < full_count);
}
