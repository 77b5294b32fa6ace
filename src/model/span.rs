//! Spans of the UTC calendar: the lengths of documents and partitions.

use std::{fmt, str::FromStr};

use jiff::{ToSpan, civil::Date};

use super::UnixMillis;

const DAY_MS: i64 = 86_400_000;
/// The maximum length of a span: about a thousand years.
const LONGEST_MONTHS: i32 = 12_000;
const LONGEST_MS: i64 = 1000 * 366 * DAY_MS;
/// The months after which the calendar repeats: 400 years.
const CALENDAR_MONTHS: usize = 400 * 12;
/// The first Monday after the epoch, 1970-01-05; weeks begin on Monday.
const MONDAY_MS: i64 = 4 * DAY_MS;

/// A length of time whose repetitions divide the UTC time line into periods.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Span {
    /// A fixed number of milliseconds, a multiple of one second; weeks begin on Monday.
    Fixed(i64),
    /// A number of calendar months; 12 of them are a year.
    Months(i32),
}

/// A text that is not a span.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is not a duration; write it like 10s, 1m, 6h, 14d, 2w, 1mo or 5y")]
pub struct SpanError(pub String);

impl Span {
    /// Returns the start of the period that contains `at`.
    pub fn start_of(self, at: UnixMillis) -> UnixMillis {
        match self {
            Self::Fixed(ms) => UnixMillis((at.0 - MONDAY_MS).div_euclid(ms) * ms + MONDAY_MS),
            Self::Months(months) => {
                let date = at.civil().date();
                let month = i32::from(date.year()) * 12 + i32::from(date.month()) - 1;
                month_start(month.div_euclid(months) * months)
            }
        }
    }

    /// Returns the start of the period after the one that begins at `start`.
    pub fn next(self, start: UnixMillis) -> UnixMillis {
        match self {
            Self::Fixed(ms) => start.plus(ms),
            Self::Months(months) => {
                let date = start.civil().date();
                month_start(i32::from(date.year()) * 12 + i32::from(date.month()) - 1 + months)
            }
        }
    }

    /// Returns the time that lies one span before `at`.
    pub fn before(self, at: UnixMillis) -> UnixMillis {
        match self {
            Self::Fixed(ms) => at.minus(ms),
            Self::Months(months) => {
                let civil = at.civil();
                let earlier = civil.date().saturating_sub(months.months());
                let day_part = at.0.rem_euclid(DAY_MS);
                UnixMillis::from_date(earlier).plus(day_part)
            }
        }
    }

    /// Returns an upper bound of the length in milliseconds, with years of 366 and months of 31
    /// days: documents store it, and plans use it as a bound. Use [`Self::exact_longest_ms`] for
    /// comparisons.
    pub fn longest_ms(self) -> i64 {
        match self {
            Self::Fixed(ms) => ms,
            Self::Months(months) if months % 12 == 0 => i64::from(months / 12) * 366 * DAY_MS,
            Self::Months(months) => i64::from(months) * 31 * DAY_MS,
        }
    }

    /// Returns the longest length in milliseconds that occurs in the calendar.
    pub fn exact_longest_ms(self) -> i64 {
        match self {
            Self::Fixed(ms) => ms,
            Self::Months(months) => {
                let starts = (2000 * 12..).take(CALENDAR_MONTHS);
                let length = |from: i32| month_start(from + months).0 - month_start(from).0;
                starts.map(length).max().unwrap_or(0)
            }
        }
    }

    /// Returns true when one span is of calendar months and the other of a fixed length: neither is
    /// a whole number of the other.
    pub fn has_other_unit(self, other: Self) -> bool {
        matches!(self, Self::Fixed(_)) != matches!(other, Self::Fixed(_))
    }

    /// Returns true when every period of `self` consists of whole periods of `part`.
    pub fn is_multiple_of_span(self, part: Self) -> bool {
        match (self, part) {
            (Self::Fixed(whole), Self::Fixed(part)) => whole % part == 0,
            (Self::Months(_), Self::Fixed(part)) => DAY_MS % part == 0,
            (Self::Months(whole), Self::Months(part)) => whole % part == 0,
            (Self::Fixed(_), Self::Months(_)) => false,
        }
    }
}

