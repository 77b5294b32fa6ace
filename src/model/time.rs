//! Points in time, always UTC.
//!
//! Must never know: what the time is now. `clock.rs` reads that, at the edge.

use std::fmt;

use jiff::{Timestamp, tz::TimeZone};

/// Milliseconds since 1970-01-01T00:00:00Z.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct UnixMillis(pub i64);

impl UnixMillis {
    /// Smallest time that a sample may have: 1970-01-01.
    pub const MIN: Self = Self(0);
    /// Largest time that a sample may have: 9999-01-01.
    pub const MAX: Self = Self(253_370_764_800_000);

    /// Before every time.
    pub const EARLIEST: Self = Self(i64::MIN);
    /// After every time.
    pub const LATEST: Self = Self(i64::MAX);

    /// The civil date and time in UTC. Times outside of years 1 to 9999 are clamped.
    pub fn civil(self) -> jiff::civil::DateTime {
        self.timestamp().to_zoned(TimeZone::UTC).datetime()
    }

    /// The same instant as a library type. Times outside of its range are clamped.
    pub fn timestamp(self) -> Timestamp {
        Timestamp::from_millisecond(self.0).unwrap_or(if self.0 < 0 {
            Timestamp::MIN
        } else {
            Timestamp::MAX
        })
    }

    /// Midnight UTC of a civil date.
    pub fn from_date(date: jiff::civil::Date) -> Self {
        date.to_zoned(TimeZone::UTC)
            .map_or(Self::MAX, |zoned| Self(zoned.timestamp().as_millisecond()))
    }

    /// RFC 3339, or a date, or Unix seconds, or Unix milliseconds when larger than 10^11.
    ///
    /// # Errors
    /// When it is none of them, or out of range.
    pub fn parse(text: &str) -> Result<Self, String> {
        const MILLIS_FROM: f64 = 1e11;
        let number = text.parse::<f64>().ok().filter(|number| number.is_finite());
        let found = number
            .map(|number| if number.abs() < MILLIS_FROM { number * 1000.0 } else { number } as i64)
            .or_else(|| text.parse().ok().map(|at: Timestamp| at.as_millisecond()))
            .or_else(|| text.parse().ok().map(|date| Self::from_date(date).0));
        found.map(Self).filter(|at| (Self::MIN..=Self::MAX).contains(at)).ok_or_else(|| {
            format!("{text:?} is no time; use 2026-11-21T08:00:00Z, 2026-11-21 or Unix seconds")
        })
    }

    /// Milliseconds from another time to this one.
    pub fn since(self, earlier: Self) -> i64 {
        self.0.saturating_sub(earlier.0)
    }

    /// This time plus some milliseconds.
    pub fn plus(self, millis: i64) -> Self {
        Self(self.0.saturating_add(millis))
    }

    /// This time less some milliseconds.
    pub fn minus(self, millis: i64) -> Self {
        Self(self.0.saturating_sub(millis))
    }
}

impl fmt::Display for UnixMillis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.timestamp().fmt(f)
    }
}

/// The present, as far as it is known. While the machine's clock is believed, both are one time;
/// while it is doubted, one of them is wrong, and nothing may depend on which.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    /// What the machine's clock says.
    pub clock: UnixMillis,
    /// What the time must be by what was known before.
    pub believed: UnixMillis,
}

impl Moment {
    /// Whether the machine's clock is doubted.
    pub fn is_doubted(self) -> bool {
        self.clock != self.believed
    }

    /// What is kept at this time is kept: nothing is too old that one of the two still keeps.
    pub fn earliest(self) -> UnixMillis {
        self.clock.min(self.believed)
    }

    /// What is in the past at this time may be: nothing is too new that one of the two allows.
    pub fn latest(self) -> UnixMillis {
        self.clock.max(self.believed)
    }
}

impl From<UnixMillis> for Moment {
    fn from(now: UnixMillis) -> Self {
        Self { clock: now, believed: now }
    }
}
