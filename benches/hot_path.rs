//! The pieces that every sample passes: decoding a batch, merging a cell, patching a document.
#![allow(missing_docs, reason = "criterion's macros make undocumented functions")]

use std::hint::black_box;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use granary::{
    model::{Cell, Kind, SeriesId, SeriesState, UnixMillis},
    store::DocumentLayout,
};
use granary_protocol::{Batch, decode_batch, encode_batch};

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

criterion_group!(benches, hot_path);
criterion_main!(benches);
