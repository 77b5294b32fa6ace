//! The metrics of rules and alerts of projects other than `default`: each project has its own
//! registry, because a gauge shows the state of one project; `/metrics` shows the sums of all.
//!
//! Must never know: the names of projects.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use prometheus::{
    Registry,
    proto::{Bucket, Metric, MetricFamily, MetricType},
};

/// The gauges of which the largest value counts.
const LARGEST: [&str; 2] = ["granary_rules_reload_failed", "granary_receiver_queue_age_seconds"];

/// The registries of projects. Clones are cheap.
#[derive(Debug, Clone, Default)]
pub(super) struct OfProjects(Arc<Mutex<Vec<Registry>>>);

impl OfProjects {
    pub(super) fn add(&self, registry: &Registry) {
        self.0.lock().push(registry.clone());
    }

    /// Adds the values of the projects to those of `default`.
    pub(super) fn add_to(&self, families: &mut Vec<MetricFamily>) {
        for registry in &*self.0.lock() {
            let mut others: HashMap<_, _> = registry
                .gather()
                .into_iter()
                .map(|family| (family.name().to_owned(), family))
                .collect();
            for family in &mut *families {
                if let Some(other) = others.remove(family.name()) {
                    add_family(family, &other);
                }
            }
            families.extend(others.into_values());
            families.sort_by(|family, other| family.name().cmp(other.name()));
        }
    }
}

fn add_family(family: &mut MetricFamily, other: &MetricFamily) {
    let (kind, takes_largest) = (family.get_field_type(), LARGEST.contains(&family.name()));
    let all = family.mut_metric();
    for metric in other.get_metric() {
        let known = all.iter_mut().find(|known| known.get_label() == metric.get_label());
        match known {
            Some(known) => add_metric(known, metric, kind, takes_largest),
            None => all.push(metric.clone()),
        }
    }
}

fn add_metric(known: &mut Metric, other: &Metric, kind: MetricType, takes_largest: bool) {
    if kind == MetricType::COUNTER {
        let mut counter = known.get_counter().clone();
        counter.set_value(counter.get_value() + other.get_counter().get_value());
        known.set_counter(counter);
    } else if kind == MetricType::GAUGE {
        let mut gauge = known.get_gauge().clone();
        let (value, other) = (gauge.get_value(), other.get_gauge().get_value());
        gauge.set_value(if takes_largest { value.max(other) } else { value + other });
        known.set_gauge(gauge);
    } else if kind == MetricType::HISTOGRAM {
        let (mut histogram, other) = (known.get_histogram().clone(), other.get_histogram());
        histogram.set_sample_count(histogram.get_sample_count() + other.get_sample_count());
        histogram.set_sample_sum(histogram.get_sample_sum() + other.get_sample_sum());
        let add = |(bucket, other): (&Bucket, &Bucket)| {
            let mut sum = bucket.clone();
            sum.set_cumulative_count(bucket.cumulative_count() + other.cumulative_count());
            sum
        };
        let buckets = histogram.get_bucket().iter().zip(other.get_bucket()).map(add).collect();
        histogram.set_bucket(buckets);
        known.set_histogram(histogram);
    }
}

#[cfg(test)]
mod tests {
    use super::super::Metrics;

    #[test]
    fn values_of_projects_are_added() {
        let metrics = Metrics::new().unwrap();
        let [red, blue] = [(), ()].map(|()| metrics.for_project().unwrap());
        for (metrics, count) in [(&metrics, 1), (&red, 2), (&blue, 4)] {
            metrics.rules.set(count);
            metrics.rule_evaluations.inc_by(count as u64);
            metrics.rules_reload_failed.set(i64::from(count > 1));
            metrics.alerts.with_label_values(&["firing"]).set(count);
            metrics.rule_group_duration.observe(count as f64);
        }
        red.receiver_queue_age.with_label_values(&["team"]).set(3);
        blue.receiver_queue_age.with_label_values(&["team"]).set(2);
        let mut families = metrics.registry.gather();
        metrics.of_projects.add_to(&mut families);
        let text = prometheus::TextEncoder::new().encode_to_string(&families).unwrap();
        for line in [
            "granary_rules 7",
            "granary_rule_evaluations_total 7",
            "granary_rules_reload_failed 1",
            "granary_alerts{state=\"firing\"} 7",
            "granary_alerts{state=\"pending\"} 0",
            "granary_rule_group_duration_seconds_sum 7",
            "granary_rule_group_duration_seconds_count 3",
            "granary_rule_group_duration_seconds_bucket{le=\"+Inf\"} 3",
            "granary_receiver_queue_age_seconds{receiver=\"team\"} 3",
        ] {
            assert!(text.lines().any(|known| known == line), "{line}: {text}");
        }
    }
}
