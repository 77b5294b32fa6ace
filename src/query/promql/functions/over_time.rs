//! Functions `*_over_time` of the cells in a window.
//!
//! A function succeeds on a merged cell when the cell's aggregates determine the result. Otherwise
//! the function fails, and the error names an alternative. Must never know: the store, the tree.

use super::window::{
    Instead, RangeFunction, WindowResult, merged_samples_error, seconds, unknown_moment_error,
};
use crate::query::QueryError;
use crate::{
    model::Kind,
    query::promql::value::{
        annotations::Notes,
        numbers::{Mean, Sum, Variance, weighted_quantile},
        portion::Portion,
        windows::Window,
    },
};

/// Returns the function with a name, if it is in this file.
pub(super) fn function(name: &str) -> Option<RangeFunction> {
    Some(match name {
        "avg_over_time" => average,
        "count_over_time" => |window, _, _| Ok(Some(count(window))),
        "first_over_time" => |window, _, _| Ok(first_reading(window).map(|reading| reading.1)),
        "last_over_time" => |window, _, _| Ok(last_reading(window).map(|reading| reading.1)),
        "mad_over_time" => mad,
        "max_over_time" => |window, _, _| Ok(Some(extreme(window, false).1)),
        "min_over_time" => |window, _, _| Ok(Some(extreme(window, true).1)),
        "present_over_time" => |_, _, _| Ok(Some(1.0)),
        "quantile_over_time" => quantile_over_time,
        "stddev_over_time" => |window, _, _| Ok(Some(variance(window, "stddev_over_time")?.sqrt())),
        "stdvar_over_time" => |window, _, _| Ok(Some(variance(window, "stdvar_over_time")?)),
        "sum_over_time" => sum,
        "ts_of_first_over_time" => |window, _, _| Ok(first_reading(window).map(|r| seconds(r.0))),
        "ts_of_last_over_time" => |window, _, _| Ok(last_reading(window).map(|r| seconds(r.0))),
        "ts_of_max_over_time" => |window, _, _| Ok(Some(seconds(extreme(window, false).0))),
        "ts_of_min_over_time" => |window, _, _| Ok(Some(seconds(extreme(window, true).0))),
        _ => return None,
    })
}

fn count(window: &Window<'_>) -> f64 {
    window.portions().map(|portion| f64::from(portion.count())).sum()
}

/// Returns the sum of the values of a portion. Cells of counters contain increases instead of
/// values.
fn sum_of_values(
    portion: &Portion<'_>,
    window: &Window<'_>,
    function: &str,
) -> Result<f64, QueryError> {
    let kind = window.kind_of(portion.cell);
    if kind != Kind::Counter {
        return Ok(portion.sum());
    }
    let others = Instead::Others("rate, increase, min_over_time or max_over_time for a counter");
    let values = known_values(portion, kind)
        .ok_or_else(|| merged_samples_error(function, others, window, portion.cell))?;
    Ok(values.iter().map(|(value, times)| value * f64::from(*times)).sum())
}

/// Calls `add` with the sum of values and the number of readings of each portion.
fn for_each_sum(
    window: &Window<'_>,
    function: &str,
    mut add: impl FnMut(f64, f64),
) -> Result<(), QueryError> {
    // For whole cells, portions would cost a quarter of the evaluation time.
    if window.kind != Kind::Counter && !window.frame.cuts_slots {
        window.cells().iter().for_each(|cell| add(cell.sum, f64::from(cell.n)));
        return Ok(());
    }
    for portion in window.portions() {
        add(sum_of_values(&portion, window, function)?, f64::from(portion.count()));
    }
    Ok(())
}

fn sum(window: &Window<'_>, _: &[f64], _: &Notes<'_>) -> WindowResult {
    let mut sum = Sum::default();
    for_each_sum(window, "sum_over_time", |value, _| sum.add(value))?;
    Ok(Some(sum.total()))
}

fn average(window: &Window<'_>, _: &[f64], _: &Notes<'_>) -> WindowResult {
    let mut mean = Mean::default();
    for_each_sum(window, "avg_over_time", |sum, count| mean.add_sum(sum, count))?;
    Ok(Some(mean.mean()))
}

/// Returns the newest reading in the window.
fn last_reading(window: &Window<'_>) -> Option<(i64, f64)> {
    window.readings().last().or_else(|| {
        // The window is between the first and the last reading of a cell.
        let cell = window.cells().last()?;
        Some((cell.first_at, cell.first))
    })
}

