//! Tests of reads with the cache of decoded columns, compared with reads of the file.

use std::{fs::OpenOptions, io::Write, path::Path, sync::Arc};

use proptest::{prelude::*, sample::select};

use super::{Series, WIDTH_MS, series};
use crate::{
    model::{Cell, UnixMillis},
    store::{
        documents::segment::{
            Columns, Scratch,
            cache::SealedCache,
            file::{Segment, TileId},
            tile::TileWriter,
            writer::SegmentWriter,
        },
        error::StoreError,
        file::{folder::Folder, medium::Medium},
    },
};

const NAME: &str = "one.1.sealed";
const SLOTS: usize = 300;

fn segment_of(folder: &Path, series: &[Series]) -> Segment {
    let medium: Arc<dyn Medium> = Arc::new(Folder::new(folder).unwrap());
    let partition = (UnixMillis(1_795_262_400_000), WIDTH_MS);
    let mut writer = SegmentWriter::create(&medium, NAME.to_owned(), partition, None).unwrap();
    let (id, mut tile) = (TileId { seconds: 0, row: 7 }, TileWriter::default());
    for (lane, cells) in series {
        let cells = cells.iter().map(|(slot, cell)| (*slot, cell));
        tile.add(id.key(), *lane, WIDTH_MS, cells);
    }
    assert!(tile.is_empty() || writer.add(id, SLOTS, &mut tile).unwrap());
    writer.finish().unwrap()
}

/// Reads cells, and returns the bits that a reader may rely on.
fn read(
    segment: &Segment,
    (lane, from, length, columns): (usize, usize, usize, Columns),
    scratch: &mut Scratch,
) -> Result<Vec<(usize, [u64; 9])>, StoreError> {
    let Some((tile, ..)) = segment.find(0, 7) else { return Ok(Vec::new()) };
    let (head, mut found) = (segment.head(tile, scratch)?, Vec::new());
    let slots = from..(from + length).min(SLOTS);
    segment.cells((tile, &head), lane, &slots, columns, scratch, |slot, cell| {
        // Readers split a cell of two samples, which needs all columns of values.
        let columns = if cell.n == 2 { columns.and(Columns::VALUES) } else { columns };
        let Cell { sum, min, max, first, last, m2, .. } = cell;
        let values = [
            (Columns::SUM, sum),
            (Columns::MIN, min),
            (Columns::MAX, max),
            (Columns::ENDS, first),
            (Columns::ENDS, last),
            (Columns::MOMENT, m2),
        ];
        let wanted =
            values.map(|(column, value)| if columns.has_any(column) { value.to_bits() } else { 0 });
        let [sum, min, max, first, last, m2] = wanted;
        let times = [cell.n, cell.first_at, cell.last_at].map(u64::from);
        let [n, first_at, last_at] = times;
        found.push((slot, [n, first_at, last_at, sum, min, max, first, last, m2]));
    })?;
    Ok(found)
}

fn columns() -> impl Strategy<Value = Columns> {
    let some = [Columns::NONE, Columns::SUM, Columns::MIN, Columns::MAX, Columns::ENDS];
    select([&some[..], &[Columns::MOMENT, Columns::VALUES, Columns::ALL]].concat())
}

proptest! {
    #[test]
    fn reads_with_the_cache_return_the_cells_of_the_file(
        series in series(),
        reads in prop::collection::vec((0..4_usize, 0..SLOTS, 0..SLOTS, columns()), 1..30),
        bytes_max in select(vec![0_usize, 20_000, 1 << 20]),
    ) {
        let folder = tempfile::tempdir().unwrap();
        let segment = segment_of(folder.path(), &series);
        let cache = Arc::new(SealedCache::new());
        cache.set_bytes_max(bytes_max);
        let mut cached = Scratch::with_cache(cache.clone());
        for (index, from, length, columns) in reads {
            let request = (series[index % series.len()].0, from, length, columns);
            let expected = read(&segment, request, &mut Scratch::default()).unwrap();
            for _ in 0..2 {
                prop_assert_eq!(&read(&segment, request, &mut cached).unwrap(), &expected);
                prop_assert!(cache.bytes() <= bytes_max, "{}", cache.bytes());
            }
        }
    }
}

/// Returns 60 cells of a gauge.
fn hour(value: f64) -> Vec<(u16, Cell)> {
    (0..60).map(|slot| (slot, Cell::single(slot.into(), value))).collect()
}

