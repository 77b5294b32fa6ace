//! Answers compared with hand-computed values before and after a checkpoint, refused queries, and
//! the memory that queries reserve.

use std::time::Duration;

use granary::{
    model::Kind,
    query::{
        Budget, ExpressionLimits, QueryError, QueryResources, Scheduler, SeriesMatcher, promql,
        select_series, series_matchers,
    },
};

use super::{Fixture, LIMITS, NOW, fixture, format_value, request};
use crate::setup::{DAY, HOUR, MINUTE, SECOND};

const STALE_MARKER: f64 = f64::from_bits(0x7ff0_0000_0000_0002);

/// Returns series of each kind, sampled every 10 s, 20 s or minute: a slot of 1m merges up to six
/// samples.
fn filled_fixture() -> Fixture {
    let mut fixture = fixture();
    let load = fixture.define("load", &[("host", "a")], Kind::Gauge);
    fixture.fill(load, 10 * SECOND, |i| (i < 360).then_some((i % 6) as f64));
    let bytes = fixture.define("bytes_total", &[("host", "a")], Kind::Counter);
    fixture.fill(bytes, 10 * SECOND, |i| (i < 360).then_some((i * 30) as f64));
    let slow = fixture.define("bytes_total", &[("host", "b")], Kind::Counter);
    fixture.fill(slow, MINUTE, |i| (i < 60).then_some((i * 60) as f64));
    let jobs = fixture.define("jobs", &[("host", "a"), ("zone", "x")], Kind::Delta);
    fixture.fill(jobs, 20 * SECOND, |i| (i < 180).then_some(2.0));
    fixture
}

