//! Series that are split over several stores: aggregations of their states and of their cells
//! return what one store with all series returns.

mod lists;

use std::{sync::Arc, time::Duration};

use granary::{
    model::{Kind, SeriesId},
    query::{
        AGGREGATE, CELLS, ExpressionLimits, GRAPHITE, OtherShards, PromqlRequest, PromqlValue,
        QueryError, QueryResources, READINGS, ReserveBytes, SERIES_COUNTS, Scheduler,
        ShardsOfProject, TSDB_STATUS, aggregate_of_question, cells_of_question,
        graphite_of_question, promql, readings_of_question, series_counts_of_shard,
        tsdb_status_of_shard,
    },
    store::Store,
};
use parking_lot::Mutex;

use super::{Fixture, LIMITS, NOW, fixture, format_value, request};
use crate::setup::MINUTE;

/// The length of the samples.
const SAMPLES_MS: i64 = 40 * MINUTE;
const SHARDS: usize = 3;
const HOSTS: usize = 17;

/// The stores of other shards, with the kinds of their answers and their bytes.
#[derive(Debug, Default)]
struct Others {
    stores: Vec<Store>,
    answers: Mutex<Vec<(String, usize)>>,
}

fn resources() -> QueryResources {
    QueryResources::new(Scheduler::for_this_machine(), usize::MAX)
}

impl OtherShards for Others {
    fn count(&self) -> usize {
        self.stores.len()
    }

    fn ask(
        &self,
        _: &str,
        (kind, question): (&str, &[u8]),
        time_max: Duration,
        reserve: &ReserveBytes<'_>,
    ) -> Result<Vec<Vec<u8>>, QueryError> {
        let answer = |store: &Store| {
            let budget = resources().budget(time_max);
            let limits = ExpressionLimits { budget: &budget, ..LIMITS };
            let answer = match kind {
                CELLS => cells_of_question(store, question, &limits, NOW),
                AGGREGATE => aggregate_of_question(store, question, &limits, NOW),
                GRAPHITE => graphite_of_question(store, question, &limits),
                READINGS => readings_of_question(store, question, &limits),
                SERIES_COUNTS => series_counts_of_shard(store, &budget),
                TSDB_STATUS => tsdb_status_of_shard(store, &limits),
                other => Err(QueryError::Invalid(other.to_owned())),
            }?;
            assert!(reserve(answer.len()));
            self.answers.lock().push((kind.to_owned(), answer.len()));
            Ok(answer)
        };
        self.stores.iter().map(answer).collect()
    }
}

/// One store with all series, and the stores of shards.
struct Split {
    whole: Fixture,
    shards: Vec<Fixture>,
    others: Arc<Others>,
    resources: QueryResources,
}

impl Split {
    fn new() -> Self {
        let shards: Vec<_> = (0..SHARDS).map(|_| fixture()).collect();
        let stores = shards[1..].iter().map(|shard| shard.store().clone()).collect();
        let others = Arc::new(Others { stores, answers: Mutex::default() });
        let of_project = ShardsOfProject::new(others.clone(), "default");
        let resources = resources().with_others(Some(of_project));
        Self { whole: fixture(), shards, others, resources }
    }

    /// Fills a series of the whole and of one shard.
    fn fill(
        &mut self,
        (metric, tags, kind): (&str, &[(&str, &str)], Kind),
        shard: usize,
        value: impl Fn(i64) -> Option<f64> + Copy,
    ) {
        for fixture in [&mut self.whole, &mut self.shards[shard]] {
            let id: SeriesId = fixture.define(metric, tags, kind);
            let is_within = |index: i64| index * MINUTE / 2 < SAMPLES_MS;
            fixture.fill(id, MINUTE / 2, |index| value(index).filter(|_| is_within(index)));
        }
    }

    /// Fills gauges and counters of hosts, whose values have few binary digits.
    fn of_hosts() -> Self {
        let mut split = Self::new();
        for host in 0..HOSTS {
            let (name, dc) = (format!("h{host}"), format!("dc{}", host * 7 % 4));
            let tags = [("host", &*name), ("dc", &*dc)];
            let number = host as i64;
            let level = |index: i64| Some(((number * 13 + index * 7) % 29) as f64 / 4.0);
            split.fill(("g", &tags, Kind::Gauge), host % SHARDS, level);
            let total = |index: i64| Some((index * (number + 1)) as f64 * 16.0);
            split.fill(("c", &tags, Kind::Counter), (host + 1) % SHARDS, total);
        }
        split
    }

