//! Constructors that create a metric and register it.

use prometheus::{
    Histogram, HistogramOpts, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts, Registry,
};

use super::names::{CLUSTER_METRICS, METRIC_NAMES};

fn opts(name: &str) -> Opts {
    let mut names = METRIC_NAMES.iter().chain(&CLUSTER_METRICS);
    let help = names.find(|(known, _)| *known == name).map_or("", |(_, help)| help);
    Opts::new(name, help)
}

fn register<T: prometheus::core::Collector + Clone + 'static>(
    registry: &Registry,
    metric: Result<T, prometheus::Error>,
) -> Result<T, prometheus::Error> {
    let metric = metric?;
    registry.register(Box::new(metric.clone()))?;
    Ok(metric)
}

pub(super) fn counter(registry: &Registry, name: &str) -> Result<IntCounter, prometheus::Error> {
    register(registry, IntCounter::with_opts(opts(name)))
}

pub(super) fn float_counter(
    registry: &Registry,
    name: &str,
) -> Result<prometheus::Counter, prometheus::Error> {
    register(registry, prometheus::Counter::with_opts(opts(name)))
}

pub(super) fn counters(
    registry: &Registry,
    name: &str,
    labels: &[&str],
) -> Result<IntCounterVec, prometheus::Error> {
    register(registry, IntCounterVec::new(opts(name), labels))
}

pub(super) fn gauge(registry: &Registry, name: &str) -> Result<IntGauge, prometheus::Error> {
    register(registry, IntGauge::with_opts(opts(name)))
}

pub(super) fn gauges(
    registry: &Registry,
    name: &str,
    labels: &[&str],
) -> Result<IntGaugeVec, prometheus::Error> {
    register(registry, IntGaugeVec::new(opts(name), labels))
}

pub(super) fn histogram(registry: &Registry, name: &str) -> Result<Histogram, prometheus::Error> {
    let buckets = prometheus::exponential_buckets(0.0005, 2.0, 18)?;
    register(registry, Histogram::with_opts(HistogramOpts::from(opts(name)).buckets(buckets)))
}
