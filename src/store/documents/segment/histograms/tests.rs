//! Tests of blocks of histograms: all cells are restored, and reading arbitrary bytes causes no
//! panic.

use std::{fmt::Write, ops::ControlFlow, sync::Arc};

use proptest::{prelude::*, strategy::ValueTree, test_runner::TestRunner};

use super::super::{
    bits::PADDING,
    buffers::Buffers,
    cursor::Misfit,
    file::TileId,
    tests::SharedSegment,
    tile::{HISTOGRAM_BYTES_MAX, HISTOGRAMS, TileHead, TileWriter},
    writer::SegmentWriter,
};
use super::{HISTOGRAM_SLOTS_MAX, tile::AddOutcome};
use crate::{
    model::{
        Cell, Histogram, HistogramCell, ResetHint, UnixMillis,
        histogram::{BUCKETS_MAX, Bucket, CUSTOM_BOUNDS, ZERO_THRESHOLD},
    },
    store::{
        file::{folder::Folder, medium::Medium},
        histograms::cell_bytes::put_cell,
    },
};

const WIDTH_MS: i64 = 60_000;
const TILE: u64 = 5 << 32 | HISTOGRAMS as u64 | 3;

type Cells = Vec<(u16, HistogramCell)>;

fn seal(series: &[(usize, Cells)], slots: usize) -> (usize, Vec<u8>) {
    let mut writer = TileWriter::default();
    for (lane, cells) in series {
        let added = writer.add_histograms(TILE, *lane, cells, HISTOGRAM_BYTES_MAX);
        assert_eq!(added, AddOutcome::Added, "lane {lane}");
    }
    let mut out = Vec::new();
    let head = writer.finish(TILE, slots, &mut out);
    out.resize(out.len() + PADDING, 0);
    let (span, mut buffers) = ((slots, WIDTH_MS), Buffers::default());
    assert!(writer.head_reads_back(&out, head, TILE, span, &mut buffers));
    (head, out)
}

fn unseal(
    (head, bytes): &(usize, Vec<u8>),
    lane: usize,
    slots: usize,
    wanted: std::ops::Range<usize>,
) -> Result<Cells, Misfit> {
    let mut buffers = Buffers::default();
    let read = TileHead::read(bytes, *head, TILE, (slots, WIDTH_MS), &mut buffers)?;
    let Some((at, length)) = read.block(lane) else { return Ok(Cells::new()) };
    let (block, mut cells) = (&bytes[head + at..head + at + length + PADDING], Cells::new());
    let mut visit = |slot: usize, cell| {
        cells.push((slot as u16, cell));
        ControlFlow::Continue(())
    };
    let outcome = read.histograms(lane, block, &wanted, &mut buffers, &mut visit)?;
    assert!(outcome.is_continue());
    Ok(cells)
}

/// Returns the bytes of cells. NaN does not equal NaN in buckets.
fn bytes(cells: &Cells) -> Vec<(u16, Vec<u8>)> {
    let bytes = |(slot, cell): &(u16, HistogramCell)| {
        let mut bytes = Vec::new();
        put_cell(cell, &mut bytes);
        (*slot, bytes)
    };
    cells.iter().map(bytes).collect()
}

fn count() -> impl Strategy<Value = f64> {
    prop_oneof![
        12 => (1..200_u32).prop_map(f64::from),
        2 => (1..9_007_199_254_740_992_u64).prop_map(|count| count as f64),
        1 => prop::sample::select(vec![0.25, 1.0 / 3.0, 1e300, f64::NAN, f64::INFINITY, -7.0]),
    ]
}

fn sum() -> impl Strategy<Value = f64> {
    prop_oneof![
        6 => (-5000..5000_i32).prop_map(|number| f64::from(number) / 100.0),
        2 => any::<u64>().prop_map(f64::from_bits),
        1 => Just(Histogram::stale().sum),
        1 => prop::sample::select(vec![0.0, -0.0, f64::NAN, f64::INFINITY, f64::MIN_POSITIVE]),
    ]
}

