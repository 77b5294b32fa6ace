//! Evaluation in chunks compared with evaluation as a whole, and its limits.

use std::time::Duration;

use proptest::{
    collection::vec,
    prelude::{Just, Strategy, any, prop_oneof},
    sample::select,
    test_runner::{Config, TestRunner},
};

use crate::{
    model::Kind,
    query::{
        Budget, ExpressionLimits, PromqlAnswer, PromqlRequest, PromqlValue, QueryError,
        QueryResources, Scheduler,
        promql::{parse::parse, selectors::sizes::ChunkSizes, tests::LIMITS},
    },
    setup::{self, MINUTE, NOW, samples, send},
    store::{Appender, Store},
};

/// The sizes with which all series are read together.
const WHOLE: ChunkSizes = ChunkSizes { view: 1 << 20, part: 1000, bytes: 1 << 30 };
const SMALL: ChunkSizes = ChunkSizes { view: 3, part: 2, bytes: 0 };
const STALE_MARKER: f64 = f64::from_bits(0x7ff0_0000_0000_0002);

const INPUTS: [&str; 44] = [
    "a_total",
    "g",
    "(g offset 4m)",
    "{__name__=~'a_total|g'}",
    "rate(a_total[5m])",
    "increase(a_bucket[10m])",
    "irate(a_total[5m])",
    "rate({__name__=~'a_total|d'}[5m])",
    "rate(g[5m])",
    "delta(g[5m])",
    "avg_over_time(g[7m])",
    "avg_over_time({__name__=~'g|a_total'}[1h])",
    "max_over_time(g[5m] offset 3m)",
    "sum_over_time({__name__=~'g|d'}[5m])",
    "count_over_time(g[5m])",
    "last_over_time({__name__=~'g|d'}[90s])",
    "stddev_over_time(g[5m])",
    "quantile_over_time(2, g[5m])",
    "changes(a_total[5m])",
    "deriv(g[5m])",
    "predict_linear(g[5m], 60)",
    "forecast(g[20m], 60, 0.9)",
    "-g",
    "-{__name__=~'a_total|g'}",
    "g * 8",
    "g + time()",
    "1 / rate(a_total[5m])",
    "g > 1",
    "2 > bool g",
    "g * scalar(sum(d))",
    "timestamp(g)",
    "timestamp((a_total offset 2m))",
    "timestamp({__name__=~'a_total|g'})",
    "abs(g)",
    "abs({__name__=~'g|d'})",
    "round(rate(a_total[5m]), 0.01)",
    "clamp(ln(-g), -1, time() / 1e9)",
    "clamp_max(g, scalar(sum(d)))",
    "sqrt(g > 1) * 2",
    "minute(g @ end())",
    "histogram_count(g)",
    "max_over_time(rate(a_total[2m])[10m:1m])",
    "g or a_total",
    "g and on (host) a_total",
];

const AGGREGATIONS: [&str; 20] = [
    "sum",
    "avg",
    "min",
    "max",
    "count",
    "group",
    "stddev",
    "stdvar",
    "topk 1,",
    "topk 3,",
    "topk 0,",
    "topk NaN,",
    "topk time() % 4,",
    "bottomk 2,",
    "quantile 0.6,",
    "quantile 1.5,",
    "limitk 2,",
    "limit_ratio 0.4,",
    "limit_ratio -3,",
    "count_values 'v',",
];

const GROUPINGS: [&str; 6] =
    ["", "by (host)", "by (dc, le)", "by (__name__)", "without (host)", "without (dc, le)"];

#[derive(Debug)]
struct SeriesValues {
    metric: usize,
    host: u8,
    dc: u8,
    described: bool,
    first_minute: i64,
    values: Vec<f64>,
}

fn series_values() -> impl Strategy<Value = SeriesValues> {
    let value = prop_oneof![
        8 => (0_u32..1000).prop_map(|value| f64::from(value) * 0.1),
        4 => any::<i8>().prop_map(f64::from),
        1 => select(&[f64::NAN, f64::INFINITY, -0.0, 0.0, 1e308, 5e-324, STALE_MARKER][..]),
    ];
    let place = (0_usize..4, any::<u8>(), 0_u8..3, any::<bool>());
    (place, 0_i64..40, vec(value, 1..60)).prop_map(|(place, first_minute, values)| {
        let (metric, host, dc, described) = place;
        SeriesValues { metric, host, dc, described, first_minute, values }
    })
}

fn aggregation() -> impl Strategy<Value = String> {
    let parts = (select(&AGGREGATIONS[..]), select(&GROUPINGS[..]), select(&INPUTS[..]));
    parts.prop_map(|(aggregation, grouping, input)| {
        let (name, parameter) = aggregation.split_once(' ').unwrap_or((aggregation, ""));
        format!("{name} {grouping} ({parameter} {input})")
    })
}

