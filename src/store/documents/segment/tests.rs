//! Tests of segments: all cells are restored bit for bit, except for rounding errors of their
//! moments, and reading arbitrary bytes causes no panic.

mod cached;

use std::{fmt::Write, process::Command, sync::Arc};

use proptest::{prelude::*, strategy::ValueTree, test_runner::TestRunner};

use super::{
    bits::PADDING,
    buffers::Buffers,
    file::TileId,
    tile::{LANES, TileHead, TileWriter},
    times::Times,
    values::{self, Columns},
    writer::SegmentWriter,
};
use crate::{
    model::{Cell, UnixMillis},
    store::{
        encoding::moment,
        file::{folder::Folder, medium::Medium},
    },
};

const WIDTH_MS: i64 = 60_000;
const TILE: u64 = 77;

/// A series: its lane in the tile, and its cells with their slots.
type Series = (usize, Vec<(u16, Cell)>);

fn bits(cell: &Cell) -> ([u32; 3], [u64; 5]) {
    let values = [cell.sum, cell.min, cell.max, cell.first, cell.last];
    ([cell.n, cell.first_at, cell.last_at], values.map(f64::to_bits))
}

fn seal(series: &[Series], slots: usize) -> (usize, Vec<u8>) {
    let mut writer = TileWriter::default();
    for (lane, cells) in series {
        writer.add(TILE, *lane, WIDTH_MS, cells.iter().map(|(slot, cell)| (*slot, cell)));
    }
    let mut out = Vec::new();
    let head = writer.finish(TILE, slots, &mut out);
    out.resize(out.len() + PADDING, 0);
    (head, out)
}

fn unseal(bytes: &[u8], head: usize, slots: usize) -> Option<Vec<Series>> {
    let mut buffers = Buffers::default();
    let head_of = TileHead::read(bytes, head, TILE, (slots, WIDTH_MS), &mut buffers).ok()?;
    let mut all = Vec::new();
    for lane in head_of.lanes() {
        let (at, length) = head_of.block(lane)?;
        let block = bytes.get(head + at..head + at + length + PADDING)?;
        let mut cells = Vec::new();
        let visit = |slot: usize, cell| cells.push((slot as u16, cell));
        head_of.cells(lane, block, &(0..slots), Columns::ALL, &mut buffers, visit).ok()?;
        all.push((lane, cells));
    }
    Some(all)
}

fn assert_same(found: &[Series], series: &[Series]) {
    let filled = |series: &[Series]| -> Vec<_> {
        let filled = series.iter().map(|(lane, cells)| {
            let cells = cells.iter().filter(|(_, cell)| !cell.is_empty());
            (*lane, cells.map(|(slot, cell)| (*slot, bits(cell))).collect::<Vec<_>>())
        });
        filled.filter(|(_, cells)| !cells.is_empty()).collect()
    };
    assert_eq!(filled(found), filled(series));
    let moments = |series: &[Series]| -> Vec<_> {
        let filled = series.iter().map(|(lane, cells)| {
            let cells = cells.iter().filter(|(_, cell)| !cell.is_empty());
            (*lane, cells.map(|(_, cell)| cell.m2).collect::<Vec<_>>())
        });
        filled.filter(|(_, cells)| !cells.is_empty()).collect()
    };
    for ((lane, found), (_, expected)) in moments(found).into_iter().zip(moments(series)) {
        assert!(is_same_column(&found, &expected), "{lane}: {found:?} {expected:?}");
    }
}

/// Returns true when the moments are equal, or those of a counter were left out.
fn is_same_column(found: &[f64], expected: &[f64]) -> bool {
    found.iter().all(|m2| *m2 == 0.0)
        || found.iter().zip(expected).all(|(m2, expected)| moment::is_same(*m2, *expected))
}

/// A test of any cells cannot tell a gauge, whose moments must return, from a counter.
#[test]
fn the_moments_of_a_gauge_are_restored() {
    // Moments of whole numbers, of decimals, and of numbers whose moments are stored as ranks.
    for unit in [1.0, 0.01, 1.0 / 3.0] {
        let cell = |slot: u16| {
            let mut cell = Cell::EMPTY;
            for (at, value) in (0..).zip([1.0, 2.0, f64::from(slot) + 4.0]) {
                cell.merge(&Cell::single(at, value * unit));
            }
            (slot, cell)
        };
        let series = [(3, (0..60).map(cell).collect::<Vec<_>>())];
        let (head, bytes) = seal(&series, 60);
        let found = unseal(&bytes, head, 60).unwrap();
        assert_same(&found, &series);
        for ((_, found), (_, expected)) in found[0].1.iter().zip(&series[0].1) {
            assert!(found.m2 > 0.0 && moment::is_same(found.m2, expected.m2), "{found:?}");
        }
    }
}

