//! The answers of Prometheus' API before they are encoded.
//!
//! Must never know: how an answer was computed, JSON.

use std::borrow::Cow;

use crate::query::{Labels, MatrixSeries, PromqlValue};

/// The content of the field `data`.
#[derive(Debug)]
pub(super) enum Data {
    /// The value of an expression.
    Value(PromqlValue),
    /// The labels of series.
    Series(Vec<Labels>),
    /// Names or values of labels.
    Texts(Vec<String>),
    /// Metadata of metrics.
    Metrics(Vec<MetricEntry>),
    /// A single string.
    Text(String),
    /// Encoded JSON.
    Json(Cow<'static, str>),
}

/// Metadata of a metric.
#[derive(Debug)]
pub(super) struct MetricEntry {
    pub(super) name: String,
    /// The type in Prometheus' terms.
    pub(super) kind: &'static str,
    pub(super) unit: String,
}

/// An answer with its warnings and infos.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) data: Data,
    pub(super) warnings: Vec<String>,
    pub(super) infos: Vec<String>,
}

impl Answer {
    pub(super) fn new(data: Data) -> Self {
        Self { data, warnings: Vec::new(), infos: Vec::new() }
    }

    /// Returns the bytes of the answer's points.
    pub(super) fn bytes(&self) -> usize {
        if let Data::Value(PromqlValue::Vector(samples)) = &self.data {
            let histograms = samples.iter().filter_map(|sample| sample.histogram.as_ref());
            return histograms.map(|histogram| histogram.bytes()).sum();
        }
        let Data::Value(PromqlValue::Matrix(all)) = &self.data else { return 0 };
        let histograms = |series: &MatrixSeries| {
            series.histograms.iter().map(|(_, histogram)| histogram.bytes()).sum::<usize>()
        };
        all.iter().map(|series| series.points.bytes() + histograms(series)).sum()
    }
}
