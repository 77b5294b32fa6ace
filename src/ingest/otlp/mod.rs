//! OTLP metrics (opentelemetry.io, "OTLP Specification" and "Metrics Data Model"), protobuf and
//! JSON: gauges, sums and histograms become series; attributes of the resource and of the point
//! become tags.

mod exponential;
mod wire;

use opentelemetry_proto::tonic::{
    collector::metrics::v1::ExportMetricsServiceRequest,
    common::v1::{AnyValue, KeyValue, any_value},
    metrics::v1::{
        AggregationTemporality, DataPointFlags, ExponentialHistogramDataPoint, HistogramDataPoint,
        NumberDataPoint, SummaryDataPoint, metric::Data, number_data_point,
    },
};

use super::{
    rows::{DescribedSeries, Rows, Target},
    series_cache::Fingerprint,
};
use crate::model::{Histogram, Kind, SeriesKey, UnixMillis};

const PROTOCOL: u8 = 4;

/// The encoding of a body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Form {
    /// `application/x-protobuf`
    Protobuf,
    /// `application/json`
    Json,
}

/// Decodes a body. A refused point does not affect the others.
///
/// # Errors
/// The body is not an `ExportMetricsServiceRequest`.
pub fn decode(form: Form, body: &[u8], rows: &mut Rows<'_>) -> Result<(), String> {
    match form {
        Form::Protobuf => wire::decode(body, rows),
        Form::Json => decode_json(body, rows),
    }
}

fn decode_json(body: &[u8], rows: &mut Rows<'_>) -> Result<(), String> {
    let request: ExportMetricsServiceRequest =
        serde_json::from_slice(body).map_err(|fault| format!("body: {fault}"))?;
    for resource in request.resource_metrics {
        let shared = resource.resource.map(|found| ResourceContext::new(&found.attributes));
        let shared = shared.unwrap_or_default();
        for metric in resource.scope_metrics.into_iter().flat_map(|scope| scope.metrics) {
            let named = Metric { name: &metric.name, unit: &metric.unit };
            if let Some(data) = &metric.data {
                Points::new(named, &shared, rows).take(data);
            }
        }
    }
    Ok(())
}

type Tags = Vec<(String, String)>;

/// The common part of all points of a resource.
struct ResourceContext {
    tags: Tags,
    bytes: usize,
    fingerprint: Fingerprint,
}

impl Default for ResourceContext {
    fn default() -> Self {
        Self::new(&[])
    }
}

impl ResourceContext {
    fn new(attributes: &[KeyValue]) -> Self {
        let tags = tags(attributes);
        let fingerprint = Fingerprint::new(PROTOCOL, written(&tags).as_bytes());
        Self { bytes: bytes(&tags), fingerprint, tags }
    }
}

/// The description of a metric.
#[derive(Debug, Clone, Copy)]
struct Metric<'a> {
    name: &'a str,
    unit: &'a str,
}

/// The points of a metric, processed one by one.
struct Points<'a, 'r> {
    metric: Metric<'a>,
    shared: &'a ResourceContext,
    fingerprint: Fingerprint,
    rows: &'a mut Rows<'r>,
}

/// The common part of all samples of a point.
struct Point {
    tags: Tags,
    fingerprint: Fingerprint,
    at: UnixMillis,
    /// The start of a counter, in Unix milliseconds; 0 if unknown.
    start: i64,
}

impl<'a, 'r> Points<'a, 'r> {
    fn new(metric: Metric<'a>, shared: &'a ResourceContext, rows: &'a mut Rows<'r>) -> Self {
        let fingerprint = shared.fingerprint.and(metric.name.as_bytes());
        Self { metric, shared, fingerprint, rows }
    }

    fn take(&mut self, data: &Data) {
        match data {
            Data::Gauge(gauge) => {
                gauge.data_points.iter().for_each(|point| self.number(point, Kind::Gauge));
            }
            Data::Sum(sum) => {
                let kind = sum_kind(sum.aggregation_temporality, sum.is_monotonic);
                sum.data_points.iter().for_each(|point| self.number(point, kind));
            }
            Data::Histogram(histogram) => {
                let kind = total_kind(histogram.aggregation_temporality);
                histogram.data_points.iter().for_each(|point| self.histogram(point, kind));
            }
            Data::Summary(summary) => {
                summary.data_points.iter().for_each(|point| self.summary(point));
            }
            Data::ExponentialHistogram(histogram) => {
                let kind = total_kind(histogram.aggregation_temporality);
                histogram.data_points.iter().for_each(|point| self.exponential(point, kind));
            }
        }
    }

    fn number(&mut self, point: &NumberDataPoint, kind: Kind) {
        let value = match point.value {
            Some(number_data_point::Value::AsDouble(value)) => value,
            Some(number_data_point::Value::AsInt(value)) => value as f64,
            None => return,
        };
        let times = (point.time_unix_nano, point.start_time_unix_nano);
        if let Some(point) = self.point(&point.attributes, times, 1) {
            self.push(&point, "", None, kind, value);
        }
    }

    /// Adds count, sum, min, max, and cumulative buckets in Prometheus' form.
    fn histogram(&mut self, point: &HistogramDataPoint, kind: Kind) {
        let times = (point.time_unix_nano, point.start_time_unix_nano);
        let samples = 2 + point.bucket_counts.len() as u64;
        let Some(parts) = self.point(&point.attributes, times, samples) else { return };
        self.push(&parts, "_count", None, kind, point.count as f64);
        let levels = [("_min", point.min), ("_max", point.max)];
        for (suffix, value) in levels {
            if let Some(value) = value {
                self.push(&parts, suffix, None, Kind::Gauge, value);
            }
        }
        if let Some(sum) = point.sum {
            self.push(&parts, "_sum", None, kind, sum);
        }
        let mut total = 0_u64;
        let bounds = point.explicit_bounds.iter().map(ToString::to_string);
        for (count, bound) in point.bucket_counts.iter().zip(bounds.chain(["+Inf".to_owned()])) {
            total = total.saturating_add(*count);
            self.push(&parts, "_bucket", Some(("le", &bound)), kind, total as f64);
        }
    }

