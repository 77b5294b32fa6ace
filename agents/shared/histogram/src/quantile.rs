//! Quantiles, and shares of observations between two numbers, as in Prometheus: linear
//! interpolation inside custom buckets and the zero bucket, exponential interpolation elsewhere.

use super::{BucketRange, Histogram};

impl Histogram {
    /// Returns the value below which the share `q` of the observations lies. Below 0 and above 1,
    /// the result is infinite; without observations, it is NaN.
    pub fn quantile(&self, q: f64) -> f64 {
        if q < 0.0 {
            return f64::NEG_INFINITY;
        }
        if q > 1.0 {
            return f64::INFINITY;
        }
        if self.count == 0.0 || q.is_nan() {
            return f64::NAN;
        }
        // From the nearer end, so that fewer counts are added up. NaN is beyond the last bucket.
        let is_forward = self.sum.is_nan() || q < 0.5;
        let rank = if is_forward { q * self.count } else { (1.0 - q) * self.count };
        let (mut count, mut found) = (0.0, None);
        let mut visit = |range: BucketRange| {
            count += range.count;
            found = Some(range);
            count >= rank
        };
        if is_forward {
            self.ranges().any(&mut visit);
        } else {
            self.ranges().rev().any(&mut visit);
        }
        let Some(range) = found else { return f64::NAN };
        let count = count.min(self.count);
        if count < rank {
            return if self.sum.is_nan() { f64::NAN } else { range.upper };
        }
        let rank = if is_forward { rank - (count - range.count) } else { count - rank };
        self.inside(&self.narrowed(range), rank / range.count)
    }

    /// Returns the range in which the observations of a bucket can be: the zero bucket of
    /// a histogram without negative buckets begins at 0, and so does the first custom bucket.
    pub(crate) fn narrowed(&self, mut range: BucketRange) -> BucketRange {
        if self.is_custom() {
            if range.lower == f64::NEG_INFINITY && range.upper > 0.0 {
                range.lower = 0.0;
            }
        } else if range.lower < 0.0 && range.upper > 0.0 {
            match (self.negative.is_empty(), self.positive.is_empty()) {
                (true, false) => range.lower = 0.0,
                (false, true) => range.upper = 0.0,
                _ => {}
            }
        }
        range
    }

    pub(crate) fn is_linear(&self, range: &BucketRange) -> bool {
        self.is_custom() || (range.lower <= 0.0 && range.upper >= 0.0)
    }

    /// Returns the number at a share of a bucket.
    fn inside(&self, range: &BucketRange, share: f64) -> f64 {
        if self.is_custom() {
            if range.lower == f64::NEG_INFINITY {
                return range.upper;
            }
            if range.upper == f64::INFINITY {
                return range.lower;
            }
        }
        if self.is_linear(range) {
            return range.lower + (range.upper - range.lower) * share;
        }
        let (lower, upper) = (range.lower.abs().log2(), range.upper.abs().log2());
        let at = (lower + (upper - lower) * share).exp2();
        if range.lower > 0.0 { at } else { -at }
    }

    /// Returns the share of the observations between two numbers. Without observations, it is NaN.
    pub fn fraction(&self, lower: f64, upper: f64) -> f64 {
        if self.count == 0.0 || lower.is_nan() || upper.is_nan() {
            return f64::NAN;
        }
        if lower >= upper {
            return 0.0;
        }
        (self.rank(upper) - self.rank(lower)) / self.count
    }

    /// Returns the estimated number of observations up to a number.
    fn rank(&self, value: f64) -> f64 {
        let mut rank = 0.0;
        for range in self.ranges() {
            let range = self.narrowed(range);
            if range.lower >= value {
                return rank;
            }
            if range.upper > value {
                return rank + range.count * self.share(&range, value);
            }
            rank += range.count;
        }
        // Observations of NaN are in no bucket, and above all numbers.
        if self.sum.is_nan() { rank } else { self.count }
    }

    /// Returns the share of a bucket's observations up to a number inside the bucket.
    pub(crate) fn share(&self, range: &BucketRange, value: f64) -> f64 {
        if range.lower == f64::NEG_INFINITY {
            return 1.0;
        }
        if self.is_linear(range) {
            return (value - range.lower) / (range.upper - range.lower);
        }
        let logs = [range.lower, range.upper, value].map(|number| number.abs().log2());
        (logs[2] - logs[0]) / (logs[1] - logs[0])
    }
}
