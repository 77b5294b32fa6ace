//! Histograms without observations, and the memory of histograms.

use super::{Bucket, Histogram};

impl Histogram {
    /// Returns a histogram of the same form without observations.
    pub fn emptied(&self) -> Self {
        let custom_bounds = self.custom_bounds.clone();
        Self { zero_threshold: self.zero_threshold, custom_bounds, ..Self::empty(self.schema) }
    }

    /// Returns true when no count and no sum differs from 0.
    pub fn is_empty(&self) -> bool {
        let numbers = [self.count, self.sum, self.zero_count];
        let mut buckets = self.positive.iter().chain(&self.negative);
        numbers.iter().all(|number| *number == 0.0) && buckets.all(|bucket| bucket.count == 0.0)
    }

    /// Returns the approximate bytes in memory, which are more than the compact bytes.
    pub fn bytes(&self) -> usize {
        let buckets = self.positive.len() + self.negative.len();
        size_of::<Self>() + buckets * size_of::<Bucket>() + size_of_val(&self.custom_bounds[..])
    }
}
