//! Calendar buckets in a time zone, from hours to years. Their lengths follow changes of the local
//! clock.
//!
//! Must never know: series or the store. Charts and the pipeline's `$dateTrunc` call this module.

use std::{borrow::Cow, ops::Range};

use jiff::{
    ToSpan, Zoned,
    civil::{Date, DateTime},
    tz::TimeZone,
};

use crate::model::UnixMillis;

/// Monday from which buckets of two weeks and of several days are counted.
const ANCHOR: Date = jiff::civil::date(1970, 1, 5);
const HOUR_MS: i64 = 3_600_000;

/// The length of calendar buckets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CalendarUnit {
    /// Local clock hours. A change of the clock within an hour splits the bucket.
    Hour,
    /// Local days from midnight to midnight: 23 to 25 hours.
    Day,
    /// Weeks that begin on Monday.
    Week,
    /// Two weeks that begin on a Monday, counted from 5 January 1970.
    TwoWeeks,
    /// Months that begin on their first day.
    Month,
    /// Quarters that begin in January, April, July and October.
    Quarter,
    /// Years that begin on 1 January.
    Year,
    /// Several days, counted from Monday, 5 January 1970.
    Days(i32),
}

impl CalendarUnit {
    /// The units that have a name, from the shortest to the longest.
    pub const NAMED: [(Self, &'static str); 7] = [
        (Self::Hour, "hour"),
        (Self::Day, "day"),
        (Self::Week, "week"),
        (Self::TwoWeeks, "2weeks"),
        (Self::Month, "month"),
        (Self::Quarter, "quarter"),
        (Self::Year, "year"),
    ];

    /// Returns the unit with a name.
    pub fn named(name: &str) -> Option<Self> {
        Self::NAMED.into_iter().find(|(_, known)| *known == name).map(|(unit, _)| unit)
    }

    /// Returns the unit for a number of days.
    pub fn of_days(days: i64) -> Self {
        match i32::try_from(days) {
            Ok(1) => Self::Day,
            Ok(days) => Self::Days(days.max(1)),
            Err(_) => Self::Days(i32::MAX),
        }
    }

    /// Returns the name in requests and answers, such as `day` or `3d`.
    pub fn name(self) -> Cow<'static, str> {
        if let Self::Days(days) = self {
            return format!("{days}d").into();
        }
        Self::NAMED.into_iter().find(|(unit, _)| *unit == self).map_or("", |(_, name)| name).into()
    }

    /// Returns the start of the bucket that contains `at`.
    pub fn start_of(self, at: UnixMillis, zone: &TimeZone) -> UnixMillis {
        let local = at.timestamp().to_zoned(zone.clone());
        match self {
            Self::Hour => hour_start(&local),
            Self::Day
            | Self::Week
            | Self::TwoWeeks
            | Self::Month
            | Self::Quarter
            | Self::Year
            | Self::Days(_) => midnight(self.first_date(local.date()), zone),
        }
    }

    /// Returns the end of the bucket that begins at `start`, which is the start of the next bucket.
    pub fn next(self, start: UnixMillis, zone: &TimeZone) -> UnixMillis {
        let date = start.timestamp().to_zoned(zone.clone()).date();
        let length = match self {
            Self::Hour => return next_hour(start, zone),
            Self::Day => 1.day(),
            Self::Week => 1.week(),
            Self::TwoWeeks => 2.weeks(),
            Self::Month => 1.month(),
            Self::Quarter => 3.months(),
            Self::Year => 1.year(),
            Self::Days(days) => jiff::Span::new().try_days(days).unwrap_or_else(|_| 10_000.years()),
        };
        let next = midnight(self.first_date(date).saturating_add(length), zone);
        // At the end of the calendar, the addition saturates.
        if next > start { next } else { UnixMillis::LATEST }
    }

    fn first_date(self, date: Date) -> Date {
        match self {
            Self::Hour | Self::Day => date,
            Self::Month => date.first_of_month(),
            Self::Quarter => {
                let month = (date.month() - 1) / 3 * 3 + 1;
                Date::new(date.year(), month, 1).unwrap_or(date)
            }
            Self::Year => date.first_of_year(),
            Self::Week => monday(date),
            Self::TwoWeeks => Self::Days(14).first_date(date),
            Self::Days(days) => {
                let days_since = ANCHOR.until(date).map_or(0, |span| span.get_days());
                date.saturating_sub(i64::from(days_since.rem_euclid(days.max(1))).days())
            }
        }
    }

