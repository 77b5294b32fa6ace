//! `verify` finds changes made outside the store, and a snapshot is a complete store.

use std::{fs, path::Path};

use granary::{
    model::{AcceptedBatch, Cell, Kind},
    store::{DocumentLayout, Store, VerifyReport, restore, verify},
};
use redb::{Builder, TableDefinition};

use crate::setup::{HOUR, MINUTE, NOW, define, open, send, series, slots};

const DOCUMENTS: TableDefinition<'_, u64, &[u8]> = TableDefinition::new("documents");

/// Fills a store with 30 hours of samples of three kinds: two checkpoints, and samples that are
/// only in the journal.
fn fill(dir: &Path) -> Store {
    let (store, mut appender) = open(dir, NOW);
    let all_series = Kind::OF_NUMBERS.map(|kind| series(kind.as_str(), &[("host", "a")], kind));
    let ids = define(&mut appender, &all_series, NOW);
    for (round, hours) in [(0, 20..30), (1, 2..20), (2, 0..2)] {
        let times = hours
            .rev()
            .flat_map(|hour| (0..60).map(move |minute| NOW.0 - hour * HOUR - minute * MINUTE));
        for at in times {
            let values = vec![(at % 977) as f64, (at / 1000 % 100_000) as f64, 0.1];
            let (series, times) = (ids.clone(), vec![at]);
            let batch = AcceptedBatch { series, times, values, ..AcceptedBatch::default() };
            send(&mut appender, batch, NOW);
        }
        if round < 2 {
            store.checkpoint(NOW).unwrap();
        }
    }
    store
}

fn verify_directory(dir: &Path) -> VerifyReport {
    verify(dir, NOW, &mut |_| {}).unwrap()
}

/// Changes one cell of a partition through redb, so that all checksums remain valid.
fn change_cell(file: &Path, slots: usize, width_ms: i64, change: impl Fn(&mut Cell)) {
    let layout = DocumentLayout::new(slots, width_ms);
    let db = Builder::new().open(file).unwrap();
    let txn = db.begin_write().unwrap();
    {
        let mut table = txn.open_table(DOCUMENTS).unwrap();
        let (key, mut document) = {
            use redb::ReadableTable;
            let mut entries = table.iter().unwrap().map(Result::unwrap);
            let filled = entries.find(|(_, document)| !layout.cell(document.value(), 0).is_empty());
            let (key, document) = filled.unwrap();
            (key.value(), document.value().to_vec())
        };
        let mut cell = layout.cell(&document, 0);
        change(&mut cell);
        layout.write_cell(&mut document, 0, &cell);
        layout.write_checksum(&mut document);
        table.insert(key, &*document).unwrap();
    }
    txn.commit().unwrap();
}

#[test]
fn a_sound_store_has_no_faults_and_its_files_are_not_changed() {
    let dir = tempfile::tempdir().unwrap();
    // The directory looks as after a kill: the last samples are only in the journal.
    drop(fill(dir.path()));
    let journal = dir.path().join("journal.redb");
    let before = fs::read(&journal).unwrap();
    let report = verify_directory(dir.path());
    assert_eq!(report.faults, []);
    assert!(report.records > 0 && report.compared > 1000 && report.cells > 3000, "{report:?}");
    assert_eq!(fs::read(&journal).unwrap(), before);
}

#[test]
fn a_cell_that_disagrees_with_the_finer_granularity_is_named() {
    let dir = tempfile::tempdir().unwrap();
    drop(fill(dir.path()));
    let file = dir.path().join("partitions/5m/2026-11-20.redb");
    change_cell(&file, 48, 300_000, |cell| cell.n += 1);
    let report = verify_directory(dir.path());
    // The slot differs from the minutes in it, and the hour differs from the sum of its slots.
    let problems: Vec<_> = report.faults.iter().map(|fault| fault.problem.as_str()).collect();
    assert_eq!(report.fault_count, 2, "{problems:?}");
    assert!(report.faults[0].file.ends_with("5m/2026-11-20.redb"));
    assert!(problems[0].contains("slot at 2026-11-20T08:00:00Z: n is 6 and should be 5"));
    assert!(problems[1].contains("n is 60 and should be 61, recomputed from 5m"));
}

#[test]
fn damaged_cells_and_files_and_missing_partitions_are_named() {
    let dir = tempfile::tempdir().unwrap();
    drop(fill(dir.path()));
    let file = |name: &str| dir.path().join("partitions").join(name);
    change_cell(&file("1m/2026-11-21T0600.redb"), 60, 60_000, |cell| cell.first_at = 90_000);
    fs::remove_file(file("5m/2026-11-20.redb")).unwrap();
    let mut bytes = fs::read(file("1h/2026-11-16.redb")).unwrap();
    // The pages of the tables follow the header of the file.
    for at in (8192..bytes.len()).step_by(512) {
        bytes[at] ^= 0x40;
    }
    fs::write(file("1h/2026-11-16.redb"), bytes).unwrap();
    let report = verify_directory(dir.path());
    let has = |file: &str, problem: &str| {
        let fits = |fault: &&granary::store::Fault| {
            fault.file.contains(file) && fault.problem.contains(problem)
        };
        assert!(report.faults.iter().any(|fault| fits(&fault)), "{file} {problem}: {report:?}");
    };
    has("1m/2026-11-21T0600", "its times are not in order, or not in the slot");
    has("1h/2026-11-16", "");
    has("5m/2026-11-20", "it is missing, although the journal lists it");
    assert!(report.notes.iter().any(|note| note.contains("1h-2026-11-16")), "{report:?}");
}

#[test]
fn a_folder_without_a_store_and_a_store_in_use_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    let refused = |dir: &Path| verify(dir, NOW, &mut |_| {}).unwrap_err().with_causes();
    assert!(refused(dir.path()).contains("not a data directory"));
    let _store = fill(dir.path());
    assert!(refused(dir.path()).contains("already open"), "{}", refused(dir.path()));
}

#[test]
fn a_snapshot_is_a_complete_store_and_can_be_restored() {
    let dir = tempfile::tempdir().unwrap();
    let path = |name: &str| dir.path().join(name);
    let store = fill(&path("data"));
    let report = store.snapshot(&path("copy"), NOW, &mut |_| {}).unwrap();
    assert!(report.files > 5 && report.bytes > 0, "{report:?}");
    let repeated = store.snapshot(&path("copy"), NOW, &mut |_| {}).unwrap_err();
    assert!(repeated.to_string().contains("not empty"), "{repeated}");
    let checked = verify_directory(&path("copy"));
    assert_eq!((checked.faults, checked.series), (vec![], 3));
    let restored = restore(&path("copy"), &path("restored"), &mut |_| {}).unwrap();
    assert_eq!(restored.files, report.files);
    let (copy, _) = open(&path("restored"), NOW);
    let ids = store.dictionary().select(&[]);
    for level in 0..4 {
        let range = NOW.minus(40 * HOUR)..NOW.plus(HOUR);
        for id in &ids {
            let original = slots(&store, level, range.clone(), *id);
            assert!(!original.is_empty());
            assert_eq!(slots(&copy, level, range.clone(), *id), original);
        }
    }
    assert!(!path("copy.partial").exists() && !path("restored.partial").exists());
}
