//! Warnings and infos of answers, with their positions in the query.

use granary::model::Kind;

use super::semantics::filled_fixture;
use crate::setup::MINUTE;

#[test]
fn notes_name_the_flaws_of_an_answer() {
    let mut fixture = filled_fixture();
    let fast = fixture.define("fast", &[], Kind::Gauge);
    fixture.fill(fast, MINUTE / 6, |i| (i <= 60).then_some(i as f64));
    let range = |query: &str| fixture.notes(query, 5 * MINUTE, 10 * MINUTE, MINUTE);
    for (query, expected) in [
        ("sort(v)", "sort is ineffective for range queries"),
        ("sort_by_label_desc(v, \"a\")", "sort is ineffective for range queries"),
    ] {
        let notes = range(query);
        assert!(notes.contains(expected), "{query}: {notes:?}");
    }
    for query in ["max_over_time(fast[1m])", "max_over_time(fast[30s])", "v"] {
        assert_eq!(range(query), "", "{query}");
    }
    assert_eq!(fixture.notes("sort(v)", 10 * MINUTE, 10 * MINUTE, 0), "");
}

#[test]
fn notes_and_errors_have_positions() {
    let fixture = filled_fixture();
    for (query, location) in [
        ("rate(v[5m])", "(1:6)"),
        ("1 +\n  sum(increase(v[5m] ))", "(2:16)"),
        ("quantile(2, v)", "(1:10)"),
        ("quantile_over_time(1.5, v[5m])", "(1:20)"),
        ("histogram_quantile(-1, h_bucket)", "(1:20)"),
        ("abs(histogram_quantile(0.5, v))", "(1:29)"),
        ("limit_ratio(2, v)", "(1:13)"),
        ("abs()", "1:1: parse error"),
        ("sum(rate(v))", "1:10: parse error"),
        ("1 + none(v)", "1:5: parse error"),
    ] {
        let notes = fixture.notes(query, 10 * MINUTE, 10 * MINUTE, 0);
        assert!(notes.contains(location), "{query}: {notes}");
    }
}
