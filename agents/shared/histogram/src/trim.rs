//! Histograms without the observations below or above a number.
//!
//! A bucket that contains the number keeps the part that its spread of observations suggests, or
//! nothing when the kept side has no bound. The sum is estimated from the middle of each part.

use super::{Bucket, BucketRange, Histogram};

/// The kept part of a bucket: its count, and the middle of its observations.
#[derive(Debug, Clone, Copy)]
struct Kept {
    count: f64,
    middle: f64,
}

const NOTHING: Kept = Kept { count: 0.0, middle: 0.0 };

impl Histogram {
    /// Returns the observations up to a number.
    #[must_use]
    pub fn trimmed_above(&self, limit: f64) -> Self {
        self.trimmed(|range| {
            let BucketRange { lower, upper, count, .. } = self.narrowed(range);
            let is_linear = self.is_linear(&range);
            if upper <= limit {
                Kept { count, middle: middle(lower, upper, is_linear) }
            } else if lower >= limit || upper == f64::INFINITY || limit.is_nan() {
                NOTHING
            } else if lower == f64::NEG_INFINITY {
                Kept { count, middle: limit }
            } else {
                let share = self.share(&self.narrowed(range), limit);
                Kept { count: count * share, middle: middle(lower, limit, is_linear) }
            }
        })
    }

    /// Returns the observations from a number on.
    #[must_use]
    pub fn trimmed_below(&self, limit: f64) -> Self {
        self.trimmed(|range| {
            let has_no_bounds = range.upper == f64::INFINITY && limit > f64::NEG_INFINITY;
            if range.lower == f64::NEG_INFINITY
                && (has_no_bounds || (f64::MIN..0.0).contains(&limit))
            {
                return NOTHING;
            }
            let BucketRange { lower, upper, count, .. } = self.narrowed(range);
            let is_linear = self.is_linear(&range);
            if lower >= limit {
                Kept { count, middle: middle(lower, upper, is_linear) }
            } else if upper <= limit || lower == f64::NEG_INFINITY || limit.is_nan() {
                NOTHING
            } else if upper == f64::INFINITY {
                Kept { count, middle: limit }
            } else {
                let share = 1.0 - self.share(&self.narrowed(range), limit);
                Kept { count: count * share, middle: middle(limit, upper, is_linear) }
            }
        })
    }

    fn trimmed(&self, keep: impl Fn(BucketRange) -> Kept) -> Self {
        let (mut count, mut sum, mut is_changed) = (0.0, 0.0, false);
        let mut kept = |range: BucketRange| {
            let kept = if range.count == 0.0 { NOTHING } else { keep(range) };
            is_changed |= kept.count.to_bits() != range.count.to_bits();
            count += kept.count;
            if kept.count != 0.0 {
                sum += kept.count * kept.middle;
            }
            kept.count
        };
        let mut out = self.clone();
        for (bucket, kept_bucket) in self.negative.iter().zip(&mut out.negative) {
            kept_bucket.count = kept(self.negative_range(bucket));
        }
        out.zero_count = kept(self.zero_range());
        for (bucket, kept_bucket) in self.positive.iter().zip(&mut out.positive) {
            kept_bucket.count = kept(self.positive_range(bucket));
        }
        if is_changed {
            (out.count, out.sum) = (count, sum);
            let is_kept = |bucket: &Bucket| bucket.count != 0.0;
            out.positive.retain(is_kept);
            out.negative.retain(is_kept);
        }
        out
    }
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trimming_splits_buckets_and_estimates_the_sum() {
        let mut histogram = Histogram { zero_threshold: 0.5, ..Histogram::empty(0) };
        histogram.zero_count = 2.0;
        histogram.positive = vec![Bucket { index: 0, count: 10.0 }];
        (histogram.count, histogram.sum) = (12.0, 8.0);
        assert_eq!(histogram.trimmed_below(0.0), histogram, "all observations are positive");
        let upper = histogram.trimmed_below(0.25);
        assert_eq!((upper.count, upper.zero_count), (11.0, 1.0));
        let lower = histogram.trimmed_above(0.25);
        assert_eq!((lower.count, lower.sum, lower.positive.len()), (1.0, 0.125, 0));
        assert_eq!(histogram.trimmed_above(f64::NEG_INFINITY).count, 0.0);
    }
}
