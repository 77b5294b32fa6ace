//! Random histories of merges, shells, drops and restarts, with failing calls of the medium and
//! power cuts, compared with a naive map of cells.
//!
//! Must never know: which implementation is tested.

use std::ops::Range;

use proptest::prelude::*;

use super::{
    Bench, COARSE, Cells, FINE, HOUR, HistogramCells, MINUTE, NOON, SUBJECTS, Subject, cell,
    histogram, map::Map, mark,
};
use crate::{
    model::{Cell, GranularityIndex, Histogram, HistogramCell, SeriesId, UnixMillis},
    store::{
        documents::{Columns, Stage, grid::PartitionGrid},
        faulty::{Call, EIO, ENOSPC, Effect, Fault},
    },
};

const SERIES: [u32; 4] = [0, 1, 64, 1000];

#[derive(Debug, Clone)]
enum Step {
    /// Merges cells, each given by its series, slot and value, and advances the mark.
    Merge {
        partition: usize,
        cells: Vec<(usize, usize, u8)>,
    },
    Shells {
        partition: usize,
        slot: usize,
        series: Range<usize>,
    },
    Drop {
        partition: usize,
    },
    Read {
        from: usize,
        to: usize,
        series: usize,
    },
    /// Converts a partition to its smallest form.
    Seal {
        partition: usize,
        stage: Stage,
    },
    Reopen,
    /// Arms a fault for the next step.
    Arm(Fault),
}

fn step() -> impl Strategy<Value = Step> {
    let cells = prop::collection::vec((0..4_usize, 0..60_usize, 0..9_u8), 0..12);
    prop_oneof![
        6 => (0..3_usize, cells).prop_map(|(partition, cells)| Step::Merge { partition, cells }),
        1 => (0..3_usize, 0..60_usize, 0..4_usize)
            .prop_map(|(partition, slot, to)| Step::Shells { partition, slot, series: 0..to }),
        1 => (0..3_usize).prop_map(|partition| Step::Drop { partition }),
        1 => (0..120_usize, 0..120_usize, 0..4_usize)
            .prop_map(|(from, to, series)| Step::Read { from, to, series }),
        2 => (0..3_usize, prop::sample::select(vec![Stage::Busy, Stage::Quiet, Stage::Over]))
            .prop_map(|(partition, stage)| Step::Seal { partition, stage }),
        1 => Just(Step::Reopen),
        4 => fault().prop_map(Step::Arm),
    ]
}

fn fault() -> impl Strategy<Value = Fault> {
    let calls = [
        Call::Read,
        Call::Write,
        Call::SetLen,
        Call::Sync,
        Call::Open,
        Call::Rename,
        Call::Remove,
        Call::List,
    ];
    let effects = [Effect::Error(EIO), Effect::Error(ENOSPC), Effect::PowerCut];
    (
        prop::sample::select(calls.to_vec()),
        0..12_u64,
        1..4_u64,
        prop::sample::select(effects.to_vec()),
    )
        .prop_map(|(call, after, times, effect)| Fault { call, after, times, effect })
}

/// Returns a histogram whose form depends on the value.
fn reading(value: u8) -> Histogram {
    let schema = if value == 3 { 2 } else { 3 };
    let mut reading = histogram(schema, i32::from(value), f64::from(value) + 1.0);
    if value == 6 {
        reading.negative = reading.positive.clone();
        reading.count *= 2.0;
    }
    reading
}

/// A running history.
struct History {
    bench: Bench,
    map: Map,
    /// The record number, which increases like the numbers of the journal's records.
    record: u64,
}

impl History {
    fn new(subject: Subject, seed: u64) -> Self {
        Self { bench: Bench::new(subject, seed), map: Map::default(), record: 0 }
    }

    fn grid(&self, partition: usize) -> PartitionGrid {
        match partition {
            0 => self.bench.grid(FINE, NOON),
            1 => self.bench.grid(FINE, NOON.plus(HOUR)),
            _ => self.bench.grid(COARSE, NOON),
        }
    }

    fn slot(grid: &PartitionGrid, slot: usize) -> i64 {
        grid.id.start.0 + slot as i64 * grid.width_ms
    }

    fn run(&mut self, step: &Step) {
        match step {
            Step::Merge { partition, cells } => self.merge(*partition, cells),
            Step::Shells { partition, slot, series } => {
                let grid = self.grid(*partition);
                let at = UnixMillis(Self::slot(&grid, *slot));
                let ids: Vec<_> = SERIES[series.clone()].iter().copied().map(SeriesId).collect();
                let added = self.bench.documents.add_shells(grid.id.granularity, at, &ids);
                self.recover();
                let again = self.bench.documents.add_shells(grid.id.granularity, at, &ids);
                let again = again.unwrap();
                assert!(added.is_err() || again == 0);
                let start = grid.document_start(at);
                for id in ids {
                    self.map.add_shell(grid.id, id, start);
                }
            }
            Step::Drop { partition } => {
                let grid = self.grid(*partition);
                if self.bench.documents.drop_partition(grid.id).is_err() {
                    self.recover();
                    self.bench.documents.drop_partition(grid.id).unwrap();
                }
                self.map.drop(grid.id);
            }
            Step::Read { from, to, series } => {
                let range = NOON.0 + *from as i64 * MINUTE..NOON.0 + *to as i64 * MINUTE;
                let range = range.start..range.end.max(range.start);
                let series = SeriesId(SERIES[*series]);
                if let Ok(slots) = self.bench.slots(FINE, range.clone(), series) {
                    assert_eq!(slots, self.map.slots(FINE, &range, series));
                }
            }
            Step::Seal { partition, stage } => {
                let grid = self.grid(*partition);
                let sealed = self.bench.documents.seal(&grid, *stage, &|_| true);
                assert!(sealed.is_err() || !sealed.unwrap().is_some_and(|outcome| outcome.refused));
            }
            Step::Reopen => {
                self.bench.medium.lift();
                self.bench.reopen();
            }
            Step::Arm(fault) => {
                self.bench.medium.arm(*fault);
                return;
            }
        }
        self.recover();
        self.check();
    }

