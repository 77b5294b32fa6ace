//! The distribution of a line of histograms: the same buckets for all slots.

use serde::{Deserialize, Serialize};

use crate::{
    model::Histogram,
    query::{Budget, QueryError, histograms::merge_all},
};

/// Maximum number of buckets on each side of zero; more could not be drawn.
const BUCKETS_MAX: usize = 64;

/// The distribution of a line.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    /// The lower and the upper bound of each bucket, ascending; `None` for an infinite bound.
    pub bounds: Vec<(Option<f64>, Option<f64>)>,
    /// The number of observations in each bucket, by slot; empty without observations.
    pub counts: Vec<Vec<f64>>,
}

impl Distribution {
    /// Returns the distribution of the histograms of a line, in the finest buckets that they share.
    ///
    /// # Errors
    /// When the query's memory is used up.
    pub(crate) fn new(
        histograms: &[Option<Histogram>],
        budget: &Budget,
    ) -> Result<Self, QueryError> {
        let Some(mut all) = merge_all(histograms) else {
            return Ok(Self { bounds: Vec::new(), counts: vec![Vec::new(); histograms.len()] });
        };
        all.limit_buckets(BUCKETS_MAX);
        let bounds: Vec<_> = all.ranges().map(|range| (range.lower, range.upper)).collect();
        let filled = histograms.iter().flatten().count();
        budget.reserve(filled * bounds.len() * size_of::<f64>())?;
        let counts = |histogram: &Option<Histogram>| {
            let Some(histogram) = histogram else { return Vec::new() };
            let mut counts = vec![0.0; bounds.len()];
            for range in histogram.ranges() {
                let index = bounds.partition_point(|(_, upper)| *upper < range.upper);
                if let Some(count) = counts.get_mut(index) {
                    *count += range.count;
                }
            }
            counts
        };
        let counts = histograms.iter().map(counts).collect();
        let finite = |bound: f64| bound.is_finite().then_some(bound);
        let bounds = bounds.iter().map(|(lower, upper)| (finite(*lower), finite(*upper))).collect();
        Ok(Self { bounds, counts })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sketch(values: &[f64]) -> Histogram {
        let mut histogram = Histogram::sketch();
        for value in values {
            histogram.observe(*value, 1.0);
        }
        histogram
    }

    #[test]
    fn every_observation_is_in_the_bucket_that_contains_it() {
        let mut coarse = sketch(&[0.01, 40.0]);
        coarse.lower_schema(0);
        let line = [Some(sketch(&[0.0, 0.3, 0.3, 2.0])), None, Some(coarse)];
        let Distribution { bounds, counts } = Distribution::new(&line, &Budget::UNLIMITED).unwrap();
        assert!(counts[1].is_empty());
        let count_around = |slot: usize, value: f64| {
            let is_around = |(lower, upper): &(Option<f64>, Option<f64>)| {
                lower.is_none_or(|lower| lower < value) && upper.is_none_or(|upper| value <= upper)
            };
            counts[slot][bounds.iter().position(is_around).unwrap()]
        };
        assert_eq!([0.0, 0.3, 2.0].map(|value| count_around(0, value)), [1.0, 2.0, 1.0]);
        assert_eq!([0.01, 40.0].map(|value| count_around(2, value)), [1.0, 1.0]);
        assert_eq!(counts[0].iter().sum::<f64>(), 4.0);
    }

    #[test]
    fn many_buckets_become_few() {
        let values: Vec<_> = (0..2000).map(|power| 1.02f64.powi(power - 1000)).collect();
        let line = [Some(sketch(&values))];
        let Distribution { bounds, counts } = Distribution::new(&line, &Budget::UNLIMITED).unwrap();
        assert!(bounds.len() <= BUCKETS_MAX + 1, "{}", bounds.len());
        assert_eq!(counts[0].iter().sum::<f64>(), 2000.0);
    }
}
