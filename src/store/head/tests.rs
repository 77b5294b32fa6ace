//! Tests of rows: cells are restored bit for bit, and damaged bytes are refused.

use proptest::prelude::*;

use super::{
    fuzzing::{bits, read},
    row::{HeadRow, HeadRowWriter},
};
use crate::{
    model::{Cell, Kind, SeriesState, UnixMillis},
    store::encoding::{
        lanes::{RowCells, SERIES_PER_ROW},
        moment,
    },
};

const KEY: u64 = 77;
const START: i64 = 1_795_264_440_000;

fn write(cells: &RowCells) -> Vec<u8> {
    HeadRowWriter::default().write(cells, KEY).map(<[u8]>::to_vec).unwrap()
}

fn value() -> impl Strategy<Value = f64> {
    let special = [0.0, -0.0, f64::NAN, f64::INFINITY, f64::NEG_INFINITY, f64::MAX, 5e-324, 1e15];
    prop_oneof![
        4 => (0..200_000_i64).prop_map(|number| number as f64),
        4 => (-9000..9000_i64, 1..4_i32)
            .prop_map(|(number, digits)| number as f64 / 10_f64.powi(digits)),
        1 => any::<f32>().prop_map(f64::from),
        1 => any::<u64>().prop_map(f64::from_bits),
        1 => prop::sample::select(special.to_vec()),
    ]
}

/// Generates the cell of some samples of a random kind.
fn sampled() -> impl Strategy<Value = Cell> {
    let steps = prop::collection::vec((value(), 900..1100_i64), 1..6);
    (prop::sample::select(Kind::OF_NUMBERS.to_vec()), value(), steps, any::<bool>()).prop_map(
        |(kind, base, steps, is_decimal)| {
            let mut state = SeriesState::new(kind);
            let (mut at, mut total, mut cell) = (START, base.abs(), Cell::EMPTY);
            for (step, passed) in steps {
                at += passed;
                total += step.abs();
                if is_decimal {
                    total = (total * 100.0).round() / 100.0;
                }
                let value = if kind == Kind::Counter { total } else { step };
                let observed = state.observe(UnixMillis(at), value, 0, UnixMillis(START));
                cell.merge(&observed.cell);
            }
            cell
        },
    )
}

/// Generates cells of samples, corrections, and cells that no samples produce.
fn cell() -> impl Strategy<Value = Cell> {
    let parts = (any::<[u32; 3]>(), [value(), value(), value(), value(), value()]);
    let any = parts.prop_map(|([n, first_at, last_at], [sum, min, max, first, last])| Cell {
        n,
        first_at,
        last_at,
        sum,
        min,
        max,
        first,
        last,
        m2: 0.0,
    });
    let correction = (value(), prop::option::of(value()));
    prop_oneof![
        6 => sampled(),
        1 => any,
        1 => correction.prop_map(|(sum, rate)| Cell::correction(sum, rate)),
    ]
}

fn row(lanes: impl IntoIterator<Item = (usize, Cell)>) -> RowCells {
    let mut cells = [Cell::EMPTY; SERIES_PER_ROW];
    lanes.into_iter().for_each(|(lane, cell)| cells[lane] = cell);
    cells
}

proptest! {
    #[test]
    fn a_row_is_read_as_it_was_written(
        lanes in prop::collection::btree_map(0..SERIES_PER_ROW, cell(), 1..SERIES_PER_ROW)
    ) {
        let cells = row(lanes);
        prop_assume!(cells.iter().any(|cell| !cell.is_empty()));
        let bytes = write(&cells);
        prop_assert!(HeadRow::parse(&bytes, KEY + 1).is_none());
        let row = HeadRow::parse(&bytes, KEY).unwrap();
        let mut merged = [Cell::EMPTY; SERIES_PER_ROW];
        prop_assert_eq!(row.merge_into(&mut merged), Some(()));
        for (lane, cell) in cells.iter().enumerate() {
            let mut read = None;
            prop_assert_eq!(row.cells(1 << lane, |_, cell| read = Some(cell)), Some(()));
            match read {
                Some(read) => {
                    prop_assert_eq!(bits(&read), bits(cell), "lane {}: {:?}", lane, cell);
                    prop_assert!(moment::is_same(read.m2, cell.m2), "lane {}: {:?}", lane, cell);
                }
                None => prop_assert!(cell.is_empty()),
            }
            let mut expected = Cell::EMPTY;
            if !cell.is_empty() {
                expected.merge(cell);
            }
            prop_assert_eq!(bits(&merged[lane]), bits(&expected));
        }
    }

    #[test]
    fn any_bytes_are_read_or_refused(bytes in prop::collection::vec(any::<u8>(), 0..300)) {
        prop_assert!(HeadRow::parse(&bytes, KEY).is_none());
        read(&bytes);
    }

    #[test]
    fn a_row_with_changed_bytes_is_read_or_refused(
        lanes in prop::collection::btree_map(0..SERIES_PER_ROW, sampled(), 1..SERIES_PER_ROW),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
    ) {
        let mut bytes = write(&row(lanes));
        for (position, byte) in changes {
            let position = position.index(bytes.len());
            bytes[position] = byte;
        }
        read(&bytes);
    }
}

#[test]
fn a_flipped_bit_is_found() {
    let mut bytes = write(&row((0..9).map(|lane| (lane * 7, Cell::single(5, lane as f64)))));
    for bit in 0..bytes.len() * 8 {
        bytes[bit / 8] ^= 1 << (bit % 8);
        assert!(HeadRow::parse(&bytes, KEY).is_none());
        bytes[bit / 8] ^= 1 << (bit % 8);
    }
}

#[test]
fn empty_cells_produce_no_row() {
    assert_eq!(HeadRowWriter::default().write(&[Cell::EMPTY; SERIES_PER_ROW], KEY), None);
}

/// Returns the cells of a host's metrics: three of five are counters, read at intervals with
/// jitter; the others are gauges with one decimal.
fn host_cells(samples: i64, jitter_ms: i64) -> RowCells {
    let mut random = fastrand::Rng::with_seed(5);
    let mut states: Vec<_> = (0..SERIES_PER_ROW)
        .map(|lane| SeriesState::new(if lane % 5 < 3 { Kind::Counter } else { Kind::Gauge }))
        .collect();
    let mut values = [0.0; SERIES_PER_ROW];
    let mut cells = [Cell::EMPTY; SERIES_PER_ROW];
    for round in -2..samples {
        let at = START + 30_000 + round * 60_000 + random.i64(0..=jitter_ms);
        let slot = UnixMillis(at / 60_000 * 60_000);
        let lanes = cells.iter_mut().zip(&mut states).zip(&mut values).enumerate();
        for (lane, ((cell, state), value)) in lanes {
            *value = if lane % 5 < 3 {
                *value + f64::from(random.u32(0..1_000_000))
            } else {
                f64::from(random.u32(0..1000)) / 10.0
            };
            let observed = state.observe(UnixMillis(at), *value, 0, slot);
            if round >= 0 {
                cell.merge(&observed.cell.shifted((round * 60_000) as u32));
            }
        }
    }
    cells
}

#[test]
fn a_row_of_a_host_takes_few_bytes_per_cell() {
    let bytes = |samples, jitter| write(&host_cells(samples, jitter)).len() / SERIES_PER_ROW;
    let sizes = [(1, 0), (1, 3), (2, 3), (5, 0), (5, 3), (60, 3)];
    let found = sizes.map(|(samples, jitter)| bytes(samples, jitter));
    assert_eq!(found, [5, 5, 13, 17, 17, 19]);
}
