//! Histograms of single observations.

use super::{Bucket, Histogram, SKETCH_SCHEMA, ZERO_THRESHOLD, bounds::bucket_index};

impl Histogram {
    /// Returns a histogram for observations of which quantiles are at most 0.55 % off.
    pub fn sketch() -> Self {
        Self { zero_threshold: ZERO_THRESHOLD, ..Self::empty(SKETCH_SCHEMA) }
    }

    /// Adds an observation that counts `weight` times to exponential buckets. NaN changes only the
    /// count and the sum.
    pub fn observe(&mut self, value: f64, weight: f64) {
        self.count += weight;
        self.sum += value * weight;
        if value.is_nan() {
            return;
        }
        if value.abs() <= self.zero_threshold || value == 0.0 {
            self.zero_count += weight;
            return;
        }
        let side = if value > 0.0 { &mut self.positive } else { &mut self.negative };
        let index = bucket_index(self.schema, value.abs());
        match side.binary_search_by_key(&index, |bucket| bucket.index) {
            Ok(at) => side[at].count += weight,
            Err(at) => side.insert(at, Bucket { index, count: weight }),
        }
        self.limit_stored();
    }
}
