//! Tests of forecasts through whole expressions.

use std::cell::RefCell;

use super::*;
use crate::{
    model::{Cell, Kind, UnixMillis},
    query::promql::value::{
        cells::{TimedCell, append_cells},
        windows::{Cursor, Frame},
    },
    store::Slot,
};

const HOUR_MS: i64 = 3_600_000;
const DAY_S: f64 = 86_400.0;

/// Returns slots of an hour, each of four samples.
fn hours(count: i64, value: impl Fn(f64) -> f64) -> Vec<TimedCell> {
    let slot = |hour: i64| {
        let mut cell = Cell::EMPTY;
        for quarter in 0..4 {
            let offset = quarter * HOUR_MS / 4;
            cell.merge(&Cell::single(offset as u32, value(hour as f64 + quarter as f64 / 4.0)));
        }
        Slot { start: UnixMillis(hour * HOUR_MS), cell }
    };
    let mut cells = Vec::new();
    append_cells(&mut (0..count).map(slot).collect(), Kind::Gauge, &mut cells);
    cells
}

/// Calls a function with the window of the last 21 days.
fn answer(name: &str, cells: &[TimedCell], to: i64, arguments: &[f64]) -> Option<f64> {
    let frame = Frame { width_ms: HOUR_MS, ..Frame::of_minutes(to - 21 * 24 * HOUR_MS, to) };
    let window = Cursor::default().window(cells, Kind::Gauge, frame);
    function(name).unwrap()(&window, arguments, &Notes::new(&RefCell::default())).unwrap()
}

#[test]
fn a_line_continues_at_any_time_of_the_evaluation() {
    let cells = hours(21 * 24, |hour| 1000.0 - hour);
    // A quarter of the last hour has passed.
    let mut cut = cells.clone();
    let last = cut.pop().unwrap();
    cut.push(TimedCell::sample(last.first_at, last.first));
    for (cells, to) in [(&cells, 21 * 24 * HOUR_MS), (&cut, last.first_at + 1)] {
        let hour = to as f64 / HOUR_MS as f64;
        for ahead in [-0.5, 0.0, 0.5, 30.0] {
            let found = answer("forecast", cells, to, &[ahead * 3600.0]).unwrap();
            let expected = 1000.0 - hour - ahead;
            assert!((found - expected).abs() < 0.01, "{hour} {ahead}: {found} {expected}");
        }
        let left = answer("forecast_until", cells, to, &[300.0]).unwrap() / 3600.0;
        assert!((left - (700.0 - hour)).abs() < 0.01, "{hour}: {left}");
    }
}

#[test]
fn a_file_system_that_is_cleaned_every_night_is_never_full() {
    // 20 GB a day, cleaned at 3 o'clock, of 60 GB free in the morning.
    let cleaned = |hour: f64| 60.0 - 20.0 * ((hour + 21.0) % 24.0) / 24.0;
    let cells = hours(40 * 24, cleaned);
    for hour in (2 * 24..40 * 24).step_by(5) {
        let found = answer("forecast_until", &cells, hour * HOUR_MS, &[0.0]);
        assert_eq!(found, None, "after {hour} hours");
    }
    // Together with a leak of 2 GB a day, it reaches 10 GB in the 15th night from the start.
    let leaking = hours(40 * 24, |hour| cleaned(hour) - hour / 12.0);
    let found = answer("forecast_until", &leaking, 10 * 24 * HOUR_MS, &[10.0]).unwrap();
    assert!((found / DAY_S - 5.0).abs() < 1.2, "{}", found / DAY_S);
}

#[test]
fn weekends_are_a_season_of_their_own() {
    let growth = |hour: f64| {
        let (weeks, day) = ((hour / 168.0).floor(), hour % 168.0);
        weeks * 50.0 + 10.0 * (day / 24.0).min(5.0)
    };
    let cells = hours(21 * 24, growth);
    let monday = 21 * 24;
    for ahead in [24.0, 100.0, 140.0, 160.0] {
        let found = answer("forecast", &cells, monday * HOUR_MS, &[ahead * 3600.0]).unwrap();
        let expected = growth(monday as f64 + ahead);
        assert!((found - expected).abs() < 1.5, "{ahead}: {found} {expected}");
    }
}

#[test]
fn values_that_are_no_numbers_are_left_out() {
    let cells = hours(48, |hour| if hour < 10.0 { f64::NAN } else { hour });
    let found = answer("forecast", &cells, 48 * HOUR_MS, &[3600.0]).unwrap();
    assert!((found - 49.0).abs() < 0.5, "{found}");
    assert_eq!(answer("forecast", &cells, 48 * HOUR_MS, &[f64::NAN]), None);
    assert_eq!(answer("forecast", &cells[..10], 10 * HOUR_MS, &[0.0]), None);
}
