//! Snapshots while partitions are dropped and created, snapshots of a store with holes, and
//! partitions whose files are removed during work on them.

use std::{
    fs, io,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
        mpsc::{self, RecvTimeoutError},
    },
    thread,
    time::Duration,
};

use granary::{
    model::{GranularityIndex, GranularitySet, Kind, PartitionId, SeriesId},
    store::{Appender, Store, restore, verify},
};

use crate::{
    media::{Hook, HookedFolder},
    setup::{self, HOUR, MINUTE, NOW, SIX, samples, send, series},
};

/// The partition of 1m that ended half an hour ago.
const MORNING: PartitionId = PartitionId { granularity: GranularityIndex(0), start: SIX };
const MORNING_FILE: &str = "partitions/1m/2026-11-21T0600";

fn define(appender: &mut Appender) {
    setup::define(appender, &[series("m", &[("host", "a")], Kind::Delta)], NOW);
}

fn commit(appender: &mut Appender, times: impl IntoIterator<Item = i64>) {
    send(appender, samples(SeriesId(0), times.into_iter().map(|at| (at, 1.0))), NOW);
}

fn counts(store: &Store) -> [u64; 4] {
    let range = NOW.minus(100 * 24 * HOUR)..NOW.plus(HOUR);
    [0, 1, 2, 3].map(|level| setup::count(store, level, range.clone(), SeriesId(0)))
}

fn faults(dir: &Path) -> Vec<String> {
    let report = verify(dir, NOW, &mut |_| {}).unwrap();
    report.faults.into_iter().map(|fault| format!("{}: {}", fault.file, fault.problem)).collect()
}

/// Fills a store with samples of 30 hours, in segments and in the head.
fn fill(dir: &Path) -> (Store, Appender) {
    let (store, mut appender) = setup::open(dir, NOW);
    store.set_segment_documents_min(1);
    define(&mut appender);
    commit(&mut appender, (0..1800).map(|minute| NOW.0 - minute * MINUTE));
    store.checkpoint(NOW).unwrap();
    (store, appender)
}

/// Regression: a snapshot contained empty files in place of files that retention had removed in
/// between, and could not be restored. When such a partition was created again, the snapshot
/// failed.
#[test]
fn a_snapshot_is_complete_when_partitions_are_dropped_and_recreated_meanwhile() {
    let segment = format!("{MORNING_FILE}.1.sealed");
    for dropped_at in [&format!("{MORNING_FILE}.redb"), &segment] {
        for recreated_at in ["", "partitions/5m/2026-11-20.redb", "partitions/1h/2026-11-16.redb"] {
            let dir = tempfile::tempdir().unwrap();
            let path = |name: &str| dir.path().join(name);
            let (store, mut appender) = fill(&path("data"));
            let (mut is_dropped, mut is_recreated) = (false, false);
            let outcome = store.snapshot(&path("copy"), NOW, &mut |file| {
                if file == dropped_at && !std::mem::replace(&mut is_dropped, true) {
                    assert!(store.drop_partition(MORNING).unwrap());
                }
                if file == recreated_at && !std::mem::replace(&mut is_recreated, true) {
                    commit(&mut appender, [SIX.0, SIX.0 + HOUR]);
                    store.checkpoint(NOW).unwrap();
                }
            });
            outcome.unwrap();
            assert_eq!((is_dropped, is_recreated), (true, !recreated_at.is_empty()));
            let is_empty = |file: &PathBuf| fs::metadata(file).unwrap().len() == 0;
            assert_eq!(all_files(&path("copy")).into_iter().find(is_empty), None);
            // After the partition of 1m was recreated, it has fewer documents than the coarser
            // granularities.
            if !is_recreated {
                assert_eq!(faults(&path("copy")), [""; 0]);
            }
            restore(&path("copy"), &path("restored"), &mut |_| {}).unwrap();
            let (restored, _) = setup::open(&path("restored"), NOW);
            assert_eq!(counts(&restored), counts(&store), "{dropped_at}, {recreated_at}");
            assert_eq!(restored.damaged_partitions(), [""; 0]);
        }
    }
}

