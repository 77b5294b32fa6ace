//! Percentiles and distributions of charts and rows, compared with the raw observations.

use std::collections::BTreeMap;

use granary::{
    model::{AcceptedBatch, Histogram, Kind, UnixMillis},
    query::{
        Budget, ChartAnswer, ChartRequest, QueryError, QueryLimits, Resolution, Selector,
        SeriesMerge, chart,
    },
    store::Store,
};

use crate::setup::{self, HOUR, MINUTE, NOW, SIX, define, series};

const LEVELS: [(&str, i64); 4] =
    [("1m", MINUTE), ("5m", 5 * MINUTE), ("1h", HOUR), ("1d", 24 * HOUR)];
const PERCENTILES: [(&str, f64); 4] = [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)];
const SHAPES: usize = 3;
const OBSERVATIONS_PER_MINUTE: usize = 20;
const START: UnixMillis = UnixMillis(SIX.0 - 28 * HOUR);

/// Reproducible numbers from 0 to 1.
struct Uniform(u64);

impl Uniform {
    fn next(&mut self) -> f64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963);
        ((self.0 >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    /// Returns a latency in seconds: a long tail, an even range, or hits and misses of a cache.
    fn latency(&mut self, shape: usize) -> f64 {
        match shape {
            0 => 0.02 * self.next().powf(-0.6),
            1 => 0.1 + 0.4 * self.next(),
            _ if self.next() < 0.8 => 0.001 * (1.0 + self.next()),
            _ => 0.3 * (1.0 + self.next()),
        }
    }
}

struct Observed {
    store: Store,
    /// Shape, time, and number of each observation.
    raw: Vec<(usize, i64, f64)>,
    _dir: tempfile::TempDir,
}

/// Returns a store with a series for each shape, half of it checkpointed.
fn observe(kind: Kind) -> Observed {
    let dir = tempfile::tempdir().unwrap();
    let (store, mut appender) = setup::open(dir.path(), START);
    let infos: Vec<_> =
        (0..SHAPES).map(|n| series("latency", &[("shape", &n.to_string())], kind)).collect();
    let ids = define(&mut appender, &infos, START);
    let mut totals = vec![Histogram::sketch(); SHAPES];
    let (mut raw, mut uniform) = (Vec::new(), Uniform(7));
    let mut send = |totals: &mut Vec<Histogram>, at: i64, count: usize| {
        let mut batch = AcceptedBatch::default();
        for (shape, total) in totals.iter_mut().enumerate() {
            if kind == Kind::DeltaHistogram {
                *total = Histogram::sketch();
            }
            for _ in 0..count {
                let value = uniform.latency(shape);
                total.observe(value, 1.0);
                raw.push((shape, at, value));
            }
            batch.push_histogram(ids[shape], UnixMillis(at), total.clone());
        }
        setup::send(&mut appender, batch, UnixMillis(at));
    };
    // The first reading of a counter counts nothing.
    send(&mut totals, START.0, 0);
    for minute in 1..(SIX.0 - START.0) / MINUTE {
        send(&mut totals, START.0 + minute * MINUTE, OBSERVATIONS_PER_MINUTE);
        if minute == 14 * 60 {
            store.checkpoint(UnixMillis(START.0 + minute * MINUTE)).unwrap();
        }
    }
    Observed { store, raw, _dir: dir }
}

fn request(resolution: &str, displays: &[&str], merge: SeriesMerge) -> ChartRequest {
    ChartRequest {
        displays: displays.iter().map(|word| word.parse().unwrap()).collect(),
        merge,
        ..ChartRequest::new(
            Selector { metric: Some("latency".into()), tags: Vec::new() },
            Resolution::Named(resolution.to_owned()),
            START..SIX,
        )
    }
}

fn ask(store: &Store, budget: &Budget, request: &ChartRequest) -> Result<ChartAnswer, QueryError> {
    chart(store, budget, request, &QueryLimits::new(10, 1_000_000), NOW)
}

impl Observed {
    /// Returns the sorted observations of each slot; all shapes when `None`.
    fn slots(&self, shape: Option<usize>, width: i64) -> BTreeMap<i64, Vec<f64>> {
        let mut slots: BTreeMap<_, Vec<f64>> = BTreeMap::new();
        for (_, at, value) in self.raw.iter().filter(|(of, ..)| shape.is_none_or(|s| s == *of)) {
            slots.entry(at - at.rem_euclid(width)).or_default().push(*value);
        }
        for values in slots.values_mut() {
            values.sort_by(f64::total_cmp);
        }
        slots
    }

    fn check_percentiles(&self, merge: &SeriesMerge) {
        let words = PERCENTILES.map(|(word, _)| word);
        for (resolution, width) in LEVELS {
            let request = request(resolution, &words, merge.clone());
            let answer = ask(&self.store, &Budget::UNLIMITED, &request).unwrap();
            assert_eq!((answer.resolution.as_str(), answer.notes.len()), (resolution, 0));
            for (index, line) in answer.series.iter().enumerate() {
                let is_merged = *merge == SeriesMerge::All;
                let slots = self.slots((!is_merged).then_some(index / PERCENTILES.len()), width);
                let (word, share) = PERCENTILES[index % PERCENTILES.len()];
                assert_eq!(line.display, word);
                let filled = line.points.iter().filter(|(_, number)| number.is_some());
                assert_eq!(filled.count(), slots.len(), "{word} of {resolution}");
                for (start, number) in &line.points {
                    let Some(number) = number else { continue };
                    assert_percentile(*number, share, &slots[start]);
                }
            }
            let lines = if *merge == SeriesMerge::All { 1 } else { SHAPES };
            assert_eq!(answer.series.len(), lines * PERCENTILES.len());
        }
    }
}

/// Asserts a relative error of at most 1 %. A rank between two observations is either of them.
fn assert_percentile(number: f64, share: f64, sorted: &[f64]) {
    let rank = share * sorted.len() as f64;
    let lower = sorted[((rank - 1e-6).ceil() as usize).saturating_sub(1)];
    let upper = sorted[((rank + 1e-6).floor() as usize).min(sorted.len() - 1)];
    let range = lower * 0.99..=upper * 1.01;
    assert!(range.contains(&number), "{share}: {number} is outside {range:?}");
}

#[test]
fn percentiles_are_at_most_1_percent_off_at_every_level_and_merged() {
    for kind in [Kind::DeltaHistogram, Kind::Histogram] {
        let observed = observe(kind);
        for merge in [SeriesMerge::Nothing, SeriesMerge::All] {
            observed.check_percentiles(&merge);
        }
    }
}

#[test]
fn the_buckets_of_a_distribution_contain_each_observation_once() {
    let observed = observe(Kind::DeltaHistogram);
    let request = request("1h", &["distribution"], SeriesMerge::All);
    let answer = ask(&observed.store, &Budget::UNLIMITED, &request).unwrap();
    let [line] = &answer.series[..] else { panic!("{answer:?}") };
    let distribution = line.distribution.as_ref().unwrap();
    let slots = observed.slots(None, HOUR);
    for ((start, number), counts) in line.points.iter().zip(&distribution.counts) {
        let Some(values) = slots.get(start) else { continue };
        assert_eq!(*number, Some(values.len() as f64));
        for ((lower, upper), count) in distribution.bounds.iter().zip(counts) {
            let (lower, upper) = (lower.unwrap(), upper.unwrap());
            let inside = values.iter().filter(|value| lower < **value && **value <= upper);
            assert_eq!(*count, inside.count() as f64, "{lower} to {upper}");
        }
        assert_eq!(counts.iter().sum::<f64>(), values.len() as f64);
    }
}

#[test]
fn percentiles_of_numbers_and_beyond_the_memory_of_queries_are_refused() {
    let observed = observe(Kind::DeltaHistogram);
    let percentiles = request("1m", &["p99"], SeriesMerge::All);
    // Cells of the same slots fit.
    let budget = || Budget::of_memory(1_000_000);
    let counts = request("1m", &["total"], SeriesMerge::All);
    ask(&observed.store, &budget(), &counts).unwrap();
    let refused = ask(&observed.store, &budget(), &percentiles).unwrap_err();
    assert!(!matches!(refused, QueryError::Invalid(_)), "{refused}");

    let dir = tempfile::tempdir().unwrap();
    let (store, mut appender) = setup::open(dir.path(), START);
    let ids = define(&mut appender, &[series("latency", &[], Kind::Gauge)], START);
    setup::send(&mut appender, setup::samples(ids[0], [(START.0, 1.0)]), START);
    let refused = ask(&store, &Budget::UNLIMITED, &percentiles).unwrap_err().to_string();
    let told = "display=p99 needs histograms, but latency is a gauge: choose another number";
    assert!(refused.contains(told), "{refused}");
}
