//! Parts of dates, formatting of dates, and truncation to periods, as in MongoDB.
//!
//! Must never know: documents. Weeks begin on Sunday by default, and periods of several units are
//! counted from 1 January 2000.

use std::fmt::Write;

use jiff::{
    ToSpan, Zoned,
    civil::{Date, Weekday},
    tz::TimeZone,
};

use super::Expression;
use crate::{
    model::UnixMillis,
    query::{
        CalendarUnit,
        pipeline::value::{Fields, Value},
        time::calendar::{midnight, time_zone},
    },
};

/// The options of `$dateTrunc`.
pub(super) const DATE_TRUNC_OPTIONS: [&str; 5] =
    ["date", "unit", "binSize", "timezone", "startOfWeek"];
/// The options of `$dateToString`.
pub(super) const DATE_TO_STRING_OPTIONS: [&str; 4] = ["date", "format", "timezone", "onNull"];
/// The options of `$dateToParts`.
pub(super) const DATE_TO_PARTS_OPTIONS: [&str; 3] = ["date", "timezone", "iso8601"];
/// Number of values in the result of `$dateToParts`, including the document.
pub(super) const PARTS_VALUES: usize = 8;

/// The origin of periods of several units, a Saturday.
const REFERENCE: Date = jiff::civil::date(2000, 1, 1);
const MONTHS: [&str; 12] = [
    "January",
    "February",
    "March",
    "April",
    "May",
    "June",
    "July",
    "August",
    "September",
    "October",
    "November",
    "December",
];

/// A part of a date.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::pipeline) enum DatePart {
    Year,
    Month,
    DayOfMonth,
    DayOfWeek,
    DayOfYear,
    Week,
    IsoWeek,
    IsoWeekYear,
    IsoDayOfWeek,
    Hour,
    Minute,
    Second,
    Millisecond,
}

const DATE_PARTS: [(&str, DatePart); 13] = [
    ("$year", DatePart::Year),
    ("$month", DatePart::Month),
    ("$dayOfMonth", DatePart::DayOfMonth),
    ("$dayOfWeek", DatePart::DayOfWeek),
    ("$dayOfYear", DatePart::DayOfYear),
    ("$week", DatePart::Week),
    ("$isoWeek", DatePart::IsoWeek),
    ("$isoWeekYear", DatePart::IsoWeekYear),
    ("$isoDayOfWeek", DatePart::IsoDayOfWeek),
    ("$hour", DatePart::Hour),
    ("$minute", DatePart::Minute),
    ("$second", DatePart::Second),
    ("$millisecond", DatePart::Millisecond),
];

impl DatePart {
    pub(super) fn named(name: &str) -> Option<Self> {
        DATE_PARTS.iter().find(|(known, _)| *known == name).map(|(_, part)| *part)
    }

    pub(super) fn names() -> impl Iterator<Item = &'static str> {
        DATE_PARTS.iter().map(|(known, _)| *known)
    }

    pub(super) fn name(self) -> &'static str {
        DATE_PARTS.iter().find(|(_, part)| *part == self).map_or("", |(name, _)| name)
    }

    pub(super) fn of(self, local: &Zoned) -> Value {
        Value::Int(self.number(local))
    }

    fn number(self, local: &Zoned) -> i64 {
        let iso = || local.date().iso_week_date();
        match self {
            Self::Year => local.year().into(),
            Self::Month => local.month().into(),
            Self::DayOfMonth => local.day().into(),
            // Sunday is 1.
            Self::DayOfWeek => local.weekday().to_sunday_one_offset().into(),
            Self::DayOfYear => local.day_of_year().into(),
            // Days before the first Sunday of a year belong to week 0.
            Self::Week => {
                let weekday = i64::from(local.weekday().to_sunday_zero_offset());
                (i64::from(local.day_of_year()) + 6 - weekday) / 7
            }
            Self::IsoWeek => iso().week().into(),
            Self::IsoWeekYear => iso().year().into(),
            Self::IsoDayOfWeek => local.weekday().to_monday_one_offset().into(),
            Self::Hour => local.hour().into(),
            Self::Minute => local.minute().into(),
            Self::Second => local.second().into(),
            Self::Millisecond => local.millisecond().into(),
        }
    }
}

/// Returns all parts of a date as a document.
pub(super) fn parts(local: &Zoned, iso: bool) -> Value {
    let dates = if iso {
        [
            ("isoWeekYear", DatePart::IsoWeekYear),
            ("isoWeek", DatePart::IsoWeek),
            ("isoDayOfWeek", DatePart::IsoDayOfWeek),
        ]
    } else {
        [("year", DatePart::Year), ("month", DatePart::Month), ("day", DatePart::DayOfMonth)]
    };
    let times = [
        ("hour", DatePart::Hour),
        ("minute", DatePart::Minute),
        ("second", DatePart::Second),
        ("millisecond", DatePart::Millisecond),
    ];
    let all = dates.into_iter().chain(times);
    Value::Fields(all.map(|(name, part)| (name.into(), part.of(local))).collect())
}