    /// Returns the answers of one store and of shards, and the kinds and bytes of their answers.
    fn both(&self, query: &str, step: i64) -> [PromqlValue; 2] {
        self.others.answers.lock().clear();
        let start = if step == 0 { SAMPLES_MS - MINUTE } else { 10 * MINUTE };
        let request = PromqlRequest {
            delayed_name_removal: true,
            ..request(query, start, SAMPLES_MS - MINUTE, step)
        };
        let whole = promql(self.whole.store(), &request, &LIMITS, NOW).unwrap();
        let budget = self.resources.budget(Duration::from_secs(600));
        let limits = ExpressionLimits { budget: &budget, ..LIMITS };
        let shards = promql(self.shards[0].store(), &request, &limits, NOW).unwrap();
        assert_eq!((whole.warnings, whole.infos), (shards.warnings, shards.infos), "{query}");
        [whole.value, shards.value]
    }

    /// Compares both answers, and returns the kinds and bytes of the shards' answers.
    fn check(&self, query: &str, step: i64) -> Vec<(String, usize)> {
        let [whole, shards] = self.both(query, step);
        assert_eq!(format_value(&shards), format_value(&whole), "{query} {step}");
        self.others.answers.lock().clone()
    }
}

fn is_of_states(answers: &[(String, usize)]) -> bool {
    !answers.is_empty() && answers.iter().all(|(kind, _)| kind == AGGREGATE)
}

#[test]
fn states_of_shards_add_up_to_the_aggregations_of_one_store() {
    let split = Split::of_hosts();
    for query in [
        "sum(g)",
        "sum by (dc) (g)",
        "avg without (host) (g)",
        "count by (dc) (g)",
        "group by (dc) (g)",
        "min(g)",
        "max by (dc) (g)",
        "topk(3, g)",
        "topk by (dc) (1, g)",
        "bottomk(2, rate(c[5m]))",
        "limitk(4, g)",
        "sum(rate(c[5m]))",
        "sum by (host) (increase(c[10m]))",
        "max by (dc) (max_over_time(g[7m] offset 3m))",
        "sum(-g * 2 + 1)",
        "count(g > bool 3)",
        "count(g > 3)",
        "sum(-(g == 4) * 2)",
        "sum by (__name__) ({__name__=~\"g|c\"})",
        "sum(g @ end())",
        "sum(missing)",
        "topk(2, sum by (dc) (rate(c[5m])))",
        "sum by (dc) (g) / count by (dc) (g)",
        "max_over_time(sum(g)[5m:1m])",
        "sum(g)[5m:1m]",
    ] {
        for step in [0, MINUTE, 3 * MINUTE] {
            if step > 0 && query.ends_with(']') {
                continue;
            }
            let answers = split.check(query, step);
            assert!(is_of_states(&answers), "{query} {step}: {answers:?}");
        }
    }
    // These need the series.
    for query in ["g", "quantile(0.5, g)", "stddev(g)", "sum(sort(g))", "topk(scalar(max(g)), g)"] {
        let answers = split.check(query, MINUTE);
        assert!(answers.iter().any(|(kind, _)| kind == CELLS), "{query}: {answers:?}");
    }
}

#[test]
fn sums_of_any_numbers_differ_in_the_last_bits_only() {
    let mut split = Split::new();
    for host in 0..HOSTS {
        let name = format!("h{host}");
        let tags = [("host", &*name)];
        let number = (host + 1) as f64;
        let level =
            |index: i64| Some((number * (index as f64 + 0.1)).sin() * 10_f64.powi(host as i32 - 8));
        split.fill(("g", &tags, Kind::Gauge), host % SHARDS, level);
    }
    for (query, step) in [("sum(g)", 0), ("avg(g)", MINUTE), ("sum(g)", MINUTE)] {
        let numbers = |value: PromqlValue| -> Vec<f64> {
            match value {
                PromqlValue::Vector(samples) => samples.iter().map(|sample| sample.value).collect(),
                PromqlValue::Matrix(series) => series
                    .iter()
                    .flat_map(|line| line.points.iter().map(|(_, value)| value))
                    .collect(),
                other @ (PromqlValue::Scalar(..) | PromqlValue::String(..)) => panic!("{other:?}"),
            }
        };
        let [whole, shards] = split.both(query, step).map(numbers);
        assert_eq!(whole.len(), shards.len());
        assert!(!whole.is_empty());
        for (one, other) in whole.iter().zip(&shards) {
            assert!(
                (one - other).abs() <= 4.0 * f64::EPSILON * one.abs(),
                "{query}: {one} {other}"
            );
        }
        // The order of the shards is always the same.
        let again = numbers(split.both(query, step)[1].clone());
        assert_eq!(again, shards);
    }
}