#[test]
fn a_snapshot_contains_the_log_files_of_records_written_meanwhile() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let (store, mut appender) = fill(&path("data"));
    // The store writes each record into a log file of its own.
    store.set_log_file_bytes(1);
    let mut sent = 0;
    let report = store.snapshot(&path("copy"), NOW, &mut |file| {
        // The snapshot's checkpoint does not cover these records.
        if ["head.redb", "journal.redb"].contains(&file) {
            for _ in 0..5 {
                sent += 1;
                commit(&mut appender, [NOW.0 + sent]);
            }
        }
    });
    assert_eq!(report.unwrap().files, all_files(&path("copy")).len() as u64);
    // The snapshot needs no files that the checkpoint covers.
    assert_eq!(all_files(&path("copy/journal")).len(), 10);
    assert_eq!(faults(&path("copy")), [""; 0]);
    assert_eq!(verify(&path("copy"), NOW, &mut |_| {}).unwrap().records, 10);
    restore(&path("copy"), &path("restored"), &mut |_| {}).unwrap();
    let (restored, mut appender) = setup::open(&path("restored"), NOW);
    assert_eq!(counts(&restored), counts(&store));
    commit(&mut appender, [NOW.0 + 11]);
    drop((restored, appender));
    let (restored, _) = setup::open(&path("restored"), NOW);
    assert_eq!(counts(&restored), counts(&store).map(|count| count + 1));
}

fn all_files(folder: &Path) -> Vec<PathBuf> {
    let paths = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let files = paths.flat_map(|path| if path.is_dir() { all_files(&path) } else { vec![path] });
    files.collect()
}

/// Regression: in the copy, 1m contained 1 sample where 5m contained 61, and `verify` reported
/// intact files as faulty.
#[test]
fn a_snapshot_contains_the_holes_of_the_store() {
    for file in [&*format!("{MORNING_FILE}.redb"), "head.redb", "objects.redb"] {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        {
            let (store, _appender) = fill(&path("data"));
            let kind = granary::store::ObjectKind::Dashboard;
            store.put_object(kind, "one", None, b"{}", NOW).unwrap().unwrap();
        }
        fs::write(path("data").join(file), vec![7; 8192]).unwrap();
        let (store, mut appender) = setup::open(&path("data"), NOW);
        commit(&mut appender, [SIX.0 + HOUR]);
        store.checkpoint(NOW).unwrap();
        let report = store.snapshot(&path("copy"), NOW, &mut |_| {}).unwrap();
        assert_eq!(report.files, all_files(&path("copy")).len() as u64);
        if file != "head.redb" {
            assert_eq!(faults(&path("copy")), [""; 0], "{file}");
        }
        restore(&path("copy"), &path("restored"), &mut |_| {}).unwrap();
        let name = file.trim_start_matches("partitions/").replace('/', "-");
        // A copy of the copy also has the hole.
        setup::open(&path("restored"), NOW).0.snapshot(&path("again"), NOW, &mut |_| {}).unwrap();
        for copy in ["restored", "again"] {
            let restored = setup::open(&path(copy), NOW).0;
            assert_eq!(restored.damaged_partitions(), [format!("{name}.missing")]);
            assert_eq!(restored.gaps(), store.gaps());
            assert_eq!(counts(&restored), counts(&store));
        }
    }
}

/// A hook that removes a file and then returns an error, as when the sync of the folder fails.
#[derive(Debug)]
struct UnsyncedRemovals {
    root: PathBuf,
    fails: AtomicBool,
}

impl Hook for UnsyncedRemovals {
    fn before_removal(&self, name: &str) -> io::Result<()> {
        if self.fails.load(Ordering::Relaxed) && name.contains(".redb") {
            fs::remove_file(self.root.join(name))?;
            return Err(io::Error::from_raw_os_error(5));
        }
        Ok(())
    }
}

/// Regression: after the partition's file was removed, samples were still written to it until the
/// daemon stopped.
#[test]
fn nothing_is_written_to_a_partially_removed_partition() {
    let dir = tempfile::tempdir().unwrap();
    drop(fill(dir.path()));
    let fails = AtomicBool::new(false);
    let hook = Arc::new(UnsyncedRemovals { root: dir.path().to_owned(), fails });
    let medium = Arc::new(HookedFolder::new(dir.path(), hook.clone()));
    let (store, mut appender) = setup::open_on(medium, &GranularitySet::default(), NOW);
    hook.fails.store(true, Ordering::Relaxed);
    store.drop_partition(MORNING).unwrap_err();
    hook.fails.store(false, Ordering::Relaxed);
    commit(&mut appender, [SIX.0 + HOUR]);
    store.checkpoint(NOW).unwrap();
    let before = counts(&store);
    drop((store, appender));
    let (store, _appender) = setup::open(dir.path(), NOW);
    assert_eq!(counts(&store), before);
    assert_eq!(store.damaged_partitions(), [""; 0]);
}

