//! The golden directory of each format: a data directory in `tests/data` with its expected cells.
//! Every later release opens it and reads the same numbers. An older release refuses it, and
//! changes at most `journal.redb`, which redb writes when it opens the file.

use std::{
    fs,
    path::{Path, PathBuf},
    sync::Arc,
};

use granary::{
    model::{
        AcceptedBatch, BatchNumber, BatchVerdict, Deduplication, GranularityIndex, GranularitySet,
        HostChanges, HostRecord, Kind, SeriesId, SeriesInfo, StoredHosts, UnixMillis,
    },
    store::{FORMAT_VERSION, Folder, Medium, ObjectKind, Store, verify},
};
use redb::{Database, TableDefinition};
use serde_json::{Value, json};

use crate::{
    media::{HookedFolder, LaterRelease},
    setup::{HOUR, NOW, define, key, open, open_on, slots},
};

const SENDER: &str = "golden";
const OBJECT: &[u8] = br#"{"title":"Hosts"}"#;

pub(crate) fn golden(format: u64) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/data/format-{format}"))
}

pub(crate) fn batch(seq: u64, at: i64) -> AcceptedBatch {
    AcceptedBatch {
        deduplication: Deduplication::ByNumber(BatchNumber {
            sender: SENDER.into(),
            epoch: 3,
            seq,
        }),
        series: (0..3).map(SeriesId).collect(),
        times: vec![at],
        starts: vec![NOW.0 - 50 * HOUR],
        values: vec![(seq % 13) as f64 - 4.5, (seq * 7 % 1000) as f64, 1.0],
        ..AcceptedBatch::default()
    }
}

/// Returns a late batch without a number: each sample has its own time, and the series are in
/// descending order.
fn late_batch(hours: i64) -> AcceptedBatch {
    let at = NOW.0 - hours * HOUR;
    AcceptedBatch {
        deduplication: Deduplication::Never,
        series: (0..3).rev().map(SeriesId).collect(),
        times: vec![at, at - 1000, at + 77],
        starts: vec![at - 5000, at - 6000, 0],
        values: vec![0.1, -3.0, 1e300],
        ..AcceptedBatch::default()
    }
}

/// Returns all cells of all series, by granularity.
pub(crate) fn cells(store: &Store) -> Value {
    let ids = store.dictionary().select(&[]);
    let level = |level: usize| {
        let range = NOW.minus(100 * 24 * HOUR)..NOW.plus(HOUR);
        let slots = ids.iter().flat_map(|id| {
            slots(store, level, range.clone(), *id).into_iter().map(|slot| {
                let cell = slot.cell;
                let text = |value: f64| value.to_string();
                json!([
                    id.0,
                    slot.start.0,
                    cell.n,
                    cell.first_at,
                    cell.last_at,
                    text(cell.sum),
                    text(cell.min),
                    text(cell.max),
                    text(cell.first),
                    text(cell.last)
                ])
            })
        });
        (store.granularities().as_slice()[level].name.clone(), slots.collect())
    };
    Value::Object((0..4).map(level).collect())
}

/// Returns the start of the hour after the last sample.
fn next_hour_start(store: &Store) -> UnixMillis {
    store.granularities().as_slice()[0].document_start(NOW.plus(HOUR))
}

/// Copies a golden directory and decompresses its files.
pub(crate) fn unpack(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            unpack(&path, &to.join(name));
        } else if let Some(name) = name.strip_suffix(".zst") {
            fs::create_dir_all(to).unwrap();
            fs::write(to.join(name), zstd::decode_all(&*fs::read(&path).unwrap()).unwrap())
                .unwrap();
        }
    }
}

/// Copies a data directory and compresses its files.
pub(crate) fn pack(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            pack(&path, &to.join(name));
        } else {
            fs::create_dir_all(to).unwrap();
            let compressed = zstd::encode_all(&*fs::read(&path).unwrap(), 19).unwrap();
            fs::write(to.join(format!("{name}.zst")), compressed).unwrap();
        }
    }
}

#[test]
fn the_data_directories_of_every_format_open_with_unchanged_numbers() {
    for format in 1..=FORMAT_VERSION {
        assert_golden_numbers(&golden(format));
    }
}