fn value() -> impl Strategy<Value = f64> {
    prop_oneof![
        4 => (-20..20_i32).prop_map(f64::from),
        4 => (-3000..3000_i32).prop_map(|number| f64::from(number) / 100.0),
        2 => any::<u64>().prop_map(f64::from_bits),
        1 => prop::sample::select(vec![
            0.0, -0.0, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, f64::MAX, f64::MIN_POSITIVE, 5e-324,
            9_007_199_254_740_993.0, -9_007_199_254_740_992.0, 1e300,
        ]),
    ]
}

fn any_cell() -> impl Strategy<Value = Cell> {
    let number = prop_oneof![0..4_u32, Just(1), any::<u32>()];
    (number, any::<u32>(), any::<u32>(), [value(), value(), value(), value(), value()]).prop_map(
        |(n, first_at, last_at, [sum, min, max, first, last])| Cell {
            n,
            first_at,
            last_at,
            sum,
            min,
            max,
            first,
            last,
            m2: 0.0,
        },
    )
}

/// Returns cells that follow from samples of a gauge or a counter, which may have unusual values.
fn sampled_cells() -> impl Strategy<Value = Vec<(u16, Cell)>> {
    let step = (1..4_usize, prop::collection::vec((value(), 0..15_000_u32), 1..4));
    (any::<bool>(), prop::collection::vec(step, 1..90)).prop_map(|(is_counter, steps)| {
        let (mut slot, mut before) = (0_usize, None);
        let mut cells: Vec<(u16, Cell)> = Vec::new();
        for (skip, samples) in steps {
            let mut cell = Cell::EMPTY;
            for (index, (value, jitter)) in samples.into_iter().enumerate() {
                let offset = index as u32 * 15_000 + jitter;
                let at = slot as i64 * WIDTH_MS + i64::from(offset);
                let added = match before.replace((at, value)) {
                    _ if !is_counter => Cell::single(offset, value),
                    None => Cell::reading(offset, value, 0.0, None),
                    Some((last_at, last)) => {
                        let increase = if value < last { value } else { value - last };
                        let rate = increase / ((at - last_at) as f64 / 1000.0);
                        Cell::reading(offset, value, increase, Some(rate))
                    }
                };
                cell.merge(&added);
            }
            cells.push((slot as u16, cell));
            slot += skip;
        }
        cells
    })
}

fn any_cells() -> impl Strategy<Value = Vec<(u16, Cell)>> {
    prop::collection::vec(prop::option::weighted(0.7, any_cell()), 1..90).prop_map(|cells| {
        let slots = (0_u16..).zip(cells);
        slots.filter_map(|(slot, cell)| Some((slot, cell?))).collect()
    })
}

fn series() -> impl Strategy<Value = Vec<Series>> {
    let cells = prop_oneof![any_cells(), sampled_cells()];
    prop::collection::btree_map(0..LANES, cells, 1..5)
        .prop_map(|series| series.into_iter().collect())
}

/// A segment that the reader in Python, which knows FORMAT.md alone, reads, too.
pub(super) struct SharedSegment {
    dir: tempfile::TempDir,
    pub(super) writer: SegmentWriter,
}

impl SharedSegment {
    pub(super) const START: UnixMillis = UnixMillis(1_795_262_400_000);
    const NAME: &str = "one.1.sealed";

    pub(super) fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let medium: Arc<dyn Medium> = Arc::new(Folder::new(dir.path()).unwrap());
        let partition = (Self::START, WIDTH_MS);
        let writer = SegmentWriter::create(&medium, Self::NAME.to_owned(), partition, None);
        Self { dir, writer: writer.unwrap() }
    }

    /// Finishes the segment, and compares what the other reader finds.
    pub(super) fn check(self, expected: &str) {
        drop(self.writer.finish().unwrap());
        let script = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/sealed_reader.py");
        let file = self.dir.path().join(Self::NAME);
        let output = Command::new("python3").arg(script).arg(file).output().unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        assert_eq!(String::from_utf8(output.stdout).unwrap(), expected, "{errors}");
    }
}

