//! Time intervals in which routes are muted or active, with Alertmanager's meaning.
//!
//! Ranges of days of a month may count from the end of the month. Must never know: routes.

use std::ops::RangeInclusive;

use jiff::tz::TimeZone;
use serde::Deserialize;

use crate::{model::UnixMillis, query::time_zone};

const WEEKDAYS: [&str; 7] =
    ["sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday"];
const MONTHS: [&str; 12] = [
    "january",
    "february",
    "march",
    "april",
    "may",
    "june",
    "july",
    "august",
    "september",
    "october",
    "november",
    "december",
];
/// The maximum number of ranges of one part of an interval.
const RANGES_MAX: usize = 100;
const MINUTES_OF_DAY: i32 = 1440;

/// The keys of an interval in the file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawInterval {
    #[serde(default)]
    times: Vec<RawTimes>,
    #[serde(default)]
    weekdays: Vec<String>,
    #[serde(default)]
    days_of_month: Vec<String>,
    #[serde(default)]
    months: Vec<String>,
    #[serde(default)]
    years: Vec<String>,
    location: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RawTimes {
    start_time: String,
    end_time: String,
}

/// An interval. A time is within an interval when each part that is not empty contains the time.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct TimeInterval {
    /// Minutes of the day; the minute of the end is excluded.
    times: Vec<RangeInclusive<i32>>,
    /// Days of the week; 0 is Sunday.
    weekdays: Vec<RangeInclusive<i32>>,
    /// Days of the month; negative ones count from its end: -1 is the last day.
    days_of_month: Vec<RangeInclusive<i32>>,
    months: Vec<RangeInclusive<i32>>,
    years: Vec<RangeInclusive<i32>>,
    zone: TimeZone,
}

impl TimeInterval {
    pub(super) fn new(raw: &RawInterval) -> Result<Self, String> {
        let mut times = Vec::new();
        for range in &raw.times {
            let (from, until) = (minute(&range.start_time)?, minute(&range.end_time)?);
            if from >= until {
                return Err(format!(
                    "times: {} is not before {}",
                    range.start_time, range.end_time
                ));
            }
            times.push(from..=until - 1);
        }
        let weekday =
            |text: &str| WEEKDAYS.iter().position(|weekday| *weekday == text).map(|at| at as i32);
        let month = |text: &str| {
            let named = MONTHS.iter().position(|month| *month == text).map(|at| at as i32 + 1);
            named.or_else(|| text.parse().ok()).filter(|month| (1..=12).contains(month))
        };
        let day = |text: &str| {
            text.parse().ok().filter(|day| (1..=31).contains(day) || (-31..=-1).contains(day))
        };
        let year = |text: &str| text.parse().ok().filter(|year| *year >= 0);
        let zone = raw.location.as_deref().unwrap_or("UTC");
        Ok(Self {
            times,
            weekdays: ranges("weekdays", &raw.weekdays, weekday)?,
            days_of_month: ranges("days_of_month", &raw.days_of_month, day)?,
            months: ranges("months", &raw.months, month)?,
            years: ranges("years", &raw.years, year)?,
            zone: time_zone(zone).map_err(|cause| format!("location: {cause}"))?,
        })
    }

    /// Returns whether a time is within the interval.
    pub(crate) fn contains(&self, at: UnixMillis) -> bool {
        let local = at.timestamp().to_zoned(self.zone.clone());
        let contains = |ranges: &[RangeInclusive<i32>], value: i32| {
            ranges.is_empty() || ranges.iter().any(|range| range.contains(&value))
        };
        let days = i32::from(local.date().days_in_month());
        let from_end = |day: i32| if day < 0 { day + days + 1 } else { day };
        let has_day = self.days_of_month.is_empty()
            || self.days_of_month.iter().any(|days| {
                (from_end(*days.start())..=from_end(*days.end())).contains(&i32::from(local.day()))
            });
        has_day
            && contains(&self.times, i32::from(local.hour()) * 60 + i32::from(local.minute()))
            && contains(&self.weekdays, i32::from(local.weekday().to_sunday_zero_offset()))
            && contains(&self.months, i32::from(local.month()))
            && contains(&self.years, i32::from(local.year()))
    }
}