/// Regression: segment numbers of a new partition began with 1 again, so folding the old partition
/// wrote and removed files of the new one.
#[test]
fn segments_of_a_recreated_partition_have_new_names_while_the_old_one_is_folded() {
    let dir = tempfile::tempdir().unwrap();
    let (store, mut appender) = setup::open(dir.path(), NOW);
    store.set_segment_documents_min(1);
    define(&mut appender);
    for minute in 0..2 {
        commit(&mut appender, [SIX.0 + minute * MINUTE]);
        store.checkpoint(NOW).unwrap();
    }
    let unfinished_segment = dir.path().join(format!("{MORNING_FILE}.3.sealed.new"));
    let is_replaced = std::cell::Cell::new(false);
    let appender = std::cell::RefCell::new(appender);
    let report = store.seal(NOW, 0, &|_| {
        if unfinished_segment.exists() && !is_replaced.replace(true) {
            assert!(store.drop_partition(MORNING).unwrap());
            for minute in 0..3 {
                commit(&mut appender.borrow_mut(), [SIX.0 + HOUR + minute * MINUTE]);
                store.checkpoint(NOW).unwrap();
            }
        }
        true
    });
    report.unwrap();
    assert!(is_replaced.get());
    let expected = [3, 5, 5, 5];
    assert_eq!(counts(&store), expected);
    drop((store, appender));
    let (store, _appender) = setup::open(dir.path(), NOW);
    assert_eq!((counts(&store), store.damaged_partitions()), (expected, vec![]));
}

/// Regression: retention removed files that the last pass had listed and was about to copy.
#[test]
fn no_partition_is_dropped_during_the_last_pass_of_a_snapshot() {
    const WAIT: Duration = Duration::from_millis(50);
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let (store, mut appender) = fill(&path("data"));
    let (file, mut times_copied, mut before) = (format!("{MORNING_FILE}.redb"), 0, [0; 4]);
    thread::scope(|scope| {
        let outcome = store.snapshot(&path("copy"), NOW, &mut |copied| {
            if *copied != file {
                return;
            }
            times_copied += 1;
            if times_copied == 1 {
                // The checkpoint before the last pass writes the sample to that file.
                commit(&mut appender, [SIX.0 + HOUR]);
                before = counts(&store);
                return;
            }
            let (finished, finished_signal) = mpsc::channel::<()>();
            let other_store = store.clone();
            scope.spawn(move || {
                assert!(other_store.drop_partition(MORNING).unwrap());
                drop(finished);
            });
            // Retention waits for the snapshot to end.
            assert_eq!(finished_signal.recv_timeout(WAIT), Err(RecvTimeoutError::Timeout));
        });
        outcome.unwrap();
    });
    assert_eq!(times_copied, 2);
    assert!(counts(&store)[0] < before[0]);
    assert_eq!(faults(&path("copy")), [""; 0]);
    assert_eq!(counts(&setup::open(&path("copy"), NOW).0), before);
}

/// Regression: a snapshot and a change of retentions waited for each other forever, because they
/// took the locks of sealing and of checkpoints in different orders.
#[test]
fn snapshots_and_changes_of_retention_never_wait_for_each_other_for_ever() {
    const ROUNDS: usize = 60;
    let dir = tempfile::tempdir().unwrap();
    let (store, _appender) = fill(&dir.path().join("data"));
    let set = GranularitySet::default();
    let with_minutes = |retention: &str| {
        let levels = set.iter().map(|level| match &*level.name {
            "1m" => level.with_retention(retention.parse().unwrap()),
            _ => level.clone(),
        });
        GranularitySet::new(levels.collect()).unwrap()
    };
    let sets = ["48h", "72h"].map(with_minutes);
    let (done, both_done) = mpsc::channel();
    let (copies, changed, other_done) = (dir.path().join("copies"), store.clone(), done.clone());
    fs::create_dir(&copies).unwrap();
    thread::spawn(move || {
        for round in 0..ROUNDS {
            store.snapshot(&copies.join(round.to_string()), NOW, &mut |_| {}).unwrap();
        }
        done.send(()).unwrap();
    });
    thread::spawn(move || {
        for round in 0..ROUNDS * 100 {
            changed.change_retentions(&sets[round % 2], &[], NOW).unwrap();
        }
        other_done.send(()).unwrap();
    });
    for _ in 0..2 {
        both_done.recv_timeout(Duration::from_secs(100)).unwrap();
    }
}