/// The format of a date.
#[derive(Debug, Clone)]
pub(in crate::pipeline) struct DateFormat(Box<str>);

impl DateFormat {
    /// Parses the `format` of a `$dateToString`; the default is ISO 8601.
    pub(super) fn parse(format: Option<&Value>, zone: &TimeZone) -> Result<Self, String> {
        let text = match format {
            None if *zone == TimeZone::UTC => "%Y-%m-%dT%H:%M:%S.%LZ",
            None => "%Y-%m-%dT%H:%M:%S.%L",
            Some(Value::Text(text)) => text,
            Some(_) => return Err("format must be a text, such as \"%Y-%m-%d\"".to_owned()),
        };
        let mut rest = text.chars();
        while let Some(c) = rest.next() {
            if c == '%' && !rest.next().is_some_and(|c| "bBdGHjLmMSuUVwYzZ%".contains(c)) {
                return Err(
                    "format accepts %b %B %d %G %H %j %L %m %M %S %u %U %V %w %Y %z %Z and %%"
                        .into(),
                );
            }
        }
        Ok(Self(text.into()))
    }

    pub(super) fn text(&self, local: &Zoned) -> String {
        let mut out = String::new();
        let mut rest = self.0.chars();
        while let Some(c) = rest.next() {
            match (c, if c == '%' { rest.next() } else { None }) {
                ('%', Some(letter)) => write_part(letter, local, &mut out),
                (c, _) => out.push(c),
            }
        }
        out
    }
}

fn write_part(letter: char, local: &Zoned, out: &mut String) {
    let minutes = local.offset().seconds() / 60;
    let month = MONTHS[usize::from(local.month().unsigned_abs()).clamp(1, 12) - 1];
    let (part, width) = match letter {
        'Y' => (DatePart::Year, 4),
        'G' => (DatePart::IsoWeekYear, 4),
        'm' => (DatePart::Month, 2),
        'd' => (DatePart::DayOfMonth, 2),
        'H' => (DatePart::Hour, 2),
        'M' => (DatePart::Minute, 2),
        'S' => (DatePart::Second, 2),
        'L' => (DatePart::Millisecond, 3),
        'j' => (DatePart::DayOfYear, 3),
        'u' => (DatePart::IsoDayOfWeek, 1),
        'U' => (DatePart::Week, 2),
        'V' => (DatePart::IsoWeek, 2),
        'w' => (DatePart::DayOfWeek, 1),
        other => {
            let sign = if minutes < 0 { '-' } else { '+' };
            let (hours, rest) = (minutes.abs() / 60, minutes.abs() % 60);
            // Writing to a string cannot fail.
            let written = match other {
                'z' => write!(out, "{sign}{hours:02}{rest:02}"),
                'Z' => write!(out, "{minutes}"),
                'B' => write!(out, "{month}"),
                'b' => write!(out, "{}", month.get(..3).unwrap_or_default()),
                _ => write!(out, "{other}"),
            };
            return written.unwrap_or_default();
        }
    };
    write!(out, "{:0width$}", part.number(local)).ok();
}

/// The periods of a `$dateTrunc`.
#[derive(Debug, Clone, Copy)]
pub(in crate::pipeline) struct Truncation {
    unit: Unit,
    /// Number of units in a period, at least 1.
    count: i64,
    first_weekday: Weekday,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Unit {
    Millis(i64),
    Hour,
    Days,
    Weeks,
    Months(i64),
    /// A calendar unit of charts that MongoDB lacks.
    Calendar(CalendarUnit),
}

const UNITS: [(&str, Unit); 10] = [
    ("millisecond", Unit::Millis(1)),
    ("second", Unit::Millis(1000)),
    ("minute", Unit::Millis(60_000)),
    ("hour", Unit::Hour),
    ("day", Unit::Days),
    ("week", Unit::Weeks),
    ("month", Unit::Months(1)),
    ("quarter", Unit::Months(3)),
    ("year", Unit::Months(12)),
    ("2weeks", Unit::Calendar(CalendarUnit::TwoWeeks)),
];

const HOUR_MS: i64 = 3_600_000;

impl Truncation {
    /// Parses the options of a `$dateTrunc`, apart from date and time zone.
    pub(super) fn parse(fields: &Fields) -> Result<Self, String> {
        let named = fields.get("unit").and_then(Value::as_text);
        let unit = named.and_then(|name| UNITS.iter().find(|(known, _)| **known == **name));
        let Some((_, unit)) = unit else {
            let units = UNITS.map(|(name, _)| name).join(", ");
            return Err(format!("$dateTrunc: unit must be one of {units}"));
        };
        let count = match fields.get("binSize") {
            None => 1,
            Some(count) => count
                .number()
                .filter(|count| *count >= 1.0 && *count < 1e15 && count.fract() == 0.0)
                .ok_or("$dateTrunc: binSize must be a whole number of at least 1")?
                as i64,
        };
        if count > 1 && matches!(unit, Unit::Calendar(_)) {
            return Err("$dateTrunc: unit 2weeks takes no binSize; use week".to_owned());
        }
        let first_weekday = match fields.get("startOfWeek") {
            None => Weekday::Sunday,
            Some(name) => name.as_text().and_then(|name| weekday(name)).ok_or_else(|| {
                "$dateTrunc: startOfWeek must be a day, such as \"monday\" or \"mon\"".to_owned()
            })?,
        };
        Ok(Self { unit: *unit, count, first_weekday })
    }

