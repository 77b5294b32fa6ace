//! Exponential histograms of OTLP as native histograms.
//!
//! A bucket of OTLP contains base^index, exclusive, to base^(index + 1), inclusive: the bucket of
//! a native histogram has the next index. Scales and schemas are the same numbers.

use opentelemetry_proto::tonic::metrics::v1::{
    ExponentialHistogramDataPoint, exponential_histogram_data_point::Buckets,
};

use crate::model::{
    Histogram, HistogramFault, Kind, ResetHint,
    histogram::{Bucket, SCHEMA_MIN, Span, ZERO_THRESHOLD},
};

/// Returns the histogram of a point. A finer scale than schema 8 is lowered to it. Without a sum,
/// the sum is NaN.
pub(super) fn histogram(
    point: &ExponentialHistogramDataPoint,
    kind: Kind,
) -> Result<Histogram, HistogramFault> {
    // The scales that are neither stored nor lowered, whatever the buckets are.
    if point.scale < i32::from(SCHEMA_MIN) {
        return Err(HistogramFault::Schema(point.scale));
    }
    let zero_threshold =
        if point.zero_threshold == 0.0 { ZERO_THRESHOLD } else { point.zero_threshold };
    let histogram = Histogram {
        zero_threshold,
        zero_count: point.zero_count as f64,
        count: point.count as f64,
        sum: point.sum.unwrap_or(f64::NAN),
        positive: side(point.positive.as_ref())?,
        negative: side(point.negative.as_ref())?,
        hint: if kind == Kind::Gauge { ResetHint::Gauge } else { ResetHint::Unknown },
        ..Histogram::default()
    };
    histogram.checked(point.scale)
}

fn side(buckets: Option<&Buckets>) -> Result<Vec<Bucket>, HistogramFault> {
    let Some(buckets) = buckets else { return Ok(Vec::new()) };
    let counts: Vec<_> = buckets.bucket_counts.iter().map(|count| *count as f64).collect();
    let offset = buckets.offset.checked_add(1).ok_or(HistogramFault::Spans)?;
    Bucket::from_spans([Span { offset, length: counts.len() as u32 }], &counts)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn point(scale: i32, offset: i32, counts: &[u64]) -> ExponentialHistogramDataPoint {
        ExponentialHistogramDataPoint {
            scale,
            count: counts.iter().sum::<u64>() + 2,
            sum: Some(9.0),
            zero_count: 2,
            positive: Some(Buckets { offset, bucket_counts: counts.to_vec() }),
            ..ExponentialHistogramDataPoint::default()
        }
    }

    #[test]
    fn a_bucket_has_the_bounds_of_its_scale() {
        // From 2 to 4, from 4 to 8, and from 16 to 32.
        let found = histogram(&point(0, 1, &[3, 4, 0, 5]), Kind::Counter).unwrap();
        assert_eq!((found.schema, found.count, found.zero_count), (0, 14.0, 2.0));
        let bounds = found.positive.iter().map(|bucket| (found.bounds(bucket.index), bucket.count));
        assert_eq!(
            bounds.collect::<Vec<_>>(),
            [((2.0, 4.0), 3.0), ((4.0, 8.0), 4.0), ((16.0, 32.0), 5.0)]
        );
    }

    #[test]
    fn a_finer_scale_is_lowered_to_schema_8() {
        // Scale 10 has four buckets per bucket of schema 8.
        let found = histogram(&point(10, 0, &[1, 1, 1, 1, 7]), Kind::Delta).unwrap();
        assert_eq!(found.schema, 8);
        let buckets = [(1, 4.0), (2, 7.0)].map(|(index, count)| Bucket { index, count });
        assert_eq!(found.positive, buckets);
    }

    #[test]
    fn faults_are_named() {
        let fault = |point| histogram(&point, Kind::Counter).unwrap_err().to_string();
        let schema = "does not exist; use -4 to 8, or -53 for custom bounds";
        assert_eq!(fault(point(-53, 0, &[1])), format!("schema -53 {schema}"));
        assert_eq!(fault(point(60, 0, &[1])), format!("schema 60 {schema}"));
        let spans = "a span begins before the end of the previous one, or beyond all numbers";
        assert_eq!(fault(point(0, i32::MAX, &[1])), spans);
        assert_eq!(fault(point(0, i32::MAX - 1, &[1, 1])), spans);
        let long = fault(point(0, 0, &vec![0; 20_000]));
        assert_eq!(long, "more than 16384 buckets; use a coarser schema");
    }
}
