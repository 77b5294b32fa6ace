//! The settings as they are used.

use std::{net::SocketAddr, path::PathBuf, sync::Arc, time::Duration};

use super::{
    ConfigError,
    alerting::{alertmanagers, rules},
    faults::Faults,
    raw::Raw,
    sections::{
        annotations_max, checkpoint_bounds, client_timeout, clock, granularities, graphite,
        graphite_templates, ha_senders, idle_after, log_format, preallocation_rate, promql,
        queue_bytes_max, sealing, self_interval, series_limits, snapshots, socket_address,
        store_limits,
    },
};
use crate::{
    actors::{GraphiteSettings, SealSettings},
    alerts::{Alertmanager, External},
    ingest::graphite::Template,
    kept::RuleSources,
    model::{GranularitySet, SeriesLimits},
    policy::{SnapshotPolicy, TrustRules},
    query::PromqlSettings,
    store::{CheckpointBounds, StoreLimits},
    telemetry::LogFormat,
};

/// Checked settings; `config/default.toml` explains each.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "config/default.toml explains each key, and a test keeps it whole")]
pub struct Settings {
    /// What is in effect, as TOML: a line for each section.
    pub as_toml: Vec<String>,
    /// The keys that differ from their defaults, with their values.
    pub changed: Vec<String>,
    /// Notes on effects that their author may not expect.
    pub notes: Vec<String>,
    pub listen: SocketAddr,
    pub workers: usize,
    pub shutdown_timeout: Duration,
    pub client_timeout: Duration,
    pub keep_alive: Duration,
    pub host_names: Vec<String>,
    pub data_dir: PathBuf,
    pub snapshot_dir: PathBuf,
    pub checkpoint_interval: Duration,
    /// After how long without samples counters are put aside, if they are.
    pub idle_after: Option<Duration>,
    pub checkpoint_bounds: CheckpointBounds,
    pub future_skew: Duration,
    pub out_of_order_window: Duration,
    pub ha_senders: Vec<Box<str>>,
    pub connections_max: usize,
    pub request_bytes_max: usize,
    pub decompressed_bytes_max: usize,
    pub body_memory_max: usize,
    pub request_series_max: usize,
    pub graphite: GraphiteSettings,
    pub graphite_templates: Vec<Template>,
    pub queue_bytes_max: usize,
    pub store_limits: StoreLimits,
    pub series_limits: SeriesLimits,
    pub query_series_max: usize,
    pub query_points_max: usize,
    pub queries_max: usize,
    pub query_timeout: Duration,
    pub promql: PromqlSettings,
    pub rules: RuleSources,
    pub alertmanagers: Vec<Alertmanager>,
    pub silences_kept: Duration,
    pub tails_max: usize,
    pub hosts_max: usize,
    pub annotations_max: usize,
    pub preallocation_enabled: bool,
    pub preallocation_per_second: u32,
    pub preallocation_bytes_max: u64,
    pub retention_interval: Duration,
    pub sealing: SealSettings,
    pub cache_bytes_max: usize,
    pub clock: TrustRules,
    pub snapshots: SnapshotPolicy,
    /// How often the daemon samples itself, when it does.
    pub self_interval: Option<Duration>,
    pub log_format: LogFormat,
    pub log_filter: String,
    pub granularities: GranularitySet,
}

