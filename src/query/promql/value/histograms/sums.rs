//! Sums and differences of histograms.
//!
//! A sum has the coarser schema, the larger zero bucket and the common custom bounds of its parts.
//! Sums are compensated, as those of numbers. Must never know: times, series.

use std::sync::Arc;

use crate::{
    model::{Bucket, CUSTOM_BOUNDS, Histogram, ResetHint},
    query::promql::value::numbers::Sum,
};

/// The error for a sum of exponential and custom buckets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Incompatible;

/// A sum or difference of two histograms.
pub(crate) struct Combined {
    /// The result.
    pub(crate) histogram: Histogram,
    /// True when custom bounds differed, so that only common bounds remain.
    pub(crate) reconciled: bool,
    /// True when one part follows a counter reset and the other one certainly does not.
    pub(crate) has_conflict: bool,
}

/// Adds two histograms.
pub(crate) fn added(left: &Histogram, right: &Histogram) -> Result<Combined, Incompatible> {
    let mut sum = HistogramSum::new(left);
    sum.add(right)?;
    let (reconciled, has_conflict) = (sum.reconciled, sum.has_conflict());
    Ok(Combined { histogram: sum.total(), reconciled, has_conflict })
}

/// Subtracts a histogram; the result is a gauge.
pub(crate) fn subtracted(left: &Histogram, right: &Histogram) -> Result<Combined, Incompatible> {
    let negative = Histogram { hint: right.hint, ..scaled(right, -1.0) };
    let combined = added(left, &negative)?;
    Ok(Combined {
        histogram: Histogram { hint: ResetHint::Gauge, ..combined.histogram },
        ..combined
    })
}

/// Multiplies all counts and the sum by a number.
pub(crate) fn scaled(histogram: &Histogram, factor: f64) -> Histogram {
    let hint = if factor < 0.0 { ResetHint::Gauge } else { histogram.hint };
    Histogram { hint, ..mapped(histogram, |count| count * factor) }
}

/// Divides all counts and the sum by a number.
pub(crate) fn divided(histogram: &Histogram, divisor: f64) -> Histogram {
    let hint = if divisor < 0.0 { ResetHint::Gauge } else { histogram.hint };
    let mut out = Histogram { hint, ..mapped(histogram, |count| count / divisor) };
    if divisor == 0.0 {
        // As in Prometheus, no bucket of a division by zero remains.
        out.positive.clear();
        out.negative.clear();
    }
    out
}

fn mapped(histogram: &Histogram, function: impl Fn(f64) -> f64) -> Histogram {
    let buckets = |all: &[Bucket]| {
        let all = all.iter().map(|Bucket { index, count }| (*index, function(*count)));
        all.filter(|(_, count)| *count != 0.0)
            .map(|(index, count)| Bucket { index, count })
            .collect()
    };
    Histogram {
        schema: histogram.schema,
        zero_threshold: histogram.zero_threshold,
        zero_count: function(histogram.zero_count),
        count: function(histogram.count),
        sum: function(histogram.sum),
        positive: buckets(&histogram.positive),
        negative: buckets(&histogram.negative),
        custom_bounds: histogram.custom_bounds.clone(),
        hint: histogram.hint,
    }
}

/// The properties of a histogram that two histograms must share to be added bucket by bucket.
#[derive(Debug, Clone, PartialEq)]
struct Layout {
    schema: i8,
    zero_threshold: f64,
    custom_bounds: Arc<[f64]>,
}

impl Layout {
    fn of(histogram: &Histogram) -> Self {
        Self {
            schema: histogram.schema,
            zero_threshold: histogram.zero_threshold,
            custom_bounds: histogram.custom_bounds.clone(),
        }
    }

    fn is_of(&self, histogram: &Histogram) -> bool {
        self.schema == histogram.schema
            && self.zero_threshold.to_bits() == histogram.zero_threshold.to_bits()
            && self.custom_bounds == histogram.custom_bounds
    }

    /// Returns a histogram without observations.
    fn empty(&self) -> Histogram {
        Histogram {
            schema: self.schema,
            zero_threshold: self.zero_threshold,
            zero_count: 0.0,
            count: 0.0,
            sum: 0.0,
            positive: Vec::new(),
            negative: Vec::new(),
            custom_bounds: self.custom_bounds.clone(),
            hint: ResetHint::Unknown,
        }
    }
}

