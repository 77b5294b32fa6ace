//! Series whose kind changes: each value has the kind of its time, and increases continue across
//! the change.

use granary::model::{Histogram, Kind, ResetHint, SeriesId, UnixMillis};

use super::{DAY0, Fixture, NOW, fixture};
use crate::setup::{MINUTE, SECOND, samples, send, series};

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

/// Sends histograms from a time on; each one has one observation more.
fn fill_histograms(
    fixture: &mut Fixture,
    (id, kind): (SeriesId, Kind),
    (first, every, count): (i64, i64, i64),
) {
    let mut batch = samples(id, []);
    for i in 0..count {
        let at = first + i * every;
        let mut histogram = Histogram::sketch();
        if kind == Kind::GaugeHistogram {
            histogram.hint = ResetHint::Gauge;
        }
        histogram.observe(2.0, (at / every) as f64);
        batch.push_histogram(id, UnixMillis(DAY0 + at), histogram);
    }
    send(&mut fixture.appender, batch, NOW);
}

/// Returns a fixture with 10 minutes of one kind of histograms, and 10 of another one.
fn of_two_kinds(kinds: [Kind; 2], every: i64) -> Fixture {
    let mut fixture = fixture();
    let first = fixture.define("delays", &[], kinds[0]);
    let count = 10 * MINUTE / every;
    fill_histograms(&mut fixture, (first, kinds[0]), (every / 2, every, count));
    let info = series("delays", &[], kinds[1]);
    let second = fixture.appender.change_kinds(&[info], NOW).unwrap()[0].unwrap();
    let from = 10 * MINUTE + every / 2;
    fill_histograms(&mut fixture, (second, kinds[1]), (from, every, count));
    fixture
}

#[test]
fn windows_over_two_kinds_of_histograms_warn_and_have_no_rate() {
    let (gauge, counter, delta) = (Kind::GaugeHistogram, Kind::Histogram, Kind::DeltaHistogram);
    for (kinds, every) in [
        ([gauge, counter], 10 * SECOND),
        ([counter, delta], 10 * SECOND),
        ([counter, delta], MINUTE),
        ([delta, gauge], MINUTE),
    ] {
        let fixture = of_two_kinds(kinds, every);
        for function in ["rate", "increase", "delta", "irate", "sum_over_time"] {
            let query = format!("histogram_count({function}(delays[6m]))");
            assert_eq!(fixture.instant(&query, 13 * MINUTE), "", "{query} {kinds:?}");
            let notes = fixture.notes(&query, 13 * MINUTE, 13 * MINUTE, 0);
            let expected =
                "a mix of counter, gauge and delta histograms for metric name \"delays\"";
            assert!(notes.contains(expected), "{query} {kinds:?}: {notes}");
        }
        for minute in [10, 20] {
            let notes = fixture.notes("rate(delays[6m])", minute * MINUTE, minute * MINUTE, 0);
            assert!(!notes.contains("a mix of"), "{kinds:?} {minute}: {notes}");
        }
        assert_ne!(fixture.instant("count_over_time(delays[6m])", 13 * MINUTE), "");
        assert_ne!(fixture.instant("histogram_count(delays)", 20 * MINUTE), "");
    }
}

#[test]
fn windows_of_one_kind_have_its_rate_on_both_sides_of_a_change() {
    let fixture = of_two_kinds([Kind::Histogram, Kind::DeltaHistogram], 10 * SECOND);
    // The counter grows by 6 a minute; the increases of 15 to 20 minutes are 90 to 119.
    for (minute, expected) in [(10, "{} 30"), (20, "{} 3135")] {
        let found = fixture.instant("histogram_count(increase(delays[5m]))", minute * MINUTE);
        assert_eq!(found, expected, "{minute}");
    }
    // Single readings of gauges and counters compare as in Prometheus.
    let fixture = of_two_kinds([Kind::GaugeHistogram, Kind::Histogram], MINUTE);
    let found = fixture.instant("histogram_count(increase(delays[6m]))", 13 * MINUTE);
    assert_eq!(found, "{} 6");
    let notes = fixture.notes("increase(delays[6m])", 13 * MINUTE, 13 * MINUTE, 0);
    assert!(notes.contains("this native histogram metric is not a counter"), "{notes}");
}
