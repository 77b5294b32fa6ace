//! Points in time, always UTC.
//!
//! Must never know: the current time. Only `src/clock` reads the clock.

use std::fmt;

use jiff::{Timestamp, tz::TimeZone};

/// Milliseconds since 1970-01-01T00:00:00Z.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct UnixMillis(pub i64);

impl UnixMillis {
    /// The smallest time that a sample may have: 1970-01-01.
    pub const MIN: Self = Self(0);
    /// The largest time that a sample may have: 9999-01-01.
    pub const MAX: Self = Self(253_370_764_800_000);

    /// A time before every other.
    pub const EARLIEST: Self = Self(i64::MIN);
    /// A time after every other.
    pub const LATEST: Self = Self(i64::MAX);

    /// Returns the civil date and time in UTC. Times outside of years 1 to 9999 are clamped.
    pub fn civil(self) -> jiff::civil::DateTime {
        self.timestamp().to_zoned(TimeZone::UTC).datetime()
    }

    /// Returns the instant as a type of `jiff`. Times outside of its range are clamped.
    pub fn timestamp(self) -> Timestamp {
        Timestamp::from_millisecond(self.0).unwrap_or(if self.0 < 0 {
            Timestamp::MIN
        } else {
            Timestamp::MAX
        })
    }

    /// Returns midnight UTC of a civil date.
    pub fn from_date(date: jiff::civil::Date) -> Self {
        date.to_zoned(TimeZone::UTC)
            .map_or(Self::MAX, |zoned| Self(zoned.timestamp().as_millisecond()))
    }

    /// Parses RFC 3339, a date, Unix seconds, or Unix milliseconds if larger than 10^11.
    ///
    /// # Errors
    /// The text has none of these forms, or is out of range.
    pub fn parse(text: &str) -> Result<Self, String> {
        const MILLIS_FROM: f64 = 1e11;
        let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
        let found = number
            .map(|number| if number.abs() < MILLIS_FROM { number * 1000.0 } else { number } as i64)
            .or_else(|| text.parse().ok().map(|at: Timestamp| at.as_millisecond()))
            .or_else(|| text.parse().ok().map(|date| Self::from_date(date).0));
        found.map(Self).filter(|at| (Self::MIN..=Self::MAX).contains(at)).ok_or_else(|| {
            format!("{text:?} is not a time; use 2026-11-21T08:00:00Z, 2026-11-21 or Unix seconds")
        })
    }

    /// Returns the milliseconds from an earlier time to this one.
    pub fn since(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }

    /// Returns this time plus some milliseconds.
    pub fn plus(self, millis: i64) -> Self {
        Self(self.0.saturating_add(millis))
    }

    /// Returns this time minus some milliseconds.
    pub fn minus(self, millis: i64) -> Self {
        Self(self.0.saturating_sub(millis))
    }
}

impl fmt::Display for UnixMillis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.timestamp().fmt(f)
    }
}

/// The current time, as far as it is known. While the machine's clock is trusted, both times are
/// equal; while it is doubted, one of them is wrong, and nothing may depend on which.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// The time of the machine's clock.
    pub clock: UnixMillis,
    /// The time that the daemon expects from earlier readings and confirmations.
    pub believed: UnixMillis,
}

impl Moment {
    /// Returns true when the machine's clock is doubted.
    pub fn is_doubted(self) -> bool {
        self.clock != self.believed
    }

    /// Returns the earlier of the two times, for decisions about age: data is too old only if it is
    /// too old at both times.
    pub fn earliest(self) -> UnixMillis {
        self.clock.min(self.believed)
    }

    /// Returns the later of the two times, for decisions about the future: data is too new only if
    /// it is too new at both times.
    pub fn latest(self) -> UnixMillis {
        self.clock.max(self.believed)
    }
}

impl From<UnixMillis> for Moment {
    fn from(now: UnixMillis) -> Self {
        Self { clock: now, believed: now }
    }
}
