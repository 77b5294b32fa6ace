//! The self-metrics as numbers, for the daemon's own samples.
//!
//! Must never know: where they are stored.

use prometheus::proto::{LabelPair, MetricType};

use super::Metrics;
use crate::store::Store;

/// The current value of a self-metric.
#[derive(Debug, Clone, PartialEq)]
pub struct SelfReading {
    /// The name of the metric.
    pub name: String,
    /// The labels of the metric.
    pub labels: Vec<(String, String)>,
    /// The unit, which may be empty.
    pub unit: &'static str,
    /// True for a counter since the start.
    pub is_counter: bool,
    /// The current value.
    pub value: f64,
}

impl Metrics {
    /// Returns the values of `/metrics`, without buckets of histograms and without labelled
    /// counters that are still zero, which would only add empty series.
    pub fn readings(&self, store: &Store) -> Vec<SelfReading> {
        let mut readings = Vec::new();
        for family in self.gather(store) {
            let kind = family.get_field_type();
            for metric in family.get_metric() {
                let pair = |label: &LabelPair| (label.name().to_owned(), label.value().to_owned());
                let labels: Vec<_> = metric.get_label().iter().map(pair).collect();
                let mut add = |suffix: &str, is_counter, value| {
                    if is_counter && value == 0.0 && !labels.is_empty() {
                        return;
                    }
                    let name = format!("{}{suffix}", family.name());
                    let unit = if suffix == "_count" { "" } else { unit(family.name()) };
                    let labels = labels.clone();
                    readings.push(SelfReading { name, labels, unit, is_counter, value });
                };
                if kind == MetricType::COUNTER {
                    add("", true, metric.get_counter().get_value());
                } else if kind == MetricType::GAUGE {
                    add("", false, metric.get_gauge().get_value());
                } else if kind == MetricType::HISTOGRAM {
                    let histogram = metric.get_histogram();
                    add("_sum", true, histogram.get_sample_sum());
                    add("_count", true, histogram.get_sample_count() as f64);
                }
            }
        }
        readings
    }
}

/// Returns the unit that a name contains.
fn unit(name: &str) -> &'static str {
    ["bytes", "seconds"]
        .into_iter()
        .find(|unit| name.split('_').any(|part| part == *unit))
        .unwrap_or_default()
}
