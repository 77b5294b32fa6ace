//! The golden directory of histograms: `tests/data/histograms` has a data directory with its
//! expected histograms in tiles, rows, the head and the journal. Every later release reads the same
//! histograms, and seals the same samples in the same bytes.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
};

use granary::{
    model::{
        AcceptedBatch, GranularityIndex, Histogram, Kind, ResetHint, SeriesId, UnixMillis,
        histogram::{Bucket, CUSTOM_BOUNDS, ZERO_THRESHOLD},
    },
    store::{Appender, Store, StoreError, verify},
};
use serde_json::{Value, json};

use crate::{
    golden::{pack, unpack},
    setup::{HOUR, MINUTE, NOW, define, open, send, series},
};

const KINDS: [Kind; 5] = [
    Kind::Histogram,
    Kind::GaugeHistogram,
    Kind::DeltaHistogram,
    Kind::Histogram,
    Kind::GaugeHistogram,
];
/// The number of samples of each series, one in two and a half minutes.
const SAMPLES: i64 = 400;

fn golden() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/data/histograms")
}

/// Returns the histogram of a series at a step.
fn histogram(series: usize, step: i64) -> Histogram {
    let buckets = |parts: &[(i32, i64)]| {
        let filled = parts.iter().filter(|(_, count)| *count > 0);
        filled.map(|(index, count)| Bucket { index: *index, count: *count as f64 }).collect()
    };
    let wave = step * 7 % 13;
    let mut own = Histogram { zero_threshold: ZERO_THRESHOLD, ..Histogram::empty(3) };
    match series {
        // A counter that is reset every 90 steps, and whose buckets appear one after the other.
        0 => {
            let age = step % 90 + 1;
            let parts = [(-7, 3 * age), (-6, age), (2, age - 20), (9, (age - 50) * 5)];
            own.positive = buckets(&parts);
        }
        // A gauge with a zero bucket, negative values, and fractions.
        1 => {
            (own.zero_threshold, own.zero_count) = (0.001, 2.0);
            own.positive = vec![Bucket { index: 4, count: wave as f64 + 0.25 }];
            own.negative = vec![Bucket { index: 1, count: 0.5 }];
            own.hint = ResetHint::Gauge;
        }
        // Deltas of several schemas.
        2 => {
            own.schema = 3 - (step % 3) as i8;
            own.positive = buckets(&[(wave as i32 - 5, wave + 1), (40, 1)]);
        }
        // A counter with custom bounds.
        3 => {
            own.schema = CUSTOM_BOUNDS;
            own.zero_threshold = 0.0;
            own.custom_bounds = [0.1, 0.5, 2.5].into();
            own.positive = buckets(&[(0, 2 * step), (2, step), (3, step / 10)]);
        }
        // A gauge that seldom changes.
        _ => {
            own.positive = buckets(&[(0, 1 + step / 200)]);
            own.hint = ResetHint::Gauge;
        }
    }
    let all = own.positive.iter().chain(&own.negative).map(|bucket| bucket.count);
    own.count = all.sum::<f64>() + own.zero_count;
    own.sum = own.count * 1.25 - wave as f64;
    own
}

fn time(step: i64) -> UnixMillis {
    NOW.minus((SAMPLES - step) * 150_000)
}

/// Sends a sample of each series.
fn send_step(appender: &mut Appender, ids: &[SeriesId], step: i64, at: UnixMillis) {
    let mut batch = AcceptedBatch::default();
    for (index, id) in ids.iter().enumerate() {
        batch.push_histogram(*id, at, histogram(index, step));
    }
    send(appender, batch, at);
}

/// Fills a store: partitions that are over are sealed, and later samples are in rows, in the head
/// and in the journal.
fn fill(store: &Store, appender: &mut Appender) {
    let infos: Vec<_> = (0..KINDS.len())
        .map(|index| series("latency", &[("name", &index.to_string())], KINDS[index]))
        .collect();
    let ids = define(appender, &infos, time(0));
    for step in 0..SAMPLES {
        send_step(appender, &ids, step, time(step));
        if [150, 300, 380].contains(&step) {
            store.checkpoint(time(step)).unwrap();
        }
        if step == 300 {
            for later in [0, 1] {
                store.seal(time(step).plus(later * 3 * HOUR), 2 * HOUR, &|_| true).unwrap();
            }
            // A late sample turns sealed histograms into a row.
            send_step(appender, &ids[..1], 17, time(17).plus(MINUTE));
        }
    }
}

