//! OTLP metrics (opentelemetry.io, "OTLP Specification" and "Metrics Data Model"), protobuf and
//! JSON: gauges, sums and histograms become series; attributes of the resource and of the point
//! become tags.

use opentelemetry_proto::tonic::{
    collector::metrics::v1::ExportMetricsServiceRequest,
    common::v1::{AnyValue, KeyValue, any_value},
    metrics::v1::{
        AggregationTemporality, HistogramDataPoint, Metric, NumberDataPoint, SummaryDataPoint,
        metric::Data, number_data_point,
    },
};
use prost::Message;

use super::{
    rows::{Described, Rows, Target},
    series_cache::Fingerprint,
};
use crate::{
    model::{Kind, SeriesKey},
    pipeline::RefusalReason,
};

const PROTOCOL: u8 = 4;

/// How a body is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// `application/x-protobuf`
    Protobuf,
    /// `application/json`
    Json,
}

/// Decodes a body. A point that cannot be kept spoils no other.
///
/// # Errors
/// When it is no such message.
pub fn decode(form: Form, body: &[u8], rows: &mut Rows<'_>) -> Result<(), String> {
    let request: ExportMetricsServiceRequest = match form {
        Form::Protobuf => Message::decode(body).map_err(|fault| format!("body: {fault}"))?,
        Form::Json => serde_json::from_slice(body).map_err(|fault| format!("body: {fault}"))?,
    };
    for resource in request.resource_metrics {
        let shared = resource.resource.map(|found| found.attributes).unwrap_or_default();
        let shared = tags(&shared);
        let shared_bytes = bytes(&shared);
        for metric in resource.scope_metrics.into_iter().flat_map(|scope| scope.metrics) {
            Points { metric: &metric, shared: &shared, shared_bytes, rows }.take();
        }
    }
    Ok(())
}

type Tags = Vec<(String, String)>;

struct Points<'a, 'r> {
    metric: &'a Metric,
    shared: &'a Tags,
    shared_bytes: usize,
    rows: &'a mut Rows<'r>,
}

impl Points<'_, '_> {
    fn take(&mut self) {
        match &self.metric.data {
            Some(Data::Gauge(gauge)) => self.numbers(&gauge.data_points, Kind::Gauge),
            Some(Data::Sum(sum)) => {
                let kind = match (temporality(sum.aggregation_temporality), sum.is_monotonic) {
                    (Some(AggregationTemporality::Delta), _) => Kind::Delta,
                    (_, true) => Kind::Counter,
                    // A cumulative sum that may fall is a level.
                    (_, false) => Kind::Gauge,
                };
                self.numbers(&sum.data_points, kind);
            }
            Some(Data::Histogram(histogram)) => {
                let delta = temporality(histogram.aggregation_temporality)
                    == Some(AggregationTemporality::Delta);
                let kind = if delta { Kind::Delta } else { Kind::Counter };
                histogram.data_points.iter().for_each(|point| self.histogram(point, kind));
            }
            Some(Data::Summary(summary)) => {
                summary.data_points.iter().for_each(|point| self.summary(point));
            }
            Some(Data::ExponentialHistogram(histogram)) => {
                let delta = temporality(histogram.aggregation_temporality)
                    == Some(AggregationTemporality::Delta);
                let kind = if delta { Kind::Delta } else { Kind::Counter };
                for point in &histogram.data_points {
                    let times = (point.time_unix_nano, point.start_time_unix_nano);
                    let Some(attributes) = self.own(&point.attributes, 2) else { continue };
                    self.push("_count", kind, &attributes, times, point.count as f64);
                    if let Some(sum) = point.sum {
                        self.push("_sum", kind, &attributes, times, sum);
                    }
                    let buckets = [&point.positive, &point.negative].into_iter().flatten();
                    let buckets = buckets.map(|side| side.bucket_counts.len() as u64).sum();
                    self.rows.refuse(RefusalReason::NativeHistogram, buckets, || {
                        "the buckets of exponential histograms are not kept".to_owned()
                    });
                }
            }
            None => {}
        }
    }

    fn numbers(&mut self, points: &[NumberDataPoint], kind: Kind) {
        for point in points {
            let value = match point.value {
                Some(number_data_point::Value::AsDouble(value)) => value,
                Some(number_data_point::Value::AsInt(value)) => value as f64,
                None => continue,
            };
            let times = (point.time_unix_nano, point.start_time_unix_nano);
            let Some(attributes) = self.own(&point.attributes, 1) else { continue };
            self.push("", kind, &attributes, times, value);
        }
    }

