//! Native histograms as values: columns of them, sums, quantiles, trimming, texts.
//!
//! Must never know: the store, the tree, series.

mod buckets;
mod column;
mod quantiles;
mod sums;
mod text;
mod timed;
mod trim;

pub use buckets::{RangeBucket, range_buckets};
pub(crate) use column::HistogramColumn;
pub(crate) use quantiles::{Quantile, fraction, has_unbucketed, quantile, variance};
pub(crate) use sums::{Combined, HistogramSum, Incompatible, added, divided, scaled, subtracted};
pub(crate) use text::text_of_histogram;
pub(crate) use timed::{HistogramReading, HistogramWindow, TimedHistogram};
pub(crate) use trim::{trimmed_above, trimmed_below};

use std::sync::Arc;

use crate::model::{Histogram, ResetHint};

/// Returns true when two histograms have the same buckets, counts and sum; hints do not count.
pub(crate) fn are_equal(left: &Histogram, right: &Histogram) -> bool {
    let bits = |value: f64| if value.is_nan() { f64::NAN.to_bits() } else { (value + 0.0).to_bits() };
    let numbers = |histogram: &Histogram| {
        [histogram.count, histogram.sum, histogram.zero_count, histogram.zero_threshold].map(bits)
    };
    left.schema == right.schema
        && numbers(left) == numbers(right)
        && left.custom_bounds == right.custom_bounds
        && [(&left.positive, &right.positive), (&left.negative, &right.negative)].iter().all(
            |(left, right)| {
                left.len() == right.len()
                    && left.iter().zip(right.iter()).all(|(left, right)| {
                        left.index == right.index && bits(left.count) == bits(right.count)
                    })
            },
        )
}

/// Returns a histogram of a counter without its relation to the reading before, which may not be
/// the one before it in a subquery.
pub(crate) fn without_reset_hint(histogram: &Arc<Histogram>) -> Arc<Histogram> {
    match histogram.hint {
        ResetHint::Unknown | ResetHint::Gauge => histogram.clone(),
        ResetHint::Reset | ResetHint::NotReset => {
            let hint = ResetHint::Unknown;
            Arc::new(Histogram { hint, ..Histogram::clone(histogram) })
        }
    }
}

/// Returns the approximate memory of a histogram in bytes.
pub(crate) fn bytes_of(histogram: &Histogram) -> usize {
    size_of::<Histogram>()
        + size_of_val(&histogram.positive[..])
        + size_of_val(&histogram.negative[..])
}
