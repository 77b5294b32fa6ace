//! Constructors that create a metric and register it.

use prometheus::{
    Histogram, HistogramOpts, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry,
};

use super::names::METRIC_NAMES;

fn opts(name: &str) -> Opts {
    let help = METRIC_NAMES.iter().find(|(known, _)| *known == name).map_or("", |(_, help)| help);
    Opts::new(name, help)
}

fn registered<T: prometheus::core::Collector + Clone + 'static>(
    registry: &Registry,
    metric: Result<T, prometheus::Error>,
) -> Result<T, prometheus::Error> {
    let metric = metric?;
    registry.register(Box::new(metric.clone()))?;
    Ok(metric)
}

pub(super) fn counter(r: &Registry, name: &str) -> Result<IntCounter, prometheus::Error> {
    registered(r, IntCounter::with_opts(opts(name)))
}

pub(super) fn float_counter(
    r: &Registry,
    name: &str,
) -> Result<prometheus::Counter, prometheus::Error> {
    registered(r, prometheus::Counter::with_opts(opts(name)))
}

pub(super) fn counters(
    r: &Registry,
    name: &str,
    labels: &[&str],
) -> Result<IntCounterVec, prometheus::Error> {
    registered(r, IntCounterVec::new(opts(name), labels))
}

pub(super) fn gauge(r: &Registry, name: &str) -> Result<IntGauge, prometheus::Error> {
    registered(r, IntGauge::with_opts(opts(name)))
}

pub(super) fn gauges(
    r: &Registry,
    name: &str,
    labels: &[&str],
) -> Result<IntGaugeVec, prometheus::Error> {
    registered(r, IntGaugeVec::new(opts(name), labels))
}

pub(super) fn histogram(r: &Registry, name: &str) -> Result<Histogram, prometheus::Error> {
    let buckets = prometheus::exponential_buckets(0.0005, 2.0, 18)?;
    registered(r, Histogram::with_opts(HistogramOpts::from(opts(name)).buckets(buckets)))
}
