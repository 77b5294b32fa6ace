//! Series whose kind changes: each value has the kind of its time, and increases continue across
//! the change.

use granary::model::Kind;

use super::{NOW, fixture};
use crate::setup::{MINUTE, SECOND, series};

#[test]
fn functions_of_values_and_of_increases_are_right_on_both_sides_of_a_change() {
    let mut fixture = fixture();
    let gauge = fixture.define("depth", &[], Kind::Gauge);
    // A reading every 10 s, each one higher by 1; 10 minutes with each kind.
    let stretch = |from: i64| move |i: i64| (i < 60).then_some((from + i) as f64);
    fixture.fill_from(gauge, 5 * SECOND, 10 * SECOND, stretch(0));
    for (index, kind) in [(1, Kind::Counter), (2, Kind::Gauge)] {
        let info = series("depth", &[], kind);
        let id = fixture.appender.change_kinds(&[info], NOW).unwrap()[0].unwrap();
        let first = (index * 600 + 5) * SECOND;
        fixture.fill_from(id, first, 10 * SECOND, stretch(index * 60));
        for _ in 0..2 {
            for (query, minute, expected) in [
                ("depth", 10, 59.0),
                ("depth", 20, 119.0),
                ("avg_over_time(depth[5m])", 10, 44.5),
                ("sum_over_time(depth[5m])", 10, 1335.0),
                ("min_over_time(depth[5m])", 10, 30.0),
                ("max_over_time(depth[5m])", 10, 59.0),
                ("last_over_time(depth[5m])", 10, 59.0),
                ("count_over_time(depth[20m])", 20, 120.0),
                ("min_over_time(depth[10m])", 15, 30.0),
                ("max_over_time(depth[10m])", 15, 89.0),
                ("increase(depth[5m])", 10, 30.0),
                ("increase(depth[10m])", 15, 60.0),
                ("rate(depth[2m])", 11, 0.1),
                ("increase(depth[5m])", 20, 30.0),
                ("resets(depth[15m])", 20, 0.0),
                ("delta(depth[5m])", 10, 30.0),
            ] {
                let found = fixture.instant(query, minute * MINUTE);
                let value: f64 = found.rsplit(' ').next().unwrap().parse().unwrap();
                assert!((value - expected).abs() < 1e-9, "{query} at {minute}m: {found}");
                // The edges of this window are inside slots.
                if query.contains("increase") {
                    let found = fixture.instant(query, minute * MINUTE - 30 * SECOND);
                    let value: f64 = found.rsplit(' ').next().unwrap().parse().unwrap();
                    assert!((value - expected).abs() < 0.5, "{query} in a slot: {found}");
                }
            }
            let found = fixture.instant("avg_over_time(depth[5m])", 15 * MINUTE);
            assert!(found.contains("slots of 1m merged several samples"), "{found}");
            fixture.store.checkpoint(NOW).unwrap();
        }
    }
    for (query, minute, expected) in [
        ("increase(depth[10m])", 25, "{} 60"),
        ("increase(depth[5m])", 15, "{} 30"),
        ("avg_over_time(depth[5m])", 30, "{} 164.5"),
        ("count_over_time(depth[30m])", 30, "{} 180"),
        ("resets(depth[25m])", 30, "{} 0"),
    ] {
        assert_eq!(fixture.instant(query, minute * MINUTE), expected, "{query} at {minute}m");
    }
    let found = fixture.range("increase(depth[2m])", 4 * MINUTE, 28 * MINUTE, 2 * MINUTE);
    assert_eq!(found, format!("{{}}{}", " 12".repeat(13)));
}
