//! The functions on lines of constant numbers, with the results of Graphite.

use jiff::tz::TimeZone;

use super::super::{
    aggregation::NULL,
    arguments::{Node, key_of, path_of},
    line::{Line, line, tests::LIMITS},
};
use super::*;
use crate::{
    model::Kind,
    query::{Budget, ExpressionLimits, GraphiteStore, RenderRequest},
    setup::{self, MINUTE, NOW, samples, send},
};

#[test]
fn nodes_of_a_name_are_nodes_of_its_path() {
    for (name, expected) in [
        ("a.b.c", "a.b.c"),
        ("scale(perSecond(a.b.c),5)", "a.b.c"),
        ("disk.used;host=x", "disk.used"),
        ("summarize(a.b, \"1h\", \"sum\")", "a.b"),
    ] {
        assert_eq!(path_of(name), expected, "{name}");
    }
    let named = |name: &str| Line { name: name.to_owned(), ..line("m", &[NULL]) };
    let key = |name: &str, nodes: &[Node<'_>]| key_of(&named(name), nodes);
    assert_eq!(key("a.b.c", &[Node::Part(0), Node::Part(-1)]), "a.c");
    assert_eq!(key("f(a.b.c)", &[Node::Part(1), Node::Part(7), Node::Tag("name")]), "b.m");
}

#[test]
fn the_manual_lists_every_function() {
    let manual = include_str!("../../../../docs/asking.md");
    let section = manual.split("## Graphite's API").nth(1).unwrap();
    let rows = section.lines().filter(|line| line.starts_with("| ") && !line.contains("| /"));
    let rows = rows.skip_while(|line| !line.starts_with("| functions")).collect::<String>();
    let mut listed: Vec<_> = rows.split('`').skip(1).step_by(2).collect();
    listed.sort_unstable();
    assert_eq!(listed, names());
}

#[test]
fn names_of_functions_are_unique() {
    let names = names();
    assert!(names.len() > 90, "{}", names.len());
    let mut once = names.clone();
    once.dedup();
    assert_eq!(names, once);
    assert!(find("sumSeries").is_some() && find("nothing").is_none());
}

/// Renders a target over the last four minutes of a store with a series `a.b` of some samples.
fn rendered(target: &str, limits: &ExpressionLimits<'_>) -> Result<Vec<Line>, QueryError> {
    let dir = tempfile::tempdir().unwrap();
    let (store, mut appender) = setup::open(dir.path(), NOW);
    let id = setup::define(&mut appender, &[setup::series("a.b", &[], Kind::Gauge)], NOW)[0];
    let points = (0..120).map(|minute| (NOW.minus(minute * MINUTE).0, minute as f64));
    send(&mut appender, samples(id, points), NOW);
    let request = RenderRequest {
        targets: vec![target.to_owned()],
        from: Some("-4min".to_owned()),
        until: None,
        points: None,
    };
    let store = GraphiteStore { store: &store, templates: &[] };
    store.render(&request, &TimeZone::UTC, limits, NOW).map(|answer| answer.lines)
}

fn refusal(target: &str, limits: &ExpressionLimits<'_>) -> String {
    rendered(target, limits).map(|lines| lines.len()).unwrap_err().to_string()
}

#[test]
fn shifts_beyond_the_supported_times_are_refused() {
    let far = "sumSeries(constantLine(1),timeShift(constantLine(1),'1000y'))";
    for (target, expected) in [
        (far, "before the year 1970"),
        ("timeShift(constantLine(1),'+9000y')", "argument 2 (timeShift)"),
        ("timeStack(constantLine(1),'1000y',1000000000,1000000000)", "more than 1,000 years"),
        ("sumSeries(constantLine(1),timeShift(constantLine(1),'50y'))", ""),
        ("hitcount(timeShift(constantLine(1),'1d'),'1s')", ""),
    ] {
        let rendered = rendered(target, &LIMITS).map(|lines| lines.len());
        let text = rendered.map_or_else(|error| error.to_string(), |_| String::new());
        assert!(text.contains(expected), "{target}: {text}");
        assert_eq!(text.is_empty(), expected.is_empty(), "{target}: {text}");
    }
}

#[test]
fn names_and_nodes_are_limited() {
    let length = |target: &str| {
        let lines = rendered(target, &LIMITS).unwrap();
        (lines[0].name.len(), lines[0].origin.len())
    };
    let long_target = "x".repeat(40_000);
    assert_eq!(length(&format!("alias(a.b,'{long_target}')")).0, 16 << 10);
    assert_eq!(length(&format!("aliasSub(a.b,'.','{long_target}')")).0, 16 << 10);
    let groups = "\\0".repeat(20_000);
    assert_eq!(length(&format!("aliasSub(a.b,'.*','{groups}')")).0, 16 << 10);
    let half = format!("threshold(1,'{}')", "x".repeat(12_000));
    let other = format!("threshold(1,'{}')", "y".repeat(12_000));
    assert_eq!(length(&format!("asPercent({half},{other})")), (16 << 10, 16 << 10));
    let both = format!("scale(sumSeries({half},{other}),1)");
    assert_eq!(length(&both), (16 << 10, 16 << 10));
    let replaced = rendered("aliasSub(a.b,'(a).(b)','$1\\2-\\1\\9\\')", &LIMITS).unwrap();
    assert_eq!(replaced[0].name, "$1b-a\\");
    let nodes = ",0".repeat(65);
    for target in [format!("aliasByNode(a.b{nodes})"), format!("groupByNodes(a.b,'sum'{nodes})")] {
        assert!(refusal(&target, &LIMITS).contains("65 nodes exceed the limit of 64: use fewer"));
    }
}

#[test]
fn summaries_of_too_many_points_are_refused() {
    let long_window = "group(constantLine(1),movingAverage(constantLine(1),'30d'))";
    for function in ["summarize", "hitcount"] {
        let error = refusal(&format!("{function}({long_window},'1s')"), &LIMITS);
        assert!(error.contains("points exceed the limit of 1000000: use a longer"), "{error}");
    }
}

#[test]
fn memory_is_reserved_for_created_and_for_read_lines() {
    let scarce = |memory: usize, target: &str| {
        let budget = Budget::of_memory(memory);
        let limits = ExpressionLimits { budget: &budget, ..LIMITS };
        refusal(target, &limits)
    };
    // Each copy has a different name.
    let name = "x".repeat(16_000);
    let stacked = format!("timeStack(threshold(1,'{name}'),'1d',0,99)");
    assert!(scarce(2 << 20, &stacked).contains("query_memory_max"));
    let window = "movingAverage(a.b,'10y')";
    assert!(scarce(4 << 10, window).contains("query_memory_max"));
    let few = ExpressionLimits { points_max: 2, ..LIMITS };
    let error = refusal(window, &few);
    assert!(error.contains("more than") && error.contains("limits.query_points_max"), "{error}");
}
