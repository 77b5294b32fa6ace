//! What the daemon tells Prometheus about itself, at `/metrics`.
//!
//! Labels come from closed sets; no host or series name is ever a label here. docs/operations.md
//! documents every name, and a test keeps it so.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use prometheus::{
    Encoder, Histogram, HistogramOpts, IntCounter, IntCounterVec, IntGauge, IntGaugeVec, Opts,
    Registry, TextEncoder, proto::MetricFamily,
};

use super::{
    labels::{DatagramLoss, IngestOutcome, Protocol, QueryOutcome},
    log_limit::log_lines_left_out,
};
use crate::{policy::RefusalReason, store::Store};

/// Series that the daemon writes of each host that pings, and what they are; no metric of its own.
pub const HOST_METRICS: [(&str, &str); 5] = [
    ("granary_host_silent_seconds", "How long an agent has said nothing of a host."),
    ("granary_host_up", "Whether an agent of the host was heard in the last 4 minutes."),
    ("granary_host_first_seen_seconds", "When the first ping of a host came, Unix seconds."),
    ("granary_host_boot_time_seconds", "When a host was started, Unix seconds."),
    ("granary_host_clock_skew_seconds", "How far an agent's clock was ahead at its last ping."),
];

/// Every metric name with its help text.
pub const METRIC_NAMES: [(&str, &str); 67] = [
    ("granary_samples_accepted_total", "Samples made durable, by protocol"),
    ("granary_samples_duplicate_total", "Samples that had been accepted before, by protocol"),
    ("granary_samples_refused_total", "Samples refused for good, by protocol and reason"),
    ("granary_ingest_requests_total", "Ingest requests, by outcome"),
    ("granary_ingest_request_duration_seconds", "Time from a request's body to its durable answer"),
    ("granary_writer_queue_bytes", "Bytes of batches that wait for the journal"),
    ("granary_commit_duration_seconds", "Time of one durable group commit"),
    ("granary_commits_total", "Group commits"),
    ("granary_journal_written_bytes_total", "Bytes of records written to the journal"),
    ("granary_journal_file_bytes", "Bytes that the journal's files take"),
    ("granary_head_file_bytes", "Bytes that the head's file takes: periods under way"),
    ("granary_catalog_bytes", "Bytes of cells in memory that no checkpoint took up yet"),
    ("granary_memory_bytes", "Memory that parts of the store take, about, by part"),
    ("granary_series", "Series in the dictionary"),
    ("granary_series_idle", "Counters put aside because they had no sample for long"),
    ("granary_senders", "Senders that number their batches"),
    ("granary_senders_forgotten_total", "Senders forgotten to make room, or on request"),
    ("granary_checkpoints_total", "Finished checkpoints"),
    ("granary_checkpoint_errors_total", "Checkpoints that failed and will be tried again"),
    ("granary_checkpoint_duration_seconds", "Time of one checkpoint"),
    ("granary_cells_written_total", "Cells merged into documents"),
    ("granary_documents_patched_total", "Documents that were there and were changed"),
    ("granary_documents_grown_total", "Documents whose length changed; must stay 0"),
    ("granary_shells_preallocated_total", "Empty documents made ahead of their time"),
    ("granary_shells_missed_total", "Documents that a checkpoint had to create"),
    ("granary_partitions", "Partitions, by granularity"),
    ("granary_partition_file_bytes", "Bytes that partition files take, by granularity"),
    ("granary_partitions_damaged", "Partition files set aside because they are damaged"),
    ("granary_documents_damaged", "Documents and head rows found damaged since the start"),
    ("granary_series_forgotten_total", "Series forgotten: no sample of theirs was left"),
    ("granary_partitions_dropped_total", "Partitions dropped by retention"),
    (
        "granary_partitions_sealed_total",
        "Partitions that were compressed, or of which segments became one",
    ),
    ("granary_documents_sealed_total", "Open documents that were compressed with their partition"),
    ("granary_sealed_bytes_total", "Bytes written while partitions were compressed"),
    ("granary_sealing_refused_total", "What would not have come back as it is; must stay 0"),
    ("granary_queries_total", "Queries begun, by endpoint"),
    ("granary_queries_refused_total", "Queries without an answer, by reason"),
    ("granary_requests_refused_total", "Requests that a strange web page may have sent, by reason"),
    ("granary_hosts", "Hosts that ping, by state"),
    ("granary_hosts_forgotten_total", "Hosts forgotten to make room"),
    ("granary_pings_accepted_total", "Pings of agents taken in"),
    ("granary_pings_refused_total", "Pings refused for what they say"),
    ("granary_connections", "Open connections"),
    ("granary_connections_total", "Connections accepted"),
    ("granary_datagrams_dropped_total", "Datagrams that were lost, by reason"),
    ("granary_body_memory_bytes", "Memory that ingest requests take: bodies and what they become"),
    ("granary_clock_doubted", "1 while the clock is doubted and nothing is dropped"),
    ("granary_clock_ahead_seconds", "Time that a doubted clock is ahead of what is believed"),
    ("granary_snapshots_refused_total", "Snapshots for which there was no room"),
    ("granary_annotations_forgotten_total", "Annotations that made room for newer ones"),
    ("granary_rules", "Rules that are evaluated"),
    ("granary_rules_reload_failed", "1 when the rule files could not be used when last read"),
    ("granary_rule_evaluations_total", "Evaluations of rules"),
    ("granary_rule_evaluation_failures_total", "Evaluations of rules that failed"),
    ("granary_rule_group_evaluations_missed_total", "Evaluations of groups that nobody made"),
    ("granary_rule_group_duration_seconds", "Time of one evaluation of a group of rules"),
    ("granary_rule_samples_lost_total", "Samples of rules that could not be written"),
    ("granary_alerts", "Alerts, by state"),
    ("granary_notifications_total", "Alerts told to Alertmanagers, by outcome"),
    ("granary_receiver_notifications_total", "Notifications to receivers, by outcome"),
    ("granary_receiver_queue_length", "Notifications that a receiver has not confirmed"),
    ("granary_receiver_queue_age_seconds", "Age of the oldest one of them"),
    ("granary_notification_groups", "Groups of alerts that are told together"),
    ("granary_notification_alerts_left_out", "Alerts that are in no group, because of too many"),
    ("granary_log_lines_left_out_total", "Lines of the log that came too often"),
    ("granary_process_cpu_seconds_total", "CPU time of this process, user and system"),
    ("granary_process_resident_memory_peak_bytes", "Largest resident memory of this process"),
];