fn expression() -> impl Strategy<Value = String> {
    (0_usize..7, aggregation(), aggregation()).prop_map(|(form, left, right)| match form {
        0 => format!("topk(2, {left})"),
        1 => format!("histogram_quantile(0.9, {left})"),
        2 => format!("{left} / {right}"),
        3 => format!("({left} or {right}) * 2"),
        4 => format!("max_over_time(({left})[10m:2m])"),
        _ => left,
    })
}

fn fill(all: &[SeriesValues], (store, appender): (&Store, &mut Appender), written: bool) {
    for (index, series) in all.iter().enumerate() {
        let (metric, kind) = [
            ("a_total", Kind::Counter),
            ("a_bucket", Kind::Counter),
            ("g", Kind::Gauge),
            ("d", Kind::Delta),
        ][series.metric];
        let (host, dc) = (series.host.to_string(), series.dc.to_string());
        let mut tags = vec![("dc", &*dc), ("host", &*host)];
        let le = ["1", "5", "+Inf"][index % 3];
        if metric == "a_bucket" {
            tags.push(("le", le));
        }
        if series.described {
            tags.push(("__type__", "gauge"));
        }
        let series_info = setup::series(metric, &tags, kind);
        let id = setup::define(appender, &[series_info], NOW)[0];
        let first = NOW.minus((100 - series.first_minute) * MINUTE).0;
        // Series of a fifth of the hosts have two samples in each slot.
        let every = if series.host % 5 == 0 { MINUTE / 2 } else { MINUTE };
        let times = (0..).map(|i| first + i * every + i64::from(series.host));
        let batch = samples(id, times.zip(series.values.iter().copied()));
        appender.commit(&[], &[batch], NOW).unwrap();
    }
    if written {
        store.checkpoint(NOW).unwrap();
    }
}

fn answer(
    store: &Store,
    request: &PromqlRequest,
    limits: &ExpressionLimits<'_>,
    sizes: ChunkSizes,
) -> Result<PromqlAnswer, QueryError> {
    let parsed = parse(&request.query, limits)?;
    super::answer(store, &parsed, request, limits, (NOW, sizes))
}

/// Returns an answer as text, with the bits of each number.
fn described(answer: Result<PromqlAnswer, QueryError>) -> String {
    let PromqlAnswer { value, warnings, infos } = match answer {
        Ok(answer) => answer,
        Err(error) => return format!("error: {error}"),
    };
    let lines: Vec<_> = match value {
        PromqlValue::Vector(samples) => samples
            .iter()
            .map(|sample| format!("{} {:x}", sample.labels, sample.value.to_bits()))
            .collect(),
        PromqlValue::Matrix(series) => series
            .iter()
            .map(|line| {
                let points = line.points.iter().map(|(at, v)| format!(" {at}:{:x}", v.to_bits()));
                format!("{}{}", line.labels, points.collect::<String>())
            })
            .collect(),
        PromqlValue::Scalar(..) | PromqlValue::String(..) => vec![format!("{value:?}")],
    };
    format!("{lines:?} {warnings:?} {infos:?}")
}

fn request(query: &str, minutes_ago: i64, steps: i64, delayed: bool) -> PromqlRequest {
    let start = NOW.minus(minutes_ago * MINUTE);
    PromqlRequest {
        query: query.to_owned(),
        start,
        end: start.plus(steps * 2 * MINUTE),
        step_ms: if steps > 0 { 2 * MINUTE } else { 0 },
        lookback_ms: 5 * MINUTE,
        delayed_name_removal: delayed,
    }
}

/// An expression, the minutes before now, the steps, and whether the removal of names is delayed;
/// and the sizes of chunks.
type Query = ((String, i64, i64, bool), ChunkSizes);

#[test]
fn the_sizes_of_chunks_do_not_change_the_answer_of_any_expression() {
    let query = (expression(), 20_i64..100, prop_oneof![Just(0_i64), 1_i64..9], any::<bool>());
    let sizes = (1_usize..9, 1_usize..5, select(&[0_usize, 5000, 20_000][..]))
        .prop_map(|(view, part, bytes)| ChunkSizes { view, part, bytes });
    let case = (vec(series_values(), 1..50), any::<bool>(), vec((query, sizes), 40));
    let config =
        Config { cases: 16, max_shrink_iters: 200, failure_persistence: None, ..Config::default() };
    let has_values = std::cell::Cell::new(0);
    let run = |(series, written, queries): (Vec<SeriesValues>, bool, Vec<Query>)| {
        let dir = tempfile::tempdir().unwrap();
        let (store, mut appender) = setup::open(dir.path(), NOW);
        fill(&series, (&store, &mut appender), written);
        for ((query, minutes_ago, steps, delayed), sizes) in &queries {
            let request = request(query, *minutes_ago, *steps, *delayed);
            let [whole, chunks] =
                [WHOLE, *sizes].map(|sizes| described(answer(&store, &request, &LIMITS, sizes)));
            let has_more = !whole.starts_with("[]") && !whole.starts_with("error");
            has_values.set(has_values.get() + usize::from(has_more));
            assert_eq!(whole, chunks, "{query} {sizes:?}");
        }
        Ok(())
    };
    TestRunner::new(config).run(&case, run).unwrap();
    assert!(has_values.get() > 100, "{has_values:?}");
}

