//! The tested implementation: local documents, either open or sealed at once.
//!
//! Must never know: what is tested.

use std::{collections::BTreeMap, ops::Range, sync::Arc};

use super::{
    Bench, FINE, HOUR, HistogramCells, NOON, Open, Subject, cell, histogram,
    histogram_claims::merge_hour, mark,
};
use crate::{
    model::{Cell, Granularity, HistogramCell, SeriesId, UnixMillis, histogram::Bucket},
    store::{
        documents::{Documents, Stage, grid::PartitionGrid, local::LocalDocuments},
        error::StoreError,
        file::{
            medium::Medium,
            names::{segment_file, segment_number},
        },
        journal::{Journal, register::Register},
    },
};

/// The maximum size of the blocks of a tile of histograms: as in a daemon, and for a few of them.
const TILE_BYTES: usize = 128 << 20;
const SMALL_TILE_BYTES: usize = 150;

/// Local documents that are sealed only on request.
pub(super) const SUBJECT: Subject = Subject {
    name: "open",
    open: |medium, granularities| open(medium, granularities, (usize::MAX, TILE_BYTES)),
    holder: |_, name| name,
    damage: |bytes, start, series| {
        let head = header(start, series);
        let positions = (0..bytes.len()).filter(|at| bytes[*at..].starts_with(&head));
        // Older pages may also contain the document.
        for at in positions.collect::<Vec<_>>() {
            bytes[at + head.len() + 60] ^= 0x10;
        }
    },
};

/// Local documents that are sealed when they are created. Their tiles of histograms are small, so
/// that most of them are split, and some documents are left open.
pub(super) const SEALED: Subject = Subject {
    name: "sealed",
    open: |medium, granularities| open(medium, granularities, (1, SMALL_TILE_BYTES)),
    holder: |medium, name| segment_of(medium, &name).unwrap_or(name),
    damage: |bytes, _, series| {
        assert_eq!(series.0, 7, "the first of its tile");
        // The series' block follows the head of the first tile, whose length is in the index.
        let number = |at: usize| u32::from_le_bytes(bytes[at..at + 4].try_into().unwrap()) as usize;
        let index = number(bytes.len() - 64 + 32);
        let head = number(index + 16);
        bytes[head + 3] ^= 0x10;
    },
};

fn open(
    medium: Arc<dyn Medium>,
    granularities: Vec<Granularity>,
    (sealed_min, tile_bytes): (usize, usize),
) -> Result<Box<dyn Documents>, StoreError> {
    let journal = Arc::new(Journal::open(&medium)?);
    let register = Arc::new(Register::open(medium.clone(), journal)?);
    let documents = LocalDocuments::open(medium, granularities, register)?;
    documents.set_sealed_min(sealed_min);
    documents.set_tile_bytes_max(tile_bytes);
    Ok(Box::new(documents))
}

/// Returns the last segment of a partition's file.
fn segment_of(medium: &dyn Medium, partition: &str) -> Option<String> {
    let (folder, name_of_partition) = partition.rsplit_once('/')?;
    let names = medium.list(folder).unwrap().into_iter();
    let last = names.filter_map(|name| segment_number(name_of_partition, &name)).max()?;
    Some(segment_file(partition, last))
}

/// Returns the bytes of the fields that identify a document.
fn header(start: UnixMillis, series: SeriesId) -> Vec<u8> {
    let series = i64::from(series.0).to_le_bytes();
    [b"\x12series\0".as_slice(), &series, b"\x09start\0", &start.0.to_le_bytes()].concat()
}

/// Returns the last segment of a partition after its histograms were sealed.
fn sealed_hour(bench: &Bench, grid: &PartitionGrid) -> (String, Vec<u8>) {
    merge_hour(bench, grid);
    bench.documents.seal(grid, Stage::Over, &|_| true).unwrap();
    let name = segment_of(&bench.medium, &bench.documents.name(grid)).unwrap();
    let bytes = bytes_of(bench, &name);
    (name, bytes)
}

fn bytes_of(bench: &Bench, name: &str) -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    bench.medium.copy(name, &dir.path().join("copy")).unwrap();
    std::fs::read(dir.path().join("copy")).unwrap()
}