fn hint() -> impl Strategy<Value = ResetHint> {
    use ResetHint::{Gauge, NotReset, Reset, Unknown};
    prop_oneof![4 => Just(Unknown), 1 => Just(Reset), 1 => Just(NotReset), 1 => Just(Gauge)]
}

fn form() -> impl Strategy<Value = Histogram> {
    let threshold = prop::sample::select(vec![ZERO_THRESHOLD, 0.0, 0.001]);
    let exponential = (-4..=8_i8, threshold).prop_map(|(schema, zero_threshold)| Histogram {
        zero_threshold,
        ..Histogram::empty(schema)
    });
    let bounds = prop::collection::btree_set(-50..50_i32, 0..6).prop_map(|bounds| {
        let custom_bounds: Arc<[f64]> = bounds.into_iter().map(f64::from).collect();
        Histogram { custom_bounds, ..Histogram::empty(CUSTOM_BOUNDS) }
    });
    prop_oneof![3 => exponential, 1 => bounds]
}

fn buckets() -> impl Strategy<Value = Vec<Bucket>> {
    let index = prop_oneof![8 => -9..9_i32, 1 => any::<i32>()];
    prop::collection::btree_map(index, count(), 0..6).prop_map(|buckets| {
        buckets.into_iter().map(|(index, count)| Bucket { index, count }).collect()
    })
}

/// A histogram of one of a few forms, so that forms are shared and change.
fn histogram(forms: Vec<Histogram>) -> impl Strategy<Value = Histogram> {
    let own = (prop::sample::select(forms), buckets(), buckets());
    (own, count(), any::<bool>(), sum(), hint()).prop_map(
        |((form, positive, negative), zero, odd, sum, hint)| {
            let negative = if form.is_custom() { Vec::new() } else { negative };
            let zero_count = if form.is_custom() { 0.0 } else { zero };
            let buckets = positive.iter().chain(&negative).map(|bucket| bucket.count);
            let count = buckets.sum::<f64>() + zero_count + f64::from(u8::from(odd));
            Histogram { positive, negative, zero_count, count, sum, hint, ..form }
        },
    )
}

fn cell(forms: &[Histogram]) -> impl Strategy<Value = HistogramCell> + use<> {
    let own = || histogram(forms.to_vec());
    (0..9_u32, 0..30_000_u32, 0..30_000_u32, [own(), own(), own()]).prop_map(
        |(n, first_at, passed, [first, last, total])| match n {
            0 => HistogramCell::correction(total),
            1 => HistogramCell::single(first_at, last, total),
            _ => HistogramCell { n, first_at, last_at: first_at + passed, total, first, last },
        },
    )
}

fn cells() -> impl Strategy<Value = Cells> {
    prop::collection::vec(form(), 1..4).prop_flat_map(|forms| {
        prop::collection::btree_map(0..HISTOGRAM_SLOTS_MAX as u16, cell(&forms), 1..20)
            .prop_map(|cells| cells.into_iter().collect())
    })
}

proptest! {
    #[test]
    fn cells_of_any_histograms_are_restored(
        series in prop::collection::btree_map(0..64_usize, cells(), 1..4),
        from in 0..HISTOGRAM_SLOTS_MAX, to in 0..HISTOGRAM_SLOTS_MAX
    ) {
        let series: Vec<_> = series.into_iter().collect();
        let sealed = seal(&series, HISTOGRAM_SLOTS_MAX);
        for (lane, cells) in &series {
            let all = unseal(&sealed, *lane, HISTOGRAM_SLOTS_MAX, 0..HISTOGRAM_SLOTS_MAX);
            prop_assert_eq!(bytes(&all.unwrap()), bytes(cells));
            let part = unseal(&sealed, *lane, HISTOGRAM_SLOTS_MAX, from..to).unwrap();
            let is_in = |(slot, _): &&(u16, HistogramCell)| (from..to).contains(&usize::from(*slot));
            let expected: Cells = cells.iter().filter(is_in).cloned().collect();
            prop_assert_eq!(bytes(&part), bytes(&expected));
        }
    }

    #[test]
    fn a_changed_byte_is_found(cells in cells(), at: usize, flip in 1..=255_u8) {
        let (head, mut bytes) = seal(&[(7, cells.clone())], HISTOGRAM_SLOTS_MAX);
        let at = at % (bytes.len() - PADDING);
        bytes[at] ^= flip;
        let all = 0..HISTOGRAM_SLOTS_MAX;
        prop_assert!(unseal(&(head, bytes), 7, HISTOGRAM_SLOTS_MAX, all).is_err());
    }
}

