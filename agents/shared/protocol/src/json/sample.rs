//! One sample in JSON: its fields, and its number or histogram.

use granary_histogram::Histogram;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::{
    histogram::JsonHistogram,
    values::{ObjectFields, Time, number, without_location},
};
use crate::Kind;

/// The remedy for a sample without content.
pub(super) const SHAPE: &str = "give ref or metric, and value, histogram or fields";

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawSample<'a> {
    #[serde(default)]
    pub(super) r#ref: Option<u32>,
    #[serde(default)]
    pub(super) metric: Option<String>,
    #[serde(default, borrow)]
    pub(super) tags: ObjectFields<'a>,
    #[serde(default)]
    pub(super) kind: Option<Kind>,
    #[serde(default)]
    pub(super) unit: String,
    #[serde(default)]
    pub(super) time: Option<Time>,
    #[serde(default, borrow)]
    pub(super) value: Option<&'a RawValue>,
    #[serde(default, borrow)]
    pub(super) histogram: Option<&'a RawValue>,
    #[serde(default, borrow)]
    pub(super) fields: Option<ObjectFields<'a>>,
    #[serde(default)]
    pub(super) start: Option<Time>,
}

/// The number or the histogram of a sample.
#[derive(Debug, Clone, PartialEq)]
pub enum SampleContent {
    /// A number.
    Number(f64),
    /// A native histogram, which was checked.
    Histogram(Histogram),
}

/// A sample that names its series.
#[derive(Debug, Clone, PartialEq)]
pub struct JsonSample {
    /// The metric.
    pub metric: String,
    /// The tags, sorted by name.
    pub tags: Vec<(String, String)>,
    /// The kind of the series.
    pub kind: Kind,
    /// The unit; empty if there is none.
    pub unit: String,
    /// The time, Unix milliseconds.
    pub time: Option<i64>,
    /// The start of a counter, Unix milliseconds, 0 if unknown.
    pub start: i64,
    /// The number or the histogram.
    pub content: SampleContent,
}

/// Parses one sample of the array `samples`; it names its series.
///
/// # Errors
/// The text is not such a sample.
pub fn decode_json_sample(text: &[u8]) -> Result<JsonSample, String> {
    let sample: RawSample<'_> =
        serde_json::from_slice(text).map_err(|cause| without_location(&cause))?;
    let found = content(sample.value, sample.histogram, sample.kind)?;
    let (Some((content, kind)), Some(metric), None, None) =
        (found, sample.metric, sample.r#ref, sample.fields)
    else {
        return Err("give metric, and value or histogram".to_owned());
    };
    Ok(JsonSample {
        metric,
        tags: sample.tags.tags()?,
        kind,
        unit: sample.unit,
        time: sample.time.map(|time| time.0),
        start: sample.start.map_or(0, |start| start.0),
        content,
    })
}

/// Parses the number or the histogram of a sample, and returns it with the kind of its series.
pub(super) fn content(
    value: Option<&RawValue>,
    histogram: Option<&RawValue>,
    kind: Option<Kind>,
) -> Result<Option<(SampleContent, Kind)>, String> {
    let raw = match (value, histogram) {
        (None, None) => return Ok(None),
        (Some(value), None) => {
            let kind = kind_of_numbers(kind)?;
            return Ok(Some((SampleContent::Number(number(value)?), kind)));
        }
        (None, Some(histogram)) => histogram,
        (Some(_), Some(_)) => return Err(SHAPE.to_owned()),
    };
    let kind = kind.unwrap_or(Kind::Histogram);
    if !kind.is_histogram() {
        return Err(format!(
            "kind {kind} has numbers, and the sample is a native histogram: use the kind {}",
            kind.of_histograms()
        ));
    }
    let JsonHistogram(mut histogram) = serde_json::from_str(raw.get())
        .map_err(|cause| format!("histogram: {}", without_location(&cause)))?;
    if kind == Kind::GaugeHistogram {
        histogram.hint = granary_histogram::ResetHint::Gauge;
    }
    Ok(Some((SampleContent::Histogram(histogram), kind)))
}

/// Returns the kind of a series of numbers.
pub(super) fn kind_of_numbers(kind: Option<Kind>) -> Result<Kind, String> {
    let kind = kind.unwrap_or_default();
    if kind.is_histogram() {
        return Err(format!(
            "kind {kind} has native histograms, and the sample is a number: give histogram instead \
             of value, or use the kind {}",
            kind.of_counts()
        ));
    }
    Ok(kind)
}