/// All metrics and the registry that they are in.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "METRIC_NAMES explains each")]
pub struct Metrics {
    registry: Registry,
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
    pub body_memory_bytes: IntGauge,
    pub datagrams_dropped: IntCounterVec,
    pub clock_doubted: IntGauge,
    pub clock_ahead_seconds: IntGauge,
    pub snapshots_refused: IntCounter,
    pub annotations_forgotten: IntCounter,
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
    pub notification_alerts_left_out: IntGauge,
    /// Microseconds.
    longest_commit: Arc<AtomicU64>,
    mirrored: Mirrored,
    partitions: IntGaugeVec,
    partition_file_bytes: IntGaugeVec,
    memory_bytes: IntGaugeVec,
    cpu_seconds: prometheus::Counter,
}

/// Reads one number that the store keeps.
type ReadStore = fn(&Store) -> u64;

/// Numbers that the store keeps and that are copied at each scrape.
#[derive(Debug, Clone)]
struct Mirrored {
    counters: Vec<(IntCounter, ReadStore)>,
    gauges: Vec<(IntGauge, ReadStore)>,
}

impl Metrics {
    /// Registers everything.
    ///
    /// # Errors
    /// When a name is registered twice, which a test rules out.
    pub fn new() -> Result<Self, prometheus::Error> {
        let registry = Registry::new();
        let r = &registry;
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
            datagrams_dropped: counters(r, "granary_datagrams_dropped_total", &["reason"])?,
            body_memory_bytes: gauge(r, "granary_body_memory_bytes")?,
            clock_doubted: gauge(r, "granary_clock_doubted")?,
            clock_ahead_seconds: gauge(r, "granary_clock_ahead_seconds")?,
            snapshots_refused: counter(r, "granary_snapshots_refused_total")?,
            annotations_forgotten: counter(r, "granary_annotations_forgotten_total")?,
            rules: gauge(r, "granary_rules")?,
            rules_reload_failed: gauge(r, "granary_rules_reload_failed")?,
            rule_evaluations: counter(r, "granary_rule_evaluations_total")?,
            rule_evaluation_failures: counter(r, "granary_rule_evaluation_failures_total")?,
            rule_group_evaluations_missed: counter(
                r,
                "granary_rule_group_evaluations_missed_total",
            )?,
            rule_group_duration: histogram(r, "granary_rule_group_duration_seconds")?,
            rule_samples_lost: counter(r, "granary_rule_samples_lost_total")?,
            alerts: gauges(r, "granary_alerts", &["state"])?,
            notifications: counters(r, "granary_notifications_total", &["outcome"])?,
            receiver_notifications: counters(
                r,
                "granary_receiver_notifications_total",
                &["receiver", "outcome"],
            )?,
            receiver_queue_length: gauges(r, "granary_receiver_queue_length", &["receiver"])?,
            receiver_queue_age: gauges(r, "granary_receiver_queue_age_seconds", &["receiver"])?,
            notification_groups: gauge(r, "granary_notification_groups")?,
            notification_alerts_left_out: gauge(r, "granary_notification_alerts_left_out")?,
            longest_commit: Arc::default(),
            mirrored: Mirrored::new(r)?,
            partitions: gauges(r, "granary_partitions", &["granularity"])?,
            partition_file_bytes: gauges(r, "granary_partition_file_bytes", &["granularity"])?,
            memory_bytes: gauges(r, "granary_memory_bytes", &["part"])?,
            cpu_seconds: float_counter(r, "granary_process_cpu_seconds_total")?,
            registry,
        };
        metrics.begin_at_zero();
        Ok(metrics)
    }

    /// Every label that can occur is there from the start, at zero.
    fn begin_at_zero(&self) {
        for outcome in IngestOutcome::ALL {
            self.ingest_requests.with_label_values(&[outcome.as_str()]);
        }
        for loss in DatagramLoss::ALL {
            self.datagrams_dropped.with_label_values(&[loss.as_str()]);
        }
        for outcome in QueryOutcome::ALL {
            self.queries_refused.with_label_values(&[outcome.as_str()]);
        }
        for protocol in Protocol::ALL.map(Protocol::as_str) {
            self.samples_accepted.with_label_values(&[protocol]);
            self.samples_duplicate.with_label_values(&[protocol]);
            for reason in RefusalReason::ALL {
                self.samples_refused.with_label_values(&[protocol, reason.as_str()]);
            }
        }
        for state in ["up", "late", "down"] {
            self.hosts.with_label_values(&[state]);
        }
        for state in ["pending", "firing", "no_data"] {
            self.alerts.with_label_values(&[state]);
        }
        for outcome in ["sent", "failed"] {
            self.notifications.with_label_values(&[outcome]);
        }
        for reason in ["host", "origin"] {
            self.requests_refused.with_label_values(&[reason]);
        }
        for endpoint in [
            "chart",
            "hosts",
            "sparklines",
            "documents",
            "series",
            "find",
            "facets",
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
        ] {
            self.queries.with_label_values(&[endpoint]);
        }
    }

    /// Notes a group commit.
    pub fn observe_commit(&self, seconds: f64) {
        self.commit_duration.observe(seconds);
        self.longest_commit.fetch_max((seconds * 1e6) as u64, Ordering::Relaxed);
    }

    /// The longest group commit since the start; `None` when there was none.
    pub fn longest_commit_ms(&self) -> Option<f64> {
        let longest = self.longest_commit.load(Ordering::Relaxed);
        (longest > 0).then_some(longest as f64 / 1e3)
    }

    /// The text that Prometheus reads.
    ///
    /// # Errors
    /// When the encoder fails.
    pub fn render(&self, store: &Store) -> Result<Vec<u8>, prometheus::Error> {
        let mut text = Vec::new();
        TextEncoder::new().encode(&self.gather(store), &mut text)?;
        Ok(text)
    }

    /// Every number, up to date.
    pub(super) fn gather(&self, store: &Store) -> Vec<MetricFamily> {
        self.mirrored.update(store);
        let partitions = store.partitions();
        for (index, granularity) in store.all_granularities().iter().enumerate() {
            let own = || partitions.iter().filter(|own| own.id.granularity.0 == index);
            let bytes: u64 = own().map(|partition| partition.bytes).sum();
            let labels = [granularity.name.as_str()];
            self.partitions.with_label_values(&labels).set(own().count() as i64);
            self.partition_file_bytes.with_label_values(&labels).set(bytes as i64);
        }
        for (part, bytes) in store.memory() {
            self.memory_bytes.with_label_values(&[part]).set(bytes as i64);
        }
        self.cpu_seconds.inc_by((cpu_seconds() - self.cpu_seconds.get()).max(0.0));
        self.registry.gather()
    }
}

