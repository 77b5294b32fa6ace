//! The store against a naive model: every cell of every granularity, over random series, kinds,
//! orders, retries, deletions, renamings, checkpoints and restarts.

use std::{
    collections::{BTreeMap, HashSet},
    ops::Range,
};

use granary::{
    model::{
        AcceptedBatch, BatchNumber, BatchVerdict, Cell, Deduplication, Granularity,
        GranularityIndex, GranularitySet, Kind, METRIC_TAG, SeriesId, SeriesInfo, SeriesLimits,
        TimesTally, UnixMillis,
    },
    store::{Appender, ChangeAction, Columns, Matcher, Renaming, SeriesChange, Slot, Store, View},
};
use proptest::prelude::*;

use crate::{
    counters::NaiveCounter,
    rounds::counts_from,
    setup::{self, DAY, HOUR, WITHIN as NOW, granularities, open_with},
};

const SERIES: u32 = 40;

#[derive(Debug, Clone)]
struct Sample {
    series: u32,
    at: i64,
    value: f64,
    start: i64,
}

#[derive(Debug, Clone)]
enum Step {
    /// A batch of one of three senders; a repeated number is a retry.
    Send {
        sender: u8,
        seq: u64,
        samples: Vec<Sample>,
    },
    Checkpoint,
    /// Merges segments and open documents, this many hours after the last change.
    Seal {
        hours: i64,
    },
    Restart,
    Preallocate {
        level: usize,
    },
    /// Deletes the series and registers it again under another ID.
    Delete {
        series: u32,
    },
    Rename {
        series: u32,
        to: u8,
    },
}

fn kind(series: u32) -> Kind {
    Kind::OF_NUMBERS[series as usize % 3]
}

fn definition(series: u32) -> SeriesInfo {
    let host = format!("h{}", series / 8);
    let tags = [("host", host.as_str()), ("kind", kind(series).as_str())];
    setup::series(&format!("m{series}"), &tags, kind(series))
}

/// Registers new series; they get the next IDs.
fn define(store: &Store, appender: &mut Appender, series: Range<u32>) -> Vec<SeriesId> {
    let first = store.dictionary().id_count() as u32;
    let ids: Vec<_> = (first..first + series.len() as u32).map(SeriesId).collect();
    let definitions: Vec<_> = series.map(definition).collect();
    assert_eq!(setup::define(appender, &definitions, NOW), ids);
    ids
}

fn apply_change(appender: &mut Appender, series: u32, action: ChangeAction) -> usize {
    let matcher = Matcher { tag: METRIC_TAG.into(), value: format!("m{series}") };
    appender.change(&SeriesChange { matchers: vec![matcher], action }, NOW).unwrap().unwrap()
}

/// Keys: level, series and slot.
type SlotKey = (usize, u32, i64);

/// The expected content of the store, from all samples.
#[derive(Default)]
struct NaiveStore {
    accepted_numbers: HashSet<(u8, u64)>,
    counters: BTreeMap<u32, NaiveCounter>,
    /// The time of each series' latest sample.
    last: BTreeMap<u32, i64>,
    /// Times and values of the samples.
    slots: BTreeMap<SlotKey, Vec<(i64, f64)>>,
}

impl NaiveStore {
    fn add(&mut self, set: &GranularitySet, sample: &Sample, counts_from: i64) {
        let Sample { series, at, value, start } = *sample;
        if kind(series) == Kind::Counter {
            self.counters.entry(series).or_default().add_reading(at, value, start, counts_from);
        }
        let last = self.last.entry(series).or_insert(at);
        *last = at.max(*last);
        for key in slot_keys(set, series, at) {
            self.slots.entry(key).or_default().push((at, value));
        }
    }

    /// Returns for each sample the earliest start of its counter with which a first reading counts
    /// in full.
    fn counts_from(&self, set: &GranularitySet, samples: &[Sample]) -> Vec<i64> {
        let before = |sample: &Sample| (sample.at, self.last.get(&sample.series).copied());
        let all: Vec<_> = samples.iter().map(before).collect();
        let counts_from = |sample: &Sample| {
            let at = UnixMillis(sample.at);
            let finest = set.finest_keeping(at, NOW).unwrap_or(GranularityIndex::FINEST);
            counts_from(&all, sample.at, set[finest].slot_start(at).0)
        };
        samples.iter().map(counts_from).collect()
    }

