//! Histograms of the store against a naive model: every cell of every level, in any order, with
//! repeated batches, checkpoints, sealing and restarts.

use std::collections::{BTreeMap, HashSet};

use proptest::prelude::*;

use super::entries;
use crate::{
    model::{
        AcceptedBatch, BatchNumber, Deduplication, GranularityIndex, GranularitySet, Histogram,
        HistogramCell, Kind, SeriesId, UnixMillis,
        histogram::{Bucket, ZERO_THRESHOLD},
    },
    setup::{self, DAY, HOUR, MINUTE, WITHIN as NOW, granularities, open_with},
    store::{Appender, CheckpointBounds, Store, StoreError},
};

const SERIES: u32 = 6;

#[derive(Debug, Clone)]
struct Sample {
    series: u32,
    at: i64,
    start: i64,
    histogram: Histogram,
}

#[derive(Debug, Clone)]
enum Step {
    Send { sender: u8, seq: u64, samples: Vec<Sample> },
    Checkpoint { hours: i64 },
    Seal,
    Restart,
}

fn kind(series: u32) -> Kind {
    [Kind::Histogram, Kind::GaugeHistogram, Kind::DeltaHistogram][series as usize % 3]
}

/// All samples of the series, by time.
#[derive(Default)]
struct Naive {
    accepted: HashSet<(u8, u64)>,
    samples: BTreeMap<u32, BTreeMap<i64, (i64, Histogram)>>,
}

impl Naive {
    /// Returns the samples to send: each at a new time, and readings that the store does not
    /// guarantee to count exactly later than all others.
    fn guaranteed(&self, samples: &[Sample]) -> Vec<Sample> {
        let mut known = self.samples.clone();
        let mut out = samples.to_vec();
        for sample in &mut out {
            let of_series = known.entry(sample.series).or_default();
            let newer = of_series.range(sample.at..).count();
            let is_first = newer == of_series.len();
            // The store attributes a decrease after such a reading to the sender's clock.
            let is_behind = of_series
                .range(sample.at..)
                .next()
                .is_some_and(|(_, (start, _))| *start != 0 && *start < sample.at);
            let is_exact = (newer < 3 || of_series.len() <= 4 || is_first) && !is_behind;
            if !self.samples.contains_key(&sample.series) {
                // The rounds of the sender decide whether the start of a new series counts.
                sample.start = 0;
            }
            let is_counter = kind(sample.series) == Kind::Histogram;
            if of_series.contains_key(&sample.at) || is_counter && !is_exact {
                let latest = of_series.keys().next_back().copied().unwrap_or(0);
                sample.at = latest + 1 + sample.at % 90_000;
            }
            of_series.insert(sample.at, (sample.start, sample.histogram.clone()));
        }
        out
    }

    fn add(&mut self, sample: &Sample) {
        let of_series = self.samples.entry(sample.series).or_default();
        of_series.insert(sample.at, (sample.start, sample.histogram.clone()));
    }

    fn cells(
        &self,
        level: GranularityIndex,
        set: &GranularitySet,
    ) -> BTreeMap<(u32, i64), HistogramCell> {
        let (granularity, mut cells) = (&set[level], BTreeMap::new());
        for (series, samples) in &self.samples {
            let mut before: Option<(i64, &Histogram)> = None;
            for (at, (start, histogram)) in samples {
                let total = if kind(*series) == Kind::Histogram {
                    increase(before, (*at, *start, histogram))
                } else {
                    histogram.clone()
                };
                before = Some((*at, histogram));
                if !granularity.keeps(UnixMillis(*at), NOW) {
                    continue;
                }
                let slot = granularity.slot_start(UnixMillis(*at)).0;
                let offset = (at - slot) as u32;
                let cell = HistogramCell::single(offset, histogram.clone(), total);
                let known = cells.entry((*series, slot));
                known.and_modify(|known: &mut HistogramCell| known.merge(&cell)).or_insert(cell);
            }
        }
        cells
    }

