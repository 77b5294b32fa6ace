//! Native histograms as values: columns of them, windows, sums, texts.
//!
//! Must never know: the store, the tree, series.

mod column;
mod sums;
mod text;
mod timed;
mod variance;

pub(crate) use column::HistogramColumn;
pub(crate) use sums::HistogramSum;
pub(crate) use text::text_of_histogram;
pub(crate) use timed::{HistogramReading, HistogramWindow, TimedHistogram};
pub(crate) use variance::variance;

use std::sync::Arc;

use crate::model::{Histogram, ResetHint};

/// Returns a histogram whose counts and sum are multiplied by a number.
pub(crate) fn scaled(histogram: &Histogram, factor: f64) -> Histogram {
    let mut out = histogram.clone();
    out.scale(factor);
    out
}

/// Returns a histogram whose counts and sum are divided by a number.
pub(crate) fn divided(histogram: &Histogram, divisor: f64) -> Histogram {
    let mut out = histogram.clone();
    out.divide(divisor);
    out
}

/// Returns true when the histogram has observations of NaN, which are in no bucket.
pub(crate) fn has_unbucketed(histogram: &Histogram) -> bool {
    let in_buckets = || histogram.ranges().map(|range| range.count).sum::<f64>();
    histogram.sum.is_nan() && in_buckets() < histogram.count
}

/// Returns true when two histograms have the same buckets, counts and sum; hints do not count.
pub(crate) fn are_equal(left: &Histogram, right: &Histogram) -> bool {
    *left == Histogram { hint: left.hint, ..right.clone() }
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