    /// Returns the samples to send. A late reading that the store does not guarantee to count
    /// exactly gets a time after all other readings of its counter.
    fn guaranteed_samples(&self, samples: &[Sample]) -> Vec<Sample> {
        let mut counters = self.counters.clone();
        let mut samples = samples.to_vec();
        for sample in samples.iter_mut().filter(|sample| kind(sample.series) == Kind::Counter) {
            let counter = counters.entry(sample.series).or_default();
            if let Some(newest) =
                counter.latest_time().filter(|_| !counter.is_guaranteed(sample.at))
            {
                sample.at = newest + 1 + sample.at % 90_000;
            }
            // The start from which a first reading counts does not affect the guarantee.
            counter.add_reading(sample.at, sample.value, sample.start, 0);
        }
        samples
    }

    fn remove_series(&mut self, series: u32) {
        self.counters.remove(&series);
        self.last.remove(&series);
        self.slots.retain(|(_, id, _), _| *id != series);
    }

    /// Returns the expected cells.
    fn cells(&self, set: &GranularitySet) -> BTreeMap<SlotKey, Cell> {
        let mut cells: BTreeMap<_, _> =
            self.slots.iter().map(|(key, samples)| (*key, Self::cell(*key, samples))).collect();
        for (series, counter) in &self.counters {
            for (at, increase) in counter.increases() {
                for key in slot_keys(set, *series, at) {
                    cells.get_mut(&key).unwrap().sum += increase;
                }
            }
            for (at, rate) in counter.rates() {
                for key in slot_keys(set, *series, *at) {
                    let cell = cells.get_mut(&key).unwrap();
                    (cell.min, cell.max) = (cell.min.min(*rate), cell.max.max(*rate));
                }
            }
        }
        cells
    }

    /// Returns the cell of samples in one slot; a cell of a counter has no sum and no rates yet.
    fn cell((_, series, slot): SlotKey, samples: &[(i64, f64)]) -> Cell {
        let is_summed = kind(series) != Kind::Counter;
        let values = || samples.iter().map(|(_, value)| *value).filter(|_| is_summed);
        let is_nan = is_summed && values().all(f64::is_nan);
        let extreme = |number: f64| if is_nan { f64::NAN } else { number };
        let by_time = |left: &&(i64, f64), right: &&(i64, f64)| {
            left.0.cmp(&right.0).then_with(|| left.1.total_cmp(&right.1))
        };
        let first = samples.iter().min_by(by_time).unwrap();
        let last = samples.iter().max_by(by_time).unwrap();
        let mean = values().sum::<f64>() / samples.len() as f64;
        let m2: f64 = values().map(|value| (value - mean) * (value - mean)).sum();
        let differs = values().any(|value| Some(value) != values().next());
        let has_moment = samples.len() > 2 && differs && m2.is_finite();
        Cell {
            n: samples.len() as u32,
            first_at: (first.0 - slot) as u32,
            last_at: (last.0 - slot) as u32,
            sum: values().sum(),
            min: extreme(values().fold(f64::INFINITY, f64::min)),
            max: extreme(values().fold(f64::NEG_INFINITY, f64::max)),
            first: first.1,
            last: last.1,
            m2: if has_moment { m2 } else { 0.0 },
        }
    }

    fn compare(&self, store: &Store, ids: &[SeriesId]) {
        assert_eq!(store.dictionary().len(), ids.len());
        let expected = self.cells(store.granularities());
        let whole_range = NOW.minus(200 * DAY)..NOW.plus(DAY);
        for level in 0..store.granularities().count() {
            let view = store.view(GranularityIndex(level), whole_range.clone(), ids).unwrap();
            let mut found = BTreeMap::new();
            for (series, id) in (0..).zip(ids) {
                let slots = view.slots(*id).unwrap();
                assert_columns(&view, *id, &slots);
                for slot in slots {
                    found.insert((level, series, slot.start.0), slot.cell);
                }
            }
            let expected = expected.iter().filter(|((index, ..), _)| *index == level);
            let mut left = found.clone();
            for (key, expected) in expected {
                let cell = left.remove(key).unwrap_or_else(|| panic!("{key:?} is missing"));
                let close = if expected.sum.is_finite() {
                    (cell.sum - expected.sum).abs() <= 1e-9 * expected.sum.abs().max(1.0)
                } else {
                    cell.sum == expected.sum || cell.sum.is_nan() && expected.sum.is_nan()
                };
                assert!(close, "{key:?}: sum {} instead of {}", cell.sum, expected.sum);
                assert_eq!(Cell { sum: expected.sum, ..cell }, *expected, "{key:?}");
            }
            assert_eq!(left, BTreeMap::new(), "slots that should be empty");
        }
    }
}