/// Returns the oldest reading in the window.
fn first_reading(window: &Window<'_>) -> Option<(i64, f64)> {
    window.readings().next().or_else(|| {
        let cell = window.cells().first()?;
        Some((cell.first_at, cell.first))
    })
}

/// Returns the time and value of the smallest or largest value. The time is the time of the cell's
/// last reading.
fn extreme(window: &Window<'_>, smallest: bool) -> (i64, f64) {
    let mut found: Option<(i64, f64)> = None;
    for portion in window.portions() {
        let (low, high) = match window.kind_of(portion.cell).of_counts() {
            Kind::Counter => {
                let (first, last) = (portion.first().value, portion.last().value);
                (first.min(last), first.max(last))
            }
            Kind::Gauge
            | Kind::Delta
            | Kind::Histogram
            | Kind::GaugeHistogram
            | Kind::DeltaHistogram => portion.extremes(),
        };
        let value = if smallest { low } else { high };
        let is_better = found.is_none_or(|(_, best)| {
            // Among equal values, the last value counts, as in Prometheus.
            best.is_nan() || if smallest { value <= best } else { value >= best }
        });
        if is_better {
            found = Some((portion.last().at as i64, value));
        }
    }
    found.unwrap_or((window.frame.to, f64::NAN))
}

/// Returns the values of a portion with their numbers of consecutive occurrences; `None` when some
/// values are unknown.
fn known_values(portion: &Portion<'_>, kind: Kind) -> Option<Vec<(f64, u32)>> {
    let cell = portion.cell;
    let is_constant = match kind.of_counts() {
        Kind::Counter => cell.max == 0.0 && cell.first == cell.last,
        Kind::Gauge
        | Kind::Delta
        | Kind::Histogram
        | Kind::GaugeHistogram
        | Kind::DeltaHistogram => cell.min == cell.max,
    };
    if is_constant && cell.n > 2 {
        return Some(vec![(cell.last, portion.count())]);
    }
    let known = [(portion.has_first(), cell.first), (portion.has_last(), cell.last)];
    let known = known.into_iter().filter(|(has, _)| *has).map(|(_, value)| (value, 1));
    // A single reading is both the first and the last.
    let values: Vec<_> = known.take(portion.count() as usize).collect();
    (values.len() == portion.count() as usize).then_some(values)
}

/// Returns the values in the window with their numbers of consecutive occurrences, in order of time
/// if the order is known.
fn all_values(window: &Window<'_>, function: &str) -> Result<Vec<(f64, u32)>, QueryError> {
    let mut values = Vec::with_capacity(window.cells().len());
    for portion in window.portions() {
        let known = known_values(&portion, window.kind_of(portion.cell));
        values.extend(known.ok_or_else(|| {
            merged_samples_error(function, Instead::OfSlots("avg_over_time"), window, portion.cell)
        })?);
    }
    Ok(values)
}

/// Differences whose squares are far from the largest and the smallest double.
const SQUARE_MAX: f64 = 1e140;
const SQUARE_MIN: f64 = 1e-140;

/// Returns the population variance. Merged cells of gauges and deltas store the second moment of
/// their samples; the samples in a cut cell are assumed to have the deviation of the whole cell.
fn variance(window: &Window<'_>, function: &str) -> Result<f64, QueryError> {
    let mut variance = Variance::default();
    for portion in window.portions() {
        let (cell, kind) = (portion.cell, window.kind_of(portion.cell));
        if let Some(values) = known_values(&portion, kind) {
            for (value, times) in values {
                variance.add(value, times);
            }
            continue;
        }
        if kind == Kind::Counter {
            let of_rates = Instead::OfSlots("rate");
            return Err(merged_samples_error(function, of_rates, window, cell));
        }
        if !cell.sum.is_finite() {
            return Ok(f64::NAN);
        }
        let m2 = match (cell.second_moment(), cell.max - cell.min) {
            (Some(m2), _) => m2,
            // Squares that are no doubles.
            (None, SQUARE_MAX..) => f64::INFINITY,
            (None, ..SQUARE_MIN) => 0.0,
            (None, _) => return Err(unknown_moment_error(function)),
        };
        let count = f64::from(portion.count());
        variance.add_moment(count, portion.sum() / count, m2 * (count / f64::from(cell.n)));
    }
    Ok(variance.variance())
}