#[test]
fn the_objects_of_every_format_are_readable() {
    for format in 1..=FORMAT_VERSION {
        let dir = tempfile::tempdir().unwrap();
        unpack(&golden(format), dir.path());
        let store = open(dir.path(), NOW).0;
        let object = store.object(ObjectKind::Dashboard, "hosts").unwrap().unwrap();
        assert_eq!((object.version, object.bytes.as_slice()), (1, OBJECT));
        assert_eq!(store.hosts().unwrap(), StoredHosts::default());
        let host = ("web1".into(), HostRecord { first_seen: 5, ..HostRecord::default() });
        let changes = HostChanges { changed: vec![host.clone()], ..HostChanges::default() };
        store.keep_hosts(&changes).unwrap();
        assert_eq!(store.hosts().unwrap().records, [host]);
    }
}

fn assert_golden_numbers(golden: &Path) {
    let dir = tempfile::tempdir().unwrap();
    unpack(golden, dir.path());
    let report = verify(dir.path(), NOW, &mut |_| {}).unwrap();
    assert_eq!(report.faults, []);
    assert!(report.records > 0 && report.compared > 100, "{report:?}");
    let (store, mut appender) = open(dir.path(), NOW);
    let expected = fs::read_to_string(golden.join("expected.json")).unwrap();
    assert_eq!(cells(&store), serde_json::from_str::<Value>(&expected).unwrap());
    assert_eq!(store.dictionary().info(SeriesId(1)).unwrap().sender.as_ref(), SENDER);
    let finest = GranularityIndex(0);
    let coming_hour = next_hour_start(&store)..next_hour_start(&store).plus(HOUR);
    let has_shell = |id| {
        let view = store.view(finest, coming_hour.clone(), &[SeriesId(id)]).unwrap();
        view.shells(SeriesId(id), &[]).unwrap() == [coming_hour.clone()]
    };
    assert_eq!([0, 1, 2].map(has_shell), [true, true, false]);
    let all = [0, 1, 2].map(SeriesId);
    assert_eq!(store.preallocate(finest, coming_hour.start, &all).unwrap(), 1);
    assert!(has_shell(2));
    // The store recognizes the batches of the golden directory and accepts new ones.
    let mut verdict = |seq| appender.commit(&[], &[batch(seq, NOW.0)], NOW).unwrap().batches[0];
    assert_eq!([verdict(1), verdict(500)], [BatchVerdict::Duplicate, BatchVerdict::Duplicate]);
    assert!(verdict(501).is_accepted());
    store.checkpoint(NOW).unwrap();
    drop((store, appender));
    assert_eq!(verify(dir.path(), NOW, &mut |_| {}).unwrap().faults, []);
}

pub(crate) fn open_error(medium: Arc<dyn Medium>) -> String {
    Store::open(medium, GranularitySet::default(), NOW).unwrap_err().with_causes()
}

/// Returns the first fault that `verify` finds.
fn first_fault(dir: &Path) -> String {
    verify(dir, NOW, &mut |_| {}).unwrap().faults.remove(0).problem
}

/// Returns the path and the bytes of each file.
fn all_files(dir: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let mut all = Vec::new();
    for entry in fs::read_dir(dir).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            all.extend(all_files(&path));
        } else {
            all.push((path.clone(), fs::read(path).unwrap()));
        }
    }
    all.sort();
    all
}

#[test]
fn a_directory_upgraded_by_a_later_release_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    unpack(&golden(FORMAT_VERSION), dir.path());
    let before = cells(&open(dir.path(), NOW).0);
    let later = || Arc::new(HookedFolder::new(dir.path(), Arc::new(LaterRelease)));
    for seq in [501, 502] {
        let (store, mut appender) = open_on(later(), &GranularitySet::default(), NOW);
        if seq == 501 {
            assert_eq!(cells(&store), before);
        }
        let duplicate = appender.commit(&[], &[batch(seq - 1, NOW.0)], NOW).unwrap();
        assert_eq!(duplicate.batches, [BatchVerdict::Duplicate]);
        assert!(appender.commit(&[], &[batch(seq, NOW.0)], NOW).unwrap().batches[0].is_accepted());
        store.checkpoint(NOW).unwrap();
    }
    let files_except_the_journal = |dir: &Path| {
        // redb writes to the journal's file when it opens it.
        let all = all_files(dir).into_iter();
        all.filter(|(name, _)| !name.ends_with("journal.redb")).collect::<Vec<_>>()
    };
    let upgraded_cells = cells(&open_on(later(), &GranularitySet::default(), NOW).0);
    let upgraded = files_except_the_journal(dir.path());
    let found = open_error(Arc::new(Folder::new(dir.path()).unwrap()));
    let expected = format!("journal.redb: format {} of a newer release", FORMAT_VERSION + 1);
    assert!(found.contains(&expected) && found.contains("newer one"), "{found}");
    assert!(first_fault(dir.path()).contains(&expected));
    assert!(
        files_except_the_journal(dir.path()) == upgraded,
        "this release changed a directory that it refuses"
    );
    assert_eq!(cells(&open_on(later(), &GranularitySet::default(), NOW).0), upgraded_cells);
}