/// A query of some columns returns the same values as one of all columns; cells of two samples are
/// always complete.
fn assert_columns(view: &View, series: SeriesId, all: &[Slot]) {
    let mut found = Vec::new();
    for columns in [Columns::SUM, Columns::MIN, Columns::MAX, Columns::ENDS] {
        view.slots_into(series, columns, &mut found).unwrap();
        let compared_fields = |slot: &Slot| {
            let cell = &slot.cell;
            let bits =
                |column, value: f64| (columns == column || cell.n == 2).then(|| value.to_bits());
            let values = [
                bits(Columns::SUM, cell.sum),
                bits(Columns::MIN, cell.min),
                bits(Columns::MAX, cell.max),
                bits(Columns::ENDS, cell.first),
                bits(Columns::ENDS, cell.last),
            ];
            (slot.start, cell.n, cell.first_at, cell.last_at, values)
        };
        assert!(
            found.iter().map(compared_fields).eq(all.iter().map(compared_fields)),
            "{columns:?} of {all:?}"
        );
    }
}

/// Returns the slots of a sample, one per granularity that keeps the sample.
fn slot_keys(set: &GranularitySet, series: u32, at: i64) -> Vec<SlotKey> {
    let levels = set.iter().enumerate();
    let keeping = levels.filter(|(_, granularity)| granularity.keeps(UnixMillis(at), NOW));
    let key = |(level, granularity): (usize, &Granularity)| {
        (level, series, at - at.rem_euclid(granularity.width_ms))
    };
    keeping.map(key).collect()
}

fn batch(ids: &[SeriesId], sender: u8, seq: u64, samples: &[Sample]) -> AcceptedBatch {
    let have_one_time = samples.iter().all(|sample| sample.at == samples[0].at);
    let times =
        if have_one_time { vec![samples[0].at] } else { samples.iter().map(|s| s.at).collect() };
    AcceptedBatch {
        deduplication: Deduplication::ByNumber(BatchNumber {
            sender: format!("agent{sender}").into(),
            epoch: 1,
            seq,
        }),
        series: samples.iter().map(|sample| ids[sample.series as usize]).collect(),
        times,
        starts: samples.iter().map(|sample| sample.start).collect(),
        values: samples.iter().map(|sample| sample.value).collect(),
        ..AcceptedBatch::default()
    }
}

fn run(set: &GranularitySet, segment_documents_min: usize, steps: &[Step]) {
    let dir = tempfile::tempdir().unwrap();
    let (mut store, mut appender) = open_with(dir.path(), set, NOW);
    store.set_segment_documents_min(segment_documents_min);
    let mut ids = define(&store, &mut appender, 0..SERIES);
    let mut naive = NaiveStore::default();
    for step in steps {
        match step {
            Step::Send { sender, seq, samples } => {
                let samples = &naive.guaranteed_samples(samples);
                // The group contains the batch twice, as after a retry that came before the answer.
                let twice = [(); 2].map(|()| batch(&ids, *sender, *seq, samples));
                let verdict = appender.commit(&[], &twice, NOW).unwrap().batches;
                let expected = if naive.accepted_numbers.insert((*sender, *seq)) {
                    for (sample, counts_from) in samples.iter().zip(naive.counts_from(set, samples))
                    {
                        naive.add(set, sample, counts_from);
                    }
                    BatchVerdict::Accepted(TimesTally::default())
                } else {
                    BatchVerdict::Duplicate
                };
                assert_eq!(verdict, [expected, BatchVerdict::Duplicate]);
            }
            Step::Checkpoint => {
                store.checkpoint(NOW).unwrap();
            }
            Step::Seal { hours } => {
                for now in [NOW, NOW.plus(*hours * HOUR)] {
                    assert_eq!(store.seal(now, HOUR, &|_| true).unwrap().refused, 0);
                }
            }
            Step::Restart => {
                drop((store, appender));
                (store, appender) = open_with(dir.path(), set, NOW);
                store.set_segment_documents_min(segment_documents_min);
            }
            Step::Preallocate { level } => {
                let level = *level % set.count();
                let document = set.as_slice()[level].document_start(NOW);
                store.preallocate(GranularityIndex(level), document, &ids).unwrap();
                assert_eq!(store.preallocate(GranularityIndex(level), document, &ids).unwrap(), 0);
            }
            Step::Delete { series } => {
                assert_eq!(apply_change(&mut appender, *series, ChangeAction::Delete), 1);
                ids[*series as usize] = define(&store, &mut appender, *series..series + 1)[0];
                naive.remove_series(*series);
            }
            Step::Rename { series, to } => {
                let tags = vec![("moved".to_owned(), to.to_string())];
                let limits = SeriesLimits::default();
                let action = ChangeAction::Rename(Renaming { metric: None, tags, limits });
                let changed = apply_change(&mut appender, *series, action);
                assert!(changed <= 1, "more than one series was renamed");
            }
        }
    }
    naive.compare(&store, &ids);
    store.checkpoint(NOW).unwrap();
    naive.compare(&store, &ids);
}