impl Mirrored {
    fn new(r: &Registry) -> Result<Self, prometheus::Error> {
        let counters: [(&str, ReadStore); 16] = [
            ("granary_commits_total", |s| s.counters().commits.get()),
            ("granary_journal_written_bytes_total", |s| s.counters().journal_bytes.get()),
            ("granary_checkpoints_total", |s| s.counters().checkpoints.get()),
            ("granary_cells_written_total", |s| s.counters().cells_written.get()),
            ("granary_documents_patched_total", |s| s.counters().documents_patched.get()),
            ("granary_documents_grown_total", |s| s.counters().documents_grown.get()),
            ("granary_shells_preallocated_total", |s| s.counters().shells_preallocated.get()),
            ("granary_shells_missed_total", |s| s.counters().shells_missed.get()),
            ("granary_series_forgotten_total", |s| s.counters().series_forgotten.get()),
            ("granary_partitions_dropped_total", |s| s.counters().partitions_dropped.get()),
            ("granary_partitions_sealed_total", |s| s.counters().partitions_sealed.get()),
            ("granary_documents_sealed_total", |s| s.counters().documents_sealed.get()),
            ("granary_sealed_bytes_total", |s| s.counters().sealed_bytes.get()),
            ("granary_sealing_refused_total", |s| s.counters().sealing_refused.get()),
            ("granary_senders_forgotten_total", |s| s.counters().senders_forgotten.get()),
            ("granary_log_lines_left_out_total", |_| log_lines_left_out()),
        ];
        let gauges: [(&str, ReadStore); 9] = [
            ("granary_journal_file_bytes", Store::journal_bytes),
            ("granary_head_file_bytes", Store::head_bytes),
            ("granary_catalog_bytes", |s| s.catalog_bytes() as u64),
            ("granary_series", |s| s.dictionary().len() as u64),
            ("granary_series_idle", |s| s.idle_series() as u64),
            ("granary_partitions_damaged", |s| s.damaged_partitions().len() as u64),
            ("granary_documents_damaged", Store::damaged_documents),
            ("granary_senders", |s| s.sender_count() as u64),
            ("granary_process_resident_memory_peak_bytes", |_| status_bytes("VmHWM:")),
        ];
        Ok(Self {
            counters: counters
                .into_iter()
                .map(|(name, read)| Ok((counter(r, name)?, read)))
                .collect::<Result<_, prometheus::Error>>()?,
            gauges: gauges
                .into_iter()
                .map(|(name, read)| Ok((gauge(r, name)?, read)))
                .collect::<Result<_, prometheus::Error>>()?,
        })
    }

