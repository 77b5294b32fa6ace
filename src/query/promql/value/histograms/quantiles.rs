//! Quantiles, fractions and variances of histograms, as in Prometheus.
//!
//! Within an exponential bucket, the logarithms of the observations are spread evenly, within the
//! zero bucket and custom buckets the observations. NaN observations count in no bucket. Must never
//! know: times, series.

use super::buckets::{RangeBucket, range_buckets};
use crate::{
    model::{CUSTOM_BOUNDS, Histogram},
    query::promql::value::numbers::Sum,
};

/// A quantile, and the influence of NaN observations on it.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Quantile {
    /// The quantile.
    pub(crate) value: f64,
    /// True when the histogram has NaN observations, which count as the largest.
    pub(crate) has_nan: bool,
}

/// Returns true when the histogram has observations of NaN, which are in no bucket.
pub(crate) fn has_unbucketed(histogram: &Histogram) -> bool {
    let in_buckets = || range_buckets(histogram).iter().map(|bucket| bucket.count).sum::<f64>();
    histogram.sum.is_nan() && in_buckets() < histogram.count
}

/// Returns a quantile.
pub(crate) fn quantile(q: f64, histogram: &Histogram) -> Quantile {
    let plain = |value| Quantile { value, has_nan: false };
    if q < 0.0 {
        return plain(f64::NEG_INFINITY);
    }
    if q > 1.0 {
        return plain(f64::INFINITY);
    }
    if histogram.count == 0.0 || q.is_nan() {
        return plain(f64::NAN);
    }
    let has_nan = has_unbucketed(histogram);
    let all = range_buckets(histogram);
    // The search from the nearer end is more exact; NaN observations are beyond the upper end.
    let is_forward = histogram.sum.is_nan() || q < 0.5;
    let rank = if is_forward { q * histogram.count } else { (1.0 - q) * histogram.count };
    let found = if is_forward { find(all.iter(), rank) } else { find(all.iter().rev(), rank) };
    let Some((bucket, count)) = found else { return Quantile { value: f64::NAN, has_nan } };
    let count = count.min(histogram.count);
    if count < rank && histogram.sum.is_nan() {
        return Quantile { value: f64::NAN, has_nan };
    }
    let is_custom = histogram.schema == CUSTOM_BOUNDS;
    if is_custom && bucket.lower == f64::NEG_INFINITY && bucket.upper <= 0.0 {
        return Quantile { value: bucket.upper, has_nan };
    }
    let bucket = bucket.spread(histogram);
    if is_custom && bucket.upper == f64::INFINITY {
        return Quantile { value: bucket.lower, has_nan };
    }
    let within = if is_forward { rank - (count - bucket.count) } else { count - rank };
    Quantile { value: value_within(&bucket, within / bucket.count, is_custom), has_nan }
}

/// Returns the bucket that contains a rank, and the count up to its end; otherwise the last one.
fn find<'a>(
    all: impl Iterator<Item = &'a RangeBucket>,
    rank: f64,
) -> Option<(RangeBucket, f64)> {
    let (mut count, mut last) = (0.0, None);
    for bucket in all {
        count += bucket.count;
        last = Some((*bucket, count));
        if count >= rank {
            break;
        }
    }
    last
}

/// Returns the value at a part of a bucket.
fn value_within(bucket: &RangeBucket, part: f64, is_custom: bool) -> f64 {
    let RangeBucket { lower, upper, .. } = *bucket;
    if is_custom || (lower <= 0.0 && upper >= 0.0) {
        return lower + (upper - lower) * part;
    }
    let (log_lower, log_upper) = (lower.abs().log2(), upper.abs().log2());
    if lower > 0.0 {
        (log_lower + (log_upper - log_lower) * part).exp2()
    } else {
        -(log_upper + (log_lower - log_upper) * (1.0 - part)).exp2()
    }
}

/// Returns the part of a bucket's observations below a value inside of the bucket.
pub(super) fn part_below(bucket: &RangeBucket, value: f64, is_linear: bool) -> f64 {
    let RangeBucket { lower, upper, .. } = *bucket;
    if is_linear {
        return (value - lower) / (upper - lower);
    }
    let (log_lower, log_upper) = (lower.abs().log2(), upper.abs().log2());
    let log = value.abs().log2();
    if value > 0.0 {
        (log - log_lower) / (log_upper - log_lower)
    } else {
        1.0 - (log - log_upper) / (log_lower - log_upper)
    }
}

/// Returns the fraction of the observations between two values.
pub(crate) fn fraction(low: f64, high: f64, histogram: &Histogram) -> f64 {
    if histogram.count == 0.0 || low.is_nan() || high.is_nan() || histogram.count.is_nan() {
        return f64::NAN;
    }
    if low >= high {
        return 0.0;
    }
    let all = range_buckets(histogram);
    let in_buckets: f64 = all.iter().map(|bucket| bucket.count).sum();
    let rank = |value: f64| rank_of(value, &all, histogram).unwrap_or(in_buckets);
    (rank(high) - rank(low)) / histogram.count
}

/// Returns the number of observations below a value; `None` above all buckets.
fn rank_of(value: f64, all: &[RangeBucket], histogram: &Histogram) -> Option<f64> {
    let is_custom = histogram.schema == CUSTOM_BOUNDS;
    let mut below = 0.0;
    for bucket in all {
        let is_zero = bucket.lower <= 0.0 && bucket.upper >= 0.0;
        let bucket = bucket.spread(histogram);
        if bucket.lower >= value {
            return Some(below);
        }
        if bucket.upper > value {
            // A bucket without an upper bound is above, one without a lower bound below.
            if bucket.upper == f64::INFINITY && is_custom {
                return Some(below);
            }
            if bucket.lower == f64::NEG_INFINITY && is_custom {
                return Some(below + bucket.count);
            }
            return Some(below + bucket.count * part_below(&bucket, value, is_custom || is_zero));
        }
        below += bucket.count;
    }
    None
}

/// Returns the population variance, estimated from the middle of each bucket: the arithmetic mean
/// of custom bounds, zero for the zero bucket, and otherwise the geometric mean of the bounds.
pub(crate) fn variance(histogram: &Histogram) -> f64 {
    let mean = histogram.sum / histogram.count;
    let is_custom = histogram.schema == CUSTOM_BOUNDS;
    let mut squares = Sum::default();
    for bucket in range_buckets(histogram) {
        let middle = match bucket {
            _ if is_custom => f64::midpoint(bucket.lower, bucket.upper),
            RangeBucket { lower: ..=0.0, upper: 0.0.., .. } => 0.0,
            _ => (bucket.upper * bucket.lower).sqrt().copysign(bucket.upper),
        };
        let delta = middle - mean;
        squares.add(bucket.count * delta * delta);
    }
    squares.total() / histogram.count
}
