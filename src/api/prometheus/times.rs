//! Parsing of times and durations in parameters of Prometheus' HTTP API; `json/points` writes
//! times.
//!
//! Must never know: the use of the times.

use crate::model::{LENGTH_MS_MAX, UnixMillis, parse_duration_ms};

/// The times with which Prometheus' Go client means "no start" and "no end".
const MIN_TIME: &str = "-292273086-05-16T16:47:06Z";
const MAX_TIME: &str = "292277025-08-18T07:12:54.999999999Z";
/// The limit to which times are clamped; no sample is beyond it.
const FURTHEST_MS: i64 = UnixMillis::MAX.0;
/// Parses RFC 3339, or Unix seconds with a fraction.
pub(super) fn time_ms(text: &str) -> Option<i64> {
    if let Ok(seconds) = text.parse::<f64>() {
        // A double has no exact milliseconds beyond this range.
        return (seconds.abs() < 1e15).then(|| clamp_ms((seconds * 1000.0).round() as i64));
    }
    match text {
        MIN_TIME => Some(-FURTHEST_MS),
        MAX_TIME => Some(FURTHEST_MS),
        _ => text.parse().ok().map(|at: jiff::Timestamp| clamp_ms(at.as_millisecond())),
    }
}

fn clamp_ms(ms: i64) -> i64 {
    ms.clamp(-FURTHEST_MS, FURTHEST_MS)
}

/// Parses seconds with a fraction, or a duration such as `1h30m`.
pub(super) fn duration_ms(text: &str) -> Option<i64> {
    if let Ok(seconds) = text.parse::<f64>() {
        let is_valid = seconds.abs() * 1000.0 < LENGTH_MS_MAX as f64;
        return is_valid.then(|| (seconds * 1000.0).round() as i64);
    }
    parse_duration_ms(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_unix_seconds_or_rfc_3339() {
        let check =
            |text: &str, expected: Option<i64>| assert_eq!(time_ms(text), expected, "{text}");
        check("1435781451.781", Some(1_435_781_451_781));
        check("0", Some(0));
        check("-1.5", Some(-1500));
        check("1e3", Some(1_000_000));
        check("2015-07-01T20:10:51.781Z", Some(1_435_781_451_781));
        check("2015-07-01T22:10:51.781+02:00", Some(1_435_781_451_781));
        check(MIN_TIME, Some(-FURTHEST_MS));
        check(MAX_TIME, Some(FURTHEST_MS));
        for text in ["", "now", "NaN", "inf", "1e300", "2015-07-01", "2015-07-01T20:10:51"] {
            check(text, None);
        }
    }

    #[test]
    fn durations_are_seconds_or_units_from_long_to_short() {
        let check = |text: &str, expected| assert_eq!(duration_ms(text), expected, "{text}");
        check("15", Some(15_000));
        check("0.5", Some(500));
        check("-1", Some(-1000));
        check("1", Some(1000));
        check("1h30m", Some(5_400_000));
        for text in ["", "m", "1m1h", "1 m", "99999999999999y", "1e300", "NaN"] {
            check(text, None);
        }
    }
}
