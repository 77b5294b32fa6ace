//! Functions over windows that are exact from merged cells, compared with Prometheus' formulas on
//! the raw samples: at every granularity, for samples out of order, and with checkpoints between.

use proptest::prelude::*;

use granary::model::Kind;

use super::{DAY0, Fixture, NOW, fixture};
use crate::setup::{DAY, HOUR, MINUTE, samples, send};

/// The first day whose samples are kept at most in slots of 1m, 5m, 1h and 1d, and the lengths of
/// windows of whole slots.
const LEVELS: [(i64, &[(&str, i64)]); 4] = [
    (0, &[("1m", MINUTE), ("5m", 5 * MINUTE), ("1h", HOUR), ("1d", DAY)]),
    (-5, &[("5m", 5 * MINUTE), ("1h", HOUR), ("1d", DAY)]),
    (-30, &[("1h", HOUR), ("1d", DAY)]),
    (-200, &[("1d", DAY)]),
];

type Formula = fn(&[f64]) -> f64;

/// The population variance in two passes, as of Prometheus' definition.
fn variance(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len() as f64
}

const FORMULAS: [(&str, Formula); 9] = [
    ("stdvar_over_time", variance),
    ("stddev_over_time", |values| variance(values).sqrt()),
    ("avg_over_time", |values| values.iter().sum::<f64>() / values.len() as f64),
    ("sum_over_time", |values| values.iter().sum()),
    ("count_over_time", |values| values.len() as f64),
    ("min_over_time", |values| values.iter().copied().fold(f64::INFINITY, f64::min)),
    ("max_over_time", |values| values.iter().copied().fold(f64::NEG_INFINITY, f64::max)),
    ("first_over_time", |values| values[0]),
    ("last_over_time", |values| values[values.len() - 1]),
];

/// Compares all windows of whole slots that contain a sample.
fn compare(fixture: &Fixture, kind: Kind, all: &[(i64, f64)]) {
    for (day, windows) in LEVELS {
        for (name, length) in windows {
            let start = day * DAY;
            let inside = all.iter().map(|(at, _)| at - DAY0 - start);
            let mut ends: Vec<_> = inside
                .filter(|at| (0..DAY).contains(at))
                .map(|at| start + (at / length + 1) * length)
                .collect();
            ends.sort_unstable();
            ends.dedup();
            // A few windows of each length.
            for end in ends.iter().step_by(ends.len() / 4 + 1) {
                let is_inside = |at: i64| at > DAY0 + end - length && at <= DAY0 + end;
                let window = all.iter().filter(|(at, _)| is_inside(*at));
                let values: Vec<_> = window.map(|(_, value)| *value).collect();
                for (function, formula) in FORMULAS {
                    let query = format!("{function}(x[{name}])");
                    let found = fixture.instant(&query, *end);
                    let number: f64 = found.rsplit(' ').next().unwrap().parse().unwrap_or(f64::NAN);
                    let expected = formula(&values);
                    // Sums of values with both signs have the rounding error of their values.
                    let size = values.iter().map(|value| value.abs()).sum::<f64>();
                    assert!(
                        (number - expected).abs() <= 1e-9 * expected.abs() + 1e-14 * size,
                        "{query} of {kind:?} at {end}: {found} instead of {expected} of {values:?}"
                    );
                }
            }
        }
    }
}

/// Samples of all levels, some of them close together, in the order of their arrival.
fn history() -> impl Strategy<Value = Vec<(i64, f64)>> {
    let value = prop_oneof![
        3 => (-5000..5000_i32).prop_map(|number| f64::from(number) / 100.0),
        1 => -1e3..1e3_f64,
        1 => Just(7.25),
    ];
    let day = prop::sample::select(LEVELS.map(|(day, _)| day).to_vec());
    let burst = (day, 0..DAY / 2, prop::collection::vec((0..40_000_i64, value), 1..12));
    prop::collection::vec(burst, 1..30).prop_flat_map(|bursts| {
        let mut all = std::collections::BTreeMap::new();
        for (day, start, samples) in bursts {
            // Times of odd milliseconds are never between two slots.
            let (mut at, end) = (DAY0 + day * DAY + start * 2 + 1, DAY0 + (day + 1) * DAY);
            for (after, value) in samples {
                at += after * 2;
                all.extend((at < end).then_some((at, value)));
            }
        }
        Just(all.into_iter().collect::<Vec<_>>()).prop_shuffle()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]
    #[test]
    fn merged_cells_answer_as_prometheus_does_from_raw_samples(
        history in history(), is_delta: bool, checkpoints in 0..4_usize
    ) {
        let mut fixture = fixture();
        let kind = if is_delta { Kind::Delta } else { Kind::Gauge };
        let id = fixture.define("x", &[], kind);
        for part in history.chunks(history.len() / (checkpoints + 1) + 1) {
            send(&mut fixture.appender, samples(id, part.iter().copied()), NOW);
            if checkpoints > 0 {
                fixture.store.checkpoint(NOW).unwrap();
            }
        }
        let mut sorted = history;
        sorted.sort_by_key(|(at, _)| *at);
        compare(&fixture, kind, &sorted);
    }
}
