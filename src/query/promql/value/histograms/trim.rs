//! The operators `</` and `>/`: histograms without the observations above or below a number.
//!
//! A bucket that contains the number keeps the part that its spread of observations suggests; a
//! bucket without a bound on the far side is dropped. The sum is estimated from the middle of each
//! part. Must never know: times, series.

use super::{
    buckets::{RangeBucket, bucket_of_negative, bucket_of_positive, zero_bucket},
    quantiles::part_below,
};
use crate::model::{Bucket, CUSTOM_BOUNDS, Histogram};

/// The kept part of a bucket: its count, and the middle of its observations.
#[derive(Debug, Clone, Copy)]
struct Kept {
    count: f64,
    middle: f64,
}

const NOTHING: Kept = Kept { count: 0.0, middle: 0.0 };

/// Returns the observations below a number.
pub(crate) fn trimmed_below(histogram: &Histogram, limit: f64) -> Histogram {
    trimmed(histogram, |bucket| part(bucket, histogram, |spread, is_linear| {
        let RangeBucket { lower, upper, count, .. } = *spread;
        if upper <= limit {
            return Kept { count, middle: middle(lower, upper, is_linear) };
        }
        if lower >= limit || upper == f64::INFINITY || limit.is_nan() {
            return NOTHING;
        }
        if lower == f64::NEG_INFINITY {
            return Kept { count, middle: limit };
        }
        let part = part_below(spread, limit, is_linear);
        Kept { count: count * part, middle: middle(lower, limit, is_linear) }
    }))
}

/// Returns the observations above a number.
pub(crate) fn trimmed_above(histogram: &Histogram, limit: f64) -> Histogram {
    trimmed(histogram, |bucket| {
        if bucket.lower == f64::NEG_INFINITY
            && (bucket.upper == f64::INFINITY || limit < 0.0)
            && limit > f64::NEG_INFINITY
        {
            return NOTHING;
        }
        part(bucket, histogram, |spread, is_linear| {
            let RangeBucket { lower, upper, count, .. } = *spread;
            if lower >= limit {
                return Kept { count, middle: middle(lower, upper, is_linear) };
            }
            if upper <= limit || lower == f64::NEG_INFINITY || limit.is_nan() {
                return NOTHING;
            }
            if upper == f64::INFINITY {
                return Kept { count, middle: limit };
            }
            let part = 1.0 - part_below(spread, limit, is_linear);
            Kept { count: count * part, middle: middle(limit, upper, is_linear) }
        })
    })
}

fn part(
    bucket: &RangeBucket,
    histogram: &Histogram,
    keep: impl Fn(&RangeBucket, bool) -> Kept,
) -> Kept {
    let is_zero = bucket.lower <= 0.0 && bucket.upper >= 0.0;
    keep(&bucket.spread(histogram), is_zero || histogram.schema == CUSTOM_BOUNDS)
}

/// Returns the middle of two bounds; with an infinite bound, the other one.
fn middle(lower: f64, upper: f64, is_linear: bool) -> f64 {
    match (lower.is_finite(), upper.is_finite()) {
        (true, false) => lower,
        (false, true) => upper,
        (false, false) => 0.0,
        (true, true) if is_linear => f64::midpoint(lower, upper),
        (true, true) => (lower * upper).sqrt().copysign(upper),
    }
}

fn trimmed(histogram: &Histogram, keep: impl Fn(&RangeBucket) -> Kept) -> Histogram {
    let (mut count, mut sum, mut is_changed) = (0.0, 0.0, false);
    let mut kept = |bucket: &RangeBucket| {
        let kept = if bucket.count == 0.0 { NOTHING } else { keep(bucket) };
        is_changed |= kept.count.to_bits() != bucket.count.to_bits();
        count += kept.count;
        sum += kept.count * kept.middle;
        kept.count
    };
    let buckets = |all: &[Bucket], kept: &mut dyn FnMut(&Bucket) -> f64| {
        let all = all.iter().map(|bucket| Bucket { index: bucket.index, count: kept(bucket) });
        all.filter(|bucket| bucket.count != 0.0).collect()
    };
    let negative =
        buckets(&histogram.negative, &mut |bucket| kept(&bucket_of_negative(histogram, bucket)));
    let zero_count = kept(&zero_bucket(histogram));
    let positive =
        buckets(&histogram.positive, &mut |bucket| kept(&bucket_of_positive(histogram, bucket)));
    if !is_changed {
        return histogram.clone();
    }
    Histogram { count, sum, zero_count, negative, positive, ..histogram.clone() }
}