#[test]
fn a_series_of_two_shards_counts_once() {
    let mut split = Split::of_hosts();
    // Each shard has every other sample.
    let tags = [("host", "both")];
    let id = split.whole.define("g", &tags, Kind::Gauge);
    split.whole.fill(id, MINUTE / 2, |index| (index < 80).then_some(4.0));
    for shard in [0, 2] {
        let fixture = &mut split.shards[shard];
        let id = fixture.define("g", &tags, Kind::Gauge);
        let first = if shard == 0 { 0 } else { MINUTE / 2 };
        fixture.fill_from(id, first, MINUTE, |index| (index < 40).then_some(4.0));
    }
    for query in ["count(g)", "sum(g)", "sum(count_over_time(g[10m]))"] {
        let answers = split.check(query, 0);
        assert!(answers.iter().any(|(kind, _)| kind == CELLS), "{query}: {answers:?}");
        // States that could not be merged are not asked for again.
        let again = split.check(query, 0);
        assert!(again.iter().all(|(kind, _)| kind == CELLS), "{query}: {again:?}");
    }
    // Other series are in one shard each.
    assert!(is_of_states(&split.check("sum(c)", 0)));
}

#[test]
fn a_series_without_a_value_in_one_of_two_shards_counts_once() {
    let mut split = Split::of_hosts();
    // The first shard has the older samples, the last shard the newer ones.
    let tags = [("host", "moved")];
    let newer = SAMPLES_MS - 2 * MINUTE;
    let older = |index: i64| (index * MINUTE / 2 < newer).then_some(50.0);
    let newest = |index: i64| (index < 4).then_some(1.0);
    let id = split.whole.define("g", &tags, Kind::Gauge);
    split.whole.fill(id, MINUTE / 2, older);
    split.whole.fill_from(id, newer, MINUTE / 2, newest);
    let id = split.shards[0].define("g", &tags, Kind::Gauge);
    split.shards[0].fill(id, MINUTE / 2, older);
    let id = split.shards[2].define("g", &tags, Kind::Gauge);
    split.shards[2].fill_from(id, newer, MINUTE / 2, newest);
    for query in ["count(g > 30)", "sum(g > 3)", "topk(1, g > 3)"] {
        let answers = split.check(query, 0);
        assert!(answers.iter().any(|(kind, _)| kind == CELLS), "{query}: {answers:?}");
    }
}

#[test]
fn candidates_of_other_shards_take_memory_for_their_labels() {
    let mut split = Split::new();
    let long = "x".repeat(1000);
    for host in 0..HOSTS {
        let tags = [("host", &*format!("{host}{long}"))];
        split.fill(("g", &tags, Kind::Gauge), host % SHARDS, |_| Some(1.0));
    }
    let request = request("topk(100, g)", SAMPLES_MS - MINUTE, SAMPLES_MS - MINUTE, 0);
    let budget = split.resources.budget(Duration::from_secs(600));
    let limits = ExpressionLimits { budget: &budget, ..LIMITS };
    promql(split.shards[0].store(), &request, &limits, NOW).unwrap();
    let answers = split.others.answers.lock().clone();
    assert!(is_of_states(&answers), "{answers:?}");
    let sent: usize = answers.iter().map(|(_, bytes)| bytes).sum();
    assert!(budget.reserved() > sent + sent * 9 / 10, "{} {sent}", budget.reserved());
}

#[test]
fn shards_send_the_series_that_the_asking_node_does_not_know() {
    let mut split = Split::of_hosts();
    let bytes = |split: &Split| -> usize {
        let answers = split.check("sum(rate(c[5m]))", 0);
        assert!(is_of_states(&answers), "{answers:?}");
        answers.iter().map(|(_, bytes)| bytes).sum()
    };
    let (first, second) = (bytes(&split), bytes(&split));
    assert!(first >= second + 8 * (HOSTS - HOSTS.div_ceil(SHARDS)), "{first} {second}");
    let total = |index: i64| Some(index as f64);
    split.fill(("c", &[("host", "new")], Kind::Counter), 1, total);
    let third = bytes(&split);
    assert!(third > second && third < first, "{first} {second} {third}");
    assert_eq!(bytes(&split), second);
}

/// The cells of one series, for comparison: see the bytes with `--nocapture`.
#[test]
fn results_are_much_smaller_than_cells() {
    let split = Split::of_hosts();
    for query in ["sum by (dc) (rate(c[5m]))", "topk(1, rate(c[5m]))", "avg(g)"] {
        let sum = |answers: Vec<(String, usize)>| answers.iter().map(|(_, bytes)| bytes).sum();
        let states: usize = sum(split.check(query, MINUTE));
        // An aggregation of sorted series reads their cells.
        let (before, inner) = query.rsplit_once("rate").unwrap_or(("", ""));
        let cells = match inner {
            "" => "avg(sort(g))".to_owned(),
            inner => format!("{before}sort(rate{inner})"),
        };
        let cells: usize = sum(split.check(&cells, MINUTE));
        eprintln!("{query}: {states} bytes of states, {cells} of cells");
        assert!(states * 2 < cells, "{query}: {states} {cells}");
    }
}

#[test]
fn a_damaged_question_is_refused() {
    let split = Split::of_hosts();
    for question in ["", "{}", "[1]"] {
        let answer = aggregate_of_question(split.whole.store(), question.as_bytes(), &LIMITS, NOW);
        assert!(matches!(answer, Err(QueryError::Invalid(_))), "{question}");
    }
}