#[test]
fn only_the_segments_with_cells_of_a_time_are_read() {
    let mut bench = Bench::new(SEALED, 1);
    let grid = bench.grid(FINE, NOON);
    let half_past = NOON.0 + HOUR / 2;
    // Each merge writes a part of the same document to a segment.
    for (record, slot) in [(5, NOON.0), (6, half_past)] {
        bench.merge(&grid, mark(record, grid.end.0), &vec![cell(7, slot, 1.0)]).unwrap();
    }
    bench.change_documents(&grid, |bytes| (SEALED.damage)(bytes, NOON, SeriesId(7)));
    let count = |range: Range<i64>| bench.slots(FINE, range, SeriesId(7)).map(|slots| slots.len());
    assert_eq!(count(NOON.0..half_past).unwrap(), 1);
    let fault = count(NOON.0..half_past + 60_000).unwrap_err();
    assert!(matches!(fault, StoreError::DamagedPart { .. }), "{fault}");
}

#[test]
fn histograms_move_to_segments_which_older_releases_refuse() {
    let bench = Bench::new(SUBJECT, 1);
    let grid = bench.grid(FINE, NOON);
    let (name, bytes) = sealed_hour(&bench, &grid);
    assert_eq!(bytes[bytes.len() - 56..][..8], 2_u64.to_le_bytes(), "the version in {name}");
    let plain = bench.grid(FINE, NOON.plus(HOUR));
    bench.merge(&plain, mark(6, plain.end.0), &vec![cell(7, plain.id.start.0, 1.0)]).unwrap();
    bench.documents.seal(&plain, Stage::Over, &|_| true).unwrap();
    let name = segment_of(&bench.medium, &bench.documents.name(&plain)).unwrap();
    let bytes = bytes_of(&bench, &name);
    assert_eq!(bytes[bytes.len() - 56..][..8], 1_u64.to_le_bytes(), "the version in {name}");
}

#[test]
fn damaged_histograms_of_a_segment_are_an_error_once_and_harm_nothing_else() {
    let mut bench = Bench::new(SUBJECT, 1);
    let grid = bench.grid(FINE, NOON);
    let (name, bytes) = sealed_hour(&bench, &grid);
    // The last block before the index is that of series 9 in the tile of histograms.
    let index = u64::from_le_bytes(bytes[bytes.len() - 32..][..8].try_into().unwrap()) as usize;
    bench.change(&name, |bytes| bytes[index - 9] ^= 0x10);
    let count = |bench: &Bench, series: u32| {
        bench.histograms(FINE, grid.range(), SeriesId(series)).map(|found| found.len())
    };
    let fault = count(&bench, 9).unwrap_err();
    assert!(matches!(fault, StoreError::DamagedPart { .. }), "{fault}");
    assert_eq!(fault.file(), name);
    assert_eq!((count(&bench, 9).unwrap(), count(&bench, 7).unwrap()), (0, 60));
    assert_eq!(bench.of_partition(&grid, SeriesId(9)).len(), 60, "cells are sound");
    assert_eq!(bench.documents.damaged_documents(), 6);
    // While the damage is recorded, nothing is folded.
    assert!(bench.documents.seal(&grid, Stage::Over, &|_| true).unwrap().is_none());
    bench.reopen();
    let mut faults = 0;
    let visit = &mut |_, _, cells: Result<&[Cell], String>| faults += u8::from(cells.is_err());
    bench.documents.check(grid.id, visit).unwrap();
    assert_eq!((faults, bench.documents.damaged_documents()), (6, 6));
    assert_eq!(bench.documents.drop_damage(&grid).unwrap().documents, 6);
    for _ in 0..2 {
        assert_eq!(bench.documents.damaged_documents(), 0);
        assert_eq!((count(&bench, 9).unwrap(), count(&bench, 7).unwrap()), (0, 60));
        assert_eq!(bench.of_partition(&grid, SeriesId(9)).len(), 60);
        assert_eq!(bench.documents.holes(FINE), [grid.id.start..grid.end]);
        bench.reopen();
    }
}

#[test]
fn a_damaged_head_of_a_tile_of_histograms_can_be_dropped() {
    let mut bench = Bench::new(SUBJECT, 1);
    let grid = bench.grid(FINE, NOON);
    let (name, bytes) = sealed_hour(&bench, &grid);
    let index = u64::from_le_bytes(bytes[bytes.len() - 32..][..8].try_into().unwrap()) as usize;
    let entries = bytes[index..bytes.len() - 56].chunks_exact(24);
    // The highest bit of the row marks a tile of histograms; the offset follows.
    let of_histograms = entries.filter(|entry| entry[7] & 0x80 != 0);
    let offsets = of_histograms.map(|entry| u64::from_le_bytes(entry[8..16].try_into().unwrap()));
    let offset = offsets.max().unwrap() as usize;
    bench.change(&name, |bytes| bytes[offset + 1] ^= 0x10);
    let visit = &mut |_, _, _: Result<&[Cell], String>| {};
    bench.documents.check(grid.id, visit).unwrap();
    assert_ne!(bench.documents.drop_damage(&grid).unwrap().documents, 0);
    for _ in 0..2 {
        assert_eq!(bench.documents.damaged_documents(), 0);
        for series in [7, 9].map(SeriesId) {
            assert_eq!(bench.histograms(FINE, grid.range(), series).unwrap().len(), 0);
            assert_eq!(bench.of_partition(&grid, series).len(), 60);
        }
        bench.reopen();
    }
}

