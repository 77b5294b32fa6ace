//! Windows whose edges lie between samples: windows that end inside of slots, and the modifiers
//! `anchored` and `smoothed`.

use granary::model::Kind;

use super::{NOW, fixture};
use crate::setup::{MINUTE, SECOND};

#[test]
fn windows_that_end_inside_slots_are_right_at_every_second() {
    // The counter is read two seconds after each multiple of five seconds; in the first round, the
    // readings end with the window.
    for is_live in [true, false] {
        for end in [203, 229, 246, 250, 240] {
            let mut fixture = fixture();
            let last = if is_live { end } else { 600 };
            let counter = fixture.define("grows_total", &[], Kind::Counter);
            let value = |at: i64| (at <= last).then_some((1000 + at) as f64);
            fixture.fill_from(counter, 2 * SECOND, 5 * SECOND, |i| value(2 + 5 * i));
            let level = fixture.define("level", &[], Kind::Gauge);
            fixture.fill_from(level, 2 * SECOND, 5 * SECOND, |i| value(2 + 5 * i).map(|_| 7.0));
            for (query, expected) in [
                ("rate(grows_total[1m])", 1.0),
                ("rate(grows_total[90s])", 1.0),
                ("rate(grows_total[2m])", 1.0),
                ("increase(grows_total[30s])", 30.0),
                ("irate(grows_total[1m])", 1.0),
                ("count_over_time(level[1m])", 12.0),
                ("sum_over_time(level[1m])", 84.0),
                ("avg_over_time(level[1m])", 7.0),
                ("present_over_time(level[6s])", 1.0),
                ("max_over_time(rate(grows_total[1m])[1m:7s])", 1.0),
            ] {
                let shifted = query.replace(']', "] offset 7s");
                for (query, at) in [(query, end), (&shifted, end + 7)] {
                    let found = fixture.instant(query, at * SECOND);
                    let value: f64 = found.trim_start_matches("{} ").parse().unwrap();
                    assert!((value - expected).abs() < 1e-9, "{query} at {at}, {is_live}: {found}");
                }
            }
        }
    }
}

#[test]
fn growth_over_a_gap_is_spread_the_same_in_windows_inside_of_the_gap_and_around_it() {
    let mut fixture = fixture();
    let counter = fixture.define("grows_total", &[], Kind::Counter);
    let step = 5 * SECOND;
    fixture.fill_from(counter, 5 * SECOND, step, |i| (i < 11).then_some((5 + 5 * i) as f64));
    fixture.fill_from(counter, 305 * SECOND, step, |i| (i < 11).then_some((305 + 5 * i) as f64));
    for _ in 0..2 {
        for minute in 2..=6 {
            let found = fixture.instant("increase(grows_total[1m])", minute * MINUTE);
            assert_eq!(found, "{} 60", "minute {minute}");
        }
        assert_eq!(fixture.instant("increase(grows_total[3m])", 5 * MINUTE), "{} 180");
        assert_eq!(fixture.instant("increase(grows_total[5m])", 6 * MINUTE), "{} 300");
        assert_eq!(fixture.instant("count_over_time(grows_total[1m])", 4 * MINUTE), "");
        fixture.store.checkpoint(NOW).unwrap();
    }
}

#[test]
fn both_ends_of_a_gap_of_many_slots_are_found() {
    const GAP: i64 = 5 * 60 * MINUTE;
    let mut fixture = fixture();
    let counter = fixture.define("grows_total", &[], Kind::Counter);
    let reading = |from: i64| move |i: i64| (i < 11).then_some((from / SECOND + 5 * i) as f64);
    for from in [5 * SECOND, GAP + 5 * SECOND] {
        fixture.fill_from(counter, from, 5 * SECOND, reading(from));
    }
    for _ in 0..2 {
        for at in [2 * MINUTE, 100 * MINUTE, 200 * MINUTE, GAP, GAP + MINUTE] {
            let found = fixture.instant("increase(grows_total[1m])", at);
            assert_eq!(found, "{} 60", "minute {}", at / MINUTE);
        }
        fixture.store.checkpoint(NOW).unwrap();
    }
}

#[test]
fn windows_use_samples_beyond_their_edges() {
    let mut fixture = fixture();
    let mut add = |metric: &str, every: i64, values: &'static [f64]| {
        let id = fixture.define(metric, &[], Kind::Gauge);
        fixture.fill(id, every, |i| values.get(i as usize).copied());
    };
    // The counter grows by one per minute, and once by five.
    add("grows", MINUTE, &[1.0, 2.0, 3.0, 4.0, 9.0, 10.0, 11.0]);
    add("falls", MINUTE, &[9.0, 8.0, 5.0, 4.0]);
    let at = |query: &str, seconds: i64| fixture.instant(query, seconds * 1000);
    for (query, seconds, expected) in [
        ("increase(grows[3m] anchored)", 15, "{} 0"),
        ("increase(grows[3m] anchored)", 135, "{} 2"),
        ("increase(grows[3m] anchored)", 255, "{} 7"),
        ("increase(grows[3m] smoothed)", 30, "{} 0.5"),
        ("increase(grows[3m] smoothed)", 210, "{} 5"),
        ("rate(grows[2m] smoothed)", 300, "{} 0.05"),
        // A decrease is a reset, even at the edges.
        ("increase(falls[2m] smoothed)", 135, "{} 12"),
        ("delta(falls[2m] anchored)", 150, "{} -4"),
        ("changes(falls[1m])", 120, "{} 0"),
        ("changes(falls[1m] anchored)", 120, "{} 1"),
        ("resets(falls[1m] anchored)", 150, "{} 1"),
        // There are no samples before the beginning.
        ("increase(falls[1m] anchored)", 300, ""),
        ("falls smoothed", 90, "falls 6.5"),
        ("falls smoothed", 240, "falls 4"),
        ("falls smoothed offset 30s", 120, "falls 6.5"),
        (
            "deriv(falls[1m] smoothed)",
            60,
            "error: smoothed modifier can only be used with: delta, increase, rate - not with deriv",
        ),
        (
            "max_over_time(falls[1m] anchored)",
            60,
            "error: anchored modifier can only be used with: changes, delta, increase, rate, \
             resets - not with max_over_time",
        ),
    ] {
        assert_eq!(at(query, seconds), expected, "{query} {seconds}");
    }
}