/// Damages a tile, whose head is in the cache. Forgets the bytes that were read from it.
fn damage(folder: &Path, segment: &Segment, scratch: &mut Scratch) {
    *scratch = Scratch { cache: scratch.cache.clone(), ..Scratch::default() };
    let mut file = OpenOptions::new().write(true).open(folder.join(NAME)).unwrap();
    file.write_all(&vec![0xa5; segment.tile_bytes(0) as usize]).unwrap();
}

/// Reads some slots with the cache, and returns the bytes that the cache has grown by.
fn growth(
    segment: &Segment,
    request: (usize, usize, usize, Columns),
    scratch: &mut Scratch,
) -> isize {
    let bytes = |scratch: &Scratch| scratch.cache.as_ref().unwrap().bytes() as isize;
    let before = bytes(scratch);
    read(segment, request, scratch).unwrap();
    bytes(scratch) - before
}

#[test]
fn the_cache_keeps_wanted_columns_from_the_second_read_on() {
    // The values of a counter depend on each other, so decoding one column yields others.
    let counter = |slot: u16| {
        let (first, increase) = (f64::from(slot) * 60.0, 60.0);
        let mut cell = Cell::single(5, first);
        (cell.sum, cell.min, cell.max) = (increase, 1.0, 1.0);
        (slot, cell)
    };
    let folder = tempfile::tempdir().unwrap();
    let segment = segment_of(folder.path(), &[(3, (0..60).map(counter).collect()), (4, hour(1.0))]);
    let mut cached = Scratch::with_cache(Arc::new(SealedCache::new()));
    let _head = segment.head(0, &mut cached).unwrap();
    let mut grown = |lane, columns| growth(&segment, (lane, 0, 60, columns), &mut cached);
    // Scans in the background read all columns.
    assert_eq!([0; 3].map(|_| grown(3, Columns::ALL)), [0; 3]);
    assert_eq!(grown(3, Columns::SUM), 0);
    let entry = grown(3, Columns::SUM) - 60 * 8;
    assert!((1..=200).contains(&entry), "{entry} bytes beside the values");
    assert_eq!(grown(3, Columns::SUM), 0, "the third read finds the column");
    assert_eq!(grown(3, Columns::ENDS), 2 * 60 * 8);
    assert_eq!(grown(3, Columns::SUM), 0, "both columns are kept");
    assert_eq!([0; 2].map(|_| grown(4, Columns::MIN)), [0, entry + 60 * 8]);
}

#[test]
fn a_window_that_moves_is_read_from_the_cache() {
    let folder = tempfile::tempdir().unwrap();
    let segment = segment_of(folder.path(), &[(3, hour(1.5))]);
    let mut cached = Scratch::with_cache(Arc::new(SealedCache::new()));
    let _head = segment.head(0, &mut cached).unwrap();
    let mut grown = |from, length| growth(&segment, (3, from, length, Columns::SUM), &mut cached);
    assert_eq!(grown(0, 10), 0, "the first read is not kept");
    assert!(grown(0, 10) > 10 * 8);
    assert_eq!(grown(30, 10), 0, "cells far from the known ones replace them");
    assert_eq!(grown(31, 10), 20 * 8, "the window moves, so the rest of the tile is decoded");
    assert_eq!(grown(29, 10), 30 * 8, "the window moves back");
    damage(folder.path(), &segment, &mut cached);
    for from in 0..50 {
        assert_eq!(read(&segment, (3, from, 10, Columns::SUM), &mut cached).unwrap().len(), 10);
    }
}

#[test]
fn only_verified_blocks_are_in_the_cache() {
    let folder = tempfile::tempdir().unwrap();
    let segment = segment_of(folder.path(), &[(3, hour(1.5)), (4, hour(2.5))]);
    let mut cached = Scratch::with_cache(Arc::new(SealedCache::new()));
    let read_slots = |lane, length, scratch: &mut Scratch| {
        read(&segment, (lane, 0, length, Columns::ENDS), scratch)
    };
    let before = [0; 2].map(|_| read_slots(3, 60, &mut cached).unwrap())[1].clone();
    assert_eq!(before.len(), 60);
    damage(folder.path(), &segment, &mut cached);
    assert_eq!(read_slots(3, 20, &mut cached).unwrap(), before[..20]);
    for _ in 0..2 {
        assert!(read_slots(4, 60, &mut cached).unwrap_err().is_damage());
    }
    assert!(read_slots(3, 20, &mut Scratch::default()).unwrap_err().is_damage());
}
