//! Zero buckets of different widths.

use super::{
    Bucket, Histogram,
    bounds::{bucket_index, lower_bound, upper_bound},
};

impl Histogram {
    /// Returns the count and the threshold of a zero bucket that is at least as wide as
    /// `threshold`. The threshold grows to the end of a bucket that it would divide.
    pub(crate) fn wider_zero(&self, threshold: f64) -> (f64, f64) {
        let mut wider = threshold;
        if threshold == self.zero_threshold {
            return (self.zero_count, threshold);
        }
        loop {
            let mut count = self.zero_count;
            let before = wider;
            for bucket in self.positive.iter().chain(&self.negative) {
                if lower_bound(self.schema, bucket.index) < wider && bucket.count != 0.0 {
                    count += bucket.count;
                    wider = wider.max(upper_bound(self.schema, bucket.index));
                }
            }
            if wider == before || wider == threshold {
                return (count, wider);
            }
        }
    }

    /// Moves sorted buckets that end inside the zero bucket into it.
    pub(crate) fn absorb_zero(&mut self) {
        let (schema, threshold) = (self.schema, self.zero_threshold);
        for side in [&mut self.positive, &mut self.negative] {
            let inside = |bucket: &Bucket| upper_bound(schema, bucket.index) <= threshold;
            if side.first().is_some_and(inside) {
                let end = side.partition_point(inside);
                self.zero_count += side.drain(..end).map(|bucket| bucket.count).sum::<f64>();
            }
        }
    }

    /// Moves the buckets inside a wider zero bucket into it.
    pub(crate) fn widen_zero(&mut self, threshold: f64) {
        let schema = self.schema;
        for side in [&mut self.positive, &mut self.negative] {
            let inside = |bucket: &Bucket| lower_bound(schema, bucket.index) < threshold;
            let moved: f64 = side.iter().filter(|bucket| inside(bucket)).map(|b| b.count).sum();
            self.zero_count += moved;
            side.retain(|bucket| !inside(bucket));
        }
        self.zero_threshold = threshold;
    }

    /// Makes the zero buckets of two histograms equally wide, as in Prometheus: as wide as the
    /// wider one, or up to the end of a bucket that this width would divide.
    pub(crate) fn reconcile_zero(&mut self, other: &mut Self) {
        while self.zero_threshold != other.zero_threshold {
            let (narrow, wide) = if self.zero_threshold < other.zero_threshold {
                (&mut *self, &*other)
            } else {
                (&mut *other, &*self)
            };
            let (_, threshold) = narrow.wider_zero(wide.zero_threshold);
            narrow.widen_zero(threshold);
        }
    }

    /// Rounds the threshold of the zero bucket up to a bound of the schema, if it is not `NaN`.
    pub(crate) fn round_zero(&mut self, threshold: f64) {
        if threshold > 0.0 && threshold.is_finite() {
            let bound = upper_bound(self.schema, bucket_index(self.schema, threshold));
            self.widen_zero(bound);
        } else if threshold == 0.0 {
            self.zero_threshold = 0.0;
        }
    }
}