impl Settings {
    /// Checks everything and reports every fault.
    pub(crate) fn validate(raw: &Raw) -> Result<Self, ConfigError> {
        let mut faults = Faults::default();
        let (limits, ingest, server) = (&raw.limits, &raw.ingest, &raw.server);
        let listen = socket_address("server.listen", &server.listen, &mut faults);
        let granularities = granularities(raw, &mut faults);
        let (body, decompressed) = (ingest.request_bytes_max, ingest.decompressed_bytes_max);
        let settings = Self {
            as_toml: Vec::new(),
            changed: Vec::new(),
            notes: Vec::new(),
            listen,
            workers: server.workers,
            shutdown_timeout: faults.duration("server.shutdown_timeout", &server.shutdown_timeout),
            client_timeout: client_timeout(&server.client_timeout, &mut faults),
            keep_alive: faults.duration("server.keep_alive", &server.keep_alive),
            host_names: server.host_names.clone(),
            data_dir: raw.storage.data_dir.clone(),
            snapshot_dir: raw.storage.snapshot_dir.clone(),
            checkpoint_interval: faults
                .duration("storage.checkpoint_interval", &raw.storage.checkpoint_interval),
            idle_after: idle_after(&raw.storage, &mut faults),
            checkpoint_bounds: checkpoint_bounds(&raw.storage, &mut faults),
            future_skew: faults.duration("ingest.future_skew", &ingest.future_skew),
            out_of_order_window: faults
                .duration("ingest.out_of_order_window", &ingest.out_of_order_window),
            ha_senders: ha_senders(ingest, &mut faults),
            connections_max: faults.some("server.connections_max", server.connections_max),
            request_bytes_max: faults.at_least("ingest.request_bytes_max", body, 1024),
            decompressed_bytes_max: faults.at_least(
                "ingest.decompressed_bytes_max",
                decompressed,
                1024,
            ),
            body_memory_max: faults.at_least(
                "ingest.body_memory_max",
                ingest.body_memory_max,
                body.saturating_add(decompressed),
            ),
            request_series_max: faults.some("limits.request_series_max", limits.request_series_max),
            graphite: graphite(&raw.graphite, &server.client_timeout, &mut faults),
            graphite_templates: graphite_templates(&raw.graphite, &mut faults),
            queue_bytes_max: queue_bytes_max(ingest, &mut faults),
            store_limits: store_limits(raw, &mut faults),
            series_limits: series_limits(limits, &mut faults),
            query_series_max: faults.some("limits.query_series_max", limits.query_series_max),
            query_points_max: faults.some("limits.query_points_max", limits.query_points_max),
            queries_max: faults.some("limits.queries_max", limits.queries_max),
            query_timeout: faults.duration("limits.query_timeout", &limits.query_timeout),
            promql: promql(&raw.promql, &mut faults),
            rules: rules(raw, &mut faults),
            alertmanagers: alertmanagers(&raw.alerts, &mut faults),
            silences_kept: faults.duration("alerts.silences_kept", &raw.alerts.silences_kept),
            tails_max: faults.some("limits.tails_max", limits.tails_max),
            hosts_max: faults.some("limits.hosts_max", limits.hosts_max),
            annotations_max: annotations_max(limits, &mut faults),
            preallocation_enabled: raw.preallocation.enabled,
            preallocation_per_second: preallocation_rate(&raw.preallocation, &mut faults),
            preallocation_bytes_max: raw.preallocation.bytes_max,
            sealing: sealing(&raw.storage, &mut faults),
            cache_bytes_max: raw.storage.cache_bytes_max,
            retention_interval: faults.duration("retention.interval", &raw.retention.interval),
            clock: clock(raw, &mut faults),
            snapshots: snapshots(&raw.snapshots, &mut faults),
            self_interval: self_interval(&raw.telemetry, &mut faults),
            log_format: log_format(&raw.log.format, &mut faults),
            log_filter: raw.log.filter.clone(),
            granularities,
        };
        if faults.0.is_empty() { Ok(settings) } else { Err(ConfigError::Invalid(faults.0)) }
    }

    /// Where rules come from, for a machine of this name: without an external address it is made of
    /// the name and the port, as Prometheus has it.
    pub fn rule_sources(&self, machine: Option<&str>) -> RuleSources {
        let mut sources = self.rules.clone();
        if sources.external.url.is_empty() {
            let url = format!("http://{}:{}", machine.unwrap_or("localhost"), self.listen.port());
            let external = External { url, ..External::clone(&sources.external) };
            sources.external = Arc::new(external);
        }
        sources
    }

