//! The readings of an interval, and lines above the limits.

use super::*;
use crate::line::parse;

fn new_aggregate(series_max: usize, memory_max: usize) -> Aggregate {
    Aggregate::new(Limits { series_max, memory_max, has_quantiles: true })
}

fn drain_to_lines(aggregate: &mut Aggregate) -> Vec<String> {
    let mut readings = Readings::new(Vec::new());
    aggregate.drain(7, &mut readings);
    let text = |reading: &Reading| {
        let tags: Vec<_> = reading.tags.iter().map(|(k, v)| format!("{k}={v}")).collect();
        format!("{}{{{}}} {} {}", reading.metric, tags.join(","), reading.kind, reading.value)
    };
    readings.as_slice().iter().map(text).collect()
}

fn add_lines(aggregate: &mut Aggregate, lines: &[&str]) {
    for line in lines {
        aggregate.add(&parse(line).unwrap());
    }
}

#[test]
fn an_interval_becomes_readings_and_the_next_interval_begins_empty() {
    let mut aggregate = new_aggregate(100, 1 << 20);
    add_lines(
        &mut aggregate,
        &[
            "hits:1|c|#page:a",
            "hits:2|c|@0.5|#page:a",
            "depth:7|g",
            "depth:-2|g",
            "users:bob|s",
            "users:eve|s",
            "users:bob|s",
            "wait:10:20:30|ms",
            "bad:x|c",
        ],
    );
    assert_eq!(
        drain_to_lines(&mut aggregate),
        [
            "hits{page=a} delta 5",
            "depth{} gauge 5",
            "wait_count{} delta 3",
            "wait_sum{} delta 60",
            "wait_min{} gauge 10",
            "wait_max{} gauge 30",
            "wait{quantile=0.5} gauge 20",
            "wait{quantile=0.95} gauge 30",
            "wait{quantile=0.99} gauge 30",
            "users_unique{} gauge 2",
        ]
    );
    assert_eq!(aggregate.counts.bad_lines, 1);
    assert_eq!(drain_to_lines(&mut aggregate), Vec::<String>::new());
    // A relative change continues from the value of the previous interval.
    add_lines(&mut aggregate, &["depth:+1|g"]);
    assert_eq!(drain_to_lines(&mut aggregate), ["depth{} gauge 6"]);
}

#[test]
fn timers_histograms_and_distributions_become_native_histograms() {
    let limits = Limits { series_max: 10, memory_max: 1 << 20, has_quantiles: false };
    let mut aggregate = Aggregate::new(limits);
    add_lines(&mut aggregate, &["wait:10:20|ms|#page:a", "wait:30|h|@0.5|#page:a", "size:1|d"]);
    let mut readings = Readings::new(Vec::new());
    aggregate.drain(7, &mut readings);
    let text = |reading: &KnownReading| {
        let histogram = reading.histogram.as_deref().unwrap();
        assert_eq!((reading.time_ms, histogram.count), (7, reading.value));
        let tags: Vec<_> = reading.series.tags().map(|(k, v)| format!("{k}={v}")).collect();
        let (metric, kind) = (reading.series.metric(), reading.series.kind());
        format!("{metric}{{{}}} {kind} {} {}", tags.join(","), histogram.count, histogram.sum)
    };
    let found: Vec<_> = readings.known().iter().map(text).collect();
    assert_eq!(
        found,
        ["size_distribution{} deltahistogram 1 1", "wait_distribution{page=a} deltahistogram 4 90"]
    );
    let has_quantiles = |reading: &Reading| reading.tags.iter().any(|(name, _)| name == "quantile");
    assert!(!readings.as_slice().iter().any(has_quantiles));
}

#[test]
fn sums_that_are_not_finite_are_rejected() {
    let mut aggregate = new_aggregate(10, 1 << 20);
    add_lines(&mut aggregate, &["a:1|c", "a:1|c|@1e-320", "b:1e308:1e308|ms", "c:1e308|g"]);
    add_lines(&mut aggregate, &["c:+1e308|g", "d:1e308:-1e308:-1e308:-1e308|c"]);
    assert_eq!(aggregate.counts.bad_lines, 4);
    let expected = ["a{} delta 1", "d{} delta -1", "c{} gauge 1", "b_count{} delta 1"];
    for (line, expected) in drain_to_lines(&mut aggregate).iter().zip(expected) {
        assert!(line.starts_with(expected), "{line}");
    }
}

#[test]
fn series_beyond_the_limit_are_dropped_and_counted() {
    let mut aggregate = new_aggregate(2, 1 << 20);
    add_lines(&mut aggregate, &["a:1|c", "b:1|c", "c:1|c", "a:1|c", "d:1|ms"]);
    assert_eq!((drain_to_lines(&mut aggregate).len(), aggregate.counts.dropped), (2, 2));
}

#[test]
fn memory_is_bounded_for_every_type_of_line() {
    const MEMORY: usize = 64 << 10;
    let lines: [fn(usize) -> String; 5] = [
        |n| format!("users:{n}|s"),
        |n| format!("wait.{}:{n}|ms", n % 4),
        |n| format!("hits:1|c|#id:{n}"),
        |n| format!("{n}{}:1|c", "x".repeat(2000)),
        |n| format!("depth{n}:1|g"),
    ];
    for line in lines {
        let mut aggregate = new_aggregate(1_000_000, MEMORY);
        (0..10_000).for_each(|n| add_lines(&mut aggregate, &[&line(n)]));
        let is_timer = line(0).ends_with("ms");
        assert_eq!(aggregate.counts.dropped == 0, is_timer, "{}", line(0));
        let text: usize = drain_to_lines(&mut aggregate).iter().map(String::len).sum();
        assert!(text < MEMORY, "{}: {text}", line(0));
        // The next interval has the full budget again; gauges release their memory one interval
        // later.
        assert!(drain_to_lines(&mut aggregate).is_empty());
        let before = aggregate.counts.dropped;
        add_lines(&mut aggregate, &["new:1|c"]);
        assert_eq!(aggregate.counts.dropped, before, "{}", line(0));
    }
}

#[test]
fn members_beyond_the_budget_are_dropped_and_known_members_still_count() {
    let mut aggregate = new_aggregate(10, series_bytes("susers") + 2 * MEMBER_BYTES);
    add_lines(&mut aggregate, &["users:a:b:c:a|s", "users:b|s", "users:d|s"]);
    assert_eq!(aggregate.counts.dropped, 2);
    assert_eq!(drain_to_lines(&mut aggregate), ["users_unique{} gauge 2"]);
}

#[test]
fn idle_gauges_are_removed_when_space_is_needed() {
    let mut aggregate = new_aggregate(4, 1 << 20);
    add_lines(&mut aggregate, &["a:1|g", "b:1|g", "c:1|g"]);
    drain_to_lines(&mut aggregate);
    add_lines(&mut aggregate, &["c:+1|g"]);
    assert_eq!(drain_to_lines(&mut aggregate), ["c{} gauge 2"]);
    assert_eq!(aggregate.counts.forgotten_gauges, 2);
    add_lines(&mut aggregate, &["a:+1|g", "c:+1|g"]);
    assert_eq!(drain_to_lines(&mut aggregate), ["a{} gauge 1", "c{} gauge 3"]);
    assert_eq!(aggregate.counts.forgotten_gauges, 2);
}