    fn compare(&self, store: &Store, ids: &[SeriesId]) {
        for level in 0..store.granularities().count() {
            let level = GranularityIndex(level);
            let range = NOW.minus(200 * DAY)..NOW.plus(DAY);
            // A late checkpoint has dropped older slots.
            let dropped_at = NOW.plus(3 * HOUR);
            let is_kept =
                |slot: i64| store.granularities()[level].keeps(UnixMillis(slot), dropped_at);
            let view = store.view(level, range, ids).unwrap();
            let mut found = BTreeMap::new();
            for (series, id) in (0..).zip(ids) {
                let counts = view.slots(*id).unwrap();
                let slots = view.histogram_slots::<StoreError>(*id, &mut |_| Ok(())).unwrap();
                let counted = counts.iter().map(|slot| (slot.start, slot.cell.n));
                let with_histograms = slots.iter().map(|slot| (slot.start, slot.cell.n));
                let counted: Vec<_> = counted.filter(|(start, _)| is_kept(start.0)).collect();
                let with_histograms: Vec<_> =
                    with_histograms.filter(|(start, _)| is_kept(start.0)).collect();
                assert_eq!(counted, with_histograms);
                for slot in slots {
                    found.insert((series, slot.start.0), slot.cell);
                }
            }
            let mut expected = self.cells(level, store.granularities());
            expected.retain(|(_, slot), _| is_kept(*slot));
            found.retain(|(_, slot), _| is_kept(*slot));
            for (key, cell) in &expected {
                assert_eq!(found.get(key), Some(cell), "{level:?}, {key:?}");
            }
            assert_eq!(found.len(), expected.len());
        }
    }
}

/// Returns the growth up to a reading.
fn increase(before: Option<(i64, &Histogram)>, reading: (i64, i64, &Histogram)) -> Histogram {
    let (at, start, histogram) = reading;
    let Some((before_at, before)) = before else {
        let counts = start != 0 && start < at && at - start <= HOUR;
        return if counts { histogram.clone() } else { histogram.emptied() };
    };
    let restarted = start != 0 && start < at && start > before_at;
    let mut out = histogram.clone();
    if !restarted && !histogram.detect_reset(before) {
        out.subtract(before).unwrap();
    }
    out
}

fn batch(ids: &[SeriesId], sender: u8, seq: u64, samples: &[Sample]) -> AcceptedBatch {
    let sender = format!("agent{sender}").into();
    let mut batch = AcceptedBatch {
        deduplication: Deduplication::ByNumber(BatchNumber { sender, epoch: 1, seq }),
        starts: samples.iter().map(|sample| sample.start).collect(),
        ..AcceptedBatch::default()
    };
    for sample in samples {
        let id = ids[sample.series as usize];
        batch.push_histogram(id, UnixMillis(sample.at), sample.histogram.clone());
    }
    if batch.times.len() == 1 {
        batch.starts.truncate(1);
    }
    batch
}

fn run(set: &GranularitySet, segment_documents_min: usize, steps: &[Step]) {
    let dir = tempfile::tempdir().unwrap();
    let open = || -> (Store, Appender) {
        let (store, appender) = open_with(dir.path(), set, NOW);
        store.set_segment_documents_min(segment_documents_min);
        (store, appender)
    };
    let (mut store, mut appender) = open();
    let definitions: Vec<_> =
        (0..SERIES).map(|series| setup::series(&format!("m{series}"), &[], kind(series))).collect();
    let ids = setup::define(&mut appender, &definitions, NOW);
    let mut naive = Naive::default();
    for step in steps {
        match step {
            Step::Send { sender, seq, samples } => {
                let samples = naive.guaranteed(samples);
                let twice = [(); 2].map(|()| batch(&ids, *sender, *seq, &samples));
                appender.commit(&[], &twice, NOW).unwrap();
                if naive.accepted.insert((*sender, *seq)) {
                    for sample in &samples {
                        naive.add(sample);
                    }
                }
            }
            Step::Checkpoint { hours } => {
                store.checkpoint(NOW.plus(hours * HOUR)).unwrap();
            }
            Step::Seal => {
                store.seal(NOW, HOUR, &|_| true).unwrap();
            }
            Step::Restart => {
                drop((store, appender));
                (store, appender) = open();
            }
        }
    }
    naive.compare(&store, &ids);
    store.checkpoint(NOW).unwrap();
    naive.compare(&store, &ids);
    drop((store, appender));
    let (store, appender) = open();
    naive.compare(&store, &ids);
    drop(appender);
}

