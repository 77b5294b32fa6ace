//! The steps of every sample, and for comparison the bare work of the machine: copying, hashing and
//! writing the same number of bytes. docs/performance.md has the ratios.
#![allow(missing_docs, reason = "criterion's macros make undocumented functions")]
#![allow(clippy::unwrap_used, reason = "a benchmark that cannot continue has failed")]

use std::{fs::File, hint::black_box, io::Write, os::unix::fs::FileExt, sync::Arc};

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use granary::{
    access::{KeySet, NewKey, Scope, Scopes, Token},
    model::{
        AcceptedBatch, Cell, GranularitySet, Kind, SeriesId, SeriesInfo, SeriesKey, SeriesLimits,
        SeriesState, UnixMillis,
    },
    store::{DocumentLayout, Folder, HeadRow, HeadRowWriter, Store},
};
use granary_protocol::{Batch, decode_batch, encode_batch};
use xxhash_rust::xxh3::xxh3_128;

const SAMPLES: u32 = 100;

fn encoded_batch() -> Vec<u8> {
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

fn sample_steps(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("hot path");
    group.throughput(Throughput::Elements(u64::from(SAMPLES)));
    let bytes = encoded_batch();
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

/// Measures the machine's limits: a sample is a series, a time and a value.
fn machine_limits(criterion: &mut Criterion) {
    const SAMPLE_BYTES: usize = 20;
    let mut group = criterion.benchmark_group("bare");
    group.throughput(Throughput::Elements(u64::from(SAMPLES)));
    let source = vec![7_u8; SAMPLES as usize * SAMPLE_BYTES];
    let mut target = source.clone();
    group.bench_function("copy 100 samples", |bencher| {
        bencher.iter(|| target.copy_from_slice(black_box(&source)));
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

/// Returns the minutes of a host's series in the head: three of five are counters, read at a
/// jittered interval.
fn head_cells(samples: i64) -> [Cell; 64] {
    let mut random = fastrand::Rng::with_seed(5);
    let mut cells = [Cell::EMPTY; 64];
    let is_counter = |lane: usize| lane % 5 < 3;
    let kind = |lane| if is_counter(lane) { Kind::Counter } else { Kind::Gauge };
    let mut states: Vec<_> = (0..64).map(|lane| SeriesState::new(kind(lane))).collect();
    let mut values = [0.0; 64];
    for round in -2..samples {
        let at = round * 60_000 + random.i64(0..3);
        let lanes = cells.iter_mut().zip(&mut states).zip(&mut values).enumerate();
        for (lane, ((cell, state), value)) in lanes {
            let step = f64::from(random.u32(0..10_000));
            *value = if is_counter(lane) { *value + step } else { step / 10.0 };
            let observed = state.observe(UnixMillis(at), *value, 0, UnixMillis(0)).cell;
            if round >= 0 {
                cell.merge(&Cell { first_at: at as u32, last_at: at as u32, ..observed });
            }
        }
    }
    cells
}

/// Measures rows of the head: writes and merges of checkpoints, and reads of queries.
fn head_rows(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("head");
    for samples in [1, 5, 60] {
        let cells = head_cells(samples);
        let mut writer = HeadRowWriter::default();
        let bytes = writer.write(&cells, 7).unwrap().to_vec();
        group.throughput(Throughput::Elements(64));
        group.bench_function(
            format!("write 64 cells of {samples}, {} bytes", bytes.len()),
            |bencher| {
                bencher.iter(|| writer.write(black_box(&cells), 7).map(<[u8]>::len));
            },
        );
        group.bench_function(format!("merge a row of 64 cells of {samples}"), |bencher| {
            bencher.iter(|| {
                let mut out = [Cell::EMPTY; 64];
                HeadRow::parse(black_box(&bytes), 7).unwrap().merge_into(&mut out).unwrap();
                out
            });
        });
        group.throughput(Throughput::Elements(1));
        group.bench_function(format!("take one cell of {samples}"), |bencher| {
            bencher.iter(|| {
                let row = HeadRow::checked(black_box(&bytes)).unwrap();
                row.cells(black_box(1 << 50), |_, cell| {
                    black_box(cell);
                })
            });
        });
    }
    group.finish();
}

/// Measures the commit of a request's samples, and for comparison a write and sync of bytes.
fn journal_commits(criterion: &mut Criterion) {
    const REQUEST: u32 = 1000;
    let mut group = criterion.benchmark_group("journal");
    group.throughput(Throughput::Elements(u64::from(REQUEST)));
    let folder = tempfile::tempdir().unwrap();
    let now = UnixMillis(1_795_264_496_000);
    let medium = Arc::new(Folder::new(&folder.path().join("data")).unwrap());
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
                values: (0..REQUEST).map(|index| f64::from(index) / 3.0).collect(),
                ..AcceptedBatch::default()
            };
            appender.commit(&[], &[batch], now).unwrap()
        });
    });
    let file = File::create(folder.path().join("bare")).unwrap();
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

/// Measures the check of a key that is valid, or wrong in several ways. The time must not depend on
/// the part that is wrong.
fn key_checks(criterion: &mut Criterion) {
    let now = UnixMillis(1_795_264_496_000);
    let (mut keys, valid) = (KeySet::default(), Token::random().unwrap());
    for number in 0..10_000 {
        let token = Token::random().unwrap();
        let new = NewKey {
            name: format!("key {number}"),
            scopes: Scopes::of(&[Scope::Ingest]),
            project: None,
            senders: None,
            expires: None,
        };
        keys.put(&token.id(), new.clone().record(token.digest(), "", now));
        keys.put(&valid.id(), new.record(valid.digest(), "", now));
    }
    let wrong_secret = Token::random_for(&valid.id()).unwrap().unwrap().reveal();
    // A secret that begins like the valid one.
    let mut almost = valid.reveal();
    let last = almost.pop().unwrap();
    almost.push(if last == '0' { '1' } else { '0' });
    let mut group = criterion.benchmark_group("check of a key");
    for (name, text) in [
        ("valid", valid.reveal()),
        ("wrong secret", wrong_secret),
        ("wrong last character", almost),
        ("unknown id", Token::random().unwrap().reveal()),
        ("no key", "gry_0123".to_owned()),
    ] {
        group.bench_function(name, |bencher| {
            bencher.iter(|| black_box(keys.check(black_box(text.as_bytes()), now)).is_ok());
        });
    }
}

criterion_group!(benches, sample_steps, machine_limits, head_rows, journal_commits, key_checks);
criterion_main!(benches);
