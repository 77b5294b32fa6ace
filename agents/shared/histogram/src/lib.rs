//! Native histograms: counts of observations in sparse buckets, as in Prometheus.
//!
//! The bounds of exponential buckets are powers of 2^(2^-schema). Two histograms can be merged
//! without loss, after the buckets of the finer schema are added up to those of the coarser one.
//! The daemon and agents share this crate, which must never know series, times, protocols.
//!
//! Two operations add histograms. [`Histogram::add`] follows Prometheus, for queries.
//! [`Histogram::merge`] is for storage: it accepts every pair, and its result does not depend on
//! the order. `limit` describes the exception.

mod add;
mod bounds;
mod bytes;
mod check;
mod limit;
mod merge;
mod observe;
mod quantile;
mod ranges;
mod resets;
mod spans;
#[cfg(test)]
mod tests;
mod trim;
mod zero;

pub use add::{Added, Incompatible};
pub use bounds::{bucket_index, upper_bound};
pub use bytes::Corrupt;
pub use check::HistogramFault;
pub use ranges::BucketRange;
pub use spans::{ReceivedSide, Span};

use std::sync::Arc;

/// The finest schema that is stored.
pub const SCHEMA_MAX: i8 = 8;

/// The coarsest schema.
pub const SCHEMA_MIN: i8 = -4;

/// The schema of histograms whose senders choose the bounds of the buckets.
pub const CUSTOM_BOUNDS: i8 = -53;

/// The maximum number of buckets with positive, and with negative bounds. A histogram with more
/// buckets gets a coarser schema. At schema 7, this is the range from 0.1 ms to 100 s.
pub const BUCKETS_MAX: usize = 2560;

/// The schema of distributions that Granary makes. The bounds of a bucket differ by 0.55 %, so this
/// is the maximum relative error of a quantile. At schema 6, it would be 1.09 %.
pub const SKETCH_SCHEMA: i8 = 7;

/// The threshold of the zero bucket that Prometheus' client libraries use: 2^-128.
pub const ZERO_THRESHOLD: f64 = f64::from_bits((1023 - 128) << 52);

/// The bits of the NaN that ends a series in Prometheus, as the sum of a histogram.
const STALE_BITS: u64 = 0x7ff0_0000_0000_0002;

/// The buckets of a native histogram: exponential buckets of a schema, or custom bounds.
#[derive(Debug, Clone)]
pub struct Histogram {
    /// The resolution: [`SCHEMA_MIN`] to [`SCHEMA_MAX`], or [`CUSTOM_BOUNDS`].
    pub schema: i8,
    /// The zero bucket contains observations whose absolute value is at most this threshold.
    pub zero_threshold: f64,
    /// The number of observations in the zero bucket.
    pub zero_count: f64,
    /// The number of all observations, including NaN.
    pub count: f64,
    /// The sum of all observations.
    pub sum: f64,
    /// The buckets with positive bounds, or with custom bounds, sorted by index.
    pub positive: Vec<Bucket>,
    /// The buckets with negative bounds, sorted by index.
    pub negative: Vec<Bucket>,
    /// The custom upper bounds in ascending order, without infinity; empty for exponential buckets.
    pub custom_bounds: Arc<[f64]>,
    /// The sender's knowledge of resets.
    pub hint: ResetHint,
}

/// A bucket and its number of observations.
///
/// The bounds of an exponential bucket are base^(index - 1), exclusive, and base^index, inclusive.
/// A custom bucket has its position among the bounds as its index.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Bucket {
    /// The position of the bucket.
    pub index: i32,
    /// The number of observations, not cumulative.
    pub count: f64,
}

/// A sender's knowledge of resets before a histogram.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum ResetHint {
    /// The receiver must compare histograms.
    #[default]
    Unknown,
    /// The histogram is the first one after a reset.
    Reset,
    /// There was no reset since the previous histogram.
    NotReset,
    /// The histogram is a level, not a counter: there are no resets.
    Gauge,
}

impl ResetHint {
    /// Returns the hint of two histograms together: `Gauge` if one of them is a gauge, otherwise
    /// `Unknown` if they differ.
    pub fn merged(self, other: Self) -> Self {
        match (self, other) {
            (Self::Gauge, _) | (_, Self::Gauge) => Self::Gauge,
            (left, right) if left == right => left,
            _ => Self::Unknown,
        }
    }
}

impl Default for Histogram {
    fn default() -> Self {
        Self::empty(SCHEMA_MAX)
    }
}

