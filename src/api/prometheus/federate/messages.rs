//! Families as length-prefixed messages of Prometheus (`client_model`,
//! `io/prometheus/client/metrics.proto`), the only form with native histograms. A histogram with
//! custom bounds becomes classic buckets, because the messages have no custom bounds.
//!
//! Must never know: requests, how samples are read.

use prost::{Message, encoding};

use super::super::{read_messages::SpanMessage, text_names::NameFormat};
use crate::{
    model::{Histogram, Kind, ResetHint, histogram::Bucket},
    query::SeriesReadings,
};

/// The name and the type of a family; the field [`METRIC`] contains its series.
#[derive(Clone, PartialEq, Message)]
struct FamilyMessage {
    #[prost(string, optional, tag = "1")]
    name: Option<String>,
    #[prost(int32, optional, tag = "3")]
    kind: Option<i32>,
}

const METRIC: u32 = 4;

#[derive(Clone, PartialEq, Message)]
struct MetricMessage {
    #[prost(message, repeated, tag = "1")]
    labels: Vec<LabelMessage>,
    #[prost(message, optional, tag = "2")]
    gauge: Option<NumberMessage>,
    #[prost(message, optional, tag = "3")]
    counter: Option<NumberMessage>,
    #[prost(int64, optional, tag = "6")]
    at_ms: Option<i64>,
    #[prost(message, optional, tag = "7")]
    histogram: Option<HistogramMessage>,
}

#[derive(Clone, PartialEq, Message)]
struct LabelMessage {
    #[prost(string, optional, tag = "1")]
    name: Option<String>,
    #[prost(string, optional, tag = "2")]
    value: Option<String>,
}

#[derive(Clone, Copy, PartialEq, Message)]
struct NumberMessage {
    #[prost(double, optional, tag = "1")]
    value: Option<f64>,
}

/// A histogram with counts as floats. The lists of counts are not packed, as in Prometheus.
#[derive(Clone, PartialEq, Message)]
struct HistogramMessage {
    #[prost(double, optional, tag = "4")]
    count: Option<f64>,
    #[prost(double, optional, tag = "2")]
    sum: Option<f64>,
    #[prost(message, repeated, tag = "3")]
    classic_buckets: Vec<BucketMessage>,
    #[prost(sint32, optional, tag = "5")]
    schema: Option<i32>,
    #[prost(double, optional, tag = "6")]
    zero_threshold: Option<f64>,
    #[prost(double, optional, tag = "8")]
    zero_count: Option<f64>,
    #[prost(message, repeated, tag = "9")]
    negative_spans: Vec<SpanMessage>,
    #[prost(double, repeated, packed = "false", tag = "11")]
    negative_counts: Vec<f64>,
    #[prost(message, repeated, tag = "12")]
    positive_spans: Vec<SpanMessage>,
    #[prost(double, repeated, packed = "false", tag = "14")]
    positive_counts: Vec<f64>,
}

/// A classic bucket: the number of observations up to a bound.
#[derive(Clone, Copy, PartialEq, Message)]
struct BucketMessage {
    #[prost(double, optional, tag = "2")]
    bound: Option<f64>,
    #[prost(double, optional, tag = "4")]
    count: Option<f64>,
}

/// The codes of `MetricType`.
const COUNTER: i32 = 0;
const GAUGE: i32 = 1;
const HISTOGRAM: i32 = 4;
const GAUGE_HISTOGRAM: i32 = 5;

/// The messages of series in order of their metrics. A family begins where the metric or the type
/// changes.
#[derive(Debug)]
pub(super) struct Messages {
    out: Vec<u8>,
    names: NameFormat,
    /// The family of the previous series.
    family: FamilyMessage,
    /// The encoded series of this family.
    metrics: Vec<u8>,
}

impl Messages {
    pub(super) fn new(names: NameFormat) -> Self {
        Self { out: Vec::new(), names, family: FamilyMessage::default(), metrics: Vec::new() }
    }

    /// Returns the allocated bytes.
    pub(super) fn capacity(&self) -> usize {
        self.out.capacity() + self.metrics.capacity()
    }