/// Readings of a counter whose buckets get some observations in each slot.
fn growing(slots: usize, per_slot: u32, samples: u32) -> Cells {
    let (mut reading, mut random) = (Histogram::sketch(), fastrand::Rng::with_seed(7));
    let mut cells = Cells::new();
    for slot in 0..slots {
        let mut whole: Option<HistogramCell> = None;
        for sample in 0..samples {
            let before = reading.clone();
            for _ in 0..per_slot {
                let draws = (0..12).map(|_| random.f64()).sum::<f64>() - 6.0;
                reading.observe((draws * 0.2 - 3.0).exp(), 1.0);
            }
            let mut total = reading.clone();
            total.subtract(&before).unwrap();
            let own = HistogramCell::single(sample * 15_000, reading.clone(), total);
            match &mut whole {
                Some(whole) => whole.merge(&own),
                None => whole = Some(own),
            }
        }
        cells.extend(whole.map(|cell| (slot as u16, cell)));
    }
    cells
}

#[test]
fn readings_of_a_counter_take_few_bytes() {
    let cells = growing(240, 100, 4);
    let (head, bytes) = seal(&[(7, cells.clone())], 240);
    let sealed = bytes.len() - PADDING - head;
    let mut open = Vec::new();
    for (_, cell) in &cells {
        put_cell(cell, &mut open);
    }
    let buckets: usize = cells.iter().map(|(_, cell)| cell.last.positive.len()).sum();
    // Two readings per slot, each with one more observation in some buckets.
    assert!(sealed * 10 < open.len() && sealed < buckets, "{sealed} {} {buckets}", open.len());
}

#[test]
fn the_largest_cells_are_restored_in_several_chunks() {
    let side = || (0..=BUCKETS_MAX as i32).map(|index| Bucket { index, count: 1.5 }).collect();
    let largest =
        |schema| Histogram { positive: side(), negative: side(), ..Histogram::empty(schema) };
    let cell = |slot: u16| {
        let [first, last, total] = [0, 1, 2].map(largest);
        (slot, HistogramCell { n: 3, first_at: 1, last_at: 2, total, first, last })
    };
    let cells: Cells = (0..20).map(cell).collect();
    let sealed = seal(&[(0, cells.clone())], 20);
    assert_eq!(unseal(&sealed, 0, 20, 19..20).unwrap(), cells[19..]);
    assert_eq!(unseal(&sealed, 0, 20, 0..20).unwrap(), cells);
}

/// Returns a histogram as `tests/sealed_reader.py` prints it.
fn shown(histogram: &Histogram) -> String {
    let Histogram { schema, zero_threshold, zero_count, count, sum, .. } = histogram;
    let bits = [zero_threshold, zero_count, count, sum]
        .map(|number| format!("{:016x}", number.to_bits()))
        .join(" ");
    let bounds = histogram.custom_bounds.iter().map(|bound| format!("{:016x}", bound.to_bits()));
    let sides = [("+", &histogram.positive), ("-", &histogram.negative)].into_iter();
    let buckets = sides.flat_map(|(sign, side)| {
        let shown = move |Bucket { index, count }: &Bucket| {
            format!("{sign}{index}:{:016x}", count.to_bits())
        };
        side.iter().map(shown)
    });
    let [bounds, buckets] = [bounds.collect::<Vec<_>>(), buckets.collect()].map(|of| of.join(","));
    format!("{schema} {} {bits} [{bounds}] [{buckets}]", histogram.hint as u8)
}

