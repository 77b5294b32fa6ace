//! Times and spans in the form of Graphite's `from` and `until` (graphite.readthedocs.io, "from /
//! until").
//!
//! Must never know: the use of the times. Dates and times of day are in UTC unless a time zone is
//! given.

use jiff::{
    Span, Timestamp, Unit, Zoned,
    civil::{Date, Time},
    tz::TimeZone,
};

use crate::{model::UnixMillis, query::QueryError};

/// The maximum length of a span: a thousand years.
const SPAN_MAX_SECONDS: i64 = 31_557_600_000;
/// The latest time that can be given as Unix seconds: four thousand years after 1970.
const UNIX_SECONDS_MAX: i64 = 4 * SPAN_MAX_SECONDS;

/// Parses the length of an offset such as `-1h`, `1d12h` or `+5min`, in seconds. A month is 30
/// days, a year 365.
pub(super) fn offset_seconds(text: &str) -> Option<i64> {
    let text = text.trim();
    let (sign, mut rest) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text.strip_prefix('+').unwrap_or(text)),
    };
    if rest.is_empty() {
        return None;
    }
    let mut total: i64 = 0;
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let (count, after) = rest.split_at_checked(digits)?;
        let unit = after.find(|c: char| !c.is_ascii_alphabetic()).unwrap_or(after.len());
        let (unit, after) = after.split_at_checked(unit)?;
        let seconds = match unit {
            word if word.starts_with('s') => 1,
            word if word.starts_with("min") => 60,
            word if word.starts_with('h') => 3600,
            word if word.starts_with('d') => 86_400,
            word if word.starts_with('w') => 7 * 86_400,
            word if word.starts_with("mon") => 30 * 86_400,
            word if word.starts_with('y') => 365 * 86_400,
            "m" => 60,
            _ => return None,
        };
        total = total.checked_add(count.parse::<i64>().ok()?.checked_mul(seconds)?)?;
        rest = after;
    }
    (total <= SPAN_MAX_SECONDS).then_some(sign * total)
}

/// Parses a time: `now`, Unix seconds, `HH:MM_YYYYMMDD`, `YYYYMMDD`, `today`, `yesterday`,
/// `noon`, each with an offset, or an offset alone.
///
/// # Errors
/// When the text has another form.
pub(super) fn time(
    name: &str,
    text: &str,
    zone: &TimeZone,
    now: UnixMillis,
) -> Result<i64, QueryError> {
    parse_time(text.trim(), zone, now.0.div_euclid(1000)).ok_or_else(|| {
        QueryError::Invalid(format!(
            "{name}={text:?} is not a time: use -1h, now-5min, Unix seconds, 20261121, \
             12:30_20261121 or midnight"
        ))
    })
}

fn parse_time(text: &str, zone: &TimeZone, now: i64) -> Option<i64> {
    if text.is_empty() {
        return None;
    }
    // Eight digits are a date when they can be one.
    if text.len() != 8 && text.bytes().all(|byte| byte.is_ascii_digit()) {
        let seconds: i64 = text.parse().ok()?;
        return (seconds <= UNIX_SECONDS_MAX).then_some(seconds);
    }
    let split = text.find(['+', '-']).unwrap_or(text.len());
    let (reference, offset) = text.split_at_checked(split)?;
    let offset = if offset.is_empty() { 0 } else { offset_seconds(offset)? };
    let reference = if reference.is_empty() { now } else { reference_time(reference, zone, now)? };
    reference.checked_add(offset)
}

fn reference_time(text: &str, zone: &TimeZone, now: i64) -> Option<i64> {
    let text = text.replace([' ', ','], "_").to_ascii_lowercase();
    if text == "now" {
        return Some(now);
    }
    let now = Timestamp::from_second(now).ok()?.to_zoned(zone.clone());
    // A time of day, then a date; one of them may be missing.
    let words: Vec<_> = text.split('_').filter(|word| !word.is_empty()).collect();
    let (mut time, mut date) = (None, None);
    for word in words {
        if let Some(found) = time_of_day(word) {
            time = Some(found);
        } else {
            date = Some(date_of(word, &now)?);
        }
    }
    if time.is_none() && date.is_none() {
        return None;
    }
    let date = date.unwrap_or_else(|| now.date());
    let at = date.to_datetime(time.unwrap_or_default()).to_zoned(zone.clone()).ok()?;
    Some(at.timestamp().as_second())
}

