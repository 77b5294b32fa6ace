//! The daemon's self-metrics, served at `/metrics`.
//!
//! Labels come from closed sets; no host or series name is ever a label. docs/operations.md
//! documents every metric, and a test compares it with `names.rs`.

mod cluster;
mod dashboards;
mod mirrored;
mod names;
mod of_projects;
mod of_shards;
mod people;
mod process;
mod publish;
mod registering;
mod tls;

use std::sync::{
    Arc, OnceLock,
    atomic::{AtomicU64, Ordering},
};

use prometheus::{
    Encoder, Histogram, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Registry, TextEncoder,
    proto::MetricFamily,
};

use super::labels::{DatagramLoss, IngestOutcome, Protocol, QueryOutcome};
use crate::{model::HostState, policy::RefusalReason, store::Store};
pub use cluster::ClusterMetrics;
pub use dashboards::DashboardMetrics;
use mirrored::MirroredMetrics;
pub use names::{CLUSTER_METRICS, HOST_METRICS, METRIC_NAMES};
use of_projects::OfProjects;
pub use of_shards::ShardMetrics;
pub use people::PeopleMetrics;
use process::cpu_seconds;
pub(super) use process::status_bytes;
pub use publish::PublishMetrics;
use registering::{counter, counters, float_counter, gauge, gauges, histogram};
pub use tls::TlsMetrics;

/// All metrics, and their registry.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "METRIC_NAMES explains each metric")]
pub struct Metrics {
    registry: Registry,
    of_projects: OfProjects,
    of_shards: Arc<OnceLock<ShardMetrics>>,
    pub samples_accepted: IntCounterVec,
    pub samples_duplicate: IntCounterVec,
    pub samples_refused: IntCounterVec,
    pub ingest_requests: IntCounterVec,
    pub ingest_request_duration: Histogram,
    pub writer_queue_bytes: IntGauge,
    pub commit_duration: Histogram,
    pub checkpoint_errors: IntCounter,
    pub checkpoint_duration: Histogram,
    pub queries: IntCounterVec,
    pub queries_refused: IntCounterVec,
    pub requests_refused: IntCounterVec,
    pub hosts: IntGaugeVec,
    pub hosts_forgotten: IntCounter,
    pub pings_accepted: IntCounter,
    pub pings_refused: IntCounter,
    pub connections: IntGauge,
    pub connections_accepted: IntCounter,
    pub tls: TlsMetrics,
    pub people: PeopleMetrics,
    pub publish: PublishMetrics,
    pub body_memory_bytes: IntGauge,
    pub datagrams_dropped: IntCounterVec,
    pub clock_doubted: IntGauge,
    pub disk_missing_bytes: IntGaugeVec,
    pub disk_reserved_bytes: IntGaugeVec,
    pub disk_budget_excess_bytes: IntGauge,
    pub retention_budget_drops: IntCounter,
    pub clock_ahead_seconds: IntGauge,
    pub snapshots_refused: IntCounter,
    pub annotations_forgotten: IntCounter,
    pub dashboards: DashboardMetrics,
    pub config_last_reload_successful: IntGauge,
    pub config_last_reload_success: IntGauge,
    pub config_reload_failures: IntCounter,
    pub near_metric_names: IntCounter,
    pub rules: IntGauge,
    pub rules_reload_failed: IntGauge,
    pub rule_evaluations: IntCounter,
    pub rule_evaluation_failures: IntCounter,
    pub rule_group_evaluations_missed: IntCounter,
    pub rule_group_duration: Histogram,
    pub rule_samples_lost: IntCounter,
    pub alerts: IntGaugeVec,
    pub notifications: IntCounterVec,
    pub receiver_notifications: IntCounterVec,
    pub receiver_queue_length: IntGaugeVec,
    pub receiver_queue_age: IntGaugeVec,
    pub notification_groups: IntGauge,
    pub rule_alerts_left_out: IntGauge,
    pub notification_alerts_left_out: IntGauge,
    pub posted_alerts: IntCounterVec,
    pub posted_alerts_known: IntGauge,
    /// The longest group commit, in microseconds.
    longest_commit: Arc<AtomicU64>,
    mirrored: MirroredMetrics,
    partitions: IntGaugeVec,
    partition_file_bytes: IntGaugeVec,
    memory_bytes: IntGaugeVec,
    cpu_seconds: prometheus::Counter,
}