fn check_answers(fixture: &Fixture) {
    let half_hour = 30 * MINUTE;
    for (query, expected) in [
        ("load", r#"load{host="a"} 0"#),
        ("-load", r#"{host="a"} -0"#),
        ("load offset 10s", r#"load{host="a"} 5"#),
        ("avg_over_time(load[5m])", r#"{host="a"} 2.5"#),
        ("max_over_time(load[5m])", r#"{host="a"} 5"#),
        ("count_over_time(load[5m])", r#"{host="a"} 30"#),
        ("rate(bytes_total[5m])", r#"{host="a"} 3; {host="b"} 1"#),
        ("increase(bytes_total{host=\"a\"}[5m])", r#"{host="a"} 900"#),
        ("sum(rate(bytes_total[5m]))", "{} 4"),
        ("sum by (host) (rate(bytes_total[5m])) > 2", r#"{host="a"} 3"#),
        ("irate(bytes_total[2m])", r#"{host="a"} 3; {host="b"} 1"#),
        // The window is shorter than a slot, whose readings are treated as equally spaced.
        ("rate(bytes_total{host=\"a\"}[30s])", r#"{host="a"} 3"#),
        ("increase(jobs[10m])", r#"{host="a", zone="x"} 60"#),
        ("rate(jobs[10m])", r#"{host="a", zone="x"} 0.1"#),
        ("sum_over_time(jobs[10m])", r#"{host="a", zone="x"} 60"#),
        ("sum_over_time(bytes_total{host=\"b\"}[3m])", r#"{host="b"} 5220"#),
        ("resets(bytes_total[10m])", r#"{host="a"} 0; {host="b"} 0"#),
        ("changes(bytes_total[10m])", r#"{host="a"} 59; {host="b"} 9"#),
        ("load * on (host) group_right jobs", r#"{host="a", zone="x"} 0"#),
        ("bytes_total / ignoring (zone) jobs", r#"{host="a"} 2700"#),
        ("bytes_total and on (host) load", r#"bytes_total{host="a"} 5400"#),
        ("bytes_total unless on (host) load", r#"bytes_total{host="b"} 1800"#),
        ("topk(1, bytes_total)", r#"bytes_total{host="a"} 5400"#),
        ("count({__name__=~\".+\"})", "{} 4"),
        ("count by (__name__) ({host=~\"a|c\", zone=\"\"})", "bytes_total 1; load 1"),
        ("absent(nothing{a=\"b\"})", r#"{a="b"} 1"#),
        ("scalar(load) + 1", "1"),
        ("max_over_time(rate(bytes_total{host=\"b\"}[5m])[10m:1m])", r#"{host="b"} 1"#),
        ("label_replace(load, \"h\", \"$1\", \"host\", \"(.*)\")", r#"load{h="a", host="a"} 0"#),
        ("stddev_over_time(bytes_total{host=\"b\"}[3m])", r#"{host="b"} 48.98979485566356"#),
    ] {
        assert_eq!(fixture.instant(query, half_hour), expected, "{query}");
    }
    assert_eq!(
        fixture.instant("stddev_over_time(load[5m])", half_hour),
        format!(r#"{{host="a"}} {}"#, (17.5_f64 / 6.0).sqrt())
    );
    let error = fixture.instant("mad_over_time(load[5m])", half_hour);
    let alternative = "mad_over_time(avg_over_time(x[1m])[5m:1m])";
    assert!(error.contains("slots of 1m merged several samples"), "{error}");
    assert!(error.contains(alternative) && error.contains("slot = \"10s\""), "{error}");
    assert_eq!(fixture.instant(&alternative.replace('x', "load"), half_hour), r#"{host="a"} 0"#);
    assert_eq!(fixture.instant("load", 2 * HOUR), "");
    assert_eq!(
        fixture.range("avg_over_time(load[5m])", half_hour, half_hour + 10 * MINUTE, 5 * MINUTE),
        r#"{host="a"} 2.5 2.5 2.5"#
    );
    assert_eq!(
        fixture.range("increase(bytes_total{host=\"b\"}[5m])", 0, 15 * MINUTE, 5 * MINUTE),
        r#"{host="b"} 240 300 300"#
    );
    assert_eq!(fixture.range("1 + 1", 0, 2 * MINUTE, MINUTE), "{} 2 2 2");
}

#[test]
fn answers_are_the_same_from_memory_and_from_documents() {
    let fixture = filled_fixture();
    check_answers(&fixture);
    fixture.store.checkpoint(NOW).unwrap();
    check_answers(&fixture);
}

#[test]
fn an_instant_query_returns_the_newest_sample_of_each_series_within_the_lookback() {
    let mut fixture = fixture();
    let intervals = [1, 2, 4, 7];
    for minutes in intervals {
        let id = fixture.define("m", &[("every", &minutes.to_string())], Kind::Gauge);
        fixture.fill(id, minutes * MINUTE, |i| (i * minutes <= 40).then_some(i as f64));
    }
    let expected = |at: i64| {
        let lines = intervals.map(|minutes| {
            let index = (at / (minutes * MINUTE)).min(40 / minutes);
            let is_recent = at - index * minutes * MINUTE < 5 * MINUTE;
            is_recent.then(|| format!("m{{every=\"{minutes}\"}} {index}"))
        });
        lines.into_iter().flatten().collect::<Vec<_>>().join("; ")
    };
    for _ in 0..2 {
        for at in (0..60 * MINUTE).step_by(20_000) {
            assert_eq!(fixture.instant("m", at), expected(at), "at {at}");
        }
        fixture.store.checkpoint(NOW).unwrap();
    }
}

#[test]
fn a_series_that_ended_has_no_value_afterwards() {
    let mut fixture = fixture();
    let up = fixture.define("up", &[], Kind::Gauge);
    fixture.fill(up, MINUTE, |i| [1.0, 1.0, STALE_MARKER].get(i as usize).copied());
    assert_eq!(fixture.instant("up", MINUTE), "up 1");
    assert_eq!(fixture.instant("up", 2 * MINUTE), "");
    assert_eq!(fixture.instant("count_over_time(up[5m])", 2 * MINUTE), "{} 2");
}

#[test]
fn dropped_slots_are_replaced_by_coarser_ones_with_a_warning() {
    let mut fixture = fixture();
    let load = fixture.define("load", &[], Kind::Gauge);
    fixture.fill(load, MINUTE, |i| (i < 600).then_some((i % 60) as f64));
    fixture.store.checkpoint(NOW).unwrap();
    let later = NOW.plus(4 * 24 * HOUR);
    // A few milliseconds after the start of a slot.
    let start = HOUR + 7;
    let request = request("avg_over_time(load[30m])", start, start + MINUTE, MINUTE);
    let answer = promql(&fixture.store, &request, &LIMITS, later).unwrap();
    assert!(answer.warnings[0].contains("come from 5m slots: 1m is kept"), "{answer:?}");
    // Both windows cut slots of 5m. The first contains minutes 31 to 59 and 0, the second minutes
    // 32 to 59, 0 and 1.
    assert_eq!(format_value(&answer.value), "{} 43.5 42.5");
}

#[test]
fn a_window_longer_than_the_data_ends_at_the_requested_time() {
    let mut fixture = fixture();
    let load = fixture.define("load", &[], Kind::Gauge);
    fixture.fill(load, MINUTE, |i| (i < 600).then_some(i as f64));
    for (query, expected) in [
        ("count_over_time(load[51d])", "{} 91"),
        ("max_over_time(load[1y])", "{} 90"),
        ("last_over_time(load[10d] offset 13m)", "load 77"),
        ("count_over_time(load[10d] offset 2h)", ""),
    ] {
        assert_eq!(fixture.instant(query, 90 * MINUTE), expected, "{query}");
        fixture.store.checkpoint(NOW).unwrap();
    }
}

#[test]
fn invalid_queries_and_queries_beyond_a_limit_are_refused() {
    let mut fixture = filled_fixture();
    for host in 0..200 {
        fixture.define("many", &[("host", &host.to_string())], Kind::Gauge);
    }
    for (query, reason) in [
        ("many", "limits.query_points_max"),
        ("load[1h", "parse error"),
        ("rate(load)", "parse error"),
        ("load{host=~\"(((a{1000}){1000}){1000})\"}", "when compiled: use a simpler pattern"),
        ("bytes_total + on (zone) bytes_total", "found duplicate series for the match group {}"),
        ("bytes_total + on (zone) load", "many-to-one matching must be explicit"),
        ("label_replace(bytes_total, \"host\", \"\", \"\", \"\")", "same labelset"),
        ("max_over_time(load[10y:1ms])", "limits.query_points_max"),
    ] {
        let error = fixture.instant(query, 30 * MINUTE);
        assert!(error.contains(reason), "{query}: {error}");
    }
    let too_many_steps = fixture.evaluate("1", 0, 24 * HOUR, SECOND).unwrap_err();
    assert!(
        matches!(&too_many_steps, QueryError::Invalid(text) if text.contains("11000 points")),
        "{too_many_steps}"
    );
    let budget = QueryResources::new(Scheduler::for_this_machine(), 0).budget(Duration::ZERO);
    let without_time = ExpressionLimits { budget: &budget, ..LIMITS };
    let timed_out = promql(&fixture.store, &request("load", DAY, DAY, 0), &without_time, NOW);
    assert!(matches!(timed_out, Err(QueryError::Timeout(_))));
}

#[test]
fn a_query_as_deep_as_allowed_does_not_overflow_a_small_stack() {
    let run = || {
        let fixture = filled_fixture();
        for query in [
            format!("{}load{}", "(".repeat(127), ")".repeat(127)),
            format!("load{}", " + load".repeat(127)),
            format!("{}load", "-".repeat(127)),
            format!("{}load{}", "abs(".repeat(127), ")".repeat(127)),
            format!("{}load{}", "sum(".repeat(127), ")".repeat(127)),
            format!("{}load{}", "1+(".repeat(63), ")".repeat(63)),
        ] {
            let answer = fixture.instant(&query, 30 * MINUTE);
            assert!(!answer.contains("error"), "{answer}");
        }
    };
    std::thread::Builder::new().stack_size(2 << 20).spawn(run).unwrap().join().unwrap();
}

#[test]
fn series_are_selected_by_matchers() {
    let fixture = filled_fixture();
    let count = |selector: &str| {
        let sets = series_matchers(selector, &LIMITS).unwrap();
        let selected = |matchers: &Vec<SeriesMatcher>| {
            select_series(&fixture.store, matchers, &LIMITS).unwrap().len()
        };
        sets.iter().map(selected).sum::<usize>()
    };
    for (selector, expected) in [
        ("bytes_total", 2),
        ("{host=\"a\"}", 3),
        ("{host!=\"a\", host!=\"\"}", 1),
        ("{__name__=~\"l.*|j.*\"}", 2),
        ("{__name__!~\"l.*|j.*\", host=~\".+\"}", 2),
        ("{zone=\"\", host=\"a\"}", 2),
        ("{nothing=~\".+\"}", 0),
    ] {
        assert_eq!(count(selector), expected, "{selector}");
    }
}

/// Returns the memory that a query reserves: the peak of its values, and everything that it reads.
fn reserved_memory(fixture: &Fixture, query: &str, step: i64) -> usize {
    let budget = Budget::of_memory(usize::MAX);
    let limits = ExpressionLimits { budget: &budget, ..LIMITS };
    let request = request(query, HOUR, 2 * HOUR, step);
    promql(&fixture.store, &request, &limits, NOW)
        .unwrap_or_else(|cause| panic!("{query}: {cause}"));
    budget.reserved()
}

#[test]
fn all_memory_of_a_query_is_counted() {
    let mut fixture = fixture();
    for host in 0..20 {
        let id = fixture.define("m", &[("host", &format!("h{host}"))], Kind::Gauge);
        fixture.fill(id, MINUTE, |i| (i <= 120).then_some(i as f64));
    }
    let single = reserved_memory(&fixture, "m", SECOND);
    let points = 20 * 3601 * size_of::<f64>();
    // Each operand stays in memory while the operands on its right are evaluated.
    let nested = (0..40).fold("m".to_owned(), |inner, _| format!("m + ({inner})"));
    let nested = reserved_memory(&fixture, &nested, SECOND);
    assert!(nested - single >= 40 * points, "{nested} {single} {points}");
    // Operands of a flat chain are released early.
    let flat = (0..40).fold("m".to_owned(), |inner, _| format!("({inner}) + m"));
    let flat = reserved_memory(&fixture, &flat, SECOND);
    assert!(flat < single + 4 * points, "{flat} {single} {points}");
    // The cells of a subquery, new labels, a compiled pattern, and the cells of a range count too.
    let cells = 20 * 3600 * 6 * size_of::<f64>();
    assert!(reserved_memory(&fixture, "max_over_time(m[1h:1s])", 0) > cells);
    let long_labels = reserved_memory(
        &fixture,
        "label_replace(m, \"to\", \"$0$0$0$0$0$0$0$0\", \"host\", \".*\")",
        0,
    );
    let empty_labels =
        reserved_memory(&fixture, "label_replace(m, \"to\", \"\", \"host\", \".*\")", 0);
    assert!(long_labels - empty_labels >= 20 * 8 * 2, "{long_labels} {empty_labels}");
    let pattern =
        reserved_memory(&fixture, "m{host=~\"h.*\"}", 0) - reserved_memory(&fixture, "m", 0);
    assert!(pattern > 100 << 10, "{pattern}");
    assert!(reserved_memory(&fixture, "m[1h]", 0) > 20 * 60 * 16);
}
