//! `granary downgrade` on a golden directory: the result has only tables that the previous release
//! knows. The previous release reads every number and continues where this release stopped.

use std::{
    collections::{BTreeMap, BTreeSet},
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use granary::{
    model::{BatchVerdict, Cell, GranularityIndex, GranularitySet, Kind, SeriesId, UnixMillis},
    store::{
        DOWNGRADE_VERSION, ErasureRequest, FORMAT_VERSION, Folder, Matcher, Medium, ObjectKind,
        Slot, Store, downgrade, verify,
    },
};
use redb::{Database, ReadableDatabase, ReadableTable, TableDefinition, TableHandle};
use serde_json::Value;

use crate::{
    golden::{batch, cells, golden, open_error, unpack},
    media::{EarlierRelease, HookedFolder},
    setup::{HOUR, NOW, define, open, open_on, samples, send, series, slots},
};

/// Downgrades a directory; returns the numbers of downgraded files and of removed shells.
fn downgrade_directory(dir: &Path) -> Result<(u64, u64), String> {
    let medium: Arc<dyn Medium> = Arc::new(Folder::new(dir).unwrap());
    let outcome = downgrade(&medium, &mut |_, _, _| {});
    outcome.map(|report| (report.lowered, report.shells)).map_err(|fault| fault.with_causes())
}

/// Returns the directory as the previous release opens it.
fn as_previous_release(dir: &Path) -> Arc<dyn Medium> {
    Arc::new(HookedFolder::new(dir, Arc::new(EarlierRelease)))
}

/// Returns the paths of all redb files of a directory.
fn database_files(dir: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(dir).unwrap().map(|entry| entry.unwrap().path());
    let (folders, files): (Vec<_>, Vec<_>) = entries.partition(|path| path.is_dir());
    let is_database = |path: &PathBuf| path.extension().is_some_and(|end| end == "redb");
    let below = folders.iter().flat_map(|folder| database_files(folder));
    files.into_iter().filter(is_database).chain(below).collect()
}

/// Returns the kind of a file, its format, and the names of its tables.
fn describe(dir: &Path, path: &Path) -> (String, u64, BTreeSet<String>) {
    let name = path.strip_prefix(dir).unwrap();
    let is_partition = name.starts_with("partitions");
    let kind = if is_partition { "partition" } else { name.to_str().unwrap() };
    let db = Database::open(path).unwrap();
    let txn = db.begin_read().unwrap();
    let tables = txn.list_tables().unwrap().map(|table| table.name().to_owned()).collect();
    let version = if is_partition {
        let meta = txn.open_table(TableDefinition::<&str, i64>::new("meta")).unwrap();
        meta.get("format").unwrap().unwrap().value() as u64
    } else {
        let meta = txn.open_table(TableDefinition::<&str, u64>::new("meta")).unwrap();
        meta.get("format").unwrap().unwrap().value()
    };
    (kind.to_owned(), version, tables)
}

fn formats(dir: &Path) -> BTreeSet<u64> {
    database_files(dir).iter().map(|path| describe(dir, path).1).collect()
}

#[test]
fn all_files_of_a_downgraded_directory_have_the_previous_format_and_its_tables() {
    let (old, dir) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    unpack(&golden(DOWNGRADE_VERSION), old.path());
    unpack(&golden(FORMAT_VERSION), dir.path());
    let files = database_files(dir.path()).len() as u64;
    assert!(open_error(as_previous_release(dir.path())).contains("of a newer release"));
    assert_eq!(downgrade_directory(dir.path()), Ok((files, 2)));
    assert_eq!(downgrade_directory(dir.path()), Ok((0, 0)), "a second run has nothing to do");
    // Each kind of file has only tables that it has in the golden directory of the previous format.
    let mut known_tables: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for path in database_files(old.path()) {
        let (kind, version, tables) = describe(old.path(), &path);
        assert_eq!(version, DOWNGRADE_VERSION);
        known_tables.entry(kind).or_default().extend(tables);
    }
    for path in database_files(dir.path()) {
        let (kind, version, tables) = describe(dir.path(), &path);
        assert_eq!(version, DOWNGRADE_VERSION, "{}", path.display());
        assert!(tables.is_subset(&known_tables[&kind]), "{}: {tables:?}", path.display());
    }
}

#[test]
fn a_directory_with_an_erasure_is_downgraded_after_a_clean_stop() {
    let dir = tempfile::tempdir().unwrap();
    unpack(&golden(FORMAT_VERSION), dir.path());
    let (store, mut appender) = open(dir.path(), NOW);
    let matchers = vec![Matcher { tag: "host".into(), value: "web1".into() }];
    let range = NOW.minus(2 * HOUR)..NOW.minus(HOUR);
    appender.erase(&ErasureRequest { matchers, range }, false, NOW).unwrap().unwrap();
    drop((store, appender));
    let refused = downgrade_directory(dir.path()).unwrap_err();
    assert!(refused.contains("start the daemon once"), "{refused}");
    let (store, appender) = open(dir.path(), NOW);
    assert!(!store.is_erasing(), "the start completes the erasure");
    store.checkpoint(NOW).unwrap();
    drop((store, appender));
    assert!(downgrade_directory(dir.path()).is_ok());
}

#[test]
fn the_documents_of_a_downgraded_directory_have_no_moments() {
    const DOCUMENTS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("documents");
    let dir = tempfile::tempdir().unwrap();
    let (store, mut appender) = open(dir.path(), NOW);
    let id = define(&mut appender, &[series("load", &[], Kind::Gauge)], NOW)[0];
    let start = NOW.0 - 5 * HOUR;
    let points = (0..1800).map(|i| (start + i * 10_000, (i % 7) as f64));
    send(&mut appender, samples(id, points), NOW);
    store.checkpoint(NOW).unwrap();
    let range = UnixMillis(start)..NOW.plus(HOUR);
    let all = |store: &Store| -> Vec<Vec<_>> {
        (0..4).map(|level| slots(store, level, range.clone(), id)).collect()
    };
    let versions = || {
        let mut versions = BTreeSet::new();
        for path in database_files(dir.path()) {
            let db = Database::open(path).unwrap();
            let Ok(documents) = db.begin_read().unwrap().open_table(DOCUMENTS) else { continue };
            let rows = documents.iter().unwrap().map(|row| row.unwrap().1.value()[7]);
            versions.extend(rows);
        }
        versions
    };
    let before = all(&store);
    assert!(before.iter().all(|slots| slots.iter().any(|slot| slot.cell.m2 > 0.0)));
    drop((store, appender));
    assert_eq!(versions(), [2].into(), "open documents have moments");
    assert!(downgrade_directory(dir.path()).is_ok());
    assert_eq!(versions(), [1].into());
    let (store, _) = open_on(as_previous_release(dir.path()), &GranularitySet::default(), NOW);
    let without = |all: Vec<Vec<Slot>>| -> Vec<Vec<Slot>> {
        let without = |slot: Slot| Slot { cell: Cell { m2: 0.0, ..slot.cell }, ..slot };
        all.into_iter().map(|slots| slots.into_iter().map(without).collect()).collect()
    };
    let after = all(&store);
    assert!(after[0][5..50].iter().all(|slot| slot.cell.second_moment().is_none()));
    assert_eq!(without(after), without(before));
}

#[test]
fn the_previous_release_continues_a_downgraded_directory_and_this_release_upgrades_it_again() {
    let dir = tempfile::tempdir().unwrap();
    unpack(&golden(FORMAT_VERSION), dir.path());
    assert!(downgrade_directory(dir.path()).is_ok());
    let expected = fs::read_to_string(golden(FORMAT_VERSION).join("expected.json")).unwrap();
    let expected: Value = serde_json::from_str(&expected).unwrap();
    // Opens the directory, commits a batch, runs a checkpoint, and returns all cells.
    let open_and_commit = |seq, medium| {
        let (store, mut appender) = open_on(medium, &GranularitySet::default(), NOW);
        if seq == 501 {
            assert_eq!(cells(&store), expected);
        }
        assert!(store.object(ObjectKind::Dashboard, "hosts").unwrap().is_some());
        let repeated = appender.commit(&[], &[batch(seq - 1, NOW.0)], NOW).unwrap().batches;
        assert_eq!(repeated, [BatchVerdict::Duplicate]);
        assert!(appender.commit(&[], &[batch(seq, NOW.0)], NOW).unwrap().batches[0].is_accepted());
        store.checkpoint(NOW).unwrap();
        cells(&store)
    };
    let cells_before_upgrade = open_and_commit(501, as_previous_release(dir.path()));
    assert_eq!(formats(dir.path()), [DOWNGRADE_VERSION].into());
    assert_eq!(verify(dir.path(), NOW, &mut |_| {}).unwrap().faults, []);
    // This release upgrades the directory again, and preallocates.
    let (store, _) = open(dir.path(), NOW);
    assert_eq!(cells(&store), cells_before_upgrade);
    let next_hour = store.granularities().as_slice()[0].document_start(NOW.plus(HOUR));
    assert_eq!(store.preallocate(GranularityIndex(0), next_hour, &[SeriesId(1)]).unwrap(), 1);
    drop(store);
    open_and_commit(502, Arc::new(Folder::new(dir.path()).unwrap()));
    // This release adds shells even to partitions of the previous format; a downgrade removes them.
    assert_eq!(downgrade_directory(dir.path()).unwrap().1, 1);
    open_and_commit(503, as_previous_release(dir.path()));
}

#[test]
fn a_directory_with_an_unknown_table_or_a_damaged_file_is_not_changed() {
    let assert_refused = |change: &dyn Fn(&Path), expected: &str| {
        let dir = tempfile::tempdir().unwrap();
        unpack(&golden(FORMAT_VERSION), dir.path());
        let objects = dir.path().join("objects.redb");
        change(&objects);
        let problem = downgrade_directory(dir.path()).unwrap_err();
        assert!(problem.contains("objects.redb") && problem.contains(expected), "{problem}");
        fs::remove_file(objects).unwrap();
        assert_eq!(formats(dir.path()), [FORMAT_VERSION].into());
    };
    let add_table = |file: &Path| {
        let db = Database::open(file).unwrap();
        let txn = db.begin_write().unwrap();
        drop(txn.open_table(TableDefinition::<u64, u64>::new("of_the_future")).unwrap());
        txn.commit().unwrap();
    };
    assert_refused(&add_table, "it has the table \"of_the_future\"");
    assert_refused(&|file| fs::write(file, "not a database").unwrap(), "open objects.redb");
    let empty = tempfile::tempdir().unwrap();
    assert!(downgrade_directory(empty.path()).unwrap_err().contains("not a data directory"));
}
