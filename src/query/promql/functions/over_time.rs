//! Functions over the cells of a window, one number each.
//!
//! A merged cell answers what its aggregates allow. What they do not allow is an error that says
//! what to use instead. Must never know: the store, the tree.

use super::window::{Answer, RangeFunction, merged, seconds};
use crate::{
    model::Kind,
    query::promql::value::{
        annotations::Notes,
        cells::TimedCell,
        error::PromqlError,
        numbers::{Mean, Sum, Variance, weighted_quantile},
        windows::Window,
    },
};

/// The function of this name, if it is one of these.
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
    window.cells().iter().map(|cell| f64::from(cell.n)).sum()
}

/// The sum of the values of a cell. Counter cells hold increases in its place.
fn values_sum(cell: &TimedCell, kind: Kind, function: &str) -> Result<f64, PromqlError> {
    if kind != Kind::Counter {
        return Ok(cell.sum);
    }
    match cell.n {
        1 => Ok(cell.last),
        2 => Ok(cell.first + cell.last),
        n if cell.first == cell.last && cell.max == 0.0 => Ok(f64::from(n) * cell.last),
        _ => Err(merged(function, "rate, increase, min_over_time or max_over_time for a counter")),
    }
}

fn sum(window: &Window<'_>, _: &[f64], _: &Notes<'_>) -> Answer {
    let mut sum = Sum::default();
    for cell in window.cells() {
        sum.add(values_sum(cell, window.kind, "sum_over_time")?);
    }
    Ok(Some(sum.total()))
}

fn average(window: &Window<'_>, _: &[f64], _: &Notes<'_>) -> Answer {
    let mut mean = Mean::default();
    if window.kind != Kind::Counter {
        window.cells().iter().for_each(|cell| mean.add_sum(cell.sum, f64::from(cell.n)));
        return Ok(Some(mean.mean()));
    }
    for cell in window.cells() {
        mean.add_sum(values_sum(cell, window.kind, "avg_over_time")?, f64::from(cell.n));
    }
    Ok(Some(mean.mean()))
}

/// The newest reading in the window.
fn last_reading(window: &Window<'_>) -> Option<(i64, f64)> {
    window.readings().last().or_else(|| {
        let cell = window.cells().last()?;
        // Of the slot around a short window the last reading may lie ahead.
        let ahead = cell.last_at > window.to && cell.first_at <= window.to;
        Some(if ahead { (cell.first_at, cell.first) } else { (cell.last_at, cell.last) })
    })
}

/// The oldest reading in the window.
fn first_reading(window: &Window<'_>) -> Option<(i64, f64)> {
    window.readings().next().or_else(|| {
        let cell = window.cells().first()?;
        Some((cell.first_at, cell.first))
    })
}

/// Time and value of the smallest or largest value. Of a merged cell its last reading's time is
/// taken.
fn extreme(window: &Window<'_>, smallest: bool) -> (i64, f64) {
    let mut found: Option<(i64, f64)> = None;
    for cell in window.cells() {
        let (low, high) = match window.kind {
            Kind::Counter => (cell.first.min(cell.last), cell.first.max(cell.last)),
            Kind::Gauge | Kind::Delta => (cell.min, cell.max),
        };
        let value = if smallest { low } else { high };
        let better = found.is_none_or(|(_, best)| {
            // The last of equal ones, as Prometheus has it.
            best.is_nan() || if smallest { value <= best } else { value >= best }
        });
        if better {
            found = Some((cell.last_at, value));
        }
    }
    found.unwrap_or((window.to, f64::NAN))
}

/// Every value in the window with how often it is there in a row, in order of time where that is
/// known.
fn all_values(window: &Window<'_>, function: &str) -> Result<Vec<(f64, u32)>, PromqlError> {
    let mut values = Vec::with_capacity(window.cells().len());
    for cell in window.cells() {
        let constant = match window.kind {
            Kind::Counter => cell.max == 0.0 && cell.first == cell.last,
            Kind::Gauge | Kind::Delta => cell.min == cell.max,
        };
        match cell.n {
            1 => values.push((cell.last, 1)),
            2 => values.extend([(cell.first, 1), (cell.last, 1)]),
            n if constant => values.push((cell.last, n)),
            _ => {
                let instead = "avg_over_time, min_over_time or max_over_time";
                return Err(merged(function, instead));
            }
        }
    }
    Ok(values)
}

fn variance(window: &Window<'_>, function: &str) -> Result<f64, PromqlError> {
    let mut variance = Variance::default();
    all_values(window, function)?.iter().for_each(|(value, times)| variance.add(*value, *times));
    Ok(variance.variance())
}

fn quantile_over_time(window: &Window<'_>, arguments: &[f64], notes: &Notes<'_>) -> Answer {
    let q = arguments.first().copied().unwrap_or(f64::NAN);
    notes.check_quantiles(&[q]);
    // Between the smallest and the largest no value has to be known.
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

fn mad(window: &Window<'_>, _: &[f64], _: &Notes<'_>) -> Answer {
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

    fn window(cells: &[TimedCell], kind: Kind) -> Window<'_> {
        Window {
            all: cells,
            lo: 0,
            hi: cells.len(),
            from: 0,
            to: 100_000,
            evaluated_at: 100_000,
            kind,
            width_ms: 60_000,
        }
    }

    fn answer(name: &str, cells: &[TimedCell], kind: Kind) -> Answer {
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
        }
    }

    #[test]
    fn merged_cells_answer_what_they_know() {
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
        for name in ["stddev_over_time", "stdvar_over_time", "mad_over_time", "quantile_over_time"]
        {
            let error = answer(name, &cells, Kind::Gauge).unwrap_err().to_string();
            assert!(error.contains(name) && error.contains("avg_over_time"), "{error}");
        }
        assert_eq!(answer("max_over_time", &cells, Kind::Counter).unwrap(), Some(6.0));
        assert!(answer("sum_over_time", &cells, Kind::Counter).is_err());
    }

    #[test]
    fn single_samples_answer_everything() {
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