#[test]
fn another_reader_finds_the_same_cells() {
    let (mut segment, start) = (SharedSegment::new(), SharedSegment::START);
    let (mut runner, mut expected) = (TestRunner::deterministic(), String::new());
    for row in 0..100 {
        let id = TileId { seconds: 3600, row };
        let mut series = series().new_tree(&mut runner).unwrap().current();
        if row == 0 {
            series = vec![(5, cpu_seconds(288))];
        }
        let mut tile = TileWriter::default();
        for (lane, cells) in &series {
            let cells = cells.iter().map(|(slot, cell)| (*slot, cell));
            tile.add(id.key(), *lane, WIDTH_MS, cells);
        }
        let (head, bytes) = seal(&series, 300);
        let read = unseal(&bytes, head, 300).unwrap();
        assert_same(&read, &series);
        for (lane, cells) in &read {
            for (slot, cell) in cells {
                let at = start.0 + 3_600_000 + i64::from(*slot) * WIDTH_MS;
                let ([n, first_at, last_at], values) = bits(cell);
                write!(expected, "{} {at} {n} {first_at} {last_at}", row * 64 + *lane as u32)
                    .unwrap();
                for value in values.into_iter().chain([cell.m2.to_bits()]) {
                    write!(expected, " {value:016x}").unwrap();
                }
                expected.push('\n');
            }
        }
        assert!(tile.is_empty() || segment.writer.add(id, 300, &mut tile).unwrap());
    }
    segment.check(&expected);
}

/// Returns slots of 5 minutes of a counter of CPU seconds, which is read every minute and has two
/// decimals.
fn cpu_seconds(slots: u16) -> Vec<(u16, Cell)> {
    let mut random = TestRunner::deterministic();
    let mut hundredths = 123_456_789_u32;
    let mut cells = Vec::new();
    for slot in 0..slots {
        let mut cell = Cell::EMPTY;
        for minute in 0..5 {
            let before = f64::from(hundredths) / 100.0;
            hundredths += (0..4000_u32).new_tree(&mut random).unwrap().current();
            let value = f64::from(hundredths) / 100.0;
            let increase = value - before;
            cell.merge(&Cell::reading(minute * 60_000, value, increase, Some(increase / 60.0)));
        }
        cells.push((slot, cell));
    }
    cells
}

#[test]
fn readings_with_decimals_take_less_than_ten_bytes_a_slot() {
    let series = [(5, cpu_seconds(288))];
    let (head, bytes) = seal(&series, 288);
    assert_same(&unseal(&bytes, head, 288).unwrap(), &series);
    let slot_bytes = (bytes.len() - head) as f64 / 288.0;
    assert!(slot_bytes < 10.0, "{slot_bytes} bytes a slot");
}