    /// Count, sum, min, max, and the buckets counted up as Prometheus has them.
    fn histogram(&mut self, point: &HistogramDataPoint, kind: Kind) {
        let times = (point.time_unix_nano, point.start_time_unix_nano);
        let samples = 2 + point.bucket_counts.len() as u64;
        let Some(attributes) = self.own(&point.attributes, samples) else { return };
        self.push("_count", kind, &attributes, times, point.count as f64);
        let levels = [("_min", point.min), ("_max", point.max)];
        for (suffix, value) in levels {
            if let Some(value) = value {
                self.push(suffix, Kind::Gauge, &attributes, times, value);
            }
        }
        if let Some(sum) = point.sum {
            self.push("_sum", kind, &attributes, times, sum);
        }
        let mut total = 0_u64;
        let bounds = point.explicit_bounds.iter().map(ToString::to_string);
        for (count, bound) in point.bucket_counts.iter().zip(bounds.chain(["+Inf".to_owned()])) {
            total = total.saturating_add(*count);
            let mut attributes = attributes.clone();
            attributes.push(("le".to_owned(), bound));
            self.push("_bucket", kind, &attributes, times, total as f64);
        }
    }

    fn summary(&mut self, point: &SummaryDataPoint) {
        let times = (point.time_unix_nano, point.start_time_unix_nano);
        let samples = 2 + point.quantile_values.len() as u64;
        let Some(attributes) = self.own(&point.attributes, samples) else { return };
        self.push("_count", Kind::Counter, &attributes, times, point.count as f64);
        self.push("_sum", Kind::Counter, &attributes, times, point.sum);
        for quantile in &point.quantile_values {
            let mut attributes = attributes.clone();
            attributes.push(("quantile".to_owned(), quantile.quantile.to_string()));
            self.push("", Kind::Gauge, &attributes, times, quantile.value);
        }
    }

    /// A point's own attributes; its samples are refused when they make too long a series.
    fn own(&mut self, attributes: &[KeyValue], samples: u64) -> Option<Tags> {
        let own = tags(attributes);
        let length = self.metric.name.len() + self.shared_bytes + bytes(&own);
        self.rows.fits(length, samples).then_some(own)
    }

    fn push(&mut self, suffix: &str, kind: Kind, own: &Tags, times: (u64, u64), value: f64) {
        let target = self.target(suffix, kind, own);
        let millis = |nanos: u64| (nanos / 1_000_000) as i64;
        self.rows.push(target, millis(times.0), value, millis(times.1));
    }

    fn target(&mut self, suffix: &str, kind: Kind, own: &Tags) -> Target {
        let metric = format!("{}{suffix}", self.metric.name);
        let mut tags: Tags = Vec::with_capacity(self.shared.len() + own.len());
        // A point's own attribute hides that of its resource.
        let hidden = |name: &str| own.iter().any(|(own_name, _)| own_name == name);
        tags.extend(self.shared.iter().filter(|(name, _)| !hidden(name)).cloned());
        tags.extend(own.iter().cloned());
        let mut written = metric.clone().into_bytes();
        for (name, value) in &tags {
            for part in [name, value] {
                written.push(0);
                written.extend_from_slice(part.as_bytes());
            }
        }
        let unit = &self.metric.unit;
        self.rows.series(Fingerprint::of(PROTOCOL, &written), |limits| {
            let pairs = tags.iter().map(|(name, value)| (name.as_str(), value.as_str()));
            let key = SeriesKey::new(&metric, pairs, limits).map_err(|cause| cause.to_string())?;
            Ok(Described { key, kind, unit: unit.as_str().into() })
        })
    }
}

fn temporality(code: i32) -> Option<AggregationTemporality> {
    AggregationTemporality::try_from(code).ok()
}

fn tags(attributes: &[KeyValue]) -> Tags {
    let text =
        |attribute: &KeyValue| Some((attribute.key.clone(), text(attribute.value.as_ref()?)));
    attributes.iter().filter_map(text).collect()
}

fn bytes(tags: &Tags) -> usize {
    tags.iter().map(|(name, value)| name.len() + value.len()).sum()
}

/// An attribute's value as a tag's; lists and maps as JSON.
fn text(value: &AnyValue) -> String {
    match &value.value {
        Some(any_value::Value::StringValue(text)) => text.clone(),
        Some(any_value::Value::BoolValue(value)) => value.to_string(),
        Some(any_value::Value::IntValue(value)) => value.to_string(),
        Some(any_value::Value::DoubleValue(value)) => value.to_string(),
        Some(other) => serde_json::to_string(other).unwrap_or_default(),
        None => String::new(),
    }
}