fn quantile_over_time(window: &Window<'_>, arguments: &[f64], notes: &Notes<'_>) -> WindowResult {
    let q = arguments.first().copied().unwrap_or(f64::NAN);
    notes.check_quantiles(&[q]);
    // The extremes do not require the other values.
    let (low, high) = (extreme(window, true).1, extreme(window, false).1);
    if window.has_merged() {
        match q {
            0.0 => return Ok(Some(low)),
            1.0 => return Ok(Some(high)),
            _ => {}
        }
    }
    Ok(Some(weighted_quantile(q, &mut all_values(window, "quantile_over_time")?)))
}

fn mad(window: &Window<'_>, _: &[f64], _: &Notes<'_>) -> WindowResult {
    let mut values = all_values(window, "mad_over_time")?;
    if values.iter().any(|(value, _)| value.is_nan()) {
        return Ok(Some(f64::NAN));
    }
    let median = weighted_quantile(0.5, &mut values);
    for (value, _) in &mut values {
        *value = (*value - median).abs();
    }
    Ok(Some(weighted_quantile(0.5, &mut values)))
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;
    use crate::query::promql::value::{
        cells::TimedCell,
        windows::{Cursor, Frame},
    };

    fn window(cells: &[TimedCell], kind: Kind) -> Window<'_> {
        let to = 120_000;
        let frame = Frame::of_minutes(0, to);
        Cursor::default().window(cells, kind, frame)
    }

    fn answer(name: &str, cells: &[TimedCell], kind: Kind) -> WindowResult {
        function(name).unwrap()(&window(cells, kind), &[0.5], &Notes::new(&RefCell::default()))
    }

    fn merged_cell() -> TimedCell {
        TimedCell {
            first_at: 10_000,
            last_at: 50_000,
            n: 4,
            sum: 20.0,
            min: 2.0,
            max: 9.0,
            first: 3.0,
            last: 6.0,
            m2: 29.0,
            kind: None,
        }
    }

    #[test]
    fn merged_cells_answer_functions_of_their_aggregates() {
        let cells = [merged_cell(), TimedCell::sample(70_000, 1.0)];
        for (name, expected) in [
            ("avg_over_time", 4.2),
            ("sum_over_time", 21.0),
            ("count_over_time", 5.0),
            ("min_over_time", 1.0),
            ("max_over_time", 9.0),
            ("first_over_time", 3.0),
            ("last_over_time", 1.0),
            ("present_over_time", 1.0),
            ("ts_of_last_over_time", 70.0),
        ] {
            assert_eq!(answer(name, &cells, Kind::Gauge).unwrap(), Some(expected), "{name}");
        }
        // 29 and the squared distances of 5.0 and 1.0 from 4.2, weighted by their samples.
        let moments = 29.0 + 4.0 * 0.64 + 10.24;
        let found = answer("stdvar_over_time", &cells, Kind::Gauge).unwrap().unwrap();
        assert!((found - moments / 5.0).abs() < 1e-12, "{found}");
        let old = [TimedCell { m2: 0.0, ..merged_cell() }];
        let error = answer("stddev_over_time", &old, Kind::Gauge).unwrap_err().to_string();
        assert!(error.contains("earlier release"), "{error}");
        let infinite = [TimedCell { m2: 0.0, sum: f64::INFINITY, ..merged_cell() }];
        assert!(answer("stddev_over_time", &infinite, Kind::Gauge).unwrap().unwrap().is_nan());
        let error = answer("stddev_over_time", &cells, Kind::Counter).unwrap_err().to_string();
        assert!(error.contains("stddev_over_time(rate(x[1m])[2m:1m])"), "{error}");
        for name in ["mad_over_time", "quantile_over_time"] {
            let error = answer(name, &cells, Kind::Gauge).unwrap_err().to_string();
            assert!(error.contains(name) && error.contains("avg_over_time"), "{error}");
        }
        assert_eq!(answer("max_over_time", &cells, Kind::Counter).unwrap(), Some(6.0));
        assert!(answer("sum_over_time", &cells, Kind::Counter).is_err());
    }

    #[test]
    fn single_samples_answer_every_function() {
        let cells: Vec<_> =
            [4.0, 1.0, 3.0].iter().zip(1..).map(|(v, i)| TimedCell::sample(i * 1000, *v)).collect();
        for (name, expected) in
            [("stdvar_over_time", 14.0 / 9.0), ("quantile_over_time", 3.0), ("mad_over_time", 1.0)]
        {
            let found = answer(name, &cells, Kind::Gauge).unwrap().unwrap();
            assert!((found - expected).abs() < 1e-12, "{name} {found}");
        }
    }
}
