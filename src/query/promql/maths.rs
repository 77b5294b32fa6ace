//! Functions from numbers to a number: mathematics, and parts of a date.
//!
//! Must never know: series, labels. Dates are in UTC.

use super::{
    columns::ABSENT,
    numbers::{larger, smaller},
};
use crate::model::UnixMillis;

/// Functions of one number.
pub(super) fn of_one(name: &str) -> Option<fn(f64) -> f64> {
    Some(match name {
        "abs" => f64::abs,
        "acos" => f64::acos,
        "acosh" => f64::acosh,
        "asin" => f64::asin,
        "asinh" => f64::asinh,
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

/// Functions of a number and of others that are the same for all series.
pub(super) fn of_several(name: &str) -> Option<fn(f64, &[f64]) -> f64> {
    Some(match name {
        "clamp" => |value, bounds| match *bounds {
            [min, max] if max < min => ABSENT,
            [min, max] => larger(min, smaller(max, value)),
            _ => value,
        },
        "clamp_max" => |value, bounds| bounds.first().map_or(value, |max| smaller(*max, value)),
        "clamp_min" => |value, bounds| bounds.first().map_or(value, |min| larger(*min, value)),
        "round" => |value, nearest| {
            // By the inverse, because 0.1 and the like have no exact number.
            let inverse = 1.0 / nearest.first().copied().unwrap_or(1.0);
            (value * inverse + 0.5).floor() / inverse
        },
        _ => return None,
    })
}

/// Parts of the date that a number of seconds since 1970 means.
pub(super) fn of_time(name: &str) -> Option<fn(f64) -> f64> {
    Some(match name {
        "days_in_month" => |at| f64::from(civil(at).date().days_in_month()),
        "day_of_month" => |at| f64::from(civil(at).day()),
        "day_of_week" => |at| f64::from(civil(at).weekday().to_sunday_zero_offset()),
        "day_of_year" => |at| f64::from(civil(at).day_of_year()),
        "hour" => |at| f64::from(civil(at).hour()),
        "minute" => |at| f64::from(civil(at).minute()),
        "month" => |at| f64::from(civil(at).month()),
        "year" => |at| f64::from(civil(at).year()),
        _ => return None,
    })
}

fn civil(seconds: f64) -> jiff::civil::DateTime {
    UnixMillis((seconds as i64).saturating_mul(1000)).civil()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_dates() {
        let round = of_several("round").unwrap();
        assert_eq!([round(2.5, &[]), round(-2.5, &[]), round(12.34, &[0.1])], [3.0, -2.0, 12.3]);
        let clamp = of_several("clamp").unwrap();
        assert_eq!(clamp(5.0, &[0.0, 2.0]), 2.0);
        assert_eq!(clamp(5.0, &[3.0, 2.0]).to_bits(), ABSENT.to_bits());
        let part = |name: &str, at: f64| of_time(name).unwrap()(at);
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
    }
}
