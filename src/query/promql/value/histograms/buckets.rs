//! The buckets of a histogram as ranges of values, in ascending order.
//!
//! Must never know: times, series.

use crate::model::{Bucket, CUSTOM_BOUNDS, Histogram};

/// A bucket with its bounds.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct RangeBucket {
    /// The lower bound.
    pub lower: f64,
    /// The upper bound.
    pub upper: f64,
    /// True when the lower bound belongs to the bucket.
    pub includes_lower: bool,
    /// True when the upper bound belongs to the bucket.
    pub includes_upper: bool,
    /// Number of observations.
    pub count: f64,
}

/// Returns the buckets with observations in ascending order: negative ones, the zero bucket,
/// positive ones.
pub fn range_buckets(histogram: &Histogram) -> Vec<RangeBucket> {
    let mut all = Vec::with_capacity(histogram.negative.len() + histogram.positive.len() + 1);
    let negative = histogram.negative.iter().rev();
    all.extend(negative.map(|bucket| bucket_of_negative(histogram, bucket)));
    all.push(zero_bucket(histogram));
    let positive = histogram.positive.iter();
    all.extend(positive.map(|bucket| bucket_of_positive(histogram, bucket)));
    all.retain(|bucket| bucket.count != 0.0);
    all
}

/// Returns the range of a bucket of negative values.
pub(super) fn bucket_of_negative(histogram: &Histogram, bucket: &Bucket) -> RangeBucket {
    let Bucket { index, count } = *bucket;
    let (lower, upper) = (-histogram.bound(index), -histogram.bound(index.saturating_sub(1)));
    RangeBucket { lower, upper, includes_lower: true, includes_upper: false, count }
}

/// Returns the zero bucket.
pub(super) fn zero_bucket(histogram: &Histogram) -> RangeBucket {
    RangeBucket {
        lower: -histogram.zero_threshold,
        upper: histogram.zero_threshold,
        includes_lower: true,
        includes_upper: true,
        count: histogram.zero_count,
    }
}

/// Returns the range of a bucket of positive values, or with custom bounds.
pub(super) fn bucket_of_positive(histogram: &Histogram, bucket: &Bucket) -> RangeBucket {
    let Bucket { index, count } = *bucket;
    let is_first = histogram.schema == CUSTOM_BOUNDS && index == 0;
    let lower = if is_first { f64::NEG_INFINITY } else { histogram.bound(index.saturating_sub(1)) };
    let upper = histogram.bound(index);
    RangeBucket { lower, upper, includes_lower: is_first, includes_upper: true, count }
}

impl RangeBucket {
    /// Returns the range over which the observations are spread: the zero bucket of a histogram
    /// with observations on one side only ends at zero, and a first custom bucket begins there.
    pub(super) fn spread(self, histogram: &Histogram) -> Self {
        if histogram.schema == CUSTOM_BOUNDS {
            let is_first = self.lower == f64::NEG_INFINITY && self.upper > 0.0;
            return if is_first { Self { lower: 0.0, ..self } } else { self };
        }
        if self.lower > 0.0 || self.upper < 0.0 {
            return self;
        }
        match (histogram.negative.is_empty(), histogram.positive.is_empty()) {
            (true, false) => Self { lower: 0.0, ..self },
            (false, true) => Self { upper: 0.0, ..self },
            (true, true) | (false, false) => self,
        }
    }
}
