//! Functions of how values change over a window.
//!
//! Of counters and deltas the stored increases are added up: exact, without extrapolation. Gauges
//! and subqueries have none, and follow Prometheus' calculation on readings. Must never know: the
//! store, the tree.

use super::{
    changes::{changes, resets},
    regression::{deriv, predict},
    window::{Answer, RangeFunction, seconds},
};
use crate::{
    model::Kind,
    query::promql::value::{
        annotations::Notes, cells::TimedCell, error::PromqlError, numbers::Sum,
        range_vector::RangeVector, series::Series, windows::Window,
    },
};

/// The function of this name, if it is one of change.
pub(super) fn function(name: &str) -> Option<RangeFunction> {
    Some(match name {
        "changes" => changes,
        "delta" => |window, _, _| Ok(extrapolated(window, false)),
        "deriv" => |window, _, _| Ok(deriv(window)),
        "double_exponential_smoothing" | "holt_winters" => smoothing,
        "idelta" => |window, _, notes| Ok(instant_change(window, false, notes)),
        "increase" => |window, _, _| Ok(increase(window)),
        "irate" => |window, _, notes| Ok(instant_change(window, true, notes)),
        "predict_linear" => |window, arguments, _| Ok(predict(window, arguments)),
        "rate" => |window, _, _| Ok(increase(window).map(|sum| sum / seconds(window.range_ms()))),
        "resets" => resets,
        _ => return None,
    })
}

/// Tells of series under `rate` that are no counters, by their names as Prometheus does.
pub(super) fn inform_of_gauges(windows: &RangeVector, answered: &[Series], notes: &Notes<'_>) {
    let counters = ["_total", "_sum", "_count", "_bucket"];
    let gauges = windows.cells.series.iter().filter(|one| one.kind == Kind::Gauge);
    let mut metrics: Vec<_> = gauges.map(|one| one.labels.metric()).collect();
    metrics.dedup();
    for metric in metrics {
        let counts = metric.is_empty() || counters.iter().any(|end| metric.ends_with(end));
        if !counts && answered.iter().any(|one| one.labels.metric() == metric) {
            notes.inform(|| {
                format!(
                    "metric might not be a counter, name does not end in \
                     _total/_sum/_count/_bucket: {metric:?}"
                )
            });
        }
    }
}

/// How much was counted in the window.
fn increase(window: &Window<'_>) -> Option<f64> {
    if window.kind == Kind::Gauge {
        return extrapolated(window, true);
    }
    let cells = window.cells();
    // The very first reading tells nothing of what was counted before it.
    if window.kind == Kind::Counter && cells.iter().all(|cell| cell.max == f64::NEG_INFINITY) {
        return None;
    }
    let mut sum = Sum::default();
    for cell in cells {
        sum.add(cell.sum);
    }
    let whole_slots = window.width_ms == 0 || window.range_ms() % window.width_ms == 0;
    if whole_slots || !window.has_merged() {
        return Some(sum.total());
    }
    // So many slots more or less fall into the window from step to step: go by the time that
    // their increases cover.
    let covered = covered_ms(window).filter(|covered| *covered > 0);
    let range = window.range_ms();
    // A window shorter than a slot gets its part of the slot around it.
    let covered = covered.or_else(|| (range < window.width_ms).then_some(window.width_ms));
    let part = covered.map_or(1.0, |covered| range as f64 / covered as f64);
    Some(sum.total() * part)
}

/// The time in which the window's increases were counted, when the reading before is known.
fn covered_ms(window: &Window<'_>) -> Option<i64> {
    let before = window.before()?;
    let last = window.cells().last()?;
    let covered = last.last_at - before.last_at;
    // After a gap the time says little.
    (covered <= window.range_ms() + 2 * window.width_ms).then_some(covered)
}

/// Prometheus' increase or difference over a window: from the first to the last reading, carried
/// on to the window's edges as far as the spacing of the readings makes likely.
fn extrapolated(window: &Window<'_>, counter: bool) -> Option<f64> {
    let mut readings = window.readings();
    let first = readings.next()?;
    let (mut last, mut count, mut grown) = (first, 1_u32, 0.0);
    for reading in readings {
        if counter && reading.1 < last.1 {
            grown += last.1;
        }
        (last, count) = (reading, count + 1);
    }
    grown += last.1 - first.1;
    let sampled = seconds(last.0 - first.0);
    if count < 2 || sampled <= 0.0 {
        return None;
    }
    let spacing = sampled / f64::from(count - 1);
    let near = spacing * 1.1;
    let carried = |distance: f64| if distance >= near { spacing / 2.0 } else { distance };
    let mut to_start = carried(seconds(first.0 - window.from));
    if counter && grown > 0.0 && first.1 >= 0.0 {
        // A counter cannot have been below zero.
        to_start = to_start.min(sampled * (first.1 / grown));
    }
    let to_end = carried(seconds(window.to - last.0));
    Some(grown * ((sampled + to_start + to_end) / sampled))
}

