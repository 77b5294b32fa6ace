//! The pieces that every sample passes, and beside them what the machine needs for the bare work:
//! copying, hashing and writing as many bytes. docs/performance.md has the ratios.
#![allow(missing_docs, reason = "criterion's macros make undocumented functions")]
#![allow(clippy::unwrap_used, reason = "a bench that cannot go on has failed")]

use std::{fs::File, hint::black_box, io::Write, os::unix::fs::FileExt, sync::Arc};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use granary::{
    model::{
        AcceptedBatch, Cell, GranularitySet, Kind, SeriesId, SeriesInfo, SeriesKey, SeriesLimits,
        SeriesState, UnixMillis,
    },
    store::{DocumentLayout, Folder, Store},
};
use granary_protocol::{Batch, decode_batch, encode_batch};
use xxhash_rust::xxh3::xxh3_128;

const SAMPLES: u32 = 100;

fn batch() -> Vec<u8> {
    let batch = Batch {
        agent: "bench-00001".into(),
        epoch: 1,
        seq: 1,
        refs: (0..SAMPLES).collect(),
        times: vec![1_795_264_496_000],
        values: (0..SAMPLES).map(f64::from).collect(),
        ..Batch::default()
    };
    let mut bytes = Vec::new();
    encode_batch(&batch, &mut bytes);
    bytes
}

fn hot_path(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("hot path");
    group.throughput(Throughput::Elements(u64::from(SAMPLES)));
    let bytes = batch();
    group.bench_function("decode a batch of 100 samples", |bencher| {
        bencher.iter(|| decode_batch(black_box(&bytes)).map(|view| view.values().sum::<f64>()));
    });
    group.bench_function("observe 100 readings of a counter", |bencher| {
        bencher.iter(|| {
            let mut state = SeriesState::new(Kind::Counter);
            let mut cell = Cell::EMPTY;
            for at in 0..i64::from(SAMPLES) {
                cell.merge(&state.observe(UnixMillis(at * 100), at as f64, 0, UnixMillis(0)).cell);
            }
            black_box(cell)
        });
    });
    let layout = DocumentLayout::new(60, 60_000);
    let mut doc = Vec::new();
    layout.write_shell(SeriesId(1), UnixMillis(0), &mut doc);
    group.bench_function("patch 100 cells of a document", |bencher| {
        bencher.iter(|| {
            for slot in 0..SAMPLES as usize {
                layout.merge_cell(&mut doc, slot % 60, black_box(&Cell::single(5, 1.0)));
            }
        });
    });
    group.finish();
}

/// What the machine does at best: a sample is a series, a time and a value.
fn bare(criterion: &mut Criterion) {
    const SAMPLE_BYTES: usize = 20;
    let mut group = criterion.benchmark_group("bare");
    group.throughput(Throughput::Elements(u64::from(SAMPLES)));
    let from = vec![7_u8; SAMPLES as usize * SAMPLE_BYTES];
    let mut to = from.clone();
    group.bench_function("copy 100 samples", |bencher| {
        bencher.iter(|| to.copy_from_slice(black_box(&from)));
    });
    let labels = vec![7_u8; 120];
    group.bench_function("hash the labels of 100 series", |bencher| {
        bencher.iter(|| (0..SAMPLES).fold(0, |all, _| all ^ xxh3_128(black_box(&labels))));
    });
    let mut cells = vec![Cell::EMPTY; SAMPLES as usize];
    group.bench_function("merge 100 cells", |bencher| {
        bencher.iter(|| {
            let sample = black_box(Cell::single(5, 1.0));
            for cell in &mut cells {
                cell.merge(&sample);
            }
        });
    });
    group.finish();
}

/// A commit of a request's samples, and a write and sync of as many bytes.
fn journal(criterion: &mut Criterion) {
    const REQUEST: u32 = 1000;
    let mut group = criterion.benchmark_group("journal");
    group.throughput(Throughput::Elements(u64::from(REQUEST)));
    let dir = tempfile::tempdir().unwrap();
    let now = UnixMillis(1_795_264_496_000);
    let medium = Arc::new(Folder::new(&dir.path().join("data")).unwrap());
    let (_store, mut appender, _) = Store::open(medium, GranularitySet::default(), now).unwrap();
    let series = |id: u32| SeriesInfo {
        key: SeriesKey::new("m", [("host", &*id.to_string())], &SeriesLimits::default()).unwrap(),
        kind: Kind::Counter,
        unit: "".into(),
        sender: "".into(),
    };
    appender.commit(&(0..REQUEST).map(series).collect::<Vec<_>>(), &[], now).unwrap();
    let mut at = now.0 - 60_000;
    group.bench_function("commit 1,000 samples", |bencher| {
        bencher.iter(|| {
            at += 1;
            let batch = AcceptedBatch {
                series: (0..REQUEST).map(SeriesId).collect(),
                times: vec![at],
                values: (0..REQUEST).map(|own| f64::from(own) / 3.0).collect(),
                ..AcceptedBatch::default()
            };
            appender.commit(&[], &[batch], now).unwrap()
        });
    });
    let file = File::create(dir.path().join("bare")).unwrap();
    let bytes = vec![7_u8; REQUEST as usize * 12];
    (&file).write_all(&bytes).unwrap();
    group.bench_function("write and sync 12,000 bytes in place", |bencher| {
        bencher.iter(|| {
            file.write_all_at(&bytes, 0).unwrap();
            file.sync_data().unwrap();
        });
    });
    group.finish();
}

criterion_group!(benches, hot_path, bare, journal);
criterion_main!(benches);
