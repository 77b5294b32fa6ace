//! The data directories that each format left behind: every later version must open them and read
//! the same numbers.

use std::{
    fs,
    path::{Path, PathBuf},
};

use granary::{
    model::{
        AcceptedBatch, BatchNumber, BatchVerdict, CountsOnce, GranularityIndex, HostChanges,
        HostRecord, KeptHosts, Kind, SeriesId, SeriesInfo,
    },
    store::{ObjectKind, Store, verify},
};
use serde_json::{Value, json};

use crate::setup::{HOUR, NOW, define, key, open, slots};

const SENDER: &str = "golden";
const OBJECT: &[u8] = br#"{"title":"Hosts"}"#;

/// The format that is written now.
const PRESENT: u64 = 9;

fn golden(format: u64) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("tests/data/format-{format}"))
}

fn batch(seq: u64, at: i64) -> AcceptedBatch {
    AcceptedBatch {
        counts_once: CountsOnce::ByNumber(BatchNumber { sender: SENDER.into(), epoch: 3, seq }),
        series: (0..3).map(SeriesId).collect(),
        times: vec![at],
        starts: vec![NOW.0 - 50 * HOUR],
        values: vec![(seq % 13) as f64 - 4.5, (seq * 7 % 1000) as f64, 1.0],
        ..AcceptedBatch::default()
    }
}

/// Of a sender that does not number its batches, hours old: times of their own, series descending.
fn late(hours: i64) -> AcceptedBatch {
    let at = NOW.0 - hours * HOUR;
    AcceptedBatch {
        counts_once: CountsOnce::Never,
        series: (0..3).rev().map(SeriesId).collect(),
        times: vec![at, at - 1000, at + 77],
        starts: vec![at - 5000, at - 6000, 0],
        values: vec![0.1, -3.0, 1e300],
        ..AcceptedBatch::default()
    }
}

/// All cells of all series, by granularity.
fn cells(store: &Store) -> Value {
    let ids = store.dictionary().select(&[]);
    let level = |level: usize| {
        let range = NOW.minus(100 * 24 * HOUR)..NOW.plus(HOUR);
        let slots = ids.iter().flat_map(|id| {
            slots(store, level, range.clone(), *id).into_iter().map(|slot| {
                let c = slot.cell;
                let text = |value: f64| value.to_string();
                json!([
                    id.0,
                    slot.start.0,
                    c.n,
                    c.first_at,
                    c.last_at,
                    text(c.sum),
                    text(c.min),
                    text(c.max),
                    text(c.first),
                    text(c.last)
                ])
            })
        });
        (store.granularities().as_slice()[level].name.clone(), slots.collect())
    };
    Value::Object((0..4).map(level).collect())
}

fn copy_out(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            copy_out(&path, &to.join(name));
        } else if let Some(name) = name.strip_suffix(".zst") {
            fs::create_dir_all(to).unwrap();
            fs::write(to.join(name), zstd::decode_all(&*fs::read(&path).unwrap()).unwrap())
                .unwrap();
        }
    }
}

fn copy_in(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            copy_in(&path, &to.join(name));
        } else {
            fs::create_dir_all(to).unwrap();
            let packed = zstd::encode_all(&*fs::read(&path).unwrap(), 19).unwrap();
            fs::write(to.join(format!("{name}.zst")), packed).unwrap();
        }
    }
}

#[test]
fn the_data_directories_of_every_format_open_and_have_their_numbers() {
    for format in 1..=PRESENT {
        opens_and_has_its_numbers(&golden(format));
    }
}