    fn merge(&mut self, partition: usize, cells: &[(usize, usize, u8)]) {
        self.record += 1;
        let grid = self.grid(partition);
        let mut all = Cells::new();
        for (series, slot, value) in cells {
            let (series, slot) = (SERIES[*series], Self::slot(&grid, *slot));
            all.push(cell(series, slot, f64::from(*value)));
            if *value == 7 {
                // The correction that a late reading makes to the reading after it.
                all.push((SeriesId(series), slot, Cell::correction(-2.0, None)));
            } else if *value == 8 && self.map.has(grid.id, SeriesId(series), slot) {
                all.insert(0, (SeriesId(series), slot, Cell::correction(-1.0, None)));
            }
        }
        let histograms =
            cells.iter().filter(|(series, ..)| *series % 2 == 1).map(|(series, slot, value)| {
                let (offset, own) = (u32::from(*value), reading(*value));
                let cell = HistogramCell::single(offset, own.clone(), own);
                (SeriesId(SERIES[*series]), Self::slot(&grid, *slot), cell)
            });
        let histograms: HistogramCells = histograms.collect();
        let (before, after) = (self.map.mark(grid.id), mark(self.record, grid.end.0));
        let outcome = self.bench.merge_all(&grid, after, &all, &histograms);
        self.recover();
        // A failed merge may be complete; the mark shows whether it is.
        let found = self.bench.documents.mark(&grid).unwrap();
        assert!(outcome.is_err() || found == after, "{outcome:?}: {found:?}");
        if found == after {
            self.map.merge(grid.id, after, &all, &histograms);
        } else {
            assert_eq!(found.through, before.through);
        }
    }

    /// Ends the fault of the medium, and restores the power after a cut.
    fn recover(&mut self) {
        let is_dead = self.bench.medium.is_power_cut();
        self.bench.medium.lift();
        if is_dead {
            self.bench.power_up();
        }
    }

    /// Asserts that the documents equal the map.
    fn check(&self) {
        let documents = &self.bench.documents;
        for granularity in [FINE, COARSE] {
            assert_eq!(documents.holes(granularity), []);
            self.check_granularity(granularity);
        }
        for id in self.map.ids() {
            let mut cells = 0;
            let found = documents.check(id, &mut |_, _, document| {
                cells += document.unwrap().iter().filter(|cell| !cell.is_empty()).count();
            });
            assert_eq!(found.unwrap().unwrap().through, self.map.mark(id).through);
            let grid = documents.grid(id.granularity, id.start);
            assert_eq!(documents.mark(&grid).unwrap(), self.map.mark(id));
            let range = grid.range();
            let count = |id| self.map.slots(grid.id.granularity, &range, SeriesId(id)).len();
            assert_eq!(cells, SERIES.into_iter().map(count).sum::<usize>());
        }
        assert_eq!(documents.damaged_documents(), 0);
    }

    fn check_granularity(&self, granularity: GranularityIndex) {
        let year = 366 * 24 * HOUR;
        let width = self.bench.documents.granularities()[granularity.0].width_ms;
        let whole = |at: i64| at - at % width;
        let range = whole(NOON.0 - year)..whole(NOON.0 + year);
        let view = self.bench.documents.view(granularity, range.clone()).unwrap();
        for series in SERIES.map(SeriesId) {
            let mut slots = Vec::new();
            view.slots(series, Columns::ALL, &mut slots).unwrap();
            assert_eq!(slots, self.map.slots(granularity, &range, series), "{series:?}");
            let histograms = self.bench.histograms(granularity, range.clone(), series).unwrap();
            let expected = self.map.histograms(granularity, &range, series);
            assert_eq!(histograms, expected, "{series:?}");
            let mut shells = Vec::new();
            view.shells(series, &mut shells).unwrap();
            let expected: Vec<_> = self.map.shells(granularity, series).collect();
            for span in &shells {
                assert!(expected.contains(&span.start), "{series:?} at {}", span.start);
            }
            for start in expected {
                let is_shown = shells.iter().any(|span| span.start == start);
                let end = self.bench.grid(granularity, start).next_document(start);
                let has_samples = slots.iter().any(|slot| (start..end).contains(&slot.start));
                assert!(is_shown || has_samples, "{series:?} has no shell at {start}");
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 100, ..ProptestConfig::default() })]
    #[test]
    fn whatever_fails_each_merge_counts_once_or_not_at_all(
        seed: u64, steps in prop::collection::vec(step(), 1..30)
    ) {
        for subject in SUBJECTS {
            let mut history = History::new(subject, seed);
            for step in &steps {
                history.run(step);
            }
            history.bench.medium.lift();
            history.bench.reopen();
            history.check();
        }
    }
}