/// The time of the last successful reload.
const RELOADED_AT: &str = "granary_config_last_reload_success_timestamp_seconds";
/// The number of evaluations of groups of rules that did not take place.
const EVALUATIONS_MISSED: &str = "granary_rule_group_evaluations_missed_total";
/// The number of notifications to each receiver.
const RECEIVED: &str = "granary_receiver_notifications_total";

impl Metrics {
    /// Registers all metrics.
    ///
    /// # Errors
    /// When a name is registered twice, which a test rules out.
    pub fn new() -> Result<Self, prometheus::Error> {
        let r = &Registry::new();
        let metrics = Self {
            samples_accepted: counters(r, "granary_samples_accepted_total", &["protocol"])?,
            samples_duplicate: counters(r, "granary_samples_duplicate_total", &["protocol"])?,
            samples_refused: counters(r, "granary_samples_refused_total", &["protocol", "reason"])?,
            ingest_requests: counters(r, "granary_ingest_requests_total", &["outcome"])?,
            ingest_request_duration: histogram(r, "granary_ingest_request_duration_seconds")?,
            writer_queue_bytes: gauge(r, "granary_writer_queue_bytes")?,
            commit_duration: histogram(r, "granary_commit_duration_seconds")?,
            checkpoint_errors: counter(r, "granary_checkpoint_errors_total")?,
            checkpoint_duration: histogram(r, "granary_checkpoint_duration_seconds")?,
            queries: counters(r, "granary_queries_total", &["endpoint"])?,
            queries_refused: counters(r, "granary_queries_refused_total", &["reason"])?,
            requests_refused: counters(r, "granary_requests_refused_total", &["reason"])?,
            hosts: gauges(r, "granary_hosts", &["state"])?,
            hosts_forgotten: counter(r, "granary_hosts_forgotten_total")?,
            pings_accepted: counter(r, "granary_pings_accepted_total")?,
            pings_refused: counter(r, "granary_pings_refused_total")?,
            connections: gauge(r, "granary_connections")?,
            connections_accepted: counter(r, "granary_connections_total")?,
            tls: TlsMetrics::new(r)?,
            people: PeopleMetrics::new(r)?,
            publish: PublishMetrics::new(r)?,
            datagrams_dropped: counters(r, "granary_datagrams_dropped_total", &["reason"])?,
            body_memory_bytes: gauge(r, "granary_body_memory_bytes")?,
            clock_doubted: gauge(r, "granary_clock_doubted")?,
            disk_budget_excess_bytes: gauge(r, "granary_disk_budget_excess_bytes")?,
            retention_budget_drops: counter(r, "granary_retention_budget_drops_total")?,
            disk_reserved_bytes: gauges(r, "granary_disk_reserved_bytes", &["granularity"])?,
            disk_missing_bytes: gauges(r, "granary_disk_missing_bytes", &["granularity"])?,
            clock_ahead_seconds: gauge(r, "granary_clock_ahead_seconds")?,
            snapshots_refused: counter(r, "granary_snapshots_refused_total")?,
            annotations_forgotten: counter(r, "granary_annotations_forgotten_total")?,
            dashboards: DashboardMetrics::new(r)?,
            config_last_reload_successful: gauge(r, "granary_config_last_reload_successful")?,
            config_last_reload_success: gauge(r, RELOADED_AT)?,
            config_reload_failures: counter(r, "granary_config_reload_failures_total")?,
            near_metric_names: counter(r, "granary_near_metric_names_total")?,
            rules: gauge(r, "granary_rules")?,
            rules_reload_failed: gauge(r, "granary_rules_reload_failed")?,
            rule_evaluations: counter(r, "granary_rule_evaluations_total")?,
            rule_evaluation_failures: counter(r, "granary_rule_evaluation_failures_total")?,
            rule_group_evaluations_missed: counter(r, EVALUATIONS_MISSED)?,
            rule_group_duration: histogram(r, "granary_rule_group_duration_seconds")?,
            rule_samples_lost: counter(r, "granary_rule_samples_lost_total")?,
            alerts: gauges(r, "granary_alerts", &["state"])?,
            notifications: counters(r, "granary_notifications_total", &["outcome"])?,
            receiver_notifications: counters(r, RECEIVED, &["receiver", "outcome"])?,
            receiver_queue_length: gauges(r, "granary_receiver_queue_length", &["receiver"])?,
            receiver_queue_age: gauges(r, "granary_receiver_queue_age_seconds", &["receiver"])?,
            notification_groups: gauge(r, "granary_notification_groups")?,
            rule_alerts_left_out: gauge(r, "granary_rule_alerts_left_out")?,
            notification_alerts_left_out: gauge(r, "granary_notification_alerts_left_out")?,
            posted_alerts: counters(r, "granary_posted_alerts_total", &["outcome"])?,
            posted_alerts_known: gauge(r, "granary_posted_alerts")?,
            longest_commit: Arc::default(),
            mirrored: MirroredMetrics::new(r)?,
            partitions: gauges(r, "granary_partitions", &["granularity"])?,
            partition_file_bytes: gauges(r, "granary_partition_file_bytes", &["granularity"])?,
            memory_bytes: gauges(r, "granary_memory_bytes", &["part"])?,
            cpu_seconds: float_counter(r, "granary_process_cpu_seconds_total")?,
            registry: r.clone(),
            of_projects: OfProjects::default(),
            of_shards: Arc::default(),
        };
        metrics.initialize_labels();
        Ok(metrics)
    }

