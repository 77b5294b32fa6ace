//! `histogram_count`, `histogram_sum`, `histogram_avg`, `histogram_stddev` and `histogram_stdvar`
//! of native histograms; numbers are left out.
//!
//! Must never know: the store, the tree.

use crate::model::Histogram;
use crate::query::promql::value::{
    histograms::{HistogramColumn, variance},
    series::{ABSENT, Series},
};

/// Returns the function with a name, if it is in this file.
pub(super) fn function(name: &str) -> Option<fn(&Histogram) -> f64> {
    Some(match name {
        "histogram_avg" => |histogram| histogram.sum / histogram.count,
        "histogram_count" => |histogram| histogram.count,
        "histogram_stddev" => |histogram| variance(histogram).sqrt(),
        "histogram_stdvar" => variance,
        "histogram_sum" => |histogram| histogram.sum,
        _ => return None,
    })
}

/// Applies a function to every histogram. The metric's name does not apply to the result.
pub(super) fn map_histograms(
    mut series: Vec<Series>,
    mut function: impl FnMut(usize, &Histogram) -> f64,
) -> Vec<Series> {
    for entry in &mut series {
        entry.drop_metric = true;
        entry.values.fill(ABSENT);
        for (step, histogram) in
            std::mem::replace(&mut entry.histograms, HistogramColumn::NONE).iter()
        {
            entry.values[step] = function(step, histogram);
        }
    }
    series.retain(Series::has_values);
    series
}