    /// Returns the borders of the buckets that overlap a range, including the end of the last
    /// bucket. Returns `None` when there are more than `buckets_max` buckets.
    pub fn borders(
        self,
        range: &Range<UnixMillis>,
        zone: &TimeZone,
        buckets_max: usize,
    ) -> Option<Vec<UnixMillis>> {
        let mut at = self.start_of(range.start, zone);
        let mut borders = vec![at];
        while at < range.end {
            at = self.next(at, zone);
            borders.push(at);
            if borders.len() > buckets_max + 1 {
                return None;
            }
        }
        Some(borders)
    }
}

/// Parses the name of a time zone, or an offset from UTC such as `+02:00`.
///
/// # Errors
/// When the name is unknown; the message names alternatives.
pub fn time_zone(name: &str) -> Result<TimeZone, String> {
    TimeZone::get(name).ok().or_else(|| offset(name)).ok_or_else(|| {
        format!(
            "tz={name:?} is not a time zone; use a name such as Europe/Berlin, Asia/Kolkata or UTC, or \
             an offset such as +02:00"
        )
    })
}

/// Returns the name by which [`time_zone`] finds the zone.
pub fn zone_name(zone: &TimeZone) -> String {
    let offset = || {
        let seconds = zone.to_fixed_offset().map_or(0, jiff::tz::Offset::seconds);
        let minutes = seconds.abs() / 60;
        let sign = if seconds < 0 { '-' } else { '+' };
        format!("{sign}{:02}:{:02}", minutes / 60, minutes % 60)
    };
    zone.iana_name().map_or_else(offset, str::to_owned)
}

/// Formats a time as RFC 3339 in a zone.
pub(crate) fn local_time(at: UnixMillis, zone: &TimeZone) -> String {
    if *zone == TimeZone::UTC {
        return at.to_string();
    }
    at.timestamp().to_zoned(zone.clone()).strftime("%Y-%m-%dT%H:%M:%S%.f%:z").to_string()
}

/// Parses `+02:00`, `+0200` or `+02`. An unescaped plus in a query string arrives as a space.
fn offset(text: &str) -> Option<TimeZone> {
    let (sign, digits) = match text.split_at_checked(1)? {
        ("+" | " ", digits) => (1, digits),
        ("-", digits) => (-1, digits),
        _ => return None,
    };
    let (hours, minutes) = match (digits.len(), digits.split_once(':')) {
        (2, None) => (digits, "0"),
        (4, None) => digits.split_at_checked(2)?,
        (5, Some(parts)) => parts,
        _ => return None,
    };
    let number = |text: &str, most: i32| {
        let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
        text.parse::<i32>().ok().filter(|number| is_number && *number <= most)
    };
    let seconds = number(hours, 23)? * 3600 + number(minutes, 59)? * 60;
    let offset = jiff::tz::Offset::from_seconds(sign * seconds).ok()?;
    Some(if seconds == 0 { TimeZone::UTC } else { TimeZone::fixed(offset) })
}

fn monday(date: Date) -> Date {
    date.saturating_sub(i64::from(date.weekday().to_monday_zero_offset()).days())
}

/// Returns the first moment of a date, which is later than 00:00 when that hour does not exist.
pub(crate) fn midnight(date: Date, zone: &TimeZone) -> UnixMillis {
    local(date.to_datetime(jiff::civil::Time::midnight()), zone)
}

fn local(civil: DateTime, zone: &TimeZone) -> UnixMillis {
    zone.to_ambiguous_zoned(civil).compatible().map_or(UnixMillis::MAX, |zoned| millis(&zoned))
}

fn millis(zoned: &Zoned) -> UnixMillis {
    UnixMillis(zoned.timestamp().as_millisecond())
}

/// Returns the last full hour of the local clock, or the last clock change when that was later.
fn hour_start(at: &Zoned) -> UnixMillis {
    let floor = millis(at).0 - since_full_hour(at);
    let zone = at.time_zone();
    if zone.to_offset(UnixMillis(floor).timestamp()) == at.offset() {
        return UnixMillis(floor);
    }
    let change = zone.preceding(millis(at).plus(1).timestamp()).next();
    change.map_or(UnixMillis(floor), |change| UnixMillis(change.timestamp().as_millisecond()))
}

