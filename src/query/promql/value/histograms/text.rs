//! Histograms as text, for labels: `{count:4, sum:5, (0.5,1]:1}`.
//!
//! Must never know: times, series.

use crate::{model::Histogram, query::promql::value::numbers::short_text};

/// Returns the text of a histogram, as Prometheus formats it.
pub(crate) fn text_of_histogram(histogram: &Histogram) -> String {
    let mut out =
        format!("{{count:{}, sum:{}", short_text(histogram.count), short_text(histogram.sum));
    for bucket in histogram.ranges() {
        out.push_str(if bucket.includes_lower { ", [" } else { ", (" });
        out.push_str(&short_text(bucket.lower));
        out.push(',');
        out.push_str(&short_text(bucket.upper));
        out.push_str(if bucket.includes_upper { "]:" } else { "):" });
        out.push_str(&short_text(bucket.count));
    }
    out.push('}');
    out
}