fn store_of_gauges(hosts: usize) -> (Store, tempfile::TempDir) {
    let dir = tempfile::tempdir().unwrap();
    let (store, mut appender) = setup::open(dir.path(), NOW);
    for host in 0..hosts {
        let tags = [("dc", &*(host % 7).to_string()), ("host", &*host.to_string())];
        let id = setup::define(&mut appender, &[setup::series("g", &tags, Kind::Gauge)], NOW)[0];
        send(&mut appender, samples(id, [(NOW.minus(MINUTE).0, host as f64)]), NOW);
    }
    (store, dir)
}

fn instant(store: &Store, query: &str, limits: &ExpressionLimits<'_>) -> String {
    let request = request(query, 0, 0, true);
    match answer(store, &request, limits, SMALL).map(|answer| answer.value) {
        Ok(PromqlValue::Vector(samples)) => {
            let values = samples.iter().map(|sample| sample.value.to_string());
            values.collect::<Vec<_>>().join(" ")
        }
        Ok(other) => format!("{other:?}"),
        Err(error) => format!("error: {error}"),
    }
}

#[test]
fn aggregations_of_more_series_than_the_limit_hold_only_their_result() {
    let (store, _dir) = store_of_gauges(50);
    let limits = ExpressionLimits { series_max: 20, ..LIMITS };
    for (query, expected) in [
        ("sum(g)", "1225"),
        ("count by (dc) (last_over_time(g[5m]))", "8 7 7 7 7 7 7"),
        ("topk(2, g * 2)", "98 96"),
        ("quantile(0.5, g)", "24.5"),
        ("sum(abs(g - 30))", "655"),
        ("quantile(0.5, clamp_max(round(g, 2), 9))", "9"),
        ("count(timestamp(g))", "50"),
        ("topk(1, max by (dc) (g)) / on () count(g)", "0.98"),
    ] {
        assert_eq!(instant(&store, query, &limits), expected, "{query}");
    }
    // The series that an aggregation selected are in the cache, where the limit applies too.
    let resources = QueryResources::new(Scheduler::for_this_machine(), usize::MAX);
    let budget = resources.budget(Duration::MAX);
    let limits = ExpressionLimits { budget: &budget, ..limits };
    assert_eq!(instant(&store, "count(g)", &limits), "50");
    for (query, reason) in [
        ("g", "more than 20 series match"),
        ("g * g", "more than 20 series match"),
        ("sum(g + on (host) g)", "more than 20 series match"),
        ("count_values('v', g)", "more than 20 series match"),
        ("sum by (host) (g)", "the result of an aggregation has more than 20 series"),
        ("topk(30, g)", "the result of an aggregation has more than 20 series"),
    ] {
        let error = instant(&store, query, &limits);
        assert!(error.contains(reason), "{query}: {error}");
        assert!(error.contains("limits.query_points_max"), "{query}: {error}");
    }
}

#[test]
fn the_memory_of_an_aggregation_does_not_grow_with_its_series() {
    let (store, _dir) = store_of_gauges(400);
    let of_memory = |query: &str, bytes: usize| {
        let budget = Budget::of_memory(bytes);
        instant(&store, query, &ExpressionLimits { budget: &budget, ..LIMITS })
    };
    // The selection takes memory for each series.
    let bytes = 64 << 10;
    for query in ["sum(g)", "count(rate(g[2m])) + 400", "topk(1, g) - 399", "max by (dc) (g)"] {
        let answer = of_memory(query, bytes);
        assert!(!answer.contains("error"), "{query}: {answer}");
    }
    for query in ["g", "sum(sort(g))", "count_values('v', g)", "sum by (host) (g)"] {
        let error = of_memory(query, bytes);
        assert!(error.contains("limits.query_memory_max"), "{query}: {error}");
    }
}

#[test]
fn points_are_limited_for_a_result_and_not_for_the_input_of_an_aggregation() {
    let (store, _dir) = store_of_gauges(50);
    let limits = ExpressionLimits { points_max: 100, ..LIMITS };
    // Also of a selector whose series fit in one view.
    for sizes in [SMALL, ChunkSizes::DEFAULT] {
        let count = |query: &str| {
            let request = request(query, 16, 8, true);
            described(answer(&store, &request, &limits, sizes))
        };
        assert!(count("sum(g)").contains(&format!("{}:", NOW.0)), "{}", count("sum(g)"));
        for query in [
            "g",
            "sum by (host) (g)",
            "topk by (host) (1, g)",
            "limit_ratio(1, g)",
            "quantile(0.5, g)",
        ] {
            assert!(count(query).contains("limits.query_points_max"), "{query}: {}", count(query));
        }
    }
}