fn any_sample() -> impl Strategy<Value = Sample> {
    // Most times are within the last two hours; some are past the finest retentions.
    let age = prop_oneof![
        8 => 0..2 * HOUR,
        2 => 0..72 * HOUR,
        1 => 0..20 * DAY,
        1 => 0..100 * DAY,
    ];
    // Multiples of an eighth are exact in binary, so that only sums of rates could differ.
    (0..SERIES, age, -40..400_i32, prop_oneof![3 => Just(0), 1 => 0..2 * HOUR]).prop_map(
        |(series, age, eighths, start)| Sample {
            series,
            at: NOW.0 - age,
            value: match eighths {
                // Gauges may have negative values.
                -40 if kind(series) == Kind::Gauge => f64::NAN,
                -39 if kind(series) == Kind::Gauge => f64::INFINITY,
                -38 if kind(series) == Kind::Gauge => f64::NEG_INFINITY,
                _ => f64::from(eighths) / 8.0,
            },
            start: if start == 0 { 0 } else { NOW.0 - start },
        },
    )
}

fn any_step() -> impl Strategy<Value = Step> {
    let samples = prop::collection::vec(any_sample(), 1..60);
    let same_time = (samples, any::<bool>()).prop_map(|(mut samples, same)| {
        if same {
            let at = samples[0].at;
            for sample in &mut samples {
                sample.at = at;
            }
        }
        samples
    });
    prop_oneof![
        12 => (0..3_u8, 1..30_u64, same_time)
            .prop_map(|(sender, seq, samples)| Step::Send { sender, seq, samples }),
        3 => Just(Step::Checkpoint),
        1 => (0..2_i64).prop_map(|hours| Step::Seal { hours }),
        2 => Just(Step::Restart),
        1 => (0..4_usize).prop_map(|level| Step::Preallocate { level }),
        2 => (0..SERIES).prop_map(|series| Step::Delete { series }),
        1 => (0..SERIES, 0..3_u8).prop_map(|(series, to)| Step::Rename { series, to }),
    ]
}

fn any_granularities() -> impl Strategy<Value = GranularitySet> {
    let sets = [
        GranularitySet::default(),
        granularities(&[["1s", "1m", "1h", "6h"], ["1m", "1h", "6h", "2d"]]),
        granularities(&[["1d", "1mo", "1y", "5y"]]),
        granularities(&[
            ["10s", "10m", "1h", "6h"],
            ["1h", "1d", "1mo", "3mo"],
            ["1d", "1mo", "1y", "2y"],
        ]),
    ];
    prop::sample::select(sets.to_vec())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]
    #[test]
    fn every_cell_of_every_granularity_equals_a_naive_model(
        set in any_granularities(),
        segment_documents_min in prop::sample::select(vec![1, 5, 512]),
        steps in prop::collection::vec(any_step(), 1..25)
    ) {
        run(&set, segment_documents_min, &steps);
    }
}
