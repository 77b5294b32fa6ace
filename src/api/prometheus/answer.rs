//! What is answered, before it is written.
//!
//! Must never know: how an answer was found, JSON.

use std::borrow::Cow;

use crate::query::{Labels, PromqlValue};

/// What stands behind `data`.
#[derive(Debug)]
pub(super) enum Data {
    /// The value of an expression.
    Value(PromqlValue),
    /// Series.
    Series(Vec<Labels>),
    /// Texts: names or values of labels.
    Texts(Vec<String>),
    /// What is known of metrics.
    Metrics(Vec<MetricEntry>),
    /// One text.
    Text(String),
    /// JSON that is written already.
    Json(Cow<'static, str>),
}

/// What is known of a metric.
#[derive(Debug)]
pub(super) struct MetricEntry {
    pub(super) name: String,
    /// A type as Prometheus names them.
    pub(super) kind: &'static str,
    pub(super) unit: String,
}

/// An answer with what a reader should know of it.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) data: Data,
    pub(super) warnings: Vec<String>,
    pub(super) infos: Vec<String>,
}

impl Answer {
    pub(super) fn of(data: Data) -> Self {
        Self { data, warnings: Vec::new(), infos: Vec::new() }
    }

    /// Bytes that its points take.
    pub(super) fn bytes(&self) -> usize {
        let Data::Value(PromqlValue::Matrix(all)) = &self.data else { return 0 };
        all.iter().map(|series| series.points.bytes()).sum()
    }
}