fn any_histogram() -> impl Strategy<Value = Histogram> {
    let buckets = || prop::collection::btree_map(-6..6_i32, 1..9_u32, 0..5);
    (0..3_i8, 0..4_u32, buckets(), buckets()).prop_map(|(schema, zero, positive, negative)| {
        let side = |buckets: &BTreeMap<i32, u32>| -> Vec<Bucket> {
            let bucket =
                |(index, count): (&i32, &u32)| Bucket { index: *index, count: f64::from(*count) };
            buckets.iter().map(bucket).collect()
        };
        let (positive, negative) = (side(&positive), side(&negative));
        let all = positive.iter().chain(&negative).map(|bucket| bucket.count);
        let count = all.sum::<f64>() + f64::from(zero);
        Histogram {
            zero_threshold: ZERO_THRESHOLD,
            zero_count: f64::from(zero),
            count,
            sum: count * 2.5,
            positive,
            negative,
            ..Histogram::empty(schema)
        }
    })
}

fn any_sample() -> impl Strategy<Value = Sample> {
    let age = prop_oneof![6 => 0..2 * HOUR, 3 => 0..72 * HOUR, 1 => 0..20 * DAY];
    let start = prop_oneof![3 => Just(0), 1 => 0..2 * HOUR];
    (0..SERIES, age, start, any_histogram()).prop_map(|(series, age, start, histogram)| Sample {
        series,
        at: NOW.0 - age,
        start: if start == 0 { 0 } else { NOW.0 - start },
        histogram,
    })
}

fn any_step() -> impl Strategy<Value = Step> {
    let samples = prop::collection::vec(any_sample(), 1..30);
    prop_oneof![
        8 => (0..3_u8, 1..20_u64, samples)
            .prop_map(|(sender, seq, samples)| Step::Send { sender, seq, samples }),
        3 => (0..3_i64).prop_map(|hours| Step::Checkpoint { hours }),
        1 => Just(Step::Seal),
        2 => Just(Step::Restart),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]
    #[test]
    fn every_cell_of_histograms_equals_a_naive_model(
        segment_documents_min in prop::sample::select(vec![1, 512]),
        is_default in any::<bool>(),
        steps in prop::collection::vec(any_step(), 1..16)
    ) {
        let other = granularities(&[["1s", "1m", "1h", "6h"], ["1m", "1h", "6h", "2d"]]);
        let set = if is_default { GranularitySet::default() } else { other };
        run(&set, segment_documents_min, &steps);
    }

    #[test]
    fn a_row_of_histograms_is_read_as_it_was_written_and_a_damaged_one_is_refused(
        cells in prop::collection::btree_map(0..64_u32, (any_histogram(), any_histogram()), 1..5),
        at: usize, flip in 1..=255_u8
    ) {
        let cell = |(total, last): (Histogram, Histogram)| {
            let mut cell = HistogramCell::single(7, last.clone(), total);
            cell.merge(&HistogramCell::single(900, last.emptied(), last));
            cell
        };
        let cells: entries::Entries =
            cells.into_iter().map(|(number, pair)| (number, cell(pair))).collect();
        let mut bytes = entries::encode(&cells, 5).unwrap();
        let one = *cells.keys().next().unwrap();
        let read = entries::decode(&bytes, 5, |number| number == one).unwrap();
        prop_assert_eq!(read.len(), 1);
        prop_assert_eq!(entries::decode(&bytes, 5, |_| true), Some(cells));
        prop_assert_eq!(entries::decode(&bytes, 6, |_| true), None);
        let at = at % bytes.len();
        bytes[at] ^= flip;
        prop_assert_eq!(entries::decode(&bytes, 5, |_| true), None);
    }
}