    fn update(&self, store: &Store) {
        for (counter, read) in &self.counters {
            counter.inc_by(read(store).saturating_sub(counter.get()));
        }
        for (gauge, read) in &self.gauges {
            gauge.set(read(store) as i64);
        }
    }
}

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

fn counter(r: &Registry, name: &str) -> Result<IntCounter, prometheus::Error> {
    registered(r, IntCounter::with_opts(opts(name)))
}

fn float_counter(r: &Registry, name: &str) -> Result<prometheus::Counter, prometheus::Error> {
    registered(r, prometheus::Counter::with_opts(opts(name)))
}

fn counters(r: &Registry, name: &str, labels: &[&str]) -> Result<IntCounterVec, prometheus::Error> {
    registered(r, IntCounterVec::new(opts(name), labels))
}

fn gauge(r: &Registry, name: &str) -> Result<IntGauge, prometheus::Error> {
    registered(r, IntGauge::with_opts(opts(name)))
}

fn gauges(r: &Registry, name: &str, labels: &[&str]) -> Result<IntGaugeVec, prometheus::Error> {
    registered(r, IntGaugeVec::new(opts(name), labels))
}

fn histogram(r: &Registry, name: &str) -> Result<Histogram, prometheus::Error> {
    let buckets = prometheus::exponential_buckets(0.0005, 2.0, 18)?;
    registered(r, Histogram::with_opts(HistogramOpts::from(opts(name)).buckets(buckets)))
}

/// User and system time of this process, by getrusage-like `/proc/self/stat` (fields 14 and 15,
/// proc(5)).
fn cpu_seconds() -> f64 {
    let stat = std::fs::read_to_string("/proc/self/stat").unwrap_or_default();
    // The command's name may hold spaces; it ends with the last parenthesis.
    let fields = stat.rsplit_once(')').map_or("", |(_, rest)| rest).split_ascii_whitespace();
    let ticks: f64 = fields.skip(11).take(2).filter_map(|field| field.parse::<f64>().ok()).sum();
    ticks / rustix::param::clock_ticks_per_second() as f64
}

/// What a line of `/proc/self/status` (proc(5)) says, such as `VmHWM:`, in bytes.
pub(super) fn status_bytes(name: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    let kib = line.and_then(|line| line.split_ascii_whitespace().next()?.parse::<u64>().ok());
    kib.unwrap_or(0) * 1024
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_registered_once_and_has_a_help_text() {
        let metrics = Metrics::new().unwrap();
        let process = ["granary_partitions", "granary_partition_file_bytes"];
        metrics.partitions.with_label_values(&["1m"]);
        metrics.partition_file_bytes.with_label_values(&["1m"]);
        metrics.memory_bytes.with_label_values(&["index"]);
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
        assert!(process.iter().all(|name| expected.contains(name)));
        assert!(families.iter().all(|family| !family.help().is_empty()));
        assert!(status_bytes("VmHWM:") > 0);
    }
}
