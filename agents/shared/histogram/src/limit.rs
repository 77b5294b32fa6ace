//! Coarser schemas, and the limit of the number of buckets.
//!
//! The schema of a merge is the finest one at which the buckets fit. Adding histograms never makes
//! the number of buckets smaller, so the order of merges does not matter, with one exception: a
//! wider zero bucket that takes up buckets before they count towards the limit.

use super::{BUCKETS_MAX, Bucket, Histogram, SCHEMA_MIN};

/// Returns the index of a bucket after `steps` halvings of the resolution.
pub(crate) fn coarser_index(index: i32, steps: i8) -> i32 {
    (((i64::from(index) - 1) >> steps) + 1) as i32
}

/// Adds up the buckets of one side until its schema is `steps` coarser.
pub(crate) fn lower_side(side: &mut Vec<Bucket>, steps: i8) {
    for bucket in side.iter_mut() {
        bucket.index = coarser_index(bucket.index, steps);
    }
    side.dedup_by(|later, kept| {
        let is_same = later.index == kept.index;
        kept.count += if is_same { later.count } else { 0.0 };
        is_same
    });
}

/// Returns the number of different buckets after `steps` halvings of the resolution.
fn coarser_len(side: &[Bucket], steps: i8) -> usize {
    side.chunk_by(|left, right| {
        coarser_index(left.index, steps) == coarser_index(right.index, steps)
    })
    .count()
}

impl Histogram {
    /// Lowers the schema until each side has at most `buckets_max` buckets. Returns true if the
    /// schema changed. At the coarsest schema, a side has at most 130 buckets for numbers of 64
    /// bits. Custom bounds do not change.
    pub fn limit_buckets(&mut self, buckets_max: usize) -> bool {
        let exceeds = |side: &[Bucket], steps| coarser_len(side, steps) > buckets_max;
        let is_large = self.positive.len().max(self.negative.len()) > buckets_max;
        if self.is_custom() || !is_large {
            return false;
        }
        let mut steps = 0;
        while self.schema - steps > SCHEMA_MIN
            && (exceeds(&self.positive, steps) || exceeds(&self.negative, steps))
        {
            steps += 1;
        }
        self.lower_schema(self.schema - steps);
        steps > 0
    }

    /// Limits the number of buckets of a stored histogram to [`BUCKETS_MAX`].
    pub(crate) fn limit_stored(&mut self) {
        self.limit_buckets(BUCKETS_MAX);
    }
}