    /// Adds the newest sample of a series, with these labels.
    pub(super) fn push<'a>(
        &mut self,
        series: &SeriesReadings,
        labels: impl Iterator<Item = (&'a str, &'a str)>,
    ) {
        let mut name = String::new();
        self.names.push_unquoted(series.labels.metric(), true, &mut name);
        let Some((kind, mut metric)) = newest(series) else { return };
        metric.labels = labels.map(|(name, value)| self.label(name, value)).collect();
        let family = FamilyMessage { name: Some(name), kind: Some(kind) };
        if family != self.family {
            self.end_family();
            self.family = family;
        }
        encoding::message::encode(METRIC, &metric, &mut self.metrics);
    }

    fn label(&self, name: &str, value: &str) -> LabelMessage {
        let mut escaped = String::new();
        self.names.push_unquoted(name, false, &mut escaped);
        LabelMessage { name: Some(escaped), value: Some(value.to_owned()) }
    }

    fn end_family(&mut self) {
        if !self.metrics.is_empty() {
            let length = self.family.encoded_len() + self.metrics.len();
            encoding::encode_varint(length as u64, &mut self.out);
            self.out.extend(self.family.encode_to_vec());
            self.out.append(&mut self.metrics);
        }
    }

    /// Returns the messages.
    pub(super) fn finish(mut self) -> Vec<u8> {
        self.end_family();
        self.out
    }
}

/// Returns the type of a series, and its newest sample without labels.
fn newest(series: &SeriesReadings) -> Option<(i32, MetricMessage)> {
    if let Some((at_ms, found)) = series.histograms.last() {
        // The newest slot of a delta is no counter.
        let is_gauge = found.hint == ResetHint::Gauge || series.kind != Kind::Histogram;
        let kind = if is_gauge { GAUGE_HISTOGRAM } else { HISTOGRAM };
        let histogram = Some(histogram_message(found));
        return Some((
            kind,
            MetricMessage { histogram, at_ms: Some(*at_ms), ..Default::default() },
        ));
    }
    let (at_ms, value) = *series.readings.last()?;
    let number = Some(NumberMessage { value: Some(value) });
    let metric = MetricMessage { at_ms: Some(at_ms), ..Default::default() };
    Some(if series.kind == Kind::Counter {
        (COUNTER, MetricMessage { counter: number, ..metric })
    } else {
        (GAUGE, MetricMessage { gauge: number, ..metric })
    })
}

fn histogram_message(histogram: &Histogram) -> HistogramMessage {
    let numbers = HistogramMessage {
        count: Some(histogram.count),
        sum: Some(histogram.sum),
        ..HistogramMessage::default()
    };
    if histogram.is_custom() {
        return HistogramMessage { classic_buckets: classic_buckets(histogram), ..numbers };
    }
    let spans = |side: &[Bucket]| {
        let spans = Bucket::spans(side).into_iter();
        spans.map(|span| SpanMessage { offset: span.offset, length: span.length }).collect()
    };
    let counts = |side: &[Bucket]| side.iter().map(|bucket| bucket.count).collect();
    let mut message = HistogramMessage {
        schema: Some(histogram.schema.into()),
        zero_threshold: Some(histogram.zero_threshold),
        zero_count: Some(histogram.zero_count),
        negative_spans: spans(&histogram.negative),
        negative_counts: counts(&histogram.negative),
        positive_spans: spans(&histogram.positive),
        positive_counts: counts(&histogram.positive),
        ..numbers
    };
    if message.positive_spans.is_empty() && message.negative_spans.is_empty() {
        // A span without buckets marks a native histogram.
        message.positive_spans = vec![SpanMessage { offset: 0, length: 0 }];
    }
    message
}

fn classic_buckets(histogram: &Histogram) -> Vec<BucketMessage> {
    let mut buckets = histogram.positive.iter().peekable();
    let mut total = 0.0;
    let bounds = histogram.custom_bounds.iter().copied().chain([f64::INFINITY]);
    let bucket = |(index, bound): (i32, f64)| {
        while let Some(bucket) = buckets.next_if(|bucket| bucket.index <= index) {
            total += bucket.count;
        }
        BucketMessage { bound: Some(bound), count: Some(total) }
    };
    (0..).zip(bounds).map(bucket).collect()
}