    /// Creates every possible label value, so that it starts at zero.
    fn initialize_labels(&self) {
        for outcome in IngestOutcome::ALL {
            self.ingest_requests.with_label_values(&[outcome.as_str()]);
        }
        for loss in DatagramLoss::ALL {
            self.datagrams_dropped.with_label_values(&[loss.as_str()]);
        }
        for outcome in QueryOutcome::ALL {
            self.queries_refused.with_label_values(&[outcome.as_str()]);
        }
        for protocol in Protocol::ALL.iter().map(|protocol| protocol.as_str()) {
            self.samples_accepted.with_label_values(&[protocol]);
            self.samples_duplicate.with_label_values(&[protocol]);
            for reason in RefusalReason::ALL {
                self.samples_refused.with_label_values(&[protocol, reason.as_str()]);
            }
        }
        for state in HostState::ALL {
            self.hosts.with_label_values(&[state.as_str()]);
        }
        for state in ["pending", "firing", "no_data"] {
            self.alerts.with_label_values(&[state]);
        }
        for outcome in ["sent", "failed"] {
            self.notifications.with_label_values(&[outcome]);
        }
        for outcome in ["taken", "invalid", "refused"] {
            self.posted_alerts.with_label_values(&[outcome]);
        }
        let reasons = ["host", "origin", "key", "code", "session", "csrf", "scope", "project"];
        for reason in reasons.into_iter().chain(["second_factor", "quota", "unread", "audit"]) {
            self.requests_refused.with_label_values(&[reason]);
        }
        for endpoint in [
            "chart",
            "hosts",
            "sparklines",
            "documents",
            "export",
            "held",
            "series",
            "find",
            "facets",
            "senders",
            "storage",
            "aggregate",
            "tail",
            "promql_instant",
            "promql_range",
            "promql_format",
            "promql_series",
            "promql_labels",
            "promql_values",
            "promql_metadata",
            "promql_status",
            "remote_read",
            "federate",
            "graphite_render",
            "graphite_find",
            "graphite_tags",
        ] {
            self.queries.with_label_values(&[endpoint]);
        }
    }

