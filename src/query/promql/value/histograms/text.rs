//! Histograms as text, for labels: `{count:4, sum:5, (0.5,1]:1}`.
//!
//! Must never know: times, series.

use std::fmt::Write as _;

use crate::{model::Histogram, query::promql::value::numbers::short_text};

/// Returns the text of a histogram, as Prometheus formats it.
pub(crate) fn text_of_histogram(histogram: &Histogram) -> String {
    let mut out =
        format!("{{count:{}, sum:{}", short_text(histogram.count), short_text(histogram.sum));
    for bucket in histogram.ranges() {
        let _ = write!(
            out,
            ", {}{},{}{}:{}",
            if bucket.includes_lower { '[' } else { '(' },
            short_text(bucket.lower),
            short_text(bucket.upper),
            if bucket.includes_upper { ']' } else { ')' },
            short_text(bucket.count)
        );
    }
    out.push('}');
    out
}
