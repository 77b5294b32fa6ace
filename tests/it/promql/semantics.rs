//! The semantics of PromQL on unmerged samples: hand-computed results of operators, aggregations
//! and functions.

use granary::model::Kind;

use super::{Fixture, fixture};
use crate::setup::MINUTE;

/// Returns a fixture with the series `v` with the label `a`, `w` with `a` and `b`, and others: one
/// sample per minute for ten minutes. Values are constant, except in `step` and `count_total`.
pub(super) fn filled_fixture() -> Fixture {
    fixture_in_order(|_| {})
}

type Value = Box<dyn Fn(i64) -> f64>;
type Definition = (&'static str, Vec<(&'static str, &'static str)>, Kind, Value);

/// Returns the fixture with its series registered in another order.
fn fixture_in_order(reorder: impl Fn(&mut Vec<Definition>)) -> Fixture {
    let mut all: Vec<Definition> = Vec::new();
    let mut add = |metric, tags: &[(&'static str, &'static str)], kind, value: Value| {
        all.push((metric, tags.to_vec(), kind, value));
    };
    for (a, value) in [("1", 1.0), ("2", 2.0), ("3", 3.0)] {
        add("v", &[("a", a)], Kind::Gauge, Box::new(move |_| value));
    }
    for (a, b, value) in [("1", "x", 10.0), ("2", "x", 20.0), ("2", "y", 30.0)] {
        add("w", &[("a", a), ("b", b)], Kind::Gauge, Box::new(move |_| value));
    }
    for (le, value) in [("0.1", 2.0), ("0.5", 6.0), ("+Inf", 8.0)] {
        add("h_bucket", &[("le", le)], Kind::Gauge, Box::new(move |_| value));
    }
    add("step", &[], Kind::Gauge, Box::new(|i| i as f64));
    add("count_total", &[], Kind::Counter, Box::new(|i| i as f64));
    reorder(&mut all);
    let mut fixture = fixture();
    for (metric, tags, kind, value) in all {
        let id = fixture.define(metric, &tags, kind);
        fixture.fill(id, MINUTE, |i| (i <= 10).then(|| value(i)));
    }
    fixture
}

/// Checks results, which must not depend on the order in which series were registered.
fn check(cases: &[(&str, &str)]) {
    let fixtures = [filled_fixture(), fixture_in_order(|all| all.reverse())];
    for (query, expected) in cases {
        for fixture in &fixtures {
            assert_eq!(fixture.instant(query, 10 * MINUTE), *expected, "{query}");
        }
    }
}

#[test]
fn operators_combine_series_with_equal_labels() {
    check(&[
        ("v + 1", r#"{a="1"} 2; {a="2"} 3; {a="3"} 4"#),
        ("2 ^ v", r#"{a="1"} 2; {a="2"} 4; {a="3"} 8"#),
        ("2 ^ 3 ^ 2", "512"),
        ("-2 ^ 2", "-4"),
        ("1 - 2 - 3", "-4"),
        ("v % 2", r#"{a="1"} 1; {a="2"} 0; {a="3"} 1"#),
        ("v > 1", r#"v{a="2"} 2; v{a="3"} 3"#),
        ("1 < v", r#"v{a="2"} 2; v{a="3"} 3"#),
        ("v > bool 1", r#"{a="1"} 0; {a="2"} 1; {a="3"} 1"#),
        ("1 > bool 2", "0"),
        ("v == v", r#"v{a="1"} 1; v{a="2"} 2; v{a="3"} 3"#),
        ("v * v", r#"{a="1"} 1; {a="2"} 4; {a="3"} 9"#),
        ("v + on (a) group_right w", r#"{a="1", b="x"} 11; {a="2", b="x"} 22; {a="2", b="y"} 32"#),
        (
            "w - ignoring (b) group_left v",
            r#"{a="1", b="x"} 9; {a="2", b="x"} 18; {a="2", b="y"} 28"#,
        ),
        ("v > on (a) group_right w", ""),
        ("v < on (a) group_right w", r#"w{a="1", b="x"} 1; w{a="2", b="x"} 2; w{a="2", b="y"} 2"#),
        ("v * on (a) group_left (b) w{b=\"x\"}", r#"{a="1", b="x"} 10; {a="2", b="x"} 40"#),
        ("v / on (a) w{b=\"y\"}", r#"{a="2"} 0.06666666666666667"#),
        ("v and on (a) w", r#"v{a="1"} 1; v{a="2"} 2"#),
        ("v unless on (a) w", r#"v{a="3"} 3"#),
        ("v or on (a) w", r#"v{a="1"} 1; v{a="2"} 2; v{a="3"} 3"#),
        (
            "w or on (a) v",
            r#"w{a="1", b="x"} 10; w{a="2", b="x"} 20; w{a="2", b="y"} 30; v{a="3"} 3"#,
        ),
        (
            "v atan2 v",
            r#"{a="1"} 0.7853981633974483; {a="2"} 0.7853981633974483; {a="3"} 0.7853981633974483"#,
        ),
    ]);
}

#[test]
fn operators_refuse_ambiguous_matches_and_fill_missing_series() {
    check(&[
        ("v and nothing", ""),
        ("nothing or v > 2", r#"v{a="3"} 3"#),
        (
            "v + on (a) w",
            "error: found duplicate series for the match group {a=\"2\"} on the right hand-side of \
             the operation: [{__name__=\"w\", a=\"2\", b=\"x\"}, {__name__=\"w\", a=\"2\", b=\"y\"}];many-to-many matching not \
             allowed: matching labels must be unique on one side",
        ),
        (
            "w + on (a) v",
            "error: multiple matches for labels: many-to-one matching must be explicit \
             (group_left/group_right)",
        ),
        // The error also occurs when the comparison keeps neither series.
        (
            "w < on (a) v",
            "error: multiple matches for labels: many-to-one matching must be explicit \
             (group_left/group_right)",
        ),
        (
            "w + on (a) group_left (a) v",
            "error: 1:3: parse error: label \"a\" must not occur in ON and GROUP clause at once",
        ),
        (
            "{a=\"2\", b!=\"y\"} * on (a, __name__) {a=\"2\", b!=\"y\"}",
            "error: vector cannot contain metrics with the same labelset",
        ),
        ("1_0 + 0x_1f", "41"),
        ("1 > 2", "error: 1:3: parse error: comparisons between scalars must use BOOL modifier"),
        ("v + fill(10) (v < 3)", r#"{a="1"} 2; {a="2"} 4; {a="3"} 13"#),
        ("(v < 3) + fill_right(10) v", r#"{a="1"} 2; {a="2"} 4"#),
        ("(v < 3) + fill_left(10) v", r#"{a="1"} 2; {a="2"} 4; {a="3"} 13"#),
        ("sum by (a) (w) - on (a) fill_left(0) v", r#"{a="1"} 9; {a="2"} 48; {a="3"} -3"#),
        (
            "w * on (a) group_left fill_right(0) (v < 2)",
            r#"{a="1", b="x"} 10; {a="2", b="x"} 0; {a="2", b="y"} 0"#,
        ),
        (
            "v and fill(0) w",
            "error: 1:1: parse error: filling in missing series not allowed for set operators",
        ),
    ]);
}

#[test]
fn aggregations_group_series() {
    check(&[
        ("sum(v)", "{} 6"),
        ("avg(v)", "{} 2"),
        ("min(v)", "{} 1"),
        ("max(v)", "{} 3"),
        ("count(v)", "{} 3"),
        ("group(v)", "{} 1"),
        ("stdvar(v)", "{} 0.6666666666666666"),
        ("stddev(v)", "{} 0.816496580927726"),
        ("quantile(0.25, v)", "{} 1.5"),
        ("sum by (b) (w)", r#"{b="x"} 30; {b="y"} 30"#),
        ("sum without (b) (w)", r#"{a="1"} 10; {a="2"} 50"#),
        ("sum by (__name__) ({a=\"2\"})", "v 2; w 50"),
        ("sum by (nothing) (v)", "{} 6"),
        ("topk(2, v)", r#"v{a="3"} 3; v{a="2"} 2"#),
        ("bottomk(2, v)", r#"v{a="1"} 1; v{a="2"} 2"#),
        ("topk by (a) (1, w)", r#"w{a="1", b="x"} 10; w{a="2", b="y"} 30"#),
        ("topk(0, v)", ""),
        ("topk(2, v * 0)", r#"{a="1"} 0; {a="2"} 0"#),
        ("sort_desc(v * 0)", r#"{a="1"} 0; {a="2"} 0; {a="3"} 0"#),
        ("v and topk(2, v)", r#"v{a="2"} 2; v{a="3"} 3"#),
        ("topk(2, v) and v", r#"v{a="3"} 3; v{a="2"} 2"#),
        ("max_over_time(topk(2, v)[2m:1m])", r#"{a="2"} 2; {a="3"} 3"#),
        ("limitk(1, v)", r#"v{a="1"} 1"#),
        ("limitk by (a) (1, w)", r#"w{a="1", b="x"} 10; w{a="2", b="x"} 20"#),
        ("count(limit_ratio(1, v))", "{} 3"),
        ("count(limit_ratio(0.5, v) or limit_ratio(-0.5, v))", "{} 3"),
        ("count_values(\"n\", v > 1)", r#"{n="2"} 1; {n="3"} 1"#),
        ("count_values(\"n-\", v > 2)", r#"{n-="3"} 1"#),
        ("count_values(\"\\xff\", v)", "error: invalid label name \"\\xff\""),
        ("count_values(\"a\\xc5z\", v)", "error: invalid label name \"a\\xc5z\""),
        ("count_values without (b) (\"b\", w)", r#"{a="1"} 1; {a="2"} 2"#),
        ("count_values without (b) (\"__name__\", w)", r#"{a="1"} 1; {a="2"} 2"#),
        ("count_values(\"__name__\", v + 0)", "1 1; 2 1; 3 1"),
        ("sum(nothing)", ""),
        ("sum(v) by (a) > 2", r#"{a="3"} 3"#),
        ("count({a=~\".+\"}) by (__name__)", "v 3; w 3"),
    ]);
}

#[test]
fn functions_return_hand_computed_results() {
    check(&[
        ("abs(-v)", r#"{a="1"} 1; {a="2"} 2; {a="3"} 3"#),
        ("clamp(v, 2, 2.5)", r#"{a="1"} 2; {a="2"} 2; {a="3"} 2.5"#),
        ("clamp(v, 2, 1)", ""),
        ("clamp_min(v / 0, NaN)", r#"{a="1"} inf; {a="2"} inf; {a="3"} inf"#),
        ("holt_winters(step[5m], NaN, 0.5)", "{} NaN"),
        ("histogram_quantile(0.5, h_bucket / 0 * 0)", "{} 0.5"),
        ("round(v / 3, 0.5)", r#"{a="1"} 0.5; {a="2"} 0.5; {a="3"} 1"#),
        ("sort_desc(v)", r#"v{a="3"} 3; v{a="2"} 2; v{a="1"} 1"#),
        ("sort_by_label_desc(v, \"a\")", r#"v{a="3"} 3; v{a="2"} 2; v{a="1"} 1"#),
        ("absent(v{a=\"9\", b=~\"c\"})", r#"{a="9"} 1"#),
        ("absent(v)", ""),
        ("absent(sum(nothing{a=\"1\"}))", "{} 1"),
        ("scalar(v)", "NaN"),
        ("scalar(sum(v))", "6"),
        ("vector(3)", "{} 3"),
        ("time() - timestamp(step)", "{} 0"),
        ("timestamp(step offset 1m) - timestamp(step)", "{} -60"),
        ("step offset -1m", "step 10"),
        ("step @ end() - step offset 2m", "{} 2"),
        (
            r#"label_replace(v{a=~`\d`, a!~`[23]`}, "c", `"$1"`, "a", `(\w)`)"#,
            r#"v{a="1", c="\"1\""} 1"#,
        ),
        ("label_join(v{a=\"1\"}, \"c\", \"-\", \"a\", \"__name__\")", r#"v{a="1", c="1-v"} 1"#),
        (
            "label_replace(rate(v{a=\"1\"}[5m]), \"__name__\", \"r_$1\", \"__name__\", \"(.+)\")",
            r#"{a="1"} 0"#,
        ),
        ("histogram_quantile(0.5, h_bucket)", "{} 0.30000000000000004"),
        ("histogram_quantile(1, h_bucket)", "{} 0.5"),
        ("histogram_fraction(0, 0.1, h_bucket)", "{} 0.25"),
        (
            r#"histogram_quantiles(h_bucket, "q", 0.5, 1)"#,
            r#"{q="0.5"} 0.30000000000000004; {q="1.0"} 0.5"#,
        ),
        (
            r#"histogram_quantiles(h_bucket, "q", 1, 1)"#,
            "error: vector cannot contain metrics with the same labelset",
        ),
        ("histogram_count(v)", ""),
        ("day_of_week(vector(0))", "{} 4"),
        ("hour() < bool 24", "{} 1"),
        ("last_over_time(step[3m])", "step 10"),
        ("sum_over_time(step[3m])", "{} 27"),
        ("delta(step[5m])", "{} 5"),
        ("deriv(step[5m]) * 60", "{} 1"),
        ("predict_linear(step[5m], 60)", "{} 11"),
        ("changes(step[5m])", "{} 4"),
        ("max_over_time(step[5m:1m] offset 1m)", "{} 9"),
        ("avg_over_time(vector(1)[5m:])", "{} 1"),
        ("avg_over_time(sum(v)[3m:1m] @ start())", "{} 6"),
        ("quantile_over_time(0.5, step[5m])", "{} 8"),
        ("rate({a=\"1\"}[5m])", r#"{a="1"} 0; {a="1", b="x"} 0"#),
        ("rate({a=\"2\", b!=\"y\"}[5m]) > 0", ""),
        ("no_function(v)", "error: 1:1: parse error: unknown function with name \"no_function\""),
        ("step offset (step() + 0s)", "step 10"),
        ("step offset range()", "step 10"),
        ("sum_over_time(step[MAX_OF(3m, 1m) + 0s])", "{} 27"),
        ("sum_over_time(v[0])", "error: 1:17: parse error: duration must be greater than 0"),
        ("sum_over_time(v[5m:0])", "error: 1:20: parse error: duration must be greater than 0"),
        ("sum_over_time(v[step()])", "error: parse error: duration must be greater than 0"),
    ]);
}

#[test]
fn operations_drop_names_unless_their_removal_is_delayed() {
    let mut fixture = filled_fixture();
    let replaced = r#"label_replace(-v{a="1"}, "__name__", "n_$1", "__name__", "(.+)")"#;
    let same = "error: vector cannot contain metrics with the same labelset";
    for (query, at_once, delayed) in [
        (r#"-{a="1", b=""}"#, r#"{a="1"} -1"#, r#"{a="1"} -1"#),
        (r#"count(abs({__name__=~"v|step", a!~"2|3"}))"#, "{} 2", "{} 2"),
        (r#"sum by (__name__) ({a="2"} + 0)"#, "{} 52", same),
        (r#"count(rate({__name__=~"v|w"}[5m]))"#, "{} 6", "{} 6"),
        (
            r#"label_join(v{a="1"} > bool 0, "n", "", "__name__")"#,
            r#"{a="1"} 1"#,
            r#"{a="1", n="v"} 1"#,
        ),
        (replaced, r#"{a="1"} -1"#, r#"n_v{a="1"} -1"#),
        (r#"count(-{__name__=~"v|step|h_bucket", a="", le=~"|0.1"})"#, "{} 2", "{} 2"),
        (r#"count(abs(label_replace({a="2", b!="y"}, "b", "", "", "")))"#, same, "{} 2"),
        (
            r#"max(sum_over_time((v or label_replace(v, "__name__", "u", "", ""))[5m:1m]))"#,
            "{} 15",
            "{} 15",
        ),
        (r#"count(-{__name__=~"v|u", a="1"} or -{__name__="v"})"#, "{} 3", "{} 3"),
    ] {
        for (is_delayed, expected) in [(false, at_once), (true, delayed)] {
            fixture.delayed_name_removal = is_delayed;
            assert_eq!(fixture.instant(query, 10 * MINUTE), expected, "{query} {is_delayed}");
        }
    }
}

#[test]
fn range_queries_are_evaluated_at_each_time() {
    let fixture = filled_fixture();
    let range = |query: &str| fixture.range(query, 8 * MINUTE, 12 * MINUTE, MINUTE);
    for (query, expected) in [
        ("step", "step 8 9 10 10 10"),
        ("step > 8", "step 9 10 10 10"),
        ("step == 9 or step == 10", "step 9 10 10 10"),
        ("count_over_time(step[2m])", "{} 2 2 2 1"),
        ("absent_over_time(step[1m])", "{} 1 1"),
        ("sum(step > 8) or vector(0)", "{} 0 9 10 10 10"),
        ("topk(1, v)", r#"v{a="3"} 3 3 3 3 3"#),
        ("step @ 600", ""),
        ("step @ start()", "step 8 8 8 8 8"),
        ("time() - time() + step @ end()", "{} 10 10 10 10 10"),
        ("step - step offset 1m", "{} 1 1 1 0 0"),
        ("scalar(step)", "{} 8 9 10 10 10"),
        ("quantile(scalar(step) / 10, v) < Inf", "{} 2.6 2.8000000000000003 3 3 3"),
    ] {
        assert_eq!(range(query), expected, "{query}");
    }
    // Windows that consist of whole coarser slots are also evaluated from the finest slots.
    let aligned = |query: &str| fixture.range(query, 5 * MINUTE, 10 * MINUTE, 5 * MINUTE);
    for (query, expected) in [
        ("stdvar_over_time(step[5m])", "{} 2 2"),
        ("quantile_over_time(0.5, step[5m])", "{} 3 8"),
        ("changes(step[5m])", "{} 4 4"),
        ("deriv(step[5m]) * 60", "{} 1 1"),
        ("idelta(step[5m])", "{} 1 1"),
        ("sum_over_time(count_total[5m])", "{} 15 40"),
    ] {
        assert_eq!(aligned(query), expected, "{query}");
    }
    // The end of the query need not be one of its evaluation times.
    let query_range_of_odd_length = |query: &str| fixture.range(query, 0, 5 * MINUTE, 2 * MINUTE);
    for (query, expected) in [
        ("step @ end()", "step 5 5 5"),
        ("count_over_time(step[3m] @ end())", "{} 3 3 3"),
        ("max_over_time(step[3m:1m] @ end() offset 1m)", "{} 4 4 4"),
        ("timestamp(step @ end()) - timestamp(step @ start())", "{} 300 300 300"),
        ("range()", "{} 300 300 300"),
    ] {
        assert_eq!(query_range_of_odd_length(query), expected, "{query}");
    }
}

#[test]
fn type_and_unit_labels_are_dropped_with_the_name() {
    let mut fixture = fixture();
    let mut add = |metric: &str, kind: &str, value: f64| {
        let tags = [("__type__", kind), ("__unit__", "bytes"), ("pod", "p")];
        let id = fixture.define(metric, &tags, Kind::Gauge);
        fixture.fill(id, MINUTE, |i| (i <= 10).then_some(value));
    };
    add("size", "gauge", 100.0);
    add("free", "other", 40.0);
    for (query, expected) in [
        ("size", r#"size{__type__="gauge", __unit__="bytes", pod="p"} 100"#),
        ("size > 1", r#"size{__type__="gauge", __unit__="bytes", pod="p"} 100"#),
        ("size - free", r#"{pod="p"} 60"#),
        ("(size - free) / size", r#"{pod="p"} 0.6"#),
        ("size / ignoring (x) free", r#"{pod="p"} 2.5"#),
        ("-size", r#"{pod="p"} -100"#),
        ("avg_over_time(size[5m])", r#"{pod="p"} 100"#),
        ("sum by (__type__) (size)", r#"{__type__="gauge"} 100"#),
        ("sum without (x) (size)", r#"{pod="p"} 100"#),
    ] {
        assert_eq!(fixture.instant(query, 10 * MINUTE), expected, "{query}");
    }
}
