//! Compensated sums of histograms.
//!
//! A sum has the coarser schema, the larger zero bucket and the common custom bounds of its parts.
//! Must never know: times, series.

use crate::{
    model::{
        Histogram, ResetHint,
        histogram::{Bucket, Incompatible},
    },
    query::promql::value::numbers::Sum,
};

/// The factor of sums for averages: the sum of four billion histograms does not overflow, and a
/// power of two changes no digit.
const AVERAGE_FACTOR: f64 = 1.0 / (1_u64 << 32) as f64;

/// A compensated sum of histograms.
pub(crate) struct HistogramSum {
    /// The schema, the zero bucket, the bounds and the hint of the sum.
    layout: Histogram,
    count: Sum,
    sum: Sum,
    zero_count: Sum,
    positive: Vec<(i32, Sum)>,
    negative: Vec<(i32, Sum)>,
    /// The factor of all counts and sums, which keeps the sum of an average from overflowing.
    factor: f64,
    has_reset: bool,
    has_no_reset: bool,
    /// True when custom bounds differed, so that only common bounds remain.
    pub(crate) reconciled: bool,
}

impl HistogramSum {
    /// Creates the sum of one histogram.
    pub(crate) fn new(first: &Histogram) -> Self {
        Self::with_factor(first, 1.0)
    }

    /// Creates the sum for [`Self::average`] of one histogram.
    pub(crate) fn for_average(first: &Histogram) -> Self {
        Self::with_factor(first, AVERAGE_FACTOR)
    }

    fn with_factor(first: &Histogram, factor: f64) -> Self {
        let mut sum = Self {
            layout: layout_of(first),
            count: Sum::default(),
            sum: Sum::default(),
            zero_count: Sum::default(),
            positive: Vec::with_capacity(first.positive.len()),
            negative: Vec::with_capacity(first.negative.len()),
            factor,
            has_reset: false,
            has_no_reset: false,
            reconciled: false,
        };
        sum.add_counts(first);
        sum
    }

    /// Adds a histogram. Fails when one has exponential buckets, the other one custom bounds.
    pub(crate) fn add(&mut self, other: &Histogram) -> Result<(), Incompatible> {
        if self.layout.is_custom() != other.is_custom() {
            return Err(Incompatible);
        }
        self.layout.hint = self.layout.hint.merged(other.hint);
        let is_same = self.layout.schema == other.schema
            && self.layout.zero_threshold.to_bits() == other.zero_threshold.to_bits()
            && self.layout.custom_bounds == other.custom_bounds;
        if is_same {
            self.add_counts(other);
            return Ok(());
        }
        self.reconciled |= self.layout.custom_bounds != other.custom_bounds;
        let aligned = self.align(other);
        self.add_counts(&aligned);
        Ok(())
    }

    /// Returns true when some parts follow a counter reset and others certainly do not.
    pub(crate) fn has_conflict(&self) -> bool {
        self.has_reset && self.has_no_reset
    }

    /// Returns the average of a number of histograms.
    pub(crate) fn average(&self, count: f64) -> Histogram {
        let mut average = self.total();
        average.divide(count * self.factor);
        average
    }

    /// Returns the sum, multiplied by the factor.
    pub(crate) fn total(&self) -> Histogram {
        let buckets = |all: &[(i32, Sum)]| {
            let all = all.iter().map(|(index, sum)| (*index, sum.total()));
            all.filter(|(_, count)| *count != 0.0)
                .map(|(index, count)| Bucket { index, count })
                .collect()
        };
        Histogram {
            count: self.count.total(),
            sum: self.sum.total(),
            zero_count: self.zero_count.total(),
            positive: buckets(&self.positive),
            negative: buckets(&self.negative),
            ..self.layout.clone()
        }
    }

    /// Returns the approximate memory in bytes.
    pub(crate) fn bytes(&self) -> usize {
        let buckets = self.positive.capacity() + self.negative.capacity();
        size_of::<Self>() + buckets * size_of::<(i32, Sum)>()
    }

    /// Brings the sum and a histogram to a common layout, and returns the histogram.
    fn align(&mut self, other: &Histogram) -> Histogram {
        let (mut own, mut aligned) = (self.total(), other.clone());
        own.reconcile(&mut aligned);
        let sum_of = |count: f64| {
            let mut sum = Sum::default();
            sum.add(count);
            sum
        };
        let sums = |all: &[Bucket]| {
            all.iter().map(|bucket| (bucket.index, sum_of(bucket.count))).collect()
        };
        if own.zero_count.to_bits() != self.zero_count.total().to_bits() {
            self.zero_count = sum_of(own.zero_count);
        }
        (self.positive, self.negative) = (sums(&own.positive), sums(&own.negative));
        self.layout = Histogram { hint: self.layout.hint, ..layout_of(&own) };
        aligned
    }

    fn add_counts(&mut self, other: &Histogram) {
        self.has_reset |= other.hint == ResetHint::Reset;
        self.has_no_reset |= other.hint == ResetHint::NotReset;
        let factor = self.factor;
        self.count.add(other.count * factor);
        self.sum.add(other.sum * factor);
        self.zero_count.add(other.zero_count * factor);
        add_buckets(&mut self.positive, &other.positive, factor);
        add_buckets(&mut self.negative, &other.negative, factor);
    }
}

/// Returns a histogram without its observations.
fn layout_of(histogram: &Histogram) -> Histogram {
    Histogram {
        zero_threshold: histogram.zero_threshold,
        custom_bounds: histogram.custom_bounds.clone(),
        hint: histogram.hint,
        ..Histogram::empty(histogram.schema)
    }
}

/// Adds sorted buckets, multiplied by a factor, to sorted sums.
fn add_buckets(sums: &mut Vec<(i32, Sum)>, others: &[Bucket], factor: f64) {
    let (mut at, known_sums) = (0, sums.len());
    for Bucket { index, count } in others {
        while at < known_sums && sums[at].0 < *index {
            at += 1;
        }
        if at < known_sums && sums[at].0 == *index {
            sums[at].1.add(count * factor);
        } else {
            let mut sum = Sum::default();
            sum.add(count * factor);
            sums.push((*index, sum));
        }
    }
    if sums.len() > known_sums {
        // Two sorted runs, which this sort merges.
        sums.sort_by_key(|(index, _)| *index);
    }
}