/// By the last two readings.
fn instant_change(window: &Window<'_>, rate: bool, notes: &Notes<'_>) -> Option<f64> {
    if rate && window.kind != Kind::Gauge {
        return instant_rate(window, notes);
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
    "irate and idelta go by slots where several samples were merged into one".to_owned()
}

/// The increase of the last cell over its time.
fn instant_rate(window: &Window<'_>, notes: &Notes<'_>) -> Option<f64> {
    let (last, others) = window.cells().split_last()?;
    if last.is_merged() {
        notes.inform(merged_info);
    }
    let before = others.last().or_else(|| window.before().filter(|_| last.is_merged()));
    let near =
        |before: &&TimedCell| last.last_at - before.last_at <= window.range_ms() + window.width_ms;
    if let Some(before) = before.filter(near) {
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

fn smoothing(window: &Window<'_>, arguments: &[f64], _: &Notes<'_>) -> Answer {
    let [smooth, trend] = [0, 1].map(|index| arguments.get(index).copied().unwrap_or(f64::NAN));
    for (factor, name, short) in [(smooth, "smoothing", "sf"), (trend, "trend", "tf")] {
        // NaN is let through, as in Prometheus: the answer is NaN.
        if factor <= 0.0 || factor >= 1.0 {
            return Err(PromqlError::Execution(format!(
                "invalid {name} factor. Expected: 0 < {short} < 1, got: {factor:.6}"
            )));
        }
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
    use crate::{
        model::{SeriesState, UnixMillis},
        query::promql::value::{cells::append_cells, windows::Cursor},
        store::Slot,
    };

    /// Cells of 60 s of a counter that is read every `every` seconds and grows by 2 a second.
    fn counter(every: i64, kind: Kind) -> Vec<TimedCell> {
        let mut state = SeriesState::new(kind);
        let mut slots: Vec<Slot> = Vec::new();
        for at in (0..1200).step_by(every as usize) {
            let start = UnixMillis(at * 1000 / 60_000 * 60_000);
            let value = (at * 2) as f64;
            let cell = state.observe(UnixMillis(at * 1000), value, 0, start).cell;
            match slots.last_mut().filter(|slot| slot.start == start) {
                Some(slot) => slot.cell.merge(&cell),
                None => slots.push(Slot { start, cell }),
            }
        }
        let mut out = Vec::new();
        append_cells(&mut slots, kind, &mut out);
        out
    }

    fn answer(name: &str, cells: &[TimedCell], kind: Kind, from: i64, to: i64) -> Answer {
        let (lo, hi) = Cursor::default().advance(cells, from, to);
        let window =
            Window { all: cells, lo, hi, from, to, evaluated_at: to, kind, width_ms: 60_000 };
        function(name).unwrap()(&window, &[60.0, 0.5], &Notes::new(&RefCell::default()))
    }

    #[test]
    fn counters_give_their_exact_rate_merged_or_not() {
        for every in [10, 30, 60] {
            let cells = counter(every, Kind::Counter);
            for (name, expected) in [("rate", 2.0), ("increase", 600.0), ("irate", 2.0)] {
                let found = answer(name, &cells, Kind::Counter, 300_000, 600_000).unwrap();
                assert_eq!(found, Some(expected), "{name} {every}");
            }
            // A window that is no whole number of slots does not saw.
            for to in (600_000..660_000).step_by(7000) {
                let found = answer("rate", &cells, Kind::Counter, to - 90_000, to).unwrap();
                assert!((found.unwrap() - 2.0).abs() < 1.4, "{every} {to} {found:?}");
                if every == 10 {
                    assert!((found.unwrap() - 2.0).abs() < 1e-9, "{to} {found:?}");
                }
            }
        }
        let one = counter(60, Kind::Counter);
        assert_eq!(answer("rate", &one, Kind::Counter, -1000, 1000).unwrap(), None);
    }

    #[test]
    fn gauges_are_extrapolated_as_in_prometheus() {
        let cells: Vec<_> = [(1000, 1.0), (2000, 2.0), (3000, 4.0), (4000, 1.0)]
            .iter()
            .map(|(at, value)| TimedCell::sample(*at, *value))
            .collect();
        // 4 counted over 3 s; 0.75 s to zero at the start, 1 s to the end.
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
    fn changes_and_resets_of_merged_counters_are_known_where_rates_tell() {
        let cells = counter(10, Kind::Counter);
        assert_eq!(answer("changes", &cells, Kind::Counter, 59_000, 179_000).unwrap(), Some(11.0));
        assert_eq!(answer("resets", &cells, Kind::Counter, 59_000, 179_000).unwrap(), Some(0.0));
        let gauge = counter(10, Kind::Gauge);
        assert!(answer("changes", &gauge, Kind::Gauge, 59_000, 179_000).is_err());
    }
}
