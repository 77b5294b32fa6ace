//! `granary rebuild`: lost data of a coarser granularity is computed again from the next finer one,
//! and each sample counts once.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use granary::{
    model::{AcceptedBatch, Cell, Kind, SeriesId},
    store::{
        Folder, Medium, RebuildReport, RebuildWork, Store, plan_rebuild, rebuild as rebuild_on,
        verify,
    },
};

use crate::{
    document_damage::damage_document,
    setup::{
        DAY, HOUR, MINUTE, NOW, count, define, granularities, open, open_with, send, series, slots,
    },
};

/// Fills a store with samples of three kinds over 30 hours, in two checkpoints and the journal.
/// With `sealed`, the documents are in segments.
pub(crate) fn fill(dir: &Path, sealed: bool) {
    let (store, mut appender) = open(dir, NOW);
    fill_store(&store, &mut appender, sealed);
}

fn fill_store(store: &Store, appender: &mut granary::store::Appender, sealed: bool) {
    store.set_segment_documents_min(if sealed { 1 } else { 512 });
    let all_series = Kind::OF_NUMBERS.map(|kind| series(kind.as_str(), &[("host", "a")], kind));
    let ids = define(appender, &all_series, NOW);
    for (round, hours) in [(0, 20..30), (1, 2..20), (2, 0..2)] {
        for hour in hours.rev() {
            for minute in (0..60).rev() {
                let at = NOW.0 - hour * HOUR - minute * MINUTE;
                let values = vec![(at % 977) as f64, (at / 1000 % 100_000) as f64, 0.5];
                let (series, times) = (ids.clone(), vec![at]);
                let batch = AcceptedBatch { series, times, values, ..AcceptedBatch::default() };
                send(appender, batch, NOW);
            }
        }
        if round < 2 {
            store.checkpoint(NOW).unwrap();
        }
    }
}

/// Returns all cells of the coarser granularities. Sums of the values in these tests do not depend
/// on their order.
pub(crate) fn cells(store: &Store) -> Vec<(usize, u32, i64, Cell)> {
    let mut all = Vec::new();
    for level in 1..store.granularities().count() {
        for id in 0..3 {
            let found = slots(store, level, NOW.minus(40 * DAY)..NOW.plus(2 * HOUR), SeriesId(id));
            all.extend(found.into_iter().map(|slot| (level, id, slot.start.0, slot.cell)));
        }
    }
    all
}

fn rebuild(dir: &Path) -> RebuildReport {
    let medium: Arc<dyn Medium> = Arc::new(Folder::new(dir).unwrap());
    rebuild_on(&medium, &RebuildWork::all(), NOW, &mut |_| {}).unwrap()
}

pub(crate) fn partition(dir: &Path, level: &str, end: &str) -> PathBuf {
    let files = fs::read_dir(dir.join("partitions").join(level)).unwrap();
    let mut files: Vec<_> = files.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    files.retain(|path| path.to_str().unwrap().ends_with(end));
    files.swap_remove(0)
}

/// Flips a bit of the byte at a position of a file.
pub(crate) fn damage_bytes(file: &Path, at: usize) {
    let mut bytes = fs::read(file).unwrap();
    bytes[at] ^= 4;
    fs::write(file, bytes).unwrap();
}

/// Checks that a rebuild repairs damage from finer granularities.
fn check(sealed: bool, damage: &dyn Fn(&Path)) {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path(), sealed);
    let expected_cells = cells(&open(dir.path(), NOW).0);
    damage(dir.path());
    let planned = plan_rebuild(dir.path(), &RebuildWork::all(), NOW, &mut |_| {}).unwrap();
    let report = rebuild(dir.path());
    assert!(report.levels.iter().any(|level| !level.rebuilt.is_empty()), "{report:?}");
    assert!(report.levels.iter().all(|level| level.larger == 0), "{report:?}");
    let times = |report: &RebuildReport| -> Vec<_> {
        report.levels.iter().map(|level| (level.rebuilt.len(), level.missing.len())).collect()
    };
    assert_eq!(times(&planned), times(&report), "{planned:?}\n{report:?}");
    let verified = verify(dir.path(), NOW, &mut |_| {}).unwrap();
    assert_eq!((verified.faults, verified.notes), (vec![], vec![]));
    assert!(verified.compared > 500);
    let second_report = rebuild(dir.path());
    assert!(second_report.levels.iter().all(|level| level.rebuilt.is_empty()), "{second_report:?}");
    let (store, mut appender) = open(dir.path(), NOW);
    let found = cells(&store);
    assert_eq!(found.len(), expected_cells.len());
    for (found, expected_cells) in found.iter().zip(&expected_cells) {
        assert_eq!(found, expected_cells);
    }
    assert!(store.gaps().iter().skip(1).all(|gaps| gaps.holes.is_empty()));
    // A late sample counts once at each granularity.
    let (at, last_days) = (NOW.0 - 5 * HOUR, NOW.minus(2 * DAY)..NOW.plus(HOUR));
    let counts = |store: &Store| {
        [0, 1, 2, 3].map(|level| count(store, level, last_days.clone(), SeriesId(0)))
    };
    let before = counts(&store);
    send(&mut appender, crate::setup::samples(SeriesId(0), [(at + 7, 3.0)]), NOW);
    store.checkpoint(NOW).unwrap();
    assert_eq!(counts(&store), before.map(|count| count + 1));
}

#[test]
fn a_missing_partition_is_computed_from_the_finer_granularity() {
    for level in ["5m", "1h"] {
        check(false, &|dir| fs::remove_file(partition(dir, level, ".redb")).unwrap());
    }
}

#[test]
fn a_plan_counts_on_the_finer_granularities_that_are_rebuilt_first() {
    check(false, &|dir| {
        for level in ["5m", "1h"] {
            fs::remove_file(partition(dir, level, ".redb")).unwrap();
        }
    });
}