#[test]
fn a_late_reading_takes_its_part_from_the_reading_after_it_whose_slot_is_in_a_document() {
    let histogram = |count: u32| Histogram {
        count: f64::from(count),
        sum: f64::from(count),
        zero_threshold: ZERO_THRESHOLD,
        positive: vec![Bucket { index: 1, count: f64::from(count) }],
        ..Histogram::empty(3)
    };
    let at = |minutes: i64| NOW.0 - 600 * MINUTE + minutes * MINUTE;
    let sample = |minutes, count| Sample {
        series: 0,
        at: at(minutes),
        start: 0,
        histogram: histogram(count),
    };
    let steps = [
        Step::Send { sender: 0, seq: 1, samples: vec![sample(0, 5), sample(180, 25)] },
        Step::Checkpoint { hours: 0 },
        Step::Restart,
        Step::Send { sender: 0, seq: 2, samples: vec![sample(60, 12)] },
        Step::Checkpoint { hours: 0 },
        Step::Seal,
        // A reset.
        Step::Send { sender: 0, seq: 3, samples: vec![sample(200, 3)] },
    ];
    run(&GranularitySet::default(), 1, &steps);
}

fn wide_histogram() -> Histogram {
    let mut histogram = Histogram::sketch();
    (1..500).for_each(|value| histogram.observe(f64::from(value), 1.0));
    histogram.positive.shrink_to_fit();
    histogram
}

#[test]
fn histograms_are_reserved_one_by_one_until_there_is_no_room() {
    let dir = tempfile::tempdir().unwrap();
    let (store, mut appender) = setup::open(dir.path(), NOW);
    let info = setup::series("m", &[], Kind::GaugeHistogram);
    let ids = setup::define(&mut appender, &[info], NOW);
    let histogram = wide_histogram();
    let mut send = |minutes: i64| {
        let mut batch = setup::samples(ids[0], []);
        for minute in 0..10 {
            let at = NOW.minus((minutes - minute) * MINUTE);
            batch.push_histogram(ids[0], at, histogram.clone());
        }
        setup::send(&mut appender, batch, NOW);
    };
    let all = |room: usize| {
        let (mut asked, mut reserved) = (0, 0);
        let level = GranularityIndex::FINEST;
        let view = store.view(level, NOW.minus(9 * HOUR)..NOW, &ids).unwrap();
        let found = view.histogram_slots(ids[0], &mut |bytes| {
            (asked, reserved) = (asked + 1, reserved + bytes);
            let file = "no room".to_owned();
            let is_full = reserved > room;
            if is_full { Err(StoreError::Mismatch { problem: file.clone(), file }) } else { Ok(()) }
        });
        (asked, found.map(|slots| slots.len()).ok())
    };
    // A cell has three histograms.
    let is_refused_early = || {
        let (asked, found) = all(7 * histogram.bytes());
        assert!((1..4).contains(&asked) && found.is_none(), "{asked} {found:?}");
    };
    // In documents, in the head, and in memory.
    send(6 * 60);
    store.checkpoint(NOW).unwrap();
    is_refused_early();
    send(10);
    assert_eq!(all(usize::MAX).1, Some(20));
    is_refused_early();
    store.checkpoint(NOW).unwrap();
    assert_eq!(all(usize::MAX).1, Some(20));
    is_refused_early();
}

#[test]
fn a_batch_of_histograms_takes_the_room_of_its_cells_and_readings() {
    let dir = tempfile::tempdir().unwrap();
    let (store, mut appender) = setup::open(dir.path(), NOW);
    let ids = setup::define(&mut appender, &[setup::series("m", &[], Kind::Histogram)], NOW);
    let histogram = wide_histogram();
    let mut batch = setup::samples(ids[0], []);
    batch.push_histogram(ids[0], NOW, histogram.clone());
    let bytes = histogram.bytes();
    let takes = |times: usize| {
        let bounds = CheckpointBounds { cell_bytes_max: times * bytes, journal_bytes_max: 1 << 30 };
        let mut room = store.room(&bounds, NOW);
        (0..4).map(|_| room.take(std::slice::from_ref(&batch))).collect::<Vec<_>>()
    };
    // Three histograms of the cell, one of both buckets, and the remembered reading; the room is
    // twice the bytes from which a checkpoint is due.
    assert_eq!(takes(5), [true, false, false, false]);
    assert_eq!(takes(6), [true, true, false, false]);
    assert!(takes(40).iter().all(|taken| *taken));
}