    pub(super) fn start_of(self, at: UnixMillis, zone: &TimeZone) -> UnixMillis {
        let date = || local(at, zone).date();
        let days_between =
            |from: Date, day: Date| i64::from(from.until(day).map_or(0, |s| s.get_days()));
        let start_in_days = |from: Date, days: i64| {
            let days_into_period = days_between(from, date()).rem_euclid(days);
            midnight(date().checked_sub(days_into_period.days()).unwrap_or(date()), zone)
        };
        match self.unit {
            Unit::Calendar(unit) => unit.start_of(at, zone),
            Unit::Hour if self.count == 1 => CalendarUnit::Hour.start_of(at, zone),
            Unit::Hour => self.start_in_millis(at, HOUR_MS, zone),
            Unit::Millis(millis) => self.start_in_millis(at, millis, zone),
            Unit::Days => start_in_days(REFERENCE, self.count),
            Unit::Weeks => {
                let first = i64::from(REFERENCE.weekday().until(self.first_weekday));
                start_in_days(REFERENCE.saturating_add(first.days()), self.count.saturating_mul(7))
            }
            Unit::Months(months) => {
                let length = self.count.saturating_mul(months);
                let month = i64::from(date().month()) - 1;
                let months_since_2000 = (i64::from(date().year()) - 2000) * 12 + month;
                let start = months_since_2000.div_euclid(length).saturating_mul(length);
                let year = i16::try_from(2000 + start.div_euclid(12)).unwrap_or(-9999);
                let first = Date::new(year, start.rem_euclid(12) as i8 + 1, 1);
                midnight(first.unwrap_or(Date::MIN), zone)
            }
        }
    }

    fn start_in_millis(self, at: UnixMillis, unit_ms: i64, zone: &TimeZone) -> UnixMillis {
        let from = midnight(REFERENCE, zone);
        at.minus(at.since(from).rem_euclid(self.count.saturating_mul(unit_ms)))
    }
}

fn weekday(name: &str) -> Option<Weekday> {
    let names = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];
    let name = name.to_lowercase();
    let found = names.iter().position(|known| *known == name || known.get(..3) == Some(&name))?;
    Weekday::from_monday_zero_offset(found as i8).ok()
}

/// Converts a time to the local time of a zone.
pub(super) fn local(at: UnixMillis, zone: &TimeZone) -> Zoned {
    at.timestamp().to_zoned(zone.clone())
}

/// Returns the options of a date expression; unknown options are an error.
pub(super) fn options<'v>(
    name: &str,
    argument: &'v Value,
    known: &[&str],
) -> Result<&'v Fields, String> {
    let Value::Fields(fields) = argument else {
        return Err(format!("{name} takes {{{}}}", known.join(", ")));
    };
    if let Some((other, _)) = fields.iter().find(|(field, _)| !known.contains(&&***field)) {
        return Err(format!("{name}: {other} is not known; use {}", known.join(", ")));
    }
    Ok(fields)
}

/// Parses a date with an optional `timezone`.
pub(super) fn date_and_zone(
    name: &str,
    argument: &Value,
) -> Result<(Expression, TimeZone), String> {
    let fields = match argument {
        Value::List(values) => {
            let [date] = &values[..] else { return Err(format!("{name} takes one date")) };
            return Ok((Expression::parse(date)?, TimeZone::UTC));
        }
        Value::Fields(fields)
            if !fields.single().is_some_and(|(field, _)| field.starts_with('$')) =>
        {
            fields
        }
        other => return Ok((Expression::parse(other)?, TimeZone::UTC)),
    };
    if DatePart::named(name).is_some() {
        options(name, argument, &["date", "timezone"])?;
    }
    let Some(date) = fields.get("date") else { return Err(format!("{name}: date is missing")) };
    let zone = match fields.get("timezone") {
        None => TimeZone::UTC,
        Some(Value::Text(zone)) => time_zone(zone)?,
        Some(_) => return Err(format!("{name}: timezone must be a name such as Europe/Berlin")),
    };
    Ok((Expression::parse(date)?, zone))
}
