//! Windows whose edges lie between samples: `anchored` and `smoothed`.

use granary::model::Kind;

use super::bench;
use crate::setup::MINUTE;

#[test]
fn windows_reach_for_samples_beyond_their_edges() {
    let mut bench = bench();
    let mut add = |metric: &str, every: i64, values: &'static [f64]| {
        let id = bench.define(metric, &[], Kind::Gauge);
        bench.fill(id, every, |i| values.get(i as usize).copied());
    };
    // Grows by one each minute, and once by five.
    add("grows", MINUTE, &[1.0, 2.0, 3.0, 4.0, 9.0, 10.0, 11.0]);
    add("falls", MINUTE, &[9.0, 8.0, 5.0, 4.0]);
    let at = |query: &str, seconds: i64| bench.at(query, seconds * 1000);
    for (query, seconds, expected) in [
        ("increase(grows[3m] anchored)", 15, "{} 0"),
        ("increase(grows[3m] anchored)", 135, "{} 2"),
        ("increase(grows[3m] anchored)", 255, "{} 7"),
        ("increase(grows[3m] smoothed)", 30, "{} 0.5"),
        ("increase(grows[3m] smoothed)", 210, "{} 5"),
        ("rate(grows[2m] smoothed)", 300, "{} 0.05"),
        // A decrease is a reset, at the edges too.
        ("increase(falls[2m] smoothed)", 135, "{} 12"),
        ("delta(falls[2m] anchored)", 150, "{} -4"),
        ("changes(falls[1m])", 120, "{} 0"),
        ("changes(falls[1m] anchored)", 120, "{} 1"),
        ("resets(falls[1m] anchored)", 150, "{} 1"),
        // Nothing lies behind the beginning.
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