/// NaN equals NaN: comparisons of histograms mean equal content.
impl PartialEq for Histogram {
    fn eq(&self, other: &Self) -> bool {
        let numbers = |h: &Self| [h.zero_threshold, h.zero_count, h.count, h.sum];
        let same = |(a, b): (f64, f64)| a == b || a.is_nan() && b.is_nan();
        self.schema == other.schema
            && self.hint == other.hint
            && numbers(self).into_iter().zip(numbers(other)).all(same)
            && self.positive == other.positive
            && self.negative == other.negative
            && self.custom_bounds == other.custom_bounds
    }
}

impl Histogram {
    /// Returns a histogram without observations.
    pub fn empty(schema: i8) -> Self {
        Self {
            schema,
            zero_threshold: 0.0,
            zero_count: 0.0,
            count: 0.0,
            sum: 0.0,
            positive: Vec::new(),
            negative: Vec::new(),
            custom_bounds: Arc::default(),
            hint: ResetHint::Unknown,
        }
    }

    /// Returns a histogram that ends its series.
    pub fn stale() -> Self {
        Self { sum: f64::from_bits(STALE_BITS), ..Self::empty(0) }
    }

    /// Returns true when the histogram ends its series.
    pub fn is_stale(&self) -> bool {
        self.sum.to_bits() == STALE_BITS
    }

    /// Returns true when the histogram adds nothing: all its numbers are 0.
    pub fn is_empty(&self) -> bool {
        self.count == 0.0
            && self.sum == 0.0
            && self.zero_count == 0.0
            && self.positive.is_empty()
            && self.negative.is_empty()
    }

    /// Returns a histogram of the same form without observations.
    pub fn emptied(&self) -> Self {
        Self {
            zero_threshold: self.zero_threshold,
            custom_bounds: Arc::clone(&self.custom_bounds),
            hint: self.hint,
            ..Self::empty(self.schema)
        }
    }

    /// Returns the approximate memory of the histogram in bytes.
    pub fn bytes(&self) -> usize {
        let buckets = self.positive.capacity() + self.negative.capacity();
        size_of::<Self>() + buckets * size_of::<Bucket>() + self.custom_bounds.len() * 8
    }

    /// Returns true for custom bounds.
    pub fn is_custom(&self) -> bool {
        self.schema == CUSTOM_BOUNDS
    }

    /// Returns the mean of the observations; `None` without observations.
    pub fn mean(&self) -> Option<f64> {
        (self.count != 0.0).then(|| self.sum / self.count)
    }

    /// Multiplies all counts and the sum. A negative factor makes the histogram a gauge.
    pub fn scale(&mut self, factor: f64) {
        self.each_count(|count| *count *= factor);
        if factor < 0.0 {
            self.hint = ResetHint::Gauge;
        }
    }

    /// Divides all counts and the sum. By 0, the counts become infinite or NaN, and the buckets
    /// disappear. A negative divisor makes the histogram a gauge.
    pub fn divide(&mut self, divisor: f64) {
        self.each_count(|count| *count /= divisor);
        if divisor == 0.0 {
            self.positive.clear();
            self.negative.clear();
        }
        if divisor < 0.0 {
            self.hint = ResetHint::Gauge;
        }
    }

    fn each_count(&mut self, change: impl Fn(&mut f64)) {
        for number in [&mut self.zero_count, &mut self.count, &mut self.sum] {
            change(number);
        }
        for bucket in self.positive.iter_mut().chain(&mut self.negative) {
            change(&mut bucket.count);
        }
    }

    /// Sorts the buckets by index, adds up buckets with the same index, removes empty buckets, and
    /// moves buckets inside the zero bucket into it.
    pub fn normalize(&mut self) {
        for side in [&mut self.positive, &mut self.negative] {
            if !side.is_sorted_by(|left, right| left.index < right.index) {
                side.sort_by_key(|bucket| bucket.index);
                side.dedup_by(|later, kept| {
                    let is_same = later.index == kept.index;
                    kept.count += if is_same { later.count } else { 0.0 };
                    is_same
                });
            }
            side.retain(|bucket| bucket.count != 0.0);
        }
        self.absorb_zero();
    }

    /// Adds up buckets until the histogram has a coarser schema. Histograms with custom bounds, or
    /// with a schema that is as coarse, do not change.
    pub fn lower_schema(&mut self, schema: i8) {
        if self.is_custom() || schema >= self.schema || schema < SCHEMA_MIN {
            return;
        }
        let steps = self.schema - schema;
        for side in [&mut self.positive, &mut self.negative] {
            limit::lower_side(side, steps);
        }
        self.schema = schema;
    }
}
