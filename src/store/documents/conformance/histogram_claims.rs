//! One test for each promise about histograms.
//!
//! Must never know: which implementation is tested.

use std::collections::BTreeMap;

use super::{
    Bench, FINE, HistogramCells, MINUTE, NOON, cell,
    claims::{SERIES, each},
    histogram, mark,
};
use crate::{
    model::{Cell, Histogram, HistogramCell, SeriesId},
    store::documents::{CellSink, HoleChange, Stage, grid::PartitionGrid},
};

#[test]
fn a_late_cell_keeps_sound_cells_whose_histograms_are_damaged() {
    each(|mut bench| {
        let grid = bench.grid(FINE, NOON);
        bench.merge(&grid, mark(5, grid.end.0), &vec![cell(7, NOON.0, 2.0)]).unwrap();
        let sum = 1.234_567e77_f64;
        let histogram = Histogram { count: 1.0, sum, ..Histogram::sketch() };
        let cells = [(0, HistogramCell::single(5, histogram.clone(), histogram))];
        let add = &mut |sink: &mut dyn CellSink| sink.histograms(NOON, SERIES, &cells);
        bench.documents.merge(&grid, mark(6, grid.end.0), add).unwrap();
        bench.change_file(&grid, |bytes| {
            let is_sum = |at: &usize| bytes[*at..].starts_with(&sum.to_le_bytes());
            let positions: Vec<_> = (0..bytes.len()).filter(is_sum).collect();
            assert!(!positions.is_empty());
            for at in positions {
                bytes[at] ^= 0x10;
            }
        });
        let mut faults = 0;
        let visit = &mut |_, _, cells: Result<&[Cell], String>| faults += u8::from(cells.is_err());
        bench.documents.check(grid.id, visit).unwrap();
        assert_eq!((faults, bench.documents.damaged_documents()), (1, 1));
        let late = NOON.plus(MINUTE).0;
        bench.merge(&grid, mark(7, grid.end.0), &vec![cell(7, late, 4.0)]).unwrap();
        let expected = [(NOON.0, 2.0), (late, 4.0)];
        assert_eq!(bench.of_partition(&grid, SERIES), expected);
        assert_eq!(bench.documents.holes(FINE), [NOON..NOON.plus(10 * MINUTE)]);
        assert_eq!(bench.documents.drop_damage(&grid).unwrap().documents, 1);
        assert_eq!(bench.documents.damaged_documents(), 0);
        assert_eq!(bench.of_partition(&grid, SERIES), expected);
    });
}

/// Merges cells and histograms of two series in each minute of an hour; returns the histograms of
/// the first one.
pub(super) fn merge_hour(bench: &Bench, grid: &PartitionGrid) -> BTreeMap<i64, HistogramCell> {
    let (mut cells, mut histograms) = (Vec::new(), HistogramCells::new());
    for minute in 0..60 {
        let slot = NOON.0 + i64::from(minute) * MINUTE;
        for series in [SERIES.0, 9] {
            cells.push(cell(series, slot, f64::from(minute)));
            let (total, last) = (histogram(3, 5, 1.0), histogram(3, 5, f64::from(minute) + 1.0));
            histograms.push((SeriesId(series), slot, HistogramCell::single(5, last, total)));
        }
    }
    bench.merge_all(grid, mark(5, grid.end.0), &cells, &histograms).unwrap();
    let of_first = histograms.into_iter().filter(|(series, ..)| *series == SERIES);
    of_first.map(|(_, slot, cell)| (slot, cell)).collect()
}

#[test]
fn histograms_that_were_sealed_take_late_and_other_histograms() {
    each(|mut bench| {
        let grid = bench.grid(FINE, NOON);
        let mut expected = merge_hour(&bench, &grid);
        let check = |bench: &Bench, expected: &BTreeMap<i64, HistogramCell>| {
            for range in [grid.range(), NOON.0 + 7 * MINUTE..NOON.0 + 33 * MINUTE] {
                let mut part = expected.clone();
                part.retain(|slot, _| range.contains(slot));
                assert_eq!(bench.histograms(FINE, range, SERIES).unwrap(), part);
            }
            assert_eq!(bench.histograms(FINE, grid.range(), SeriesId(9)).unwrap().len(), 60);
        };
        bench.documents.seal(&grid, Stage::Over, &|_| true).unwrap();
        check(&bench, &expected);
        // A late histogram, and the replacement of all histograms of a document by one.
        let late = HistogramCell::single(9, histogram(2, 1, 1.0), histogram(2, 1, 1.0));
        let slot = NOON.0 + 3 * MINUTE;
        let cells = vec![cell(SERIES.0, slot, 2.0)];
        let histograms = vec![(SERIES, slot, late.clone())];
        bench.merge_all(&grid, mark(6, grid.end.0), &cells, &histograms).unwrap();
        expected.get_mut(&slot).unwrap().merge(&late);
        check(&bench, &expected);
        let empty = HistogramCell::correction(Histogram::empty(3));
        let second = NOON.plus(10 * MINUTE);
        let mut replaced: Vec<_> = (0..10).map(|slot| (slot, empty.clone())).collect();
        bench
            .documents
            .replace(&grid, &HoleChange::default(), &mut |sink| {
                sink.histograms(second, SERIES, &replaced)
            })
            .unwrap();
        expected.retain(|slot, _| !(second.0..second.0 + 10 * MINUTE).contains(slot));
        check(&bench, &expected);
        replaced[4].1 = late.clone();
        let third = NOON.plus(20 * MINUTE);
        bench
            .documents
            .replace(&grid, &HoleChange::default(), &mut |sink| {
                sink.histograms(third, SERIES, &replaced)
            })
            .unwrap();
        expected.retain(|slot, _| !(third.0..third.0 + 10 * MINUTE).contains(slot));
        expected.insert(third.0 + 4 * MINUTE, late);
        for _ in 0..2 {
            check(&bench, &expected);
            bench.documents.seal(&grid, Stage::Over, &|_| true).unwrap();
            check(&bench, &expected);
            bench.reopen();
        }
        assert_eq!(bench.documents.damaged_documents(), 0);
    });
}