proptest! {
    #[test]
    fn a_tile_is_found_by_each_of_its_slots_and_by_no_other_time_or_row(
        tiles in prop::collection::btree_set((0..3_u32, 0..9_u32), 0..20),
        first in 0..3_u32,
    ) {
        let dir = tempfile::tempdir().unwrap();
        let medium: Arc<dyn Medium> = Arc::new(Folder::new(dir.path()).unwrap());
        let (start, name) = (UnixMillis(1_795_262_400_000), "one.1.sealed".to_owned());
        let mut writer = SegmentWriter::create(&medium, name, (start, WIDTH_MS), None).unwrap();
        // Each hour has half an hour of slots, and rows need not begin with 0.
        for (hour, row) in &tiles {
            let mut tile = TileWriter::default();
            let id = TileId { seconds: hour * 3600, row: first + row };
            tile.add(id.key(), 0, WIDTH_MS, [(3, &Cell::single(0, 1.0))].into_iter());
            prop_assert!(writer.add(id, 30, &mut tile).unwrap());
        }
        let segment = writer.finish().unwrap();
        for (hour, row) in (0..4).flat_map(|hour| (0..14).map(move |row| (hour, row))) {
            let position = tiles.iter().position(|known| (known.0, first + known.1) == (hour, row));
            let found = position.map(|position| (position, hour * 3600, 30));
            for (seconds, expected) in [(0, found), (1740, found), (1800, None), (3540, None)] {
                prop_assert_eq!(segment.find(hour * 3600 + seconds, row), expected);
            }
        }
    }

    #[test]
    fn all_cells_are_restored_bit_for_bit(series in series()) {
        let (head, bytes) = seal(&series, 300);
        let found = unseal(&bytes, head, 300).unwrap();
        assert_same(&found, &series);
    }

    #[test]
    fn reading_some_slots_and_columns_returns_the_same_values_as_reading_all(
        cells in prop_oneof![any_cells(), sampled_cells()],
        from in 0..300_usize,
        length in 0..300_usize,
    ) {
        let (head, bytes) = seal(&[(3, cells.clone())], 300);
        let mut buffers = Buffers::default();
        let head_of = TileHead::read(&bytes, head, TILE, (300, WIDTH_MS), &mut buffers).unwrap();
        prop_assume!(head_of.block(3).is_some());
        let range = from..(from + length).min(300);
        for wanted in [Columns::ALL, Columns::ENDS, Columns::SUM, Columns::MIN, Columns::MAX, Columns::MOMENT, Columns::NONE] {
            let mut found = Vec::new();
            let visit = |slot, cell: Cell| found.push((slot, cell));
            head_of.cells(3, &bytes[head..], &range, wanted, &mut buffers, visit)
                .unwrap();
            let expected = cells.iter().filter(|(slot, cell)| {
                !cell.is_empty() && range.contains(&usize::from(*slot))
            });
            let expected: Vec<_> = expected.collect();
            prop_assert_eq!(expected.len(), found.len());
            if wanted.has_any(Columns::MOMENT) {
                let moments: Vec<_> = expected.iter().map(|(_, cell)| cell.m2).collect();
                let found: Vec<_> = found.iter().map(|(_, cell)| cell.m2).collect();
                prop_assert!(is_same_column(&found, &moments), "{:?} {:?}", found, moments);
            }
            for ((slot, cell), (found_slot, found)) in expected.into_iter().zip(found) {
                prop_assert_eq!(usize::from(*slot), found_slot);
                let same = |has: Columns, value: fn(&Cell) -> f64| {
                    // Readers split a cell of two samples, which needs all columns.
                    !(wanted.has_any(has) || cell.n == 2) || value(cell).to_bits() == value(&found).to_bits()
                };
                prop_assert!(same(Columns::SUM, |cell| cell.sum), "{:?} {:?}", cell, found);
                prop_assert!(same(Columns::MIN, |cell| cell.min), "{:?} {:?}", cell, found);
                prop_assert!(same(Columns::MAX, |cell| cell.max), "{:?} {:?}", cell, found);
                prop_assert!(same(Columns::ENDS, |cell| cell.first));
                prop_assert!(same(Columns::ENDS, |cell| cell.last));
            }
        }
    }

    #[test]
    fn a_flipped_bit_is_detected(series in series(), at: prop::sample::Index, bit in 0..8_u8) {
        let (head, mut bytes) = seal(&series, 300);
        let length = bytes.len() - PADDING;
        bytes[at.index(length)] ^= 1 << bit;
        prop_assert!(unseal(&bytes, head, 300).is_none());
    }

    #[test]
    fn any_bytes_are_read_without_harm(
        mut bytes in prop::collection::vec(any::<u8>(), 0..400), slots in 1..300_usize,
    ) {
        let mut buffers = Buffers::default();
        let cells: Vec<_> = (0..300_u16).map(|slot| (slot, Cell::single(0, 1.0))).collect();
        let times = Times::of(cells[..slots].iter().map(|(slot, cell)| (*slot, cell)));
        bytes.resize(bytes.len() + PADDING, 0);
        if let Ok(found) = values::read(&bytes, &times, WIDTH_MS, 0..300, Columns::ALL, &mut buffers) {
            prop_assert!(found.sum.len() <= slots && found.min.len() <= slots);
        }
        let length = bytes.len() - PADDING;
        if let Ok(found) = TileHead::parse(&bytes, length, TILE, (slots, WIDTH_MS), &mut buffers) {
            prop_assert!(found.lanes().count() <= LANES);
        }
    }
}
