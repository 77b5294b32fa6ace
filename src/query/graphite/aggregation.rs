//! Aggregations of numbers, with the names that Graphite gives them.
//!
//! Must never know: lines, functions.

use crate::query::QueryError;

/// A missing number.
pub(super) const NULL: f64 = f64::NAN;

/// An aggregation of the known numbers.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Aggregation {
    Average,
    Sum,
    Min,
    Max,
    Median,
    Difference,
    Deviation,
    Range,
    Product,
    Count,
    First,
    Last,
    Percentile(f64),
}

/// The names in error messages.
const NAMES: &str = "average, sum, min, max, median, diff, stddev, range, multiply, count, first, \
                     last, or a percentile such as p95";

impl Aggregation {
    /// Parses the name of an aggregation.
    ///
    /// # Errors
    /// When the name is unknown; the message lists the known names.
    pub(super) fn named(name: &str) -> Result<Self, QueryError> {
        let percentile = name.strip_prefix('p').and_then(|number| number.parse::<f64>().ok());
        Ok(match name {
            "average" | "avg" | "avg_zero" | "averageSeries" => Self::Average,
            "sum" | "total" | "sumSeries" => Self::Sum,
            "min" | "minSeries" => Self::Min,
            "max" | "maxSeries" => Self::Max,
            "median" | "medianSeries" => Self::Median,
            "diff" | "diffSeries" => Self::Difference,
            "stddev" | "stddevSeries" => Self::Deviation,
            "range" | "rangeOf" | "rangeOfSeries" => Self::Range,
            "multiply" | "multiplySeries" => Self::Product,
            "count" | "countSeries" => Self::Count,
            "first" => Self::First,
            "last" | "current" => Self::Last,
            _ => match percentile.filter(|percent| (0.0..=100.0).contains(percent)) {
                Some(percent) => Self::Percentile(percent),
                None => {
                    return Err(QueryError::Invalid(format!(
                        "{name:?} is not an aggregation: use {NAMES}"
                    )));
                }
            },
        })
    }

    /// Returns the aggregate of known numbers; a missing number when the list is empty.
    pub(super) fn of(self, known: &[f64]) -> f64 {
        let (Some(first), Some(last)) = (known.first(), known.last()) else {
            return if self == Self::Count { 0.0 } else { NULL };
        };
        let sum = || known.iter().sum::<f64>();
        let count = known.len() as f64;
        let min = || known.iter().copied().fold(f64::INFINITY, f64::min);
        let max = || known.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        match self {
            Self::Average => sum() / count,
            Self::Sum => sum(),
            Self::Min => min(),
            Self::Max => max(),
            Self::Median => {
                let sorted = sorted(known);
                let middle = sorted.len() / 2;
                let above = sorted[middle];
                if sorted.len() % 2 == 1 { above } else { f64::midpoint(sorted[middle - 1], above) }
            }
            Self::Difference => first - known.iter().skip(1).sum::<f64>(),
            Self::Deviation => {
                let mean = sum() / count;
                let squares = known.iter().map(|value| (value - mean).powi(2));
                (squares.sum::<f64>() / count).sqrt()
            }
            Self::Range => max() - min(),
            Self::Product => known.iter().product(),
            Self::Count => count,
            Self::First => *first,
            Self::Last => *last,
            Self::Percentile(percent) => percentile(known, percent),
        }
    }

    /// Returns the aggregate of numbers; missing numbers are skipped.
    pub(super) fn of_some(self, values: impl Iterator<Item = f64>) -> f64 {
        let mut is_whole = true;
        let known = values.inspect(|value| is_whole &= !value.is_nan());
        let known: Vec<_> = known.filter(|value| !value.is_nan()).collect();
        // A product without the missing factors would be wrong.
        if self == Self::Product && !is_whole { NULL } else { self.of(&known) }
    }
}

fn sorted(known: &[f64]) -> Vec<f64> {
    let mut sorted = known.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted
}

/// Returns Graphite's percentile without interpolation: the number whose rank is `percent` of one
/// more than the count, rounded up.
fn percentile(known: &[f64], percent: f64) -> f64 {
    let sorted = sorted(known);
    let rank = (percent / 100.0 * (sorted.len() + 1) as f64).ceil() as usize;
    sorted[rank.clamp(1, sorted.len()) - 1]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn aggregates_are_those_of_graphite() {
        let numbers = [4.0, 1.0, 3.0, 2.0];
        for (name, expected) in [
            ("average", 2.5),
            ("sum", 10.0),
            ("min", 1.0),
            ("max", 4.0),
            ("median", 2.5),
            ("diff", -2.0),
            ("stddev", 1.118_033_988_749_895),
            ("range", 3.0),
            ("multiply", 24.0),
            ("count", 4.0),
            ("first", 4.0),
            ("last", 2.0),
            ("p50", 3.0),
            ("p95", 4.0),
            ("p0", 1.0),
        ] {
            assert_eq!(Aggregation::named(name).unwrap().of(&numbers), expected, "{name}");
        }
        assert_eq!(Aggregation::Median.of(&[5.0]), 5.0);
        assert!(Aggregation::Sum.of(&[]).is_nan());
        assert_eq!(Aggregation::Count.of(&[]), 0.0);
        let error = Aggregation::named("mode").unwrap_err().to_string();
        assert!(error.contains("\"mode\" is not an aggregation: use average"), "{error}");
    }
}