fn time_of_day(word: &str) -> Option<Time> {
    match word {
        "midnight" => return Some(Time::midnight()),
        "noon" => return Time::new(12, 0, 0, 0).ok(),
        "teatime" => return Time::new(16, 0, 0, 0).ok(),
        _ => {}
    }
    let (clock, noon_hours) = match (word.strip_suffix("am"), word.strip_suffix("pm")) {
        (Some(clock), _) => (clock, Some(0)),
        (_, Some(clock)) => (clock, Some(12)),
        _ => (word, None),
    };
    let (hour, minute) = match clock.split_once(':') {
        Some((hour, minute)) => (hour.parse::<i8>().ok()?, minute.parse().ok()?),
        // An hour alone is a time of day only with am or pm.
        None => (noon_hours.and_then(|_| clock.parse::<i8>().ok())?, 0),
    };
    let hour = noon_hours.map_or(hour, |hours| hour % 12 + hours);
    Time::new(hour, minute, 0, 0).ok()
}

fn date_of(word: &str, now: &Zoned) -> Option<Date> {
    let days = |days: i64| now.date().checked_add(Span::new().try_days(days).ok()?).ok();
    match word {
        "today" => return Some(now.date()),
        "yesterday" => return days(-1),
        "tomorrow" => return days(1),
        _ => {}
    }
    if word.len() == 8 && word.bytes().all(|byte| byte.is_ascii_digit()) {
        let part = |from: usize, to: usize| word.get(from..to).unwrap_or_default();
        let (year, month) = (part(0, 4).parse().ok()?, part(4, 6).parse().ok()?);
        return Date::new(year, month, part(6, 8).parse().ok()?).ok();
    }
    let mut parts = word.split('/').map(str::parse::<i16>);
    let (month, day, year) = (parts.next()?.ok()?, parts.next()?.ok()?, parts.next()?.ok()?);
    let year = if year < 100 { 2000 + year } else { year };
    Date::new(year, i8::try_from(month).ok()?, i8::try_from(day).ok()?).ok()
}

/// Formats a time as the local date and time of a zone, for CSV.
pub fn civil_text(seconds: i64, zone: &TimeZone) -> String {
    let at = Timestamp::from_second(seconds).unwrap_or_default().to_zoned(zone.clone());
    let rounded = at.round(Unit::Second).unwrap_or(at);
    rounded.strftime("%Y-%m-%d %H:%M:%S").to_string()
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// 2026-11-21T12:34:56Z
    const NOW: UnixMillis = UnixMillis(1_795_264_496_000);

    #[test]
    fn times_are_read_in_the_forms_of_graphite() {
        let day = 1_795_219_200;
        let check = |text: &str, expected: i64| {
            assert_eq!(time("from", text, &TimeZone::UTC, NOW).unwrap(), expected, "{text}");
        };
        let now = NOW.0 / 1000;
        check("now", now);
        check("-1h", now - 3600);
        check("-90s", now - 90);
        check("-1d12h", now - 129_600);
        check("now-5min", now - 300);
        check("-1mon", now - 30 * 86_400);
        check("1795264496", now);
        check("0", 0);
        check("20261121", day);
        check("12:30_20261121", day + 45_000);
        check("midnight", day);
        check("noon_yesterday", day - 43_200);
        check("today-1h", day - 3600);
        check("6pm_today", day + 64_800);
        check("11/20/26", day - 86_400);
        let berlin = TimeZone::get("Europe/Berlin").unwrap();
        assert_eq!(time("from", "midnight", &berlin, NOW).unwrap(), day - 3600);
        assert_eq!(civil_text(day, &berlin), "2026-11-21 01:00:00");
        for wrong in ["", "soon", "-1x", "-", "25:00", "20261341", "99999999999999999999"] {
            let error = time("from", wrong, &TimeZone::UTC, NOW).unwrap_err().to_string();
            assert!(error.contains("is not a time: use -1h"), "{error}");
        }
        assert_eq!(offset_seconds("5min"), Some(300));
    }

    proptest! {
        #[test]
        fn any_text_is_read_or_refused(text in "[0-9a-z:_/+-]{0,20}") {
            drop(time("from", &text, &TimeZone::UTC, NOW));
            prop_assert!(offset_seconds(&text).is_none_or(|length| length.abs() <= SPAN_MAX_SECONDS));
        }
    }
}