    fn exponential(&mut self, point: &ExponentialHistogramDataPoint, kind: Kind) {
        let times = (point.time_unix_nano, point.start_time_unix_nano);
        let Some(parts) = self.point(&point.attributes, times, 1) else { return };
        let target = self.series(&parts, "", None, kind.of_histograms());
        let has_value = point.flags & DataPointFlags::NoRecordedValueMask as u32 == 0;
        let histogram =
            if has_value { exponential::histogram(point, kind) } else { Ok(Histogram::stale()) };
        self.rows.push_histogram(target, parts.at, histogram, parts.start);
    }

    fn summary(&mut self, point: &SummaryDataPoint) {
        let times = (point.time_unix_nano, point.start_time_unix_nano);
        let samples = 2 + point.quantile_values.len() as u64;
        let Some(parts) = self.point(&point.attributes, times, samples) else { return };
        self.push(&parts, "_count", None, Kind::Counter, point.count as f64);
        self.push(&parts, "_sum", None, Kind::Counter, point.sum);
        for quantile in &point.quantile_values {
            let level = quantile.quantile.to_string();
            self.push(&parts, "", Some(("quantile", &level)), Kind::Gauge, quantile.value);
        }
    }

    /// Returns the common part of a point; refuses its samples if their series would be too long.
    fn point(
        &mut self,
        attributes: &[KeyValue],
        (at, start): (u64, u64),
        samples: u64,
    ) -> Option<Point> {
        if self.rows.is_full() {
            return None;
        }
        self.rows.begin_point();
        let tags = tags(attributes);
        let length = self.metric.name.len() + self.shared.bytes + bytes(&tags);
        let fingerprint = self.fingerprint.and(written(&tags).as_bytes());
        let millis = |nanos: u64| (nanos / 1_000_000) as i64;
        let (at, start) = (UnixMillis(millis(at)), millis(start));
        self.rows.fits(length, samples).then_some(Point { tags, fingerprint, at, start })
    }

    /// Adds a sample; `extra` is an additional tag.
    fn push(
        &mut self,
        point: &Point,
        suffix: &str,
        extra: Option<(&str, &str)>,
        kind: Kind,
        value: f64,
    ) {
        let target = self.series(point, suffix, extra, kind);
        self.rows.push(target, point.at, value, point.start);
    }

    /// Returns the series of a point's sample.
    fn series(
        &mut self,
        point: &Point,
        suffix: &str,
        extra: Option<(&str, &str)>,
        kind: Kind,
    ) -> Target {
        let mut fingerprint = point.fingerprint.and(suffix.as_bytes()).with_kind(kind);
        if let Some((_, value)) = extra {
            fingerprint = fingerprint.and(value.as_bytes());
        }
        let (metric, shared) = (self.metric, self.shared);
        self.rows.series(fingerprint, |limits| {
            let name = format!("{}{suffix}", metric.name);
            // An attribute of the point overrides the resource's.
            let hidden = |name: &str| point.tags.iter().any(|(tag, _)| tag == name);
            let shared = shared.tags.iter().filter(|(name, _)| !hidden(name));
            let pairs = shared.chain(&point.tags).map(|(name, value)| (&**name, &**value));
            let key = SeriesKey::new(&name, pairs.chain(extra), limits);
            let key = key.map_err(|cause| cause.to_string())?;
            Ok(DescribedSeries { key, kind, unit: metric.unit.into(), is_declared: true })
        })
    }
}

/// Returns the kind of a sum: a gauge if it may fall, unless its values are changes.
fn sum_kind(temporality: i32, is_monotonic: bool) -> Kind {
    match total_kind(temporality) {
        Kind::Delta => Kind::Delta,
        Kind::Gauge
        | Kind::Counter
        | Kind::Histogram
        | Kind::GaugeHistogram
        | Kind::DeltaHistogram
            if is_monotonic =>
        {
            Kind::Counter
        }
        Kind::Gauge
        | Kind::Counter
        | Kind::Histogram
        | Kind::GaugeHistogram
        | Kind::DeltaHistogram => Kind::Gauge,
    }
}

/// Returns the kind of a growing total, cumulative or per interval.
fn total_kind(temporality: i32) -> Kind {
    let delta = AggregationTemporality::Delta as i32;
    if temporality == delta { Kind::Delta } else { Kind::Counter }
}

fn tags(attributes: &[KeyValue]) -> Tags {
    let text =
        |attribute: &KeyValue| Some((attribute.key.clone(), text(attribute.value.as_ref()?)));
    attributes.iter().filter_map(text).collect()
}

fn bytes(tags: &Tags) -> usize {
    tags.iter().map(|(name, value)| name.len() + value.len()).sum()
}

/// Returns the tags as a text that identifies them.
fn written(tags: &Tags) -> String {
    let mut out = String::with_capacity(bytes(tags) + 2 * tags.len());
    for part in tags.iter().flat_map(|(name, value)| [name, value]) {
        out.push_str(part);
        out.push('\0');
    }
    out
}

/// Returns an attribute's value as a tag value; lists and maps become JSON.
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
