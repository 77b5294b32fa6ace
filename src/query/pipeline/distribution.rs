//! Native histograms as documents: `{schema, count, sum, zero_threshold, zero_count, positive,
//! negative}`, where both sides have a field for each bucket, with its index as the name. A
//! histogram with custom bounds has `bounds` too.
//!
//! Must never know: the store, stages.

use std::sync::Arc;

use super::value::{Fields, Value};
use crate::model::{
    Histogram,
    histogram::{Bucket, CUSTOM_BOUNDS},
};

/// The number of values in a document beside buckets and bounds.
const OTHER_VALUES: usize = 9;

/// Returns the number of values in the document of a histogram.
pub(super) fn size_of(histogram: &Histogram) -> usize {
    let buckets = histogram.positive.len() + histogram.negative.len();
    OTHER_VALUES + buckets + histogram.custom_bounds.len()
}

/// Returns the document of a histogram.
pub(super) fn to_fields(histogram: &Histogram) -> Fields {
    let side = |buckets: &[Bucket]| {
        let field = |Bucket { index, count }: &Bucket| -> (Arc<str>, Value) {
            (index.to_string().into(), Value::Float(*count))
        };
        Value::Fields(buckets.iter().map(field).collect())
    };
    let mut fields: Vec<(Arc<str>, Value)> = vec![
        ("schema".into(), Value::Int(histogram.schema.into())),
        ("count".into(), Value::Float(histogram.count)),
        ("sum".into(), Value::Float(histogram.sum)),
        ("zero_threshold".into(), Value::Float(histogram.zero_threshold)),
        ("zero_count".into(), Value::Float(histogram.zero_count)),
        ("positive".into(), side(&histogram.positive)),
        ("negative".into(), side(&histogram.negative)),
    ];
    if histogram.is_custom() {
        let bounds = histogram.custom_bounds.iter().map(|bound| Value::Float(*bound));
        fields.push(("bounds".into(), Value::List(bounds.collect())));
    }
    fields.into_iter().collect()
}

/// Returns the histogram of a document; `None` for another document.
pub(super) fn from_fields(fields: &Fields) -> Option<Histogram> {
    let number = |name: &str| fields.get(name)?.number();
    let schema = number("schema")? as i32;
    let mut histogram = Histogram {
        count: number("count")?,
        sum: number("sum")?,
        zero_threshold: number("zero_threshold")?,
        zero_count: number("zero_count")?,
        positive: side(fields.get("positive")?)?,
        negative: side(fields.get("negative")?)?,
        ..Histogram::empty(0)
    };
    if schema == i32::from(CUSTOM_BOUNDS) {
        let Value::List(bounds) = fields.get("bounds")? else { return None };
        histogram.custom_bounds = bounds.iter().map(Value::number).collect::<Option<_>>()?;
    }
    histogram.checked_parts(schema).ok()
}

fn side(value: &Value) -> Option<Vec<Bucket>> {
    let Value::Fields(fields) = value else { return None };
    let bucket = |(index, count): (&Arc<str>, &Value)| {
        Some(Bucket { index: index.parse().ok()?, count: count.number()? })
    };
    fields.iter().map(bucket).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_histogram_comes_back_and_other_documents_are_none() {
        let mut sketch = Histogram::sketch();
        for value in [-3.5, 0.0, 1e-3, 12.0, 12.0] {
            sketch.observe(value, 1.0);
        }
        let custom = Histogram {
            custom_bounds: [0.5, 2.0].into(),
            positive: vec![Bucket { index: 2, count: 3.0 }],
            count: 3.0,
            sum: 12.0,
            ..Histogram::empty(CUSTOM_BOUNDS)
        };
        for histogram in [sketch, custom, Histogram::sketch()] {
            let fields = to_fields(&histogram);
            assert!(fields.size().unwrap() <= size_of(&histogram) + 1);
            assert_eq!(from_fields(&fields), Some(histogram));
        }
        assert_eq!(from_fields(&Fields::default()), None);
        let mut damaged = to_fields(&Histogram::sketch());
        damaged.set("schema".into(), Value::Int(99));
        assert_eq!(from_fields(&damaged), None);
    }
}