/// Returns the number of tiles of histograms in a segment.
fn histogram_tiles(bytes: &[u8]) -> usize {
    let index = u64::from_le_bytes(bytes[bytes.len() - 32..][..8].try_into().unwrap()) as usize;
    let entries = bytes[index..bytes.len() - 64].chunks_exact(24);
    entries.filter(|entry| entry[7] & 0x80 != 0).count()
}

/// Returns histograms of two series in each minute of an hour, whose counts have nothing in common.
fn wide_hour() -> HistogramCells {
    let (mut number, mut histograms) = (7_u64, HistogramCells::new());
    for slot in (0..60).map(|minute| NOON.0 + minute * 60_000) {
        for series in [7, 9] {
            let count = |number: &mut u64| {
                *number = number.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                (*number >> 56) as f64 + 1.0
            };
            let mut wide = histogram(3, 0, 1.0);
            let counts = (1..20).map(|index| Bucket { index, count: count(&mut number) });
            wide.positive.extend(counts);
            wide.count = wide.positive.iter().map(|bucket| bucket.count).sum();
            let cell = HistogramCell::single(5, wide.clone(), wide);
            histograms.push((SeriesId(series), slot, cell));
        }
    }
    histograms
}

#[test]
fn histograms_that_are_too_large_for_a_tile_are_split_by_time_or_stay_open() {
    let cases: [(Open, Range<usize>, u64); 4] = [
        (|medium, levels| open(medium, levels, (usize::MAX, 1 << 20)), 1..2, 0),
        (|medium, levels| open(medium, levels, (usize::MAX, 1200)), 3..7, 0),
        // A document of one of the two series.
        (|medium, levels| open(medium, levels, (usize::MAX, 600)), 6..7, 6),
        (|medium, levels| open(medium, levels, (usize::MAX, 10)), 0..1, 12),
    ];
    for (open, tiles, left_open) in cases {
        let mut bench = Bench::new(Subject { open, ..SUBJECT }, 1);
        let grid = bench.grid(FINE, NOON);
        let (mut histograms, cells) = (wide_hour(), vec![cell(7, NOON.0, 1.0)]);
        bench.merge_all(&grid, mark(5, grid.end.0), &cells, &histograms).unwrap();
        let check = |bench: &Bench, expected: &HistogramCells| {
            for series in [7, 9].map(SeriesId) {
                let own = expected.iter().filter(|(of, ..)| *of == series);
                let own: BTreeMap<_, _> =
                    own.map(|(_, slot, cell)| (*slot, cell.clone())).collect();
                assert_eq!(bench.histograms(FINE, grid.range(), series).unwrap(), own);
            }
        };
        let folded = bench.documents.seal(&grid, Stage::Over, &|_| true).unwrap().unwrap();
        assert_eq!((folded.refused, folded.left_open), (false, left_open));
        check(&bench, &histograms);
        let name = segment_of(&bench.medium, &bench.documents.name(&grid)).unwrap();
        let found = histogram_tiles(&bytes_of(&bench, &name));
        assert!(tiles.contains(&found), "{found} tiles instead of {tiles:?}");
        let again = bench.documents.seal(&grid, Stage::Over, &|_| true).unwrap();
        assert_eq!(again, None, "a document that is left open is not folded at every call");
        // Later folds write the same documents, from rows and from tiles.
        let late = HistogramCell::single(9, histogram(2, 1, 1.0), histogram(2, 1, 1.0));
        for (series, _, cell) in &mut histograms[..2] {
            let late_cell = vec![(*series, NOON.0, late.clone())];
            bench.merge_all(&grid, mark(6, grid.end.0), &vec![], &late_cell).unwrap();
            cell.merge(&late);
        }
        check(&bench, &histograms);
        for _ in 0..2 {
            bench.reopen();
            let _folded = bench.documents.seal(&grid, Stage::Over, &|_| true).unwrap();
            check(&bench, &histograms);
        }
    }
}
