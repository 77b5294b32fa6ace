//! Parsing of times in files.

use jiff::{Timestamp, civil::DateTime, tz::TimeZone};

use crate::model::UnixMillis;

/// The smallest number that means milliseconds: in seconds it is the year 5138, in milliseconds the
/// year 1973.
const MILLIS_FROM: f64 = 1e11;
const MICROS_FROM: f64 = 1e14;
const NANOS_FROM: f64 = 1e17;

/// Parses Unix seconds, milliseconds, microseconds or nanoseconds, distinguished by size; seconds
/// may have a fraction.
pub(super) fn number(text: &str) -> Option<UnixMillis> {
    millis(text).map(UnixMillis)
}

fn millis(text: &str) -> Option<i64> {
    if let Ok(whole) = text.parse::<i64>() {
        let size = whole.unsigned_abs() as f64;
        return if size < MILLIS_FROM {
            whole.checked_mul(1000)
        } else if size < MICROS_FROM {
            Some(whole)
        } else if size < NANOS_FROM {
            Some(whole.div_euclid(1000))
        } else {
            Some(whole.div_euclid(1_000_000))
        };
    }
    let number: f64 = text.parse().ok()?;
    let millis = if number.abs() < MILLIS_FROM { number * 1000.0 } else { number };
    (millis.is_finite() && millis.abs() < MICROS_FROM).then(|| millis.round() as i64)
}

/// Parses a number, RFC 3339, or a date and time without a zone, which are in UTC.
pub fn any(text: &str) -> Option<UnixMillis> {
    let text = text.trim();
    if let Some(at) = number(text) {
        return Some(at);
    }
    if let Ok(timestamp) = text.parse::<Timestamp>() {
        return Some(UnixMillis(timestamp.as_millisecond()));
    }
    let civil = text.parse::<DateTime>().ok()?;
    let zoned = civil.to_zoned(TimeZone::UTC).ok()?;
    Some(UnixMillis(zoned.timestamp().as_millisecond()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_follow_from_the_size() {
        let at = Some(1_795_264_496_123);
        assert_eq!(millis("1795264496.123"), at);
        assert_eq!(millis("1.795264496123e9"), at);
        assert_eq!(millis("1795264496123"), at);
        assert_eq!(millis("1795264496123456"), at);
        assert_eq!(millis("1795264496123456789"), at);
        assert_eq!(millis("1795264496"), Some(1_795_264_496_000));
        assert_eq!(millis("-1"), Some(-1000));
        for bad in ["", "x", "NaN", "inf", "1e300", "99999999999999999999"] {
            assert_eq!(millis(bad), None, "{bad}");
        }
    }

    #[test]
    fn dates_are_read_in_their_zone_or_as_utc() {
        let at = Some(1_795_264_496_000);
        for text in ["2026-11-21T12:34:56Z", "2026-11-21T13:34:56+01:00", " 2026-11-21 12:34:56"] {
            assert_eq!(any(text), at.map(UnixMillis), "{text}");
        }
        assert_eq!(any("2026-11-21"), Some(UnixMillis(1_795_219_200_000)));
        assert_eq!(any("yesterday"), None);
    }
}