#[cfg(test)]
mod tests {
    use granary_exposition::{Format, Names, NativeHistograms, parts, read_from};

    use super::*;
    use crate::query::Labels;

    fn series(metric: &str, kind: Kind, histogram: Option<Histogram>) -> SeriesReadings {
        let labels = Labels::new(vec![("__name__".into(), metric.into())]);
        let histograms: Vec<_> = histogram.into_iter().map(|found| (1500, found)).collect();
        let readings = if histograms.is_empty() { vec![(1500, 2.5)] } else { Vec::new() };
        SeriesReadings { labels, kind, readings, histograms }
    }

    /// Returns the samples that a scraper of native histograms reads.
    fn scraped(all: &[SeriesReadings]) -> Vec<(String, f64, Option<Histogram>)> {
        let mut messages = Messages::new(NameFormat::Utf8);
        for series in all {
            messages.push(series, [("job", "x\"y")].into_iter());
        }
        let (body, mut samples) = (messages.finish(), Vec::new());
        let format = (Format::Protobuf, NativeHistograms::Preferred);
        read_from(&mut &*body, format, &mut |_| Ok(()), |sample, families| {
            let parts = parts(sample.series, Names::Any)?;
            assert_eq!(parts.labels[0], ("job".into(), "x\"y".into()));
            assert_eq!(sample.time_ms, Some(1500));
            let kind = families.find(&parts.metric).unwrap().kind_of(&parts.metric);
            let labels = parts.labels[1..].iter().map(|(name, value)| format!(" {name}={value}"));
            let name = format!("{} {kind}{}", parts.metric, labels.collect::<String>());
            samples.push((name, sample.value, sample.histogram.cloned()));
            Ok(())
        })
        .unwrap();
        samples
    }

    #[test]
    fn a_scraper_reads_every_histogram_and_number() {
        let mut sketch = Histogram::sketch();
        for value in [-3.0, 0.0, 1.0, 1.0, 1e6] {
            sketch.observe(value, 0.5);
        }
        let gauge = Histogram { hint: ResetHint::Gauge, ..sketch.clone() };
        let found = scraped(&[
            series("a.b", Kind::Gauge, None),
            series("c_total", Kind::Counter, None),
            series("h", Kind::Histogram, Some(sketch.clone())),
            series("h", Kind::GaugeHistogram, Some(gauge.clone())),
            series("i", Kind::DeltaHistogram, Some(Histogram::sketch())),
        ]);
        let expected = [
            ("a.b gauge", 2.5, None),
            ("c_total counter", 2.5, None),
            ("h gauge", 2.5, Some(sketch)),
            ("h gauge", 2.5, Some(gauge)),
            ("i gauge", 0.0, Some(Histogram { hint: ResetHint::Gauge, ..Histogram::sketch() })),
        ];
        let expected = expected.map(|(name, value, found)| (name.to_owned(), value, found));
        assert_eq!(found, expected);
    }

    #[test]
    fn custom_bounds_become_classic_buckets() {
        let custom = Histogram {
            custom_bounds: [1.0, 2.0, 5.0].into(),
            positive: vec![Bucket { index: 0, count: 2.0 }, Bucket { index: 3, count: 4.0 }],
            count: 6.0,
            sum: 40.0,
            ..Histogram::empty(crate::model::histogram::CUSTOM_BOUNDS)
        };
        let found = scraped(&[series("h", Kind::Histogram, Some(custom))]);
        let found: Vec<_> = found.iter().map(|(name, value, _)| (&**name, *value)).collect();
        let expected = [
            ("h_bucket counter le=1.0", 2.0),
            ("h_bucket counter le=2.0", 2.0),
            ("h_bucket counter le=5.0", 2.0),
            ("h_bucket counter le=+Inf", 6.0),
            ("h_sum counter", 40.0),
            ("h_count counter", 6.0),
        ];
        assert_eq!(found, expected);
    }
}