/// A compensated sum of histograms.
pub(crate) struct HistogramSum {
    layout: Layout,
    count: Sum,
    sum: Sum,
    zero_count: Sum,
    positive: Vec<(i32, Sum)>,
    negative: Vec<(i32, Sum)>,
    hint: ResetHint,
    has_reset: bool,
    has_no_reset: bool,
    /// True when custom bounds differed, so that only common bounds remain.
    pub(crate) reconciled: bool,
}

impl HistogramSum {
    /// Creates the sum of one histogram.
    pub(crate) fn new(first: &Histogram) -> Self {
        let mut sum = Self {
            layout: Layout::of(first),
            count: Sum::default(),
            sum: Sum::default(),
            zero_count: Sum::default(),
            positive: Vec::new(),
            negative: Vec::new(),
            hint: first.hint,
            has_reset: false,
            has_no_reset: false,
            reconciled: false,
        };
        sum.add_counts(first);
        sum
    }

    /// Adds a histogram.
    pub(crate) fn add(&mut self, other: &Histogram) -> Result<(), Incompatible> {
        if (self.layout.schema == CUSTOM_BOUNDS) != (other.schema == CUSTOM_BOUNDS) {
            return Err(Incompatible);
        }
        self.hint = hint_of_sum(self.hint, other.hint);
        if self.layout.is_of(other) {
            self.add_counts(other);
            return Ok(());
        }
        self.reconciled |= self.layout.custom_bounds != other.custom_bounds;
        let aligned = self.align(other)?;
        self.add_counts(&aligned);
        Ok(())
    }

    /// Returns true when some parts follow a counter reset and others certainly do not.
    pub(crate) fn has_conflict(&self) -> bool {
        self.has_reset && self.has_no_reset
    }

    /// Returns the sum.
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
            hint: self.hint,
            ..self.layout.empty()
        }
    }

    /// Brings the sum and a histogram to a common layout, and returns the histogram.
    fn align(&mut self, other: &Histogram) -> Result<Histogram, Incompatible> {
        let (mut own, mut aligned) = (self.total(), other.clone());
        // A larger zero bucket can grow once more by buckets that it cuts.
        for _ in 0..2 {
            own.add(&Layout::of(&aligned).empty()).map_err(|_| Incompatible)?;
            aligned.add(&Layout::of(&own).empty()).map_err(|_| Incompatible)?;
        }
        let compensated = |all: &[Bucket]| {
            let sums = all.iter().map(|Bucket { index, count }| {
                let mut sum = Sum::default();
                sum.add(*count);
                (*index, sum)
            });
            sums.collect()
        };
        if own.zero_count.to_bits() != self.zero_count.total().to_bits() {
            self.zero_count = Sum::default();
            self.zero_count.add(own.zero_count);
        }
        self.layout = Layout::of(&own);
        (self.positive, self.negative) = (compensated(&own.positive), compensated(&own.negative));
        Ok(aligned)
    }

    fn add_counts(&mut self, other: &Histogram) {
        self.has_reset |= other.hint == ResetHint::Reset;
        self.has_no_reset |= other.hint == ResetHint::NotReset;
        self.count.add(other.count);
        self.sum.add(other.sum);
        self.zero_count.add(other.zero_count);
        add_buckets(&mut self.positive, &other.positive);
        add_buckets(&mut self.negative, &other.negative);
    }
}

fn hint_of_sum(left: ResetHint, right: ResetHint) -> ResetHint {
    match (left, right) {
        _ if left == right => left,
        (ResetHint::Gauge, _) | (_, ResetHint::Gauge) => ResetHint::Gauge,
        _ => ResetHint::Unknown,
    }
}

/// Adds sorted buckets to sorted sums.
fn add_buckets(sums: &mut Vec<(i32, Sum)>, others: &[Bucket]) {
    let mut at = 0;
    for Bucket { index, count } in others {
        while sums.get(at).is_some_and(|(known, _)| known < index) {
            at += 1;
        }
        if sums.get(at).is_none_or(|(known, _)| known != index) {
            sums.insert(at, (*index, Sum::default()));
        }
        sums[at].1.add(*count);
    }
}
