//! Checks of histograms from senders.

use thiserror::Error;

use super::{BUCKETS_MAX, Bucket, CUSTOM_BOUNDS, Histogram, SCHEMA_MAX, SCHEMA_MIN, bucket_index};

/// The maximum number of buckets on one side of a histogram that is received. More than this is
/// refused; more than [`super::BUCKETS_MAX`] makes the schema coarser.
pub(crate) const SPAN_BUCKETS_MAX: usize = 16 * 1024;

/// The schemas beyond [`SCHEMA_MAX`] that are lowered, as in Prometheus.
const FINE_SCHEMA_MAX: i32 = 52;

/// The relative difference between a count and the sum of the buckets that is attributed to
/// rounding, if the counts are no integers.
const COUNT_TOLERANCE: f64 = 1e-6;

/// The reason why a histogram of a sender is refused.
#[derive(Debug, Clone, Copy, PartialEq, Error)]
pub enum HistogramFault {
    /// The schema does not exist.
    #[error("schema {0} does not exist; use -4 to 8, or -53 for custom bounds")]
    Schema(i32),
    /// A count is negative, infinite or NaN.
    #[error("a count is {0}; counts must be numbers of at least 0")]
    Count(f64),
    /// The threshold of the zero bucket is negative, infinite or NaN.
    #[error("the zero threshold is {0}; it must be a number of at least 0")]
    ZeroThreshold(f64),
    /// A span begins before the end of the previous span.
    #[error("a span begins before the end of the previous one, or beyond all numbers")]
    Spans,
    /// The spans have more or fewer buckets than there are counts.
    #[error("the spans do not have one bucket per count")]
    SpanLengths,
    /// There are more buckets than a request may contain.
    #[error("more than {} buckets; use a coarser schema", SPAN_BUCKETS_MAX)]
    TooManyBuckets,
    /// A bucket that is not empty begins beyond the largest number.
    #[error("bucket {0} is beyond all numbers; check its offset and the schema")]
    BeyondNumbers(i32),
    /// There are more custom bounds than can be stored.
    #[error("more than {BUCKETS_MAX} custom bounds; use fewer")]
    TooManyBounds,
    /// The custom bounds are not in ascending order, infinite or NaN.
    #[error("custom bounds must be finite and in ascending order")]
    Bounds,
    /// A histogram with custom bounds has a zero bucket or negative buckets, or one with
    /// exponential buckets has custom bounds.
    #[error("custom bounds exclude a zero bucket, negative buckets and schemas other than -53")]
    MixedBuckets,
    /// A bucket has no bound.
    #[error("a bucket is beyond the custom bounds")]
    BeyondBounds,
    /// The count is not the sum of the buckets.
    #[error("the count is {count}, but the buckets contain {buckets}")]
    Sum {
        /// The count of all observations.
        count: f64,
        /// The sum of all buckets.
        buckets: f64,
    },
}

impl Histogram {
    /// Checks a histogram, and makes it what is stored: sorted buckets without empty ones, a schema
    /// of at most [`SCHEMA_MAX`] and at most [`BUCKETS_MAX`] buckets on each side.
    ///
    /// `schema` is the sender's schema, which can be finer than the type of [`Histogram`] allows.
    pub fn checked(self, schema: i32) -> Result<Self, HistogramFault> {
        self.check_total()?;
        self.checked_parts(schema)
    }

    /// Checks and prepares a histogram like [`Self::checked`], except that the count may differ
    /// from the sum of the buckets. Prometheus accepts this from senders of floats, because their
    /// rounding is unknown.
    pub fn checked_parts(mut self, schema: i32) -> Result<Self, HistogramFault> {
        self.check_counts()?;
        let fine = i32::from(SCHEMA_MAX) + 1..=FINE_SCHEMA_MAX;
        if schema == i32::from(CUSTOM_BOUNDS) {
            self.schema = CUSTOM_BOUNDS;
            self.check_custom()?;
        } else if !self.custom_bounds.is_empty() {
            return Err(HistogramFault::MixedBuckets);
        } else if fine.contains(&schema) {
            let steps = (schema - i32::from(SCHEMA_MAX)) as i8;
            for side in [&mut self.positive, &mut self.negative] {
                super::limit::lower_side(side, steps);
            }
            self.schema = SCHEMA_MAX;
        } else {
            let known = i32::from(SCHEMA_MIN)..=i32::from(SCHEMA_MAX);
            if !known.contains(&schema) {
                return Err(HistogramFault::Schema(schema));
            }
            self.schema = schema as i8;
        }
        self.normalize();
        self.check_indexes()?;
        self.limit_stored();
        Ok(self)
    }

    fn check_counts(&self) -> Result<(), HistogramFault> {
        let threshold = self.zero_threshold;
        if !(threshold >= 0.0 && threshold.is_finite()) {
            return Err(HistogramFault::ZeroThreshold(threshold));
        }
        let buckets = || self.positive.iter().chain(&self.negative).map(|bucket| bucket.count);
        let counts = buckets().chain([self.zero_count, self.count]);
        let is_bad = |count: &f64| !(*count >= 0.0 && count.is_finite());
        if let Some(count) = counts.into_iter().find(is_bad) {
            return Err(HistogramFault::Count(count));
        }
        Ok(())
    }

    fn check_total(&self) -> Result<(), HistogramFault> {
        self.check_counts()?;
        let buckets = self.positive.iter().chain(&self.negative).map(|bucket| bucket.count);
        let total = buckets.sum::<f64>() + self.zero_count;
        let tolerance = COUNT_TOLERANCE * self.count;
        // NaN is counted, but is in no bucket.
        let is_less = total < self.count - tolerance && !self.sum.is_nan();
        if is_less || total > self.count + tolerance {
            return Err(HistogramFault::Sum { count: self.count, buckets: total });
        }
        Ok(())
    }

    /// Checks that numbers exist in each exponential bucket. This bounds the number of buckets at
    /// the coarsest schema, also of merges.
    fn check_indexes(&self) -> Result<(), HistogramFault> {
        if self.is_custom() {
            return Ok(());
        }
        let first = bucket_index(self.schema, f64::from_bits(1));
        let known = first..=bucket_index(self.schema, f64::INFINITY);
        let mut buckets = self.positive.iter().chain(&self.negative);
        let beyond = buckets.find(|bucket| !known.contains(&bucket.index));
        beyond.map_or(Ok(()), |bucket| Err(HistogramFault::BeyondNumbers(bucket.index)))
    }

    fn check_custom(&self) -> Result<(), HistogramFault> {
        let bounds = &self.custom_bounds;
        if self.zero_count != 0.0 || !self.negative.is_empty() {
            return Err(HistogramFault::MixedBuckets);
        }
        if bounds.len() > BUCKETS_MAX {
            return Err(HistogramFault::TooManyBounds);
        }
        let is_ascending = bounds.is_sorted_by(|left, right| left < right);
        if !is_ascending || !bounds.iter().all(|bound| bound.is_finite()) {
            return Err(HistogramFault::Bounds);
        }
        let has_bound = |bucket: &Bucket| (0..=bounds.len() as i32).contains(&bucket.index);
        if self.positive.iter().all(has_bound) { Ok(()) } else { Err(HistogramFault::BeyondBounds) }
    }
}
