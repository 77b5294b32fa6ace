//! The variance of a histogram's observations.
//!
//! Must never know: times, series.

use crate::{model::Histogram, query::promql::value::numbers::Sum};

/// Returns the population variance, estimated from the middle of each bucket: the arithmetic mean
/// of custom bounds, zero for the zero bucket, and otherwise the geometric mean of the bounds.
pub(crate) fn variance(histogram: &Histogram) -> f64 {
    let mean = histogram.sum / histogram.count;
    let mut squares = Sum::default();
    for range in histogram.ranges() {
        let middle = if histogram.is_custom() {
            f64::midpoint(range.lower, range.upper)
        } else if range.lower <= 0.0 && range.upper >= 0.0 {
            0.0
        } else {
            (range.upper * range.lower).sqrt().copysign(range.upper)
        };
        let delta = middle - mean;
        squares.add(range.count * delta * delta);
    }
    squares.total() / histogram.count
}
