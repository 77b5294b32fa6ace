//! Merges for storage: a commutative monoid of all histograms.

use std::sync::Arc;

use super::{Bucket, CUSTOM_BOUNDS, Histogram};

impl Histogram {
    /// Merges another histogram. The order of merges changes only the last bits of sums and of
    /// counts that are no integers; see `limit` for an exception.
    ///
    /// The schema is the coarser one, or coarser if there are too many buckets. When schemas or
    /// zero buckets differ, the zero bucket ends at a bound of the schema. Custom bounds become the
    /// common ones. Exponential buckets and custom bounds have no common bounds: count and sum
    /// stay exact, and one bucket contains all observations.
    pub fn merge(&mut self, other: &Self) {
        if !self.is_custom() && !other.is_custom() {
            self.merge_exponential(other);
        } else {
            let mut other = other.clone();
            if !self.is_custom() || !other.is_custom() {
                self.lose_bounds();
                other.lose_bounds();
            }
            self.intersect_bounds(&mut other);
            self.combine_aligned(&other, 1.0);
        }
    }

    fn merge_exponential(&mut self, other: &Self) {
        if (self.schema, self.zero_threshold) == (other.schema, other.zero_threshold) {
            self.combine_aligned(other, 1.0);
        } else {
            let mut other = other.clone();
            let schema = self.schema.min(other.schema);
            let threshold = self.zero_threshold.max(other.zero_threshold);
            for histogram in [&mut *self, &mut other] {
                histogram.lower_schema(schema);
                histogram.round_zero(threshold);
            }
            self.combine_aligned(&other, 1.0);
        }
        let schema = self.schema;
        self.limit_stored();
        if self.schema < schema {
            // The zero bucket of a coarser schema ends at one of its bounds.
            self.round_zero(self.zero_threshold);
        }
    }

    /// Replaces the buckets with one that contains all observations.
    fn lose_bounds(&mut self) {
        let observations =
            self.zero_count + side_count(&self.positive) + side_count(&self.negative);
        self.zero_threshold = 0.0;
        self.zero_count = 0.0;
        self.negative.clear();
        self.positive.clear();
        self.positive.push(Bucket { index: 0, count: observations });
        self.custom_bounds = Arc::default();
        self.schema = CUSTOM_BOUNDS;
        self.normalize();
    }
}

fn side_count(side: &[Bucket]) -> f64 {
    side.iter().map(|bucket| bucket.count).sum()
}
