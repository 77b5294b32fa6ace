//! `info`: the info series that describe other series, and the labels that `info` adds.

use granary::model::Kind;

use super::{Fixture, fixture};
use crate::setup::MINUTE;

/// Creates two series, and an info series that describes the first.
fn fixture_with_info_series() -> Fixture {
    let mut fixture = fixture();
    let mut add = |metric: &str, tags: &[(&str, &str)], upto: i64| {
        let id = fixture.define(metric, tags, Kind::Gauge);
        fixture.fill(id, MINUTE, |i| (i <= upto).then_some(1.0));
    };
    add("load", &[("instance", "a"), ("job", "j")], 10);
    add("load", &[("instance", "b"), ("job", "j")], 10);
    let of_a = [("instance", "a"), ("job", "j")];
    add("target_info", &[&of_a[..], &[("version", "1"), ("zone", "x")]].concat(), 5);
    add("target_info", &[&of_a[..], &[("version", "2")]].concat(), 10);
    add("build_info", &[&of_a[..], &[("commit", "c")]].concat(), 10);
    add("other_info", &[&of_a[..], &[("version", "3")]].concat(), 10);
    fixture
}

#[test]
fn info_joins_labels_of_info_series() {
    let fixture = fixture_with_info_series();
    let b = r#"load{instance="b", job="j"} 1"#;
    for (query, expected) in [
        ("info(load)", format!(r#"load{{instance="a", job="j", version="2"}} 1; {b}"#)),
        (
            "info(load, {__name__=~\"(target|build)_info\"})",
            format!(r#"load{{commit="c", instance="a", job="j", version="2"}} 1; {b}"#),
        ),
        ("info(load, {version=~\".+\"})", r#"load{instance="a", job="j", version="2"} 1"#.into()),
        ("info(load, {version=\"9\"})", String::new()),
        ("info(load, {zone=~\".*\"})", format!(r#"load{{instance="a", job="j"}} 1; {b}"#)),
        (
            "info(rate(load[5m]))",
            r#"{instance="a", job="j", version="2"} 0; {instance="b", job="j"} 0"#.into(),
        ),
        (
            "info(build_info, build_info)",
            r#"build_info{commit="c", instance="a", job="j"} 1"#.into(),
        ),
        (
            "info(load, {__name__=~\"(target|other)_info\"})",
            "error: conflicting label: version".into(),
        ),
        // The base series has the label, and so does a matching info series.
        ("info(load, {instance=\"a\"})", r#"load{instance="a", job="j"} 1"#.into()),
        (
            "info(label_replace(load, \"version\", \"own\", \"\", \"\"), {version=\"2\"})",
            r#"load{instance="a", job="j", version="own"} 1"#.into(),
        ),
        // An excluded info series adds no label.
        ("info(load, {__name__!~\".+_info\", version=~\".+\"})", String::new()),
        (
            "info(load, {__name__!~\".+_info\", version=~\".*\"})",
            format!(r#"load{{instance="a", job="j"}} 1; {b}"#),
        ),
        (
            "info(load, {__name__!~\"(target|other)_info\"})",
            format!(r#"load{{commit="c", instance="a", job="j"}} 1; {b}"#),
        ),
        // A base series is an info series only if it fits all conditions on the name.
        (
            "info(build_info, {__name__=~\"target.+\", __name__=~\".+_info\"})",
            r#"build_info{commit="c", instance="a", job="j", version="2"} 1"#.into(),
        ),
        (
            "info(load offset 1m, {__name__=\"build_info\"})",
            format!(r#"load{{commit="c", instance="a", job="j"}} 1; {b}"#),
        ),
        (
            "info(load, 1 + load)",
            "error: 1:12: parse error: expected label selectors only, got 1 + load in call to \
             \"info\""
                .into(),
        ),
    ] {
        assert_eq!(fixture.instant(query, 10 * MINUTE), expected, "{query}");
    }
    // Each time has its own info series, although the described series is only read at the start.
    let at_one_time = fixture.range(
        "info(load{instance=\"a\"} @ start(), {zone=~\".*\", __name__=\"target_info\", version=~\"1|3\"})",
        4 * MINUTE,
        12 * MINUTE,
        4 * MINUTE,
    );
    assert_eq!(at_one_time, r#"load{instance="a", job="j", version="1", zone="x"} 1 1"#);
    // Two info series that have a sample at the same time conflict: neither is newer.
    let over_time = fixture.range("info(load{instance=\"a\"})", 0, 10 * MINUTE, 5 * MINUTE);
    assert!(over_time.contains("duplicate"), "{over_time}");
}