    /// HTTP worker threads to start.
    pub fn worker_threads(&self) -> usize {
        match self.workers {
            0 => std::thread::available_parallelism().map_or(2, usize::from),
            workers => workers,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Overrides, load, read};

    fn with(text: &str) -> Result<Settings, String> {
        read(text).map_err(|cause| cause.to_string())
    }

    #[test]
    fn the_defaults_file_is_valid_and_says_the_default_granularities() {
        let settings = load(None, &Overrides::default()).unwrap();
        assert_eq!(settings.granularities, GranularitySet::default());
        assert_eq!(settings.series_limits, SeriesLimits::default());
    }

    #[test]
    fn without_an_external_address_it_is_the_machine_and_the_port() {
        let url = |text: &str, machine: Option<&str>| {
            with(text).unwrap().rule_sources(machine).external.url.clone()
        };
        assert_eq!(url("", Some("web1")), "http://web1:7117");
        assert_eq!(url("server.listen = '0.0.0.0:80'", None), "http://localhost:80");
        let own = "server.external_url = 'https://granary.example.org/'";
        assert_eq!(url(own, Some("web1")), "https://granary.example.org");
    }

    #[test]
    fn every_fault_is_reported_with_its_key() {
        let message = with(
            "server.listen = 'nowhere'\nlimits.queries_max = 0\nretention.interval = 'often'\n\
             log.format = 'xml'",
        )
        .unwrap_err();
        for part in ["server.listen", "limits.queries_max = 0", "retention.interval", "\"xml\""] {
            assert!(message.contains(part), "{part} in {message}");
        }
        let message = with("limits.tag_max = 3").unwrap_err();
        assert_eq!(message, "limits.tag_max is no known key; did you mean tags_max?");
        // Keys that are not known, values of a wrong type and values that cannot be used.
        let message = with(
            "servers.listen = ':1'\nserver = { lissen = ':1', workers = 'many' }\nlog = 3\n\
             [limits]\nqueries_max = 0\nname_bytes_max = 'long'\nzzzzzzzzz = 1\n\
             [[granularity]]\nslot = '1m'\nretenton = '1d'\n[[granularity]]\nslot = '1h'",
        );
        let message = message.unwrap_err();
        let lines: Vec<_> = message.lines().collect();
        let expected = [
            "granularity[0].retenton is no known key; did you mean retention?",
            "granularity[0].document is missing",
            "granularity[0].partition is missing",
            "granularity[0].retention is missing",
            "granularity[1].document is missing",
            "granularity[1].partition is missing",
            "granularity[1].retention is missing",
            "limits.name_bytes_max: ",
            "limits.zzzzzzzzz is no known key",
            "log is a section: write [log]",
            "server.lissen is no known key; did you mean listen?",
            "server.workers: ",
            "servers is no known section; did you mean server?",
            "limits.queries_max = 0 is too small; use 1 or more",
        ];
        assert_eq!(lines.len(), expected.len(), "{message}");
        for (line, expected) in lines.iter().zip(expected) {
            assert!(line.starts_with(expected), "{expected} in {message}");
        }
        let message =
            with("[[granularity]]\nslot='1m'\ndocument='1h'\npartition='6h'\nretention='1h'");
        assert!(message.unwrap_err().contains("use 6h or more"));
    }

    #[test]
    fn a_list_of_granularities_says_which_default_ones_it_drops() {
        let all: toml::Table = crate::config::DEFAULTS.parse().unwrap();
        let all = all["granularity"].as_array().unwrap();
        let notes = |places: &[usize]| {
            let own: Vec<_> = places.iter().map(|place| all[*place].clone()).collect();
            with(&format!("granularity = {}", toml::Value::Array(own))).unwrap().notes
        };
        let note = notes(&[0]).concat();
        assert!(note.contains("kept at 1m, and not at 5m, 1h, 1d; to keep them"), "{note}");
        assert_eq!(notes(&[0, 1, 2, 3]), [""; 0]);
    }
}