    /// Records the duration of a group commit.
    pub fn observe_commit(&self, seconds: f64) {
        self.commit_duration.observe(seconds);
        self.longest_commit.fetch_max((seconds * 1e6) as u64, Ordering::Relaxed);
    }

    /// Returns the longest group commit since the start; `None` before the first commit.
    pub fn longest_commit_ms(&self) -> Option<f64> {
        let longest = self.longest_commit.load(Ordering::Relaxed);
        (longest > 0).then_some(longest as f64 / 1e3)
    }

    /// Returns metrics for the rules and alerts of a project, which [`Self::render`] adds to these.
    ///
    /// # Errors
    /// When a name is registered twice, which a test rules out.
    pub fn for_project(&self) -> Result<Self, prometheus::Error> {
        let metrics = Self::new()?;
        self.of_projects.add(&metrics.registry);
        Ok(metrics)
    }

    /// Adds the metrics of a node of a cluster.
    pub fn add_cluster(&self, cluster: &ClusterMetrics) {
        self.of_projects.add(&cluster.registry);
        self.of_shards.get_or_init(|| cluster.of_shards.clone());
    }

    /// Returns the metrics in Prometheus' text format, those of all projects added up.
    ///
    /// # Errors
    /// When the encoder fails.
    pub fn render(&self, store: &Store) -> Result<Vec<u8>, prometheus::Error> {
        let mut text = Vec::new();
        let mut families = self.gather(store);
        self.of_projects.add_to(&mut families);
        if let Some(of_shards) = self.of_shards.get() {
            of_shards.add_to(&mut families);
        }
        TextEncoder::new().encode(&families, &mut text)?;
        Ok(text)
    }

    /// Returns the current values of all metrics.
    pub(super) fn gather(&self, store: &Store) -> Vec<MetricFamily> {
        self.mirrored.update(store);
        let partitions = store.partitions();
        for (index, granularity) in store.all_granularities().iter().enumerate() {
            let members =
                || partitions.iter().filter(|partition| partition.id.granularity.0 == index);
            let bytes: u64 = members().map(|partition| partition.bytes).sum();
            let labels = [granularity.name.as_str()];
            self.partitions.with_label_values(&labels).set(members().count() as i64);
            self.partition_file_bytes.with_label_values(&labels).set(bytes as i64);
        }
        for (part, bytes) in store.memory() {
            self.memory_bytes.with_label_values(&[part]).set(bytes as i64);
        }
        self.cpu_seconds.inc_by((cpu_seconds() - self.cpu_seconds.get()).max(0.0));
        self.registry.gather()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_registered_once_and_has_a_help_text() {
        let metrics = Metrics::new().unwrap();
        let labelled = ["granary_partitions", "granary_partition_file_bytes"];
        metrics.partitions.with_label_values(&["1m"]);
        metrics.partition_file_bytes.with_label_values(&["1m"]);
        metrics.memory_bytes.with_label_values(&["index"]);
        metrics.disk_missing_bytes.with_label_values(&["1m"]);
        metrics.disk_reserved_bytes.with_label_values(&["1m"]);
        metrics.receiver_notifications.with_label_values(&["team", "sent"]);
        metrics.receiver_queue_length.with_label_values(&["team"]);
        metrics.receiver_queue_age.with_label_values(&["team"]);
        let families = metrics.registry.gather();
        let mut names: Vec<_> =
            families.iter().map(prometheus::proto::MetricFamily::name).collect();
        let mut expected: Vec<_> = METRIC_NAMES.iter().map(|(name, _)| *name).collect();
        names.sort_unstable();
        expected.sort_unstable();
        assert_eq!(names, expected);
        assert!(labelled.iter().all(|name| expected.contains(name)));
        assert!(families.iter().all(|family| !family.help().is_empty()));
        assert!(status_bytes("VmHWM:") > 0);
    }
}
