//! Functions of the change of values over a window.
//!
//! Must never know: the store, the tree.

use super::{
    changes::{changes, resets},
    extrapolation::SampledChange,
    increase::{increase, rate},
    regression::{deriv, predict},
    window::{RangeFunction, WindowResult, seconds},
};
use crate::query::QueryError;
use crate::{
    model::Kind,
    query::promql::value::{
        annotations::Notes, cells::TimedCell, range_vector::RangeVector, series::Series,
        windows::Window,
    },
};

/// Returns the function with a name, if it is in this file.
pub(super) fn function(name: &str) -> Option<RangeFunction> {
    Some(match name {
        "changes" => changes,
        "delta" => |window, _, _| Ok(delta(window)),
        "deriv" => |window, _, _| Ok(deriv(window)),
        "double_exponential_smoothing" | "holt_winters" => smoothing,
        "idelta" => |window, _, notes| Ok(instant_change(window, false, notes)),
        "increase" => |window, _, _| Ok(increase(window)),
        "irate" => |window, _, notes| Ok(instant_change(window, true, notes)),
        "predict_linear" => |window, arguments, _| Ok(predict(window, arguments)),
        "rate" => |window, _, _| Ok(rate(window)),
        "resets" => resets,
        _ => return None,
    })
}

/// Adds an info about arguments of `rate` and `increase` that are probably not counters. As in
/// Prometheus, their names decide.
pub(super) fn inform_of_gauges(windows: &RangeVector, answered: &[Series], notes: &Notes<'_>) {
    let counters = ["_total", "_sum", "_count", "_bucket"];
    let gauges = windows.cells.series.iter().filter(|series| series.kind == Kind::Gauge);
    let mut metrics: Vec<_> = gauges.map(|series| series.labels.metric()).collect();
    metrics.dedup();
    for metric in metrics {
        let is_named_as_counter =
            metric.is_empty() || counters.iter().any(|end| metric.ends_with(end));
        if !is_named_as_counter && answered.iter().any(|series| series.labels.metric() == metric) {
            notes.inform(|| {
                format!(
                    "metric might not be a counter, name does not end in \
                     _total/_sum/_count/_bucket: {metric:?}"
                )
            });
        }
    }
}

/// Returns the difference between the end and the start of the window.
fn delta(window: &Window<'_>) -> Option<f64> {
    SampledChange::of_gauge(window, false)?.extrapolated(&window.frame)
}

/// Returns the change between the last two readings.
fn instant_change(window: &Window<'_>, rate: bool, notes: &Notes<'_>) -> Option<f64> {
    if rate && window.kind != Kind::Gauge {
        return if window.frame.cuts_slots && window.kind == Kind::Counter {
            rate_of_last_step(window, notes)
        } else {
            instant_rate(window, notes)
        };
    }
    let mut before = None;
    let mut last: Option<(i64, f64)> = None;
    for reading in window.readings() {
        before = last.replace(reading);
    }
    let (before, last) = (before?, last?);
    let passed = seconds(last.0 - before.0);
    if passed <= 0.0 {
        return None;
    }
    if window.cells().last().is_some_and(TimedCell::is_merged) {
        notes.inform(merged_info);
    }
    if !rate {
        return Some(last.1 - before.1);
    }
    let grown = if last.1 < before.1 { last.1 } else { last.1 - before.1 };
    Some(grown / passed)
}

fn merged_info() -> String {
    "irate and idelta are less exact where several samples were merged into one slot".to_owned()
}

/// Returns the rate between the last two readings, in a window that cuts slots.
fn rate_of_last_step(window: &Window<'_>, notes: &Notes<'_>) -> Option<f64> {
    let last = window.last_portion()?;
    if last.cell.is_merged() {
        notes.inform(merged_info);
    }
    let (passed, counted) = last.last_step()?;
    let is_near = passed <= (window.range_ms() + window.frame.width_ms) as f64;
    (passed > 0.0 && is_near).then(|| counted / (passed / 1000.0))
}

/// Returns the rate of the last cell.
fn instant_rate(window: &Window<'_>, notes: &Notes<'_>) -> Option<f64> {
    let (last, others) = window.cells().split_last()?;
    if last.is_merged() {
        notes.inform(merged_info);
    }
    let before = others.last().or_else(|| window.before().filter(|_| last.is_merged()));
    let is_near = |before: &&TimedCell| {
        last.last_at - before.last_at <= window.range_ms() + window.frame.width_ms
    };
    if let Some(before) = before.filter(is_near) {
        return (last.max > f64::NEG_INFINITY)
            .then(|| last.sum / seconds(last.last_at - before.last_at));
    }
    let passed = seconds(last.last_at - last.first_at);
    let grown = if window.kind == Kind::Delta || last.last < last.first {
        last.sum
    } else {
        last.last - last.first
    };
    (passed > 0.0).then(|| grown / passed)
}