#[test]
fn another_reader_finds_the_same_histograms() {
    let (mut segment, start) = (SharedSegment::new(), SharedSegment::START);
    let (mut runner, mut expected) = (TestRunner::deterministic(), String::new());
    for row in 0..60 {
        let id = TileId::of_histograms(3600, row);
        let mut own = cells().new_tree(&mut runner).unwrap().current();
        if row == 0 {
            own = growing(60, 20, 3);
        }
        let mut tile = TileWriter::default();
        let added = tile.add_histograms(id.key(), 5, &own, HISTOGRAM_BYTES_MAX);
        assert_eq!(added, AddOutcome::Added);
        for (slot, HistogramCell { n, first_at, last_at, total, first, last }) in &own {
            let at = start.0 + 3_600_000 + i64::from(*slot) * WIDTH_MS;
            write!(expected, "{} {at} {n} {first_at} {last_at} ", row * 64 + 5).unwrap();
            let parts = if *n == 0 { vec![total] } else { vec![first, last, total] };
            let parts: Vec<_> = parts.into_iter().map(shown).collect();
            writeln!(expected, "{}", parts.join(" | ")).unwrap();
        }
        assert!(segment.writer.add(id, HISTOGRAM_SLOTS_MAX, &mut tile).unwrap());
    }
    segment.check(&expected);
}

proptest! {
    #[test]
    fn a_tile_of_histograms_is_found_by_each_of_its_slots_and_by_no_other_time_or_row(
        tiles in prop::collection::btree_set((0..3_u32, 0..9_u32, any::<bool>()), 0..20),
    ) {
        let dir = tempfile::tempdir().unwrap();
        let medium: Arc<dyn Medium> = Arc::new(Folder::new(dir.path()).unwrap());
        let (start, name) = (UnixMillis(1_795_262_400_000), "one.1.sealed".to_owned());
        let mut writer = SegmentWriter::create(&medium, name, (start, WIDTH_MS), None).unwrap();
        let mut ids: Vec<_> = tiles.iter().map(|(hour, row, is_of_histograms)| {
            let seconds = hour * 3600;
            let plain = TileId { seconds, row: *row };
            if *is_of_histograms { TileId::of_histograms(seconds, *row) } else { plain }
        }).collect();
        ids.sort();
        for id in &ids {
            let mut tile = TileWriter::default();
            let own = Histogram::sketch();
            if id.row & HISTOGRAMS == 0 {
                tile.add(id.key(), 0, WIDTH_MS, [(3, &Cell::single(0, 1.0))].into_iter());
            } else {
                let own = [(3, HistogramCell::single(0, own.clone(), own))];
                tile.add_histograms(id.key(), 0, &own, HISTOGRAM_BYTES_MAX);
            }
            prop_assert!(writer.add(*id, 30, &mut tile).unwrap());
        }
        let segment = writer.finish().unwrap();
        for (hour, row) in (0..4).flat_map(|hour| (0..10).map(move |row| (hour, row))) {
            for (is_of_histograms, id) in [
                (false, TileId { seconds: hour * 3600, row }),
                (true, TileId::of_histograms(hour * 3600, row)),
            ] {
                let found = ids.iter().position(|known| *known == id);
                let found = found.map(|position| (position, hour * 3600, 30));
                for (seconds, expected) in [(0, found), (1740, found), (1800, None)] {
                    let at = hour * 3600 + seconds;
                    let find = if is_of_histograms { segment.find_histograms(at, row) } else { segment.find(at, row) };
                    prop_assert_eq!(find, expected);
                }
            }
        }
    }
}