/// Returns the next full hour of the local clock, or the next clock change when that is earlier.
fn next_hour(start: UnixMillis, zone: &TimeZone) -> UnixMillis {
    let local = start.timestamp().to_zoned(zone.clone());
    let end = start.plus(HOUR_MS - since_full_hour(&local));
    if end.timestamp() <= start.timestamp() {
        return UnixMillis::LATEST;
    }
    if zone.to_offset(end.timestamp()) == local.offset() {
        return end;
    }
    let change = zone.following(start.timestamp()).next();
    change.map_or(end, |change| UnixMillis(change.timestamp().as_millisecond()))
}

/// Returns the milliseconds since the last full hour of the local clock.
fn since_full_hour(local: &Zoned) -> i64 {
    let seconds = i64::from(local.minute()) * 60 + i64::from(local.second());
    seconds * 1000 + i64::from(local.millisecond())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(text: &str) -> UnixMillis {
        UnixMillis(text.parse::<jiff::Timestamp>().unwrap().as_millisecond())
    }

    /// Returns the lengths of the buckets of a range, in hours.
    fn lengths(unit: CalendarUnit, zone: &str, from: &str, to: &str) -> Vec<f64> {
        let zone = time_zone(zone).unwrap();
        let borders = unit.borders(&(at(from)..at(to)), &zone, 1000).unwrap();
        borders.windows(2).map(|pair| (pair[1].0 - pair[0].0) as f64 / 3_600_000.0).collect()
    }

    #[test]
    fn the_length_of_days_follows_clock_changes() {
        let days = |from, to| lengths(CalendarUnit::Day, "Europe/Berlin", from, to);
        assert_eq!(days("2026-03-28T12:00:00Z", "2026-03-30T12:00:00Z"), [24.0, 23.0, 24.0]);
        assert_eq!(days("2026-10-24T12:00:00Z", "2026-10-26T12:00:00Z"), [24.0, 25.0, 24.0]);
        let kathmandu = time_zone("Asia/Kathmandu").unwrap();
        let start = CalendarUnit::Day.start_of(at("2026-11-20T18:15:00Z"), &kathmandu);
        assert_eq!(start, at("2026-11-20T18:15:00Z"));
        assert_eq!(CalendarUnit::Day.start_of(start.minus(1), &kathmandu), start.minus(86_400_000));
        // Samoa skipped 30 December 2011. Santiago has no midnight on the day of the change.
        let samoa = lengths(
            CalendarUnit::Day,
            "Pacific/Apia",
            "2011-12-29T12:00:00Z",
            "2011-12-31T12:00:00Z",
        );
        assert_eq!(samoa, [24.0, 24.0, 24.0]);
        let santiago = lengths(
            CalendarUnit::Day,
            "America/Santiago",
            "2026-09-05T12:00:00Z",
            "2026-09-07T12:00:00Z",
        );
        assert_eq!(santiago, [24.0, 23.0, 24.0]);
    }

    #[test]
    fn weeks_begin_on_monday_and_two_weeks_are_counted_from_the_anchor() {
        let zone = time_zone("Europe/Berlin").unwrap();
        let week = CalendarUnit::Week.start_of(at("2026-03-29T12:00:00Z"), &zone);
        assert_eq!(week, at("2026-03-22T23:00:00Z"));
        let start = CalendarUnit::TwoWeeks.start_of(at("1970-01-18T22:00:00Z"), &TimeZone::UTC);
        assert_eq!(start, at("1970-01-05T00:00:00Z"));
        let start = CalendarUnit::TwoWeeks.start_of(at("1970-01-04T22:00:00Z"), &TimeZone::UTC);
        assert_eq!(start, at("1969-12-22T00:00:00Z"));
        let weeks =
            |unit| lengths(unit, "Europe/Berlin", "2026-03-20T00:00:00Z", "2026-03-31T00:00:00Z");
        assert_eq!(weeks(CalendarUnit::Week), [168.0, 167.0, 168.0]);
        assert_eq!(weeks(CalendarUnit::Month), [743.0]);
    }

    #[test]
    fn hours_follow_changes_of_half_an_hour() {
        let hours = |zone, from, to| lengths(CalendarUnit::Hour, zone, from, to);
        let zone = "Australia/Lord_Howe";
        // In October, 02:00 is followed by 02:30; in April, by 01:30 again.
        let spring = hours(zone, "2026-10-03T14:40:00Z", "2026-10-03T16:10:00Z");
        assert_eq!(spring, [1.0, 0.5, 1.0]);
        let autumn = hours(zone, "2026-04-04T14:10:00Z", "2026-04-04T16:00:00Z");
        assert_eq!(autumn, [1.0, 0.5, 1.0]);
        let chatham = hours("Pacific/Chatham", "2026-04-04T13:20:00Z", "2026-04-04T14:20:00Z");
        assert_eq!(chatham, [0.75, 0.25, 1.0]);
        let berlin = hours("Europe/Berlin", "2026-10-24T23:30:00Z", "2026-10-25T02:30:00Z");
        assert_eq!(berlin, [1.0; 4]);
    }

    #[test]
    fn quarters_and_years_begin_with_their_months() {
        let zone = time_zone("Europe/Berlin").unwrap();
        let start = |unit: CalendarUnit| unit.start_of(at("2026-08-15T12:00:00Z"), &zone);
        assert_eq!(start(CalendarUnit::Quarter), at("2026-06-30T22:00:00Z"));
        assert_eq!(start(CalendarUnit::Year), at("2025-12-31T23:00:00Z"));
        let next = |unit: CalendarUnit| unit.next(start(unit), &zone);
        assert_eq!(next(CalendarUnit::Quarter), at("2026-09-30T22:00:00Z"));
        assert_eq!(next(CalendarUnit::Year), at("2026-12-31T23:00:00Z"));
        assert_eq!(
            (CalendarUnit::of_days(1), CalendarUnit::of_days(2).name()),
            (CalendarUnit::Day, "2d".into())
        );
    }

    #[test]
    fn offsets_are_time_zones() {
        let zone = |text: &str| time_zone(text).map(|zone| zone_name(&zone));
        for text in ["+02:00", " 02:00", "+0200", "+02"] {
            assert_eq!(zone(text).as_deref(), Ok("+02:00"), "{text}");
        }
        assert_eq!(zone("-03:30").as_deref(), Ok("-03:30"));
        assert_eq!(zone("+00:00").as_deref(), Ok("UTC"));
        for text in ["+2", "+24:00", "+02:60", "02:00", "++2:0", "+é", ""] {
            assert!(zone(text).is_err(), "{text}");
        }
        let day =
            CalendarUnit::Day.start_of(at("2026-08-15T12:00:00Z"), &time_zone("+05:30").unwrap());
        assert_eq!(day, at("2026-08-14T18:30:00Z"));
    }

    #[test]
    fn too_many_buckets_are_refused() {
        let range = UnixMillis(0)..UnixMillis(86_400_000 * 10);
        assert_eq!(CalendarUnit::Day.borders(&range, &TimeZone::UTC, 9), None);
        assert_eq!(CalendarUnit::Day.borders(&range, &TimeZone::UTC, 10).unwrap().len(), 11);
        assert!(time_zone("Mars/Olympus").unwrap_err().contains("Europe/Berlin"));
    }

    proptest! {
        #[test]
        fn buckets_are_adjacent_and_every_time_is_in_its_bucket(
            at in 0..1_900_000_000_000_i64,
            unit in 0..8_usize,
            zone in prop::sample::select(vec![
                "UTC", "Europe/Berlin", "Asia/Kolkata", "Asia/Kathmandu", "America/New_York",
                "Australia/Lord_Howe", "Pacific/Apia", "Pacific/Chatham", "America/Santiago", "Africa/Casablanca",
                "+05:30", "-0700",
            ]),
        ) {
            let (at, zone) = (UnixMillis(at), time_zone(zone).unwrap());
            let named = CalendarUnit::NAMED.get(unit);
            let unit = named.map_or(CalendarUnit::Days(3), |(unit, _)| *unit);
            let start = unit.start_of(at, &zone);
            let next = unit.next(start, &zone);
            prop_assert!(start <= at && at < next, "{start} {at} {next}");
            prop_assert_eq!(unit.start_of(start, &zone), start);
            prop_assert_eq!(unit.start_of(next.minus(1), &zone), start);
            prop_assert_eq!(unit.start_of(next, &zone), next);
        }
    }
}