fn smoothing(window: &Window<'_>, arguments: &[f64], notes: &Notes<'_>) -> WindowResult {
    let [smooth, trend] = [0, 1].map(|index| arguments.get(index).copied().unwrap_or(f64::NAN));
    for (factor, name, short) in [(smooth, "smoothing", "sf"), (trend, "trend", "tf")] {
        // NaN is accepted and results in NaN, as in Prometheus.
        if factor <= 0.0 || factor >= 1.0 {
            return Err(QueryError::Execution(format!(
                "invalid {name} factor. Expected: 0 < {short} < 1, got: {factor:.6}"
            )));
        }
    }
    if window.has_merged() {
        notes.inform(|| {
            "double_exponential_smoothing uses the first and the last sample of each slot, because \
             several samples were merged into it"
                .to_owned()
        });
    }
    let mut readings = window.readings().map(|(_, value)| value);
    let (Some(first), Some(second)) = (readings.next(), readings.next()) else { return Ok(None) };
    let (mut before, mut level, mut slope) = (0.0, first, second - first);
    for (index, value) in std::iter::once(second).chain(readings).enumerate() {
        if index > 0 {
            slope = trend * (level - before) + (1.0 - trend) * slope;
        }
        (before, level) = (level, smooth * value + (1.0 - smooth) * (level + slope));
    }
    Ok(Some(level))
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::query::promql::value::{
        cells::cells_of_readings,
        windows::{Cursor, Frame},
    };

    /// Returns cells of 60 s of a counter that is read every `every` seconds and grows by 2 per
    /// second.
    fn counter(every: i64, kind: Kind) -> Vec<TimedCell> {
        let times = (0..1200).step_by(every as usize);
        cells_of_readings(kind, times.map(|at| (at, (at * 2) as f64)))
    }

    fn answer(name: &str, cells: &[TimedCell], kind: Kind, from: i64, to: i64) -> WindowResult {
        let window = Cursor::default().window(cells, kind, Frame::of_minutes(from, to));
        function(name).unwrap()(&window, &[60.0, 0.5], &Notes::new(&RefCell::default()))
    }

    #[test]
    fn counters_have_exact_rates_in_single_and_in_merged_cells() {
        for every in [10, 30, 60] {
            let cells = counter(every, Kind::Counter);
            for (name, expected) in [("rate", 2.0), ("increase", 600.0), ("irate", 2.0)] {
                let found = answer(name, &cells, Kind::Counter, 300_000, 600_000).unwrap();
                assert_eq!(found, Some(expected), "{name} {every}");
            }
            // In windows that cut slots, the rate of frequent readings is exact, and other rates
            // are approximate.
            for to in (600_000..660_000).step_by(7000) {
                let found = answer("rate", &cells, Kind::Counter, to - 90_000, to).unwrap();
                assert!((found.unwrap() - 2.0).abs() < 1.4, "{every} {to} {found:?}");
                if every == 10 {
                    assert!((found.unwrap() - 2.0).abs() < 1e-9, "{to} {found:?}");
                }
            }
        }
        let cells = counter(60, Kind::Counter);
        assert_eq!(answer("rate", &cells, Kind::Counter, -1000, 1000).unwrap(), None);
    }

    #[test]
    fn gauges_are_extrapolated_as_in_prometheus() {
        let cells: Vec<_> = [(1000, 1.0), (2000, 2.0), (3000, 4.0), (4000, 1.0)]
            .iter()
            .map(|(at, value)| TimedCell::sample(*at, *value))
            .collect();
        // The increase is 4 over 3 s; extrapolated by 0.75 s to zero at the start and by 1 s to the
        // end.
        let found = answer("increase", &cells, Kind::Gauge, 0, 5000).unwrap();
        assert_eq!(found, Some(4.0 * (3.0 + 0.75 + 1.0) / 3.0));
        assert_eq!(answer("delta", &cells, Kind::Gauge, 0, 5000).unwrap(), Some(0.0));
        assert_eq!(answer("idelta", &cells, Kind::Gauge, 0, 5000).unwrap(), Some(-3.0));
        assert_eq!(answer("resets", &cells, Kind::Gauge, 0, 5000).unwrap(), Some(1.0));
        assert_eq!(answer("changes", &cells, Kind::Gauge, 0, 5000).unwrap(), Some(3.0));
        let line: Vec<_> = (1..5).map(|i| TimedCell::sample(i * 1000, i as f64)).collect();
        assert_eq!(answer("deriv", &line, Kind::Gauge, 0, 4000).unwrap(), Some(1.0));
        assert_eq!(answer("predict_linear", &line, Kind::Gauge, 0, 4000).unwrap(), Some(64.0));
    }

    #[test]
    fn changes_and_resets_of_merged_counters_follow_from_their_rates() {
        let cells = counter(10, Kind::Counter);
        assert_eq!(answer("changes", &cells, Kind::Counter, 59_000, 179_000).unwrap(), Some(11.0));
        assert_eq!(answer("resets", &cells, Kind::Counter, 59_000, 179_000).unwrap(), Some(0.0));
        let gauge = counter(10, Kind::Gauge);
        assert!(answer("changes", &gauge, Kind::Gauge, 59_000, 179_000).is_err());
    }

    #[test]
    fn resets_inside_of_a_merged_cell_count_once_with_a_warning() {
        let of = |values: &[f64]| {
            let readings = (0..).step_by(10).zip(values.iter().copied());
            let cells = cells_of_readings(Kind::Counter, readings);
            let (notes, to) = (RefCell::default(), 120_000);
            let window =
                Cursor::default().window(&cells, Kind::Counter, Frame::of_minutes(-60_000, to));
            let found = function("resets").unwrap()(&window, &[], &Notes::new(&notes)).unwrap();
            (found.unwrap(), notes.borrow().warnings.len())
        };
        assert_eq!(of(&[1.0, 5.0, 9.0, 12.0, 13.0, 20.0, 25.0, 30.0, 31.0]), (0.0, 0));
        assert_eq!(of(&[5.0, 9.0, 12.0, 1.0, 2.0, 3.0, 9.0, 9.0, 9.0]), (1.0, 1));
        assert_eq!(of(&[1.0, 5.0, 9.0, 12.0, 13.0, 20.0, 25.0, 2.0, 31.0]), (1.0, 1));
        // A reset between two cells is known.
        assert_eq!(of(&[1.0, 5.0, 9.0, 12.0, 13.0, 20.0, 2.0, 30.0, 31.0]), (1.0, 0));
    }
}
