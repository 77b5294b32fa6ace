//! The buckets of a histogram with their bounds, in ascending order.

use super::{
    Bucket, Histogram,
    bounds::{lower_bound, upper_bound},
};

/// A bucket with its bounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct BucketRange {
    /// The lower bound.
    pub lower: f64,
    /// The upper bound.
    pub upper: f64,
    /// True if observations equal to the lower bound are in the bucket.
    pub includes_lower: bool,
    /// True if observations equal to the upper bound are in the bucket.
    pub includes_upper: bool,
    /// The number of observations.
    pub count: f64,
}

impl Histogram {
    /// Returns all buckets with observations in ascending order: negative buckets, the zero bucket,
    /// positive buckets.
    pub fn ranges(&self) -> impl DoubleEndedIterator<Item = BucketRange> {
        let negative = self.negative.iter().rev().map(|bucket| self.negative_range(bucket));
        let zero = (self.zero_count != 0.0).then_some(self.zero_range());
        let positive = self.positive.iter().map(|bucket| self.positive_range(bucket));
        negative.chain(zero).chain(positive).filter(|range| range.count != 0.0)
    }

    pub(crate) fn zero_range(&self) -> BucketRange {
        BucketRange {
            lower: -self.zero_threshold,
            upper: self.zero_threshold,
            includes_lower: true,
            includes_upper: true,
            count: self.zero_count,
        }
    }

    pub(crate) fn positive_range(&self, bucket: &Bucket) -> BucketRange {
        let (lower, upper) = self.bounds(bucket.index);
        // The first bucket of custom bounds includes minus infinity.
        let includes_lower = lower == f64::NEG_INFINITY;
        BucketRange { lower, upper, includes_lower, includes_upper: true, count: bucket.count }
    }

    pub(crate) fn negative_range(&self, bucket: &Bucket) -> BucketRange {
        BucketRange {
            lower: -upper_bound(self.schema, bucket.index),
            upper: -lower_bound(self.schema, bucket.index),
            includes_lower: true,
            includes_upper: false,
            count: bucket.count,
        }
    }

    /// Returns the lower and the upper bound of a positive or custom bucket.
    pub fn bounds(&self, index: i32) -> (f64, f64) {
        if !self.is_custom() {
            return (lower_bound(self.schema, index), upper_bound(self.schema, index));
        }
        let bound = |index: i64| usize::try_from(index).ok();
        let below = bound(i64::from(index) - 1).and_then(|at| self.custom_bounds.get(at));
        let above = bound(i64::from(index)).and_then(|at| self.custom_bounds.get(at));
        (below.copied().unwrap_or(f64::NEG_INFINITY), above.copied().unwrap_or(f64::INFINITY))
    }
}