fn month_start(month: i32) -> UnixMillis {
    let year = i16::try_from(month.div_euclid(12)).unwrap_or(9999).clamp(1, 9999);
    let date = Date::new(year, (month.rem_euclid(12) + 1) as i8, 1).unwrap_or(Date::MAX);
    UnixMillis::from_date(date)
}

impl FromStr for Span {
    type Err = SpanError;

    fn from_str(text: &str) -> Result<Self, SpanError> {
        let fault = || SpanError(text.to_owned());
        let span: jiff::Span = text.parse().map_err(|_| fault())?;
        let months = i32::from(span.get_years()) * 12 + span.get_months();
        let rest = span.years(0).months(0);
        let clock_ms = i64::from(rest.get_hours()) * 3_600_000
            + rest.get_minutes() * 60_000
            + rest.get_seconds() * 1000
            + rest.get_milliseconds();
        let days = i64::from(rest.get_weeks()) * 7 + i64::from(rest.get_days());
        match (months, days * DAY_MS + clock_ms) {
            (0, ms) if (1..=LONGEST_MS).contains(&ms) => Ok(Self::Fixed(ms)),
            (months, 0) if (1..=LONGEST_MONTHS).contains(&months) => Ok(Self::Months(months)),
            _ => Err(fault()),
        }
    }
}

impl fmt::Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match *self {
            Self::Months(months) if months % 12 == 0 => write!(f, "{}y", months / 12),
            Self::Months(months) => write!(f, "{months}mo"),
            Self::Fixed(ms) => {
                let units = [(DAY_MS, "d"), (3_600_000, "h"), (60_000, "m"), (1000, "s")];
                let (size, unit) =
                    units.into_iter().find(|(size, _)| ms % size == 0).unwrap_or((1, "ms"));
                write!(f, "{}{unit}", ms / size)
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> UnixMillis {
        UnixMillis(text.parse::<jiff::Timestamp>().unwrap().as_millisecond())
    }

    #[test]
    fn periods_follow_the_calendar() {
        let check = |span: &str, inside: &str, start: &str, next: &str| {
            let span: Span = span.parse().unwrap();
            assert_eq!(span.start_of(at(inside)), at(start), "{span} {inside}");
            assert_eq!(span.next(at(start)), at(next), "{span} {start}");
        };
        check("6h", "2026-11-21T13:59:59Z", "2026-11-21T12:00:00Z", "2026-11-21T18:00:00Z");
        check("1w", "2026-11-21T13:59:59Z", "2026-11-16T00:00:00Z", "2026-11-23T00:00:00Z");
        check("1mo", "2024-02-29T23:59:59Z", "2024-02-01T00:00:00Z", "2024-03-01T00:00:00Z");
        check("1mo", "2026-12-31T00:00:00Z", "2026-12-01T00:00:00Z", "2027-01-01T00:00:00Z");
        check("1y", "2026-12-31T00:00:00Z", "2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z");
    }

    #[test]
    fn spans_are_read_and_written() {
        for text in ["10s", "1m", "6h", "14d", "1mo", "5y", "1500ms", "5625907860999ms"] {
            assert_eq!(text.parse::<Span>().unwrap().to_string(), text);
        }
        assert_eq!("1.5h".parse::<Span>().unwrap(), Span::Fixed(5_400_000));
        assert_eq!("2w".parse::<Span>().unwrap(), Span::Fixed(14 * DAY_MS));
        for text in ["", "soon", "0s", "-1h", "1mo 3d", "000700000787h", "99999y", "1us"] {
            assert!(text.parse::<Span>().is_err(), "{text}");
        }
    }

    #[test]
    fn the_longest_length_occurs_in_the_calendar() {
        let check = |text: &str, days: i64| {
            let span: Span = text.parse().unwrap();
            assert_eq!(span.exact_longest_ms(), days * DAY_MS, "{text}");
        };
        check("1044w", 7308);
        check("20y", 7305);
        check("1y", 366);
        check("4y", 1461);
        check("5y", 1827);
        check("400y", 146_097);
        check("1mo", 31);
        check("2mo", 62);
        check("3mo", 92);
        check("11mo", 337);
    }

    #[test]
    fn years_are_counted_back_by_the_calendar() {
        let span: Span = "5y".parse().unwrap();
        assert_eq!(span.before(at("2028-02-29T01:00:00Z")), at("2023-02-28T01:00:00Z"));
    }
}