#[test]
fn a_directory_of_a_build_before_the_first_release_is_refused_with_the_remedy() {
    const META: TableDefinition<'_, &str, u64> = TableDefinition::new("meta");
    for version in [1, 7, 9] {
        let dir = tempfile::tempdir().unwrap();
        drop(open(dir.path(), NOW));
        let db = Database::open(dir.path().join("journal.redb")).unwrap();
        let txn = db.begin_write().unwrap();
        {
            let mut meta = txn.open_table(META).unwrap();
            for key in ["format", "format_check"] {
                assert!(meta.remove(key).unwrap().is_some());
            }
            meta.insert("format_version", version).unwrap();
        }
        txn.commit().unwrap();
        drop(db);
        let names =
            |dir: &Path| all_files(dir).into_iter().map(|(name, _)| name).collect::<Vec<_>>();
        let before = names(dir.path());
        let found = open_error(Arc::new(Folder::new(dir.path()).unwrap()));
        let expected = format!("format {version} of a build before the first release");
        assert!(found.contains(&expected) && found.contains("empty data directory"), "{found}");
        assert!(first_fault(dir.path()).contains(&expected));
        assert_eq!(names(dir.path()), before);
    }
}

#[test]
#[ignore = "writes the directory of the present format; run it once when the format changes"]
fn write_the_data_directory_of_this_format() {
    let dir = tempfile::tempdir().unwrap();
    let (store, mut appender) = open(dir.path(), NOW);
    let series = Kind::OF_NUMBERS.map(|kind| {
        let key = key("golden_metric", &[("host", "web1"), ("kind", kind.as_str())]);
        SeriesInfo { key, kind, unit: "bytes".into(), sender: SENDER.into() }
    });
    // Checkpoints seal the complete documents up to batch 440, and `seal` folds their segments.
    // Later documents stay open, and the last batches are only in the journal.
    store.set_segment_documents_min(1);
    define(&mut appender, &series, NOW);
    for seq in 1..=500 {
        // Two and a half days of samples; the oldest are past the retention of 1m.
        let at = NOW.0 - (500 - seq as i64) * 450_000;
        appender.commit(&[], &[batch(seq, at)], NOW).unwrap();
        if [200, 400, 440].contains(&seq) {
            store.checkpoint(NOW).unwrap();
        }
        if seq == 400 {
            assert_eq!(
                store.seal(NOW, 20 * HOUR, &|_| true).unwrap().partitions,
                0,
                "the first call only notes what changes"
            );
            assert!(store.seal(NOW.plus(20 * HOUR), 20 * HOUR, &|_| true).unwrap().partitions > 0);
        }
        if seq == 440 {
            store.set_segment_documents_min(512);
            // These samples are late: their documents are open, next to the sealed ones of the
            // partition.
            appender.commit(&[], &[late_batch(30)], NOW).unwrap();
            store.checkpoint(NOW).unwrap();
        }
    }
    appender.commit(&[], &[late_batch(3)], NOW).unwrap();
    let shells = [SeriesId(0), SeriesId(1)];
    store.preallocate(GranularityIndex(0), next_hour_start(&store), &shells).unwrap();
    store.put_object(ObjectKind::Dashboard, "hosts", None, OBJECT, NOW).unwrap().unwrap();
    let golden = golden(FORMAT_VERSION);
    fs::remove_dir_all(&golden).ok();
    fs::create_dir_all(&golden).unwrap();
    fs::write(golden.join("expected.json"), cells(&store).to_string()).unwrap();
    drop((store, appender));
    pack(dir.path(), &golden);
}
