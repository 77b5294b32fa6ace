//! Resets of counters that are histograms.

use super::{Bucket, Histogram, ResetHint};

impl Histogram {
    /// Returns true if the counter was reset between `previous` and this histogram, as in
    /// Prometheus: a hint decides; otherwise a count that decreased, a finer schema, or a narrower
    /// zero bucket means a reset.
    pub fn detect_reset(&self, previous: &Self) -> bool {
        match self.hint {
            ResetHint::Reset => return true,
            ResetHint::NotReset => return false,
            ResetHint::Unknown | ResetHint::Gauge => {}
        }
        if self.count < previous.count || self.is_custom() != previous.is_custom() {
            return true;
        }
        let mut previous = previous.clone();
        if self.is_custom() {
            if self.custom_bounds == previous.custom_bounds {
                return decreased(&self.positive, &previous.positive);
            }
            let mut current = self.clone();
            current.intersect_bounds(&mut previous);
            return decreased(&current.positive, &previous.positive);
        }
        if self.schema > previous.schema || self.zero_threshold < previous.zero_threshold {
            return true;
        }
        let (zero_count, threshold) = previous.wider_zero(self.zero_threshold);
        if threshold != self.zero_threshold || self.zero_count < zero_count {
            return true;
        }
        if threshold != previous.zero_threshold {
            previous.widen_zero(threshold);
        }
        previous.lower_schema(self.schema);
        decreased(&self.positive, &previous.positive)
            || decreased(&self.negative, &previous.negative)
    }
}

/// Returns true if a bucket has fewer observations than before.
fn decreased(side: &[Bucket], previous: &[Bucket]) -> bool {
    let mut buckets = side.iter().peekable();
    previous.iter().any(|before| {
        while buckets.next_if(|bucket| bucket.index < before.index).is_some() {}
        let count = buckets.peek().filter(|bucket| bucket.index == before.index);
        count.map_or(0.0, |bucket| bucket.count) < before.count
    })
}
