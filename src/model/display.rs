//! The numbers of a cell that charts display.

use std::{borrow::Cow, str::FromStr};

use serde::{Deserialize, Serialize};

use super::{Cell, Kind};

/// A number that is computed from a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(into = "String", try_from = "String")]
pub enum Display {
    /// The sum divided by the number of samples.
    Avg,
    /// The average over time: for counters and deltas, the sum divided by the seconds of the slot;
    /// for gauges, [`Self::Avg`].
    AvgPerSec,
    /// The sum divided by the seconds of the slot, for every kind.
    SumPerSec,
    /// The sum; for a counter, its increase.
    Total,
    /// The smallest value; for a counter, the smallest rate.
    Min,
    /// The largest value; for a counter, the largest rate.
    Max,
    /// The number of samples.
    Count,
    /// The first value in time.
    First,
    /// The last value in time.
    Last,
    /// The value below which a share of the observations of histograms lies.
    Percentile(Percentile),
    /// The number of observations in each bucket of histograms.
    Distribution,
}

/// A share of observations, in hundredths of a percent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Percentile(u16);

impl Percentile {
    /// Returns the share, from 0 to 1.
    pub fn share(self) -> f64 {
        f64::from(self.0) / 10_000.0
    }

    /// Parses `99.9`, with at most two decimal places.
    fn parse(text: &str) -> Option<Self> {
        let (whole, decimals) = text.split_once('.').unwrap_or((text, "0"));
        let is_number = |part: &str| !part.is_empty() && part.bytes().all(|c| c.is_ascii_digit());
        if !is_number(whole) || !is_number(decimals) || decimals.len() > 2 {
            return None;
        }
        let hundredths: u16 = format!("{decimals:0<2}").parse().ok()?;
        let all = whole.parse::<u16>().ok()?.checked_mul(100)?.checked_add(hundredths)?;
        (all <= 10_000).then_some(Self(all))
    }

    /// Returns the name, such as `p99.9`.
    fn name(self) -> String {
        let (whole, decimals) = (self.0 / 100, self.0 % 100);
        match decimals {
            0 => format!("p{whole}"),
            _ if decimals % 10 == 0 => format!("p{whole}.{}", decimals / 10),
            _ => format!("p{whole}.{decimals:02}"),
        }
    }
}

impl From<Display> for String {
    fn from(display: Display) -> Self {
        display.name().into_owned()
    }
}

impl TryFrom<String> for Display {
    type Error = String;

    fn try_from(word: String) -> Result<Self, String> {
        word.parse()
    }
}

impl Display {
    const ALL: [(Self, &'static str); 10] = [
        (Self::Avg, "avg"),
        (Self::AvgPerSec, "avg_per_sec"),
        (Self::SumPerSec, "sum_per_sec"),
        (Self::Total, "total"),
        (Self::Min, "min"),
        (Self::Max, "max"),
        (Self::Count, "count"),
        (Self::First, "first"),
        (Self::Last, "last"),
        (Self::Distribution, "distribution"),
    ];

    /// Returns the default display of a kind.
    pub fn of_kind(kind: Kind) -> Self {
        match kind.of_counts() {
            Kind::Gauge => Self::Avg,
            Kind::Counter => Self::AvgPerSec,
            Kind::Delta | Kind::Histogram | Kind::GaugeHistogram | Kind::DeltaHistogram => {
                Self::Total
            }
        }
    }

    /// Resolves [`Self::AvgPerSec`] for a kind.
    #[must_use]
    pub fn for_kind(self, kind: Kind) -> Self {
        match (self, kind.of_counts()) {
            (Self::AvgPerSec, Kind::Gauge) => Self::Avg,
            (other, _) => other,
        }
    }

    /// Returns true when the number depends on the width of the slot.
    pub fn is_per_second(self) -> bool {
        matches!(self, Self::AvgPerSec | Self::SumPerSec)
    }

    /// Returns true for a percentile.
    pub fn is_percentile(self) -> bool {
        matches!(self, Self::Percentile(_))
    }

    /// Returns true when the number is computed from histograms.
    pub fn is_of_histograms(self) -> bool {
        matches!(self, Self::Percentile(_) | Self::Distribution)
    }

    /// Returns the name in queries.
    pub fn name(self) -> Cow<'static, str> {
        if let Self::Percentile(percentile) = self {
            return percentile.name().into();
        }
        let named = Self::ALL.into_iter().find(|(display, _)| *display == self);
        named.map_or("", |(_, name)| name).into()
    }

    /// Returns the number; `None` when the slot is empty, for the rate of a counter's reading
    /// without a neighbour, and for percentiles, which a cell does not contain. A cell of histograms
    /// counts observations.
    pub fn of_cell(self, cell: &Cell, width_ms: i64) -> Option<f64> {
        if cell.is_empty() {
            return None;
        }
        let number = match self {
            // A cell that is only a correction has a sum and no sample.
            Self::Avg => cell.mean()?,
            Self::AvgPerSec | Self::SumPerSec => cell.sum / (width_ms as f64 / 1000.0),
            Self::Total | Self::Distribution => cell.sum,
            Self::Percentile(_) => return None,
            Self::Min => cell.min,
            Self::Max => cell.max,
            Self::Count | Self::First | Self::Last if cell.n == 0 => return None,
            Self::Count => f64::from(cell.n),
            Self::First => cell.first,
            Self::Last => cell.last,
        };
        number.is_finite().then_some(number)
    }
}

impl FromStr for Display {
    type Err = String;

    fn from_str(word: &str) -> Result<Self, String> {
        if let Some(percentile) = word.strip_prefix('p').and_then(Percentile::parse) {
            return Ok(Self::Percentile(percentile));
        }
        let found = Self::ALL.into_iter().find(|(_, known)| *known == word);
        found.map(|(display, _)| display).ok_or_else(|| {
            let known: Vec<_> = Self::ALL.iter().map(|(_, word)| *word).collect();
            format!(
                "display={word:?} is not known; use one of {}, or a percentile such as p99.9",
                known.join(", ")
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_average_per_second_is_an_average_over_time_whatever_the_kind() {
        let mut cell = Cell::EMPTY;
        for (offset, value) in [(0, 20.0), (30_000, 40.0)] {
            cell.merge(&Cell::single(offset, value));
        }
        let number = |display: Display, kind| display.for_kind(kind).of_cell(&cell, 60_000);
        assert_eq!(number(Display::AvgPerSec, Kind::Gauge), Some(30.0));
        assert_eq!(number(Display::AvgPerSec, Kind::Delta), Some(1.0));
        for kind in [Kind::Gauge, Kind::Counter, Kind::Delta] {
            assert_eq!(number(Display::SumPerSec, kind), Some(1.0));
        }
        assert_eq!("sum_per_sec".parse(), Ok(Display::SumPerSec));
    }

    #[test]
    fn a_percentile_has_at_most_two_decimal_places() {
        let read = |word: &str| word.parse::<Display>().map(String::from);
        for (word, name) in [
            ("p50", "p50"),
            ("p99.9", "p99.9"),
            ("p99.90", "p99.9"),
            ("p99.99", "p99.99"),
            ("p0.05", "p0.05"),
            ("p0", "p0"),
            ("p100", "p100"),
        ] {
            assert_eq!(read(word), Ok(name.to_owned()));
        }
        for wrong in ["p", "p.5", "p5.", "p100.01", "p99.999", "p-1", "p1e1", "p99999999", "P50"] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