/// Parses a time such as `07:30`; `24:00` is the end of the day.
fn minute(text: &str) -> Result<i32, String> {
    let read = || {
        let is_digit = |byte: u8| byte == b':' || byte.is_ascii_digit();
        let (hour, minute) = text.split_once(':')?;
        if (hour.len(), minute.len()) != (2, 2) || !text.bytes().all(is_digit) {
            return None;
        }
        let (hour, minute) = (hour.parse::<u8>().ok()?, minute.parse::<u8>().ok()?);
        Some(i32::from(hour) * 60 + i32::from(minute)).filter(|_| minute < 60)
    };
    read()
        .filter(|minute| *minute <= MINUTES_OF_DAY)
        .ok_or_else(|| format!("times: {text:?} is not a time of day such as 22:00"))
}

/// Parses a range such as `monday:friday`, or a single value.
fn ranges(
    part: &str,
    texts: &[String],
    value_of: impl Fn(&str) -> Option<i32>,
) -> Result<Vec<RangeInclusive<i32>>, String> {
    if texts.len() > RANGES_MAX {
        return Err(format!("{part} has more than {RANGES_MAX} ranges"));
    }
    let range =
        |text: &String| {
            let lower = text.to_lowercase();
            let (from, until) = lower.split_once(':').unwrap_or((&lower, &lower));
            let range = value_of(from.trim()).zip(value_of(until.trim()));
            // A negative day counts from the end of the month, whose length differs: a range may
            // end there, but not begin there and end at a day counted from the beginning.
            let range = range.filter(|(from, until)| {
                if from.signum() == until.signum() { from <= until } else { *until < 0 }
            });
            let (from, until) = range
                .ok_or_else(|| format!("{part}: {text:?} is invalid, or ends before it begins"))?;
            Ok(from..=until)
        };
    texts.iter().map(range).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<TimeInterval, String> {
        let raw: RawInterval = serde_saphyr::from_str(text).map_err(|cause| cause.to_string())?;
        TimeInterval::new(&raw)
    }

    #[test]
    fn a_time_is_within_an_interval_when_each_part_contains_it() {
        let check = |text: &str, at: &str, expected: bool| {
            let at: jiff::Timestamp = at.parse().unwrap();
            let found = read(text).unwrap().contains(UnixMillis(at.as_millisecond()));
            assert_eq!(found, expected, "{text} {at}");
        };
        // 2026-11-20 is a Friday.
        let office = "weekdays: ['monday:friday']\n\
                      times: [{start_time: '09:00', end_time: '17:00'}]\n\
                      location: Europe/Berlin";
        check(office, "2026-11-20T08:00:00Z", true);
        check(office, "2026-11-20T07:59:59Z", false);
        check(office, "2026-11-20T16:00:00Z", false);
        check(office, "2026-11-21T10:00:00Z", false);
        // In summer Berlin is two hours ahead.
        check(office, "2026-07-20T07:00:00Z", true);
        check("weekdays: [Sunday]", "2026-11-22T00:00:00Z", true);
        check("days_of_month: ['-2:-1']", "2026-02-27T12:00:00Z", true);
        check("days_of_month: ['-2:-1']", "2026-02-26T12:00:00Z", false);
        check("days_of_month: ['1:-1']", "2026-02-26T12:00:00Z", true);
        check("months: ['january:march', '11']", "2026-11-01T00:00:00Z", true);
        check("months: ['january:march']", "2026-11-01T00:00:00Z", false);
        check("years: ['2020:2025', '2030']", "2026-11-01T00:00:00Z", false);
        check("times: [{start_time: '00:00', end_time: '24:00'}]", "2026-11-01T23:59:59Z", true);
        check("{}", "2026-11-01T00:00:00Z", true);
    }

    #[test]
    fn invalid_intervals_are_reported() {
        for (text, expected) in [
            ("weekdays: [someday]", "weekdays: \"someday\""),
            ("weekdays: ['friday:monday']", "friday:monday"),
            ("days_of_month: ['32']", "days_of_month"),
            ("days_of_month: ['-1:5']", "-1:5"),
            ("days_of_month: ['-1:-5']", "-1:-5"),
            ("months: ['13']", "months"),
            ("times: [{start_time: '9:00', end_time: '10:00'}]", "9:00"),
            ("times: [{start_time: '+9:00', end_time: '10:00'}]", "+9:00"),
            ("times: [{start_time: '10:00', end_time: '10:00'}]", "is not before"),
            ("location: Mars/Phobos", "Mars/Phobos"),
            ("week_days: []", "week_days"),
        ] {
            let message = read(text).unwrap_err();
            assert!(message.contains(expected), "{text}: {message}");
        }
    }
}