/// Returns the histograms of all series, by granularity.
fn histograms(store: &Store) -> Value {
    let ids: Vec<_> = (0..KINDS.len() as u32).map(SeriesId).collect();
    let hex = |histogram: &Histogram| {
        let mut bytes = Vec::new();
        histogram.encode(&mut bytes);
        bytes.iter().map(|byte| format!("{byte:02x}")).collect::<Vec<_>>().concat()
    };
    let level = |level: usize| {
        let range = NOW.minus(2 * 24 * HOUR)..NOW.plus(HOUR);
        let view = store.view(GranularityIndex(level), range, &ids).unwrap();
        let slots = ids.iter().flat_map(|id| {
            let slots = view.histogram_slots::<StoreError>(*id, &mut |_| Ok(())).unwrap();
            slots.into_iter().map(|slot| {
                let cell = slot.cell;
                let own = [&cell.total, &cell.first, &cell.last].map(hex);
                json!([id.0, slot.start.0, cell.n, cell.first_at, cell.last_at, own])
            })
        });
        (store.granularities().as_slice()[level].name.clone(), slots.collect())
    };
    Value::Object((0..4).map(level).collect())
}

/// Returns the segments below a directory, by name.
fn segments(dir: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut found = BTreeMap::new();
    for level in fs::read_dir(dir.join("partitions")).unwrap() {
        for file in fs::read_dir(level.unwrap().path()).unwrap() {
            let path = file.unwrap().path();
            let name = path.strip_prefix(dir).unwrap().to_string_lossy().into_owned();
            if name.ends_with(".sealed") {
                found.insert(name, fs::read(&path).unwrap());
            }
        }
    }
    found
}

#[test]
fn the_golden_histograms_are_read_unchanged() {
    let dir = tempfile::tempdir().unwrap();
    unpack(&golden(), dir.path());
    let report = verify(dir.path(), NOW, &mut |_| {}).unwrap();
    assert_eq!(report.faults, []);
    let (store, _appender) = open(dir.path(), NOW);
    let expected = fs::read_to_string(golden().join("expected.json")).unwrap();
    assert_eq!(histograms(&store), serde_json::from_str::<Value>(&expected).unwrap());
}

#[test]
fn the_golden_samples_are_sealed_in_the_golden_bytes() {
    let [golden_dir, dir] = [(), ()].map(|()| tempfile::tempdir().unwrap());
    unpack(&golden(), golden_dir.path());
    let (store, mut appender) = open(dir.path(), NOW);
    fill(&store, &mut appender);
    drop((store, appender));
    let (expected, found) = (segments(golden_dir.path()), segments(dir.path()));
    assert!(expected.len() >= 3, "{:?}", expected.keys());
    // The version of the layout with tiles of histograms, in the footer.
    let versions = expected.values().map(|bytes| bytes[bytes.len() - 56]);
    assert!(versions.min().unwrap() == 2, "a segment without histograms");
    assert!(found.keys().eq(expected.keys()), "{:?} {:?}", found.keys(), expected.keys());
    for (name, bytes) in &expected {
        assert!(found[name] == *bytes, "{name}: the bytes of sealed histograms changed");
    }
}

#[test]
#[ignore = "writes the directory; run it once when the format changes"]
fn write_the_golden_directory_of_histograms() {
    let dir = tempfile::tempdir().unwrap();
    let (store, mut appender) = open(dir.path(), NOW);
    fill(&store, &mut appender);
    fs::remove_dir_all(golden()).ok();
    fs::create_dir_all(golden()).unwrap();
    fs::write(golden().join("expected.json"), histograms(&store).to_string()).unwrap();
    drop((store, appender));
    pack(dir.path(), &golden());
}