#[test]
fn a_partition_that_cannot_be_read_is_computed_from_the_finer_granularity() {
    for sealed in [false, true] {
        check(sealed, &|dir| fs::write(partition(dir, "5m", ".redb"), "nonsense").unwrap());
    }
}

#[test]
fn a_damaged_document_is_computed_from_the_finer_granularity() {
    check(false, &|dir| damage_document(&partition(dir, "5m", ".redb")));
    check(false, &|dir| damage_document(&partition(dir, "1h", ".redb")));
}

#[test]
fn damaged_and_missing_segments_are_computed_from_the_finer_granularity() {
    for at in [3, 20, 90] {
        check(true, &|dir| damage_bytes(&partition(dir, "5m", ".sealed"), at));
    }
    check(true, &|dir| fs::remove_file(partition(dir, "5m", ".sealed")).unwrap());
}

#[test]
fn cells_of_a_lost_head_are_computed_where_the_finer_granularity_has_samples() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path(), false);
    let (store, _) = open(dir.path(), NOW);
    store.checkpoint(NOW).unwrap();
    let expected_cells = cells(&store);
    drop(store);
    fs::write(dir.path().join("head.redb"), "nonsense").unwrap();
    let report = rebuild(dir.path());
    // The last minutes of the finer granularity were also in the lost head; earlier cells are
    // computed.
    let of_hours = &report.levels[1];
    assert!(of_hours.cells > 0 && !of_hours.missing.is_empty(), "{report:?}");
    let (store, _) = open(dir.path(), NOW);
    let found = cells(&store);
    let is_old = |(_, _, start, _): &&(usize, u32, i64, Cell)| *start < NOW.0 - 4 * HOUR;
    let of_hours = |all: &[(usize, u32, i64, Cell)]| {
        let old = all.iter().filter(is_old).filter(|(level, ..)| *level < 3);
        old.copied().collect::<Vec<_>>()
    };
    assert_eq!(of_hours(&found), of_hours(&expected_cells));
    drop(store);
    let verified = verify(dir.path(), NOW, &mut |_| {}).unwrap();
    assert_eq!(verified.faults, []);
}

#[test]
fn a_granularity_that_was_added_later_gets_the_history_of_the_finer_one() {
    let dir = tempfile::tempdir().unwrap();
    let two_granularities = granularities(&[["1m", "1h", "6h", "2d"], ["1d", "1mo", "1y", "5y"]]);
    let (store, mut appender) = open_with(dir.path(), &two_granularities, NOW);
    fill_store(&store, &mut appender, false);
    drop((store, appender));
    let (store, _) = open(dir.path(), NOW);
    assert!(store.gaps()[1].complete_since > NOW.minus(HOUR));
    drop(store);
    let medium: Arc<dyn Medium> = Arc::new(Folder::new(dir.path()).unwrap());
    let last_hours = NOW.minus(3 * HOUR)..NOW.plus(HOUR);
    // The samples of the last two hours were in the journal.
    let work = RebuildWork { range: last_hours, granularities: vec!["5m".to_owned()] };
    let report = rebuild_on(&medium, &work, NOW, &mut |_| {}).unwrap();
    assert_eq!((report.levels.len(), report.levels[0].cells), (1, 3 * 12), "{report:?}");
    let since = open(dir.path(), NOW).0.gaps()[1].complete_since;
    assert!(since >= NOW.minus(3 * HOUR) && since < NOW.minus(2 * HOUR), "{since}");
    let report = rebuild(dir.path());
    assert!(report.levels[..2].iter().all(|level| level.cells > 0), "{report:?}");
    let (store, _) = open(dir.path(), NOW);
    assert!(store.gaps()[1].complete_since < NOW.minus(30 * HOUR));
    let all = NOW.minus(DAY * 3)..NOW.plus(HOUR);
    for id in 0..3 {
        let counts = [0, 1, 2, 3].map(|level| count(&store, level, all.clone(), SeriesId(id)));
        assert_eq!(counts, [1800; 4]);
    }
    drop(store);
    let verified = verify(dir.path(), NOW, &mut |_| {}).unwrap();
    assert_eq!(verified.faults, []);
}

#[test]
fn an_unknown_granularity_and_the_finest_one_are_refused() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path(), false);
    let medium: Arc<dyn Medium> = Arc::new(Folder::new(dir.path()).unwrap());
    for name in ["1m", "7m"] {
        let work = RebuildWork { granularities: vec![name.to_owned()], ..RebuildWork::all() };
        let refused = rebuild_on(&medium, &work, NOW, &mut |_| {}).unwrap_err().with_causes();
        assert!(refused.contains(&format!("{name} cannot be rebuilt")), "{refused}");
    }
}

#[test]
fn a_plan_changes_no_file() {
    let dir = tempfile::tempdir().unwrap();
    fill(dir.path(), false);
    fs::remove_file(partition(dir.path(), "5m", ".redb")).unwrap();
    let files = || {
        let names = ["partitions/5m", "partitions/1h", "damaged", "journal"];
        let list = |name: &&str| fs::read_dir(dir.path().join(name)).into_iter().flatten();
        let mut all: Vec<_> =
            names.iter().flat_map(list).map(|entry| entry.unwrap().path()).collect();
        all.sort();
        all.into_iter().map(|path| (fs::read(&path).unwrap(), path)).collect::<Vec<_>>()
    };
    let before = files();
    let report = plan_rebuild(dir.path(), &RebuildWork::all(), NOW, &mut |_| {}).unwrap();
    assert!(!report.levels[0].rebuilt.is_empty() && report.levels[0].cells == 0);
    assert!(files() == before);
}