#[test]
fn the_objects_of_every_format_that_has_them_are_there() {
    for format in 4..=PRESENT {
        let dir = tempfile::tempdir().unwrap();
        copy_out(&golden(format), dir.path());
        let store = open(dir.path(), NOW).0;
        let object = store.object(ObjectKind::Dashboard, "hosts").unwrap().unwrap();
        assert_eq!((object.version, object.bytes.as_slice()), (1, OBJECT));
        // None were kept then; a directory of that time takes them.
        assert_eq!(store.hosts().unwrap(), KeptHosts::default());
        let host = ("web1".into(), HostRecord { first_seen: 5, ..HostRecord::default() });
        let changes = HostChanges { changed: vec![host.clone()], ..HostChanges::default() };
        store.keep_hosts(&changes).unwrap();
        assert_eq!(store.hosts().unwrap().records, [host]);
    }
}

fn opens_and_has_its_numbers(golden: &Path) {
    let dir = tempfile::tempdir().unwrap();
    copy_out(golden, dir.path());
    let report = verify(dir.path(), NOW, &mut |_| {}).unwrap();
    assert_eq!(report.faults, []);
    assert!(report.records > 0 && report.compared > 100, "{report:?}");
    let (store, mut appender) = open(dir.path(), NOW);
    let expected = fs::read_to_string(golden.join("expected.json")).unwrap();
    assert_eq!(cells(&store), serde_json::from_str::<Value>(&expected).unwrap());
    assert_eq!(store.dictionary().info(SeriesId(1)).unwrap().sender.as_ref(), SENDER);
    // What was accepted then is known now, and the store goes on.
    let mut verdict = |seq| appender.commit(&[], &[batch(seq, NOW.0)], NOW).unwrap().batches[0];
    assert_eq!([verdict(1), verdict(500)], [BatchVerdict::Duplicate, BatchVerdict::Duplicate]);
    assert!(verdict(501).is_accepted());
    store.checkpoint(NOW).unwrap();
    drop((store, appender));
    assert_eq!(verify(dir.path(), NOW, &mut |_| {}).unwrap().faults, []);
}

#[test]
#[ignore = "writes the directory of the present format; run it once when the format changes"]
fn write_the_data_directory_of_this_format() {
    let dir = tempfile::tempdir().unwrap();
    let (store, mut appender) = open(dir.path(), NOW);
    let each = Kind::ALL.map(|kind| {
        let key = key("golden_metric", &[("host", "web1"), ("kind", kind.as_str())]);
        SeriesInfo { key, kind, unit: "bytes".into(), sender: SENDER.into() }
    });
    // The first documents are sealed with a checkpoint, others with their partition, some behind those.
    store.set_segment_documents_min(1);
    define(&mut appender, &each, NOW);
    for seq in 1..=500 {
        // Two and a half days, the oldest beyond what 1m keeps.
        let at = NOW.0 - (500 - seq as i64) * 450_000;
        appender.commit(&[], &[batch(seq, at)], NOW).unwrap();
        if [200, 400, 440].contains(&seq) {
            store.checkpoint(NOW).unwrap();
        }
        if seq == 400 {
            assert_eq!(
                store.seal(NOW, 20 * HOUR, &|_| true).unwrap().partitions,
                0,
                "not seen yet"
            );
            assert!(store.seal(NOW.plus(20 * HOUR), 20 * HOUR, &|_| true).unwrap().partitions > 0);
        }
        if seq == 440 {
            store.set_segment_documents_min(512);
            // Some are late then: open beside the sealed ones of their partition.
            appender.commit(&[], &[late(30)], NOW).unwrap();
            store.checkpoint(NOW).unwrap();
        }
    }
    appender.commit(&[], &[late(3)], NOW).unwrap();
    let shells = store.granularities().as_slice()[0].document_start(NOW.plus(HOUR));
    store.preallocate(GranularityIndex(0), shells, &[SeriesId(0), SeriesId(1)]).unwrap();
    store.put_object(ObjectKind::Dashboard, "hosts", None, OBJECT, NOW).unwrap().unwrap();
    let golden = golden(PRESENT);
    fs::remove_dir_all(&golden).ok();
    fs::create_dir_all(&golden).unwrap();
    fs::write(golden.join("expected.json"), cells(&store).to_string()).unwrap();
    drop((store, appender));
    copy_in(dir.path(), &golden);
}
