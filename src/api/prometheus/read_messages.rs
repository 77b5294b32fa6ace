//! The messages of Prometheus' remote read protocol
//! (<https://prometheus.io/docs/prometheus/latest/querying/remote_read_api>).
//!
//! Must never know: how a request is answered.

use prost::{Enumeration, Message};

use crate::model::{Histogram, ResetHint, histogram::Bucket};

#[derive(Clone, PartialEq, Message)]
pub(super) struct ReadRequest {
    #[prost(message, repeated, tag = "1")]
    pub(super) queries: Vec<ReadQuery>,
    /// The forms of the answer that the client reads, the preferred one first.
    #[prost(enumeration = "ResponseType", repeated, tag = "2")]
    pub(super) accepted: Vec<i32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Enumeration)]
#[repr(i32)]
pub(super) enum ResponseType {
    Samples = 0,
    StreamedXorChunks = 1,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ReadQuery {
    #[prost(int64, tag = "1")]
    pub(super) start_ms: i64,
    /// The end of the range, inclusive.
    #[prost(int64, tag = "2")]
    pub(super) end_ms: i64,
    #[prost(message, repeated, tag = "3")]
    pub(super) matchers: Vec<LabelMatcher>,
    #[prost(message, optional, tag = "4")]
    pub(super) hints: Option<ReadHints>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct LabelMatcher {
    #[prost(enumeration = "MatchType", tag = "1")]
    pub(super) kind: i32,
    #[prost(string, tag = "2")]
    pub(super) name: String,
    #[prost(string, tag = "3")]
    pub(super) value: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Enumeration)]
#[repr(i32)]
pub(super) enum MatchType {
    Equal = 0,
    NotEqual = 1,
    Pattern = 2,
    NotPattern = 3,
}

/// The supported fields. The step is ignored, because a coarser granularity would return other
/// samples.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ReadHints {
    /// The function that is applied to the series; `series` requests series without samples.
    #[prost(string, tag = "2")]
    pub(super) function: String,
    #[prost(int64, tag = "3")]
    pub(super) start_ms: i64,
    #[prost(int64, tag = "4")]
    pub(super) end_ms: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct LabelPair {
    #[prost(string, tag = "1")]
    pub(super) name: String,
    #[prost(string, tag = "2")]
    pub(super) value: String,
}

#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct Sample {
    #[prost(double, tag = "1")]
    pub(super) value: f64,
    #[prost(int64, tag = "2")]
    pub(super) at_ms: i64,
}

/// The number of the field `results` of a response and of the field `timeseries` of a result.
pub(super) const RESULTS: u32 = 1;

#[derive(Clone, PartialEq, Message)]
pub(super) struct TimeSeries {
    #[prost(message, repeated, tag = "1")]
    pub(super) labels: Vec<LabelPair>,
    #[prost(message, repeated, tag = "2")]
    pub(super) samples: Vec<Sample>,
    #[prost(message, repeated, tag = "4")]
    pub(super) histograms: Vec<HistogramMessage>,
}

/// A native histogram, with counts as floats.
#[derive(Clone, PartialEq, Message)]
pub(super) struct HistogramMessage {
    #[prost(double, optional, tag = "2")]
    pub(super) count: Option<f64>,
    #[prost(double, tag = "3")]
    pub(super) sum: f64,
    #[prost(sint32, tag = "4")]
    pub(super) schema: i32,
    #[prost(double, tag = "5")]
    pub(super) zero_threshold: f64,
    #[prost(double, optional, tag = "7")]
    pub(super) zero_count: Option<f64>,
    #[prost(message, repeated, tag = "8")]
    pub(super) negative_spans: Vec<SpanMessage>,
    #[prost(double, repeated, tag = "10")]
    pub(super) negative_counts: Vec<f64>,
    #[prost(message, repeated, tag = "11")]
    pub(super) positive_spans: Vec<SpanMessage>,
    #[prost(double, repeated, tag = "13")]
    pub(super) positive_counts: Vec<f64>,
    #[prost(int32, tag = "14")]
    pub(super) reset_hint: i32,
    #[prost(int64, tag = "15")]
    pub(super) at_ms: i64,
    #[prost(double, repeated, tag = "16")]
    pub(super) custom_bounds: Vec<f64>,
}

/// Neighbouring buckets.
#[derive(Clone, Copy, PartialEq, Message)]
pub(super) struct SpanMessage {
    #[prost(sint32, tag = "1")]
    pub(super) offset: i32,
    #[prost(uint32, tag = "2")]
    pub(super) length: u32,
}

impl HistogramMessage {
    pub(super) fn new(at_ms: i64, histogram: &Histogram) -> Self {
        let spans = |side: &[Bucket]| {
            let spans = Bucket::spans(side).into_iter();
            spans.map(|span| SpanMessage { offset: span.offset, length: span.length }).collect()
        };
        let counts = |side: &[Bucket]| side.iter().map(|bucket| bucket.count).collect();
        Self {
            count: Some(histogram.count),
            sum: histogram.sum,
            schema: histogram.schema.into(),
            zero_threshold: histogram.zero_threshold,
            zero_count: Some(histogram.zero_count),
            negative_spans: spans(&histogram.negative),
            negative_counts: counts(&histogram.negative),
            positive_spans: spans(&histogram.positive),
            positive_counts: counts(&histogram.positive),
            // A reader compares neighbours: slots leave readings out, so other hints are outdated.
            reset_hint: if histogram.hint == ResetHint::Gauge { 3 } else { 0 },
            at_ms,
            custom_bounds: histogram.custom_bounds.to_vec(),
        }
    }
}

/// The message of a frame.
#[derive(Clone, PartialEq, Message)]
pub(super) struct ChunkedReadResponse {
    #[prost(message, repeated, tag = "1")]
    pub(super) series: Vec<ChunkedSeries>,
    /// The index of the query in the request.
    #[prost(int64, tag = "2")]
    pub(super) query_index: i64,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct ChunkedSeries {
    #[prost(message, repeated, tag = "1")]
    pub(super) labels: Vec<LabelPair>,
    #[prost(message, repeated, tag = "2")]
    pub(super) chunks: Vec<Chunk>,
}

#[derive(Clone, PartialEq, Message)]
pub(super) struct Chunk {
    #[prost(int64, tag = "1")]
    pub(super) min_ms: i64,
    #[prost(int64, tag = "2")]
    pub(super) max_ms: i64,
    #[prost(enumeration = "Encoding", tag = "3")]
    pub(super) encoding: i32,
    #[prost(bytes = "vec", tag = "4")]
    pub(super) data: Vec<u8>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Enumeration)]
#[repr(i32)]
pub(super) enum Encoding {
    Unknown = 0,
    Xor = 1,
}
