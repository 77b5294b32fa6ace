//! The numbers of a cell that charts display.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::{Cell, Kind};

/// A number that is computed from a cell.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
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
}

impl Display {
    const ALL: [(Self, &'static str); 9] = [
        (Self::Avg, "avg"),
        (Self::AvgPerSec, "avg_per_sec"),
        (Self::SumPerSec, "sum_per_sec"),
        (Self::Total, "total"),
        (Self::Min, "min"),
        (Self::Max, "max"),
        (Self::Count, "count"),
        (Self::First, "first"),
        (Self::Last, "last"),
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

    /// Returns the name in queries.
    pub fn name(self) -> &'static str {
        Self::ALL.into_iter().find(|(display, _)| *display == self).map_or("", |(_, name)| name)
    }

    /// Returns the number; `None` when the slot is empty, and for the rate of a counter's reading
    /// without a neighbour.
    pub fn of_cell(self, cell: &Cell, width_ms: i64) -> Option<f64> {
        if cell.is_empty() {
            return None;
        }
        let number = match self {
            // A cell that is only a correction has a sum and no sample.
            Self::Avg => cell.mean()?,
            Self::AvgPerSec | Self::SumPerSec => cell.sum / (width_ms as f64 / 1000.0),
            Self::Total => cell.sum,
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
        let found = Self::ALL.into_iter().find(|(_, known)| *known == word);
        found.map(|(display, _)| display).ok_or_else(|| {
            let known: Vec<_> = Self::ALL.iter().map(|(_, word)| *word).collect();
            format!("display={word:?} is not known; use one of {}", known.join(", "))
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
}
