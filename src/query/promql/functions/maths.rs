//! Mathematical functions of numbers, and parts of dates.
//!
//! Must never know: labels, the store, the tree. Dates are in UTC.

use super::{Arguments, map_values};
use crate::query::QueryError;
use crate::{
    model::UnixMillis,
    query::promql::{
        context::Context,
        value::{
            numbers::{larger, smaller},
            series::{ABSENT, Series},
        },
    },
};

/// Evaluates the function with a name.
pub(super) fn call(
    name: &str,
    mut arguments: Arguments<'_>,
    context: &Context<'_>,
) -> Result<Vec<Series>, QueryError> {
    if let Some(function) = time_function(name) {
        let now = || context.steps.times().map(|at| at as f64 / 1000.0).collect();
        let of_now = arguments.is_empty().then(|| vec![Series::unlabelled(now())]);
        let series = of_now.map_or_else(|| arguments.vector(), Ok)?;
        return Ok(map_values(series, |_, value| function(value)));
    }
    let series = arguments.vector()?;
    if let Some(function) = unary_function(name) {
        return Ok(map_values(series, |_, value| function(value)));
    }
    let numbers = arguments.scalars()?;
    let function = function_with_arguments(name)
        .ok_or_else(|| QueryError::Execution(format!("the function {name} is not supported")))?;
    let mut at_step = [f64::NAN; 2];
    Ok(map_values(series, |step, value| {
        for (argument, all) in at_step.iter_mut().zip(&numbers) {
            *argument = all[step];
        }
        function(value, &at_step[..numbers.len().min(2)])
    }))
}

/// Returns whether a function with this name is in this file.
pub(super) fn has(name: &str) -> bool {
    time_function(name).is_some()
        || unary_function(name).is_some()
        || function_with_arguments(name).is_some()
}

/// Adding 1 to the square of a larger number does not change the square.
const HUGE: f64 = 268_435_456.0;

/// Returns the logarithm of twice a number without overflow.
fn ln_of_double(value: f64) -> f64 {
    value.ln() + std::f64::consts::LN_2
}

/// Returns a function of one number.
fn unary_function(name: &str) -> Option<fn(f64) -> f64> {
    Some(match name {
        "abs" => f64::abs,
        "acos" => f64::acos,
        "acosh" => |value| if value > HUGE { ln_of_double(value) } else { value.acosh() },
        "asin" => f64::asin,
        "asinh" => |value| {
            let size = value.abs();
            if size > HUGE { ln_of_double(size).copysign(value) } else { value.asinh() }
        },
        "atan" => f64::atan,
        "atanh" => f64::atanh,
        "ceil" => f64::ceil,
        "cos" => f64::cos,
        "cosh" => f64::cosh,
        "deg" => |value| value * 180.0 / std::f64::consts::PI,
        "exp" => f64::exp,
        "floor" => f64::floor,
        "ln" => f64::ln,
        "log10" => f64::log10,
        "log2" => f64::log2,
        "rad" => |value| value * std::f64::consts::PI / 180.0,
        "sgn" => |value| {
            if value > 0.0 {
                1.0
            } else if value < 0.0 {
                -1.0
            } else {
                value
            }
        },
        "sin" => f64::sin,
        "sinh" => f64::sinh,
        "sqrt" => f64::sqrt,
        "tan" => f64::tan,
        "tanh" => f64::tanh,
        _ => return None,
    })
}

/// Returns a function of a number and of further arguments.
fn function_with_arguments(name: &str) -> Option<fn(f64, &[f64]) -> f64> {
    Some(match name {
        "clamp" => |value, bounds| match *bounds {
            [min, max] if max < min => ABSENT,
            [min, max] => larger(min, smaller(max, value)),
            _ => value,
        },
        "clamp_max" => |value, bounds| bounds.first().map_or(value, |max| smaller(*max, value)),
        "clamp_min" => |value, bounds| bounds.first().map_or(value, |min| larger(*min, value)),
        "round" => |value, nearest| {
            // Uses the inverse, because numbers such as 0.1 have no exact representation.
            let inverse = 1.0 / nearest.first().copied().unwrap_or(1.0);
            (value * inverse + 0.5).floor() / inverse
        },
        _ => return None,
    })
}

/// Returns a function of a time in seconds since 1970.
fn time_function(name: &str) -> Option<fn(f64) -> f64> {
    Some(match name {
        "days_in_month" => |at| f64::from(civil_in_cycle(at).0.date().days_in_month()),
        "day_of_month" => |at| f64::from(civil_in_cycle(at).0.day()),
        "day_of_week" => |at| f64::from(civil_in_cycle(at).0.weekday().to_sunday_zero_offset()),
        "day_of_year" => |at| f64::from(civil_in_cycle(at).0.day_of_year()),
        "hour" => |at| f64::from(civil_in_cycle(at).0.hour()),
        "minute" => |at| f64::from(civil_in_cycle(at).0.minute()),
        "month" => |at| f64::from(civil_in_cycle(at).0.month()),
        "year" => |at| {
            let (date, cycles) = civil_in_cycle(at);
            (i64::from(date.year()) + CYCLE_YEARS * cycles) as f64
        },
        _ => return None,
    })
}

/// Number of years after which the calendar repeats, including weekdays.
const CYCLE_YEARS: i64 = 400;
const CYCLE_SECONDS: i64 = 146_097 * 86_400;

/// Returns the date within the cycle that begins in 1970, and the number of cycles. Dates end in
/// the year 9999, numbers do not.
fn civil_in_cycle(seconds: f64) -> (jiff::civil::DateTime, i64) {
    let seconds = seconds as i64;
    let date = UnixMillis(seconds.rem_euclid(CYCLE_SECONDS) * 1000).civil();
    (date, seconds.div_euclid(CYCLE_SECONDS))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_exact_at_the_limits_of_numbers_and_dates() {
        let round = function_with_arguments("round").unwrap();
        assert_eq!([round(2.5, &[]), round(-2.5, &[]), round(12.34, &[0.1])], [3.0, -2.0, 12.3]);
        let clamp = function_with_arguments("clamp").unwrap();
        assert_eq!(clamp(5.0, &[0.0, 2.0]), 2.0);
        assert_eq!(clamp(5.0, &[3.0, 2.0]).to_bits(), ABSENT.to_bits());
        let part = |name: &str, at: f64| time_function(name).unwrap()(at);
        let leap_day = 1_709_210_096.0; // 2024-02-29T12:34:56Z, a Thursday
        for (name, expected) in [
            ("year", 2024.0),
            ("month", 2.0),
            ("day_of_month", 29.0),
            ("day_of_week", 4.0),
            ("day_of_year", 60.0),
            ("days_in_month", 29.0),
            ("hour", 12.0),
            ("minute", 34.0),
        ] {
            assert_eq!(part(name, leap_day), expected, "{name}");
        }
        assert_eq!(part("year", f64::NAN), 1970.0);
        let year_10000 = 253_402_300_800.0; // 10000-01-01T00:00:00Z, a Saturday
        assert_eq!([part("year", year_10000), part("day_of_week", year_10000)], [10_000.0, 6.0]);
        assert_eq!(
            [part("year", year_10000 - 1.0), part("day_of_month", year_10000 - 1.0)],
            [9999.0, 31.0]
        );
        assert_eq!([part("year", -1.0), part("month", -1.0)], [1969.0, 12.0]);
        let asinh = unary_function("asinh").unwrap();
        assert_eq!([asinh(-1e308), asinh(0.0)], [-709.889_355_822_726, 0.0]);
    }
}
