//! Native histograms in Prometheus' JSON format.
//!
//! Must never know: the answers that contain them.

use super::{push_comma, push_float, push_time};
use crate::model::Histogram;

/// Writes a time and a histogram: `[1,{"count":"2","sum":"3","buckets":[[0,"1","2","2"]]}]`. The
/// first number of a bucket shows which bounds belong to it: 0 the upper one, 1 the lower one,
/// 2 none, 3 both.
pub(in crate::api::prometheus) fn push_histogram(
    at: i64,
    histogram: &Histogram,
    out: &mut Vec<u8>,
) {
    out.push(b'[');
    push_time(at, out);
    out.extend_from_slice(br#",{"count":"#);
    push_quoted(histogram.count, out);
    out.extend_from_slice(br#","sum":"#);
    push_quoted(histogram.sum, out);
    for (index, range) in histogram.ranges().enumerate() {
        if index == 0 {
            out.extend_from_slice(br#","buckets":["#);
        }
        push_comma(index, out);
        out.push(b'[');
        out.push(match (range.includes_lower, range.includes_upper) {
            (false, true) => b'0',
            (true, false) => b'1',
            (false, false) => b'2',
            (true, true) => b'3',
        });
        for number in [range.lower, range.upper, range.count] {
            out.push(b',');
            push_quoted(number, out);
        }
        out.push(b']');
    }
    if histogram.ranges().next().is_some() {
        out.push(b']');
    }
    out.extend_from_slice(b"}]");
}

fn push_quoted(value: f64, out: &mut Vec<u8>) {
    out.push(b'"');
    push_float(value, out);
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::histogram::Bucket;

    #[test]
    fn buckets_are_written_with_the_bounds_that_belong_to_them() {
        let written = |histogram: &Histogram| {
            let mut out = Vec::new();
            push_histogram(1500, histogram, &mut out);
            String::from_utf8(out).unwrap()
        };
        let mut histogram = Histogram { zero_threshold: 0.5, ..Histogram::empty(0) };
        assert_eq!(written(&histogram), r#"[1.500,{"count":"0","sum":"0"}]"#);
        (histogram.count, histogram.sum, histogram.zero_count) = (6.0, -2.5, 1.0);
        histogram.positive = vec![Bucket { index: 1, count: 2.0 }];
        histogram.negative = vec![Bucket { index: 2, count: 3.0 }];
        assert_eq!(
            written(&histogram),
            r#"[1.500,{"count":"6","sum":"-2.5","buckets":[[1,"-4","-2","3"],[3,"-0.5","0.5","1"],[0,"1","2","2"]]}]"#
        );
    }
}
