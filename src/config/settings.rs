//! The settings as they are used.

use std::{
    net::{SocketAddr, ToSocketAddrs},
    path::PathBuf,
    time::Duration,
};

use super::{
    ConfigError,
    raw::{Raw, RawGraphite, RawLimits, RawPromql, RawStorage},
};
use crate::{
    actors::GraphiteSettings,
    api::PromqlBounds,
    ingest::graphite::Template,
    model::{Granularity, GranularitySet, SeriesLimits, Span},
    store::{CheckpointBounds, StoreLimits},
};

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogFormat {
    /// For people.
    Text,
    /// One JSON object a line.
    Json,
}

/// Checked settings; `config/default.toml` explains each.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "config/default.toml explains each key, and a test keeps it whole")]
pub struct Settings {
    pub listen: SocketAddr,
    pub workers: usize,
    pub shutdown_timeout: Duration,
    pub client_timeout: Duration,
    pub keep_alive: Duration,
    pub data_dir: PathBuf,
    pub snapshot_dir: PathBuf,
    pub checkpoint_interval: Duration,
    pub checkpoint_bounds: CheckpointBounds,
    pub future_skew: Duration,
    pub out_of_order_window: Duration,
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
    pub promql: PromqlBounds,
    pub tails_max: usize,
    pub preallocation_enabled: bool,
    pub preallocation_per_second: u32,
    pub retention_interval: Duration,
    pub log_format: LogFormat,
    pub log_filter: String,
    pub granularities: GranularitySet,
}

/// Collects every fault, so that all are reported together.
#[derive(Default)]
struct Faults(Vec<String>);

impl Faults {
    fn duration(&mut self, key: &str, text: &str) -> Duration {
        match text.parse::<Span>() {
            Ok(Span::Fixed(ms)) => Duration::from_millis(ms as u64),
            Ok(Span::Months(_)) => {
                self.0.push(format!("{key} = {text:?} must be in days or smaller units"));
                Duration::ZERO
            }
            Err(cause) => {
                self.0.push(format!("{key}: {cause}"));
                Duration::ZERO
            }
        }
    }

    fn at_least<T: PartialOrd + std::fmt::Display + Copy>(
        &mut self,
        key: &str,
        value: T,
        least: T,
    ) -> T {
        if value < least {
            self.0.push(format!("{key} = {value} is too small; use {least} or more"));
        }
        value
    }

    fn some(&mut self, key: &str, value: usize) -> usize {
        self.at_least(key, value, 1)
    }

    fn span(&mut self, key: &str, text: &str) -> Option<Span> {
        text.parse().map_err(|cause| self.0.push(format!("{key}: {cause}"))).ok()
    }
}

impl Settings {
    /// Checks everything and reports every fault.
    pub(crate) fn validate(raw: &Raw) -> Result<Self, ConfigError> {
        let mut faults = Faults::default();
        let listen = socket_address("server.listen", &raw.server.listen, &mut faults);
        let granularities = granularities(raw, &mut faults);
        let log_format = log_format(&raw.log.format, &mut faults);
        let limits = &raw.limits;
        let settings = Self {
            listen,
            workers: raw.server.workers,
            shutdown_timeout: faults
                .duration("server.shutdown_timeout", &raw.server.shutdown_timeout),
            client_timeout: client_timeout(&raw.server.client_timeout, &mut faults),
            keep_alive: faults.duration("server.keep_alive", &raw.server.keep_alive),
            data_dir: raw.storage.data_dir.clone(),
            snapshot_dir: raw.storage.snapshot_dir.clone(),
            checkpoint_interval: faults
                .duration("storage.checkpoint_interval", &raw.storage.checkpoint_interval),
            checkpoint_bounds: checkpoint_bounds(&raw.storage, &mut faults),
            future_skew: faults.duration("ingest.future_skew", &raw.ingest.future_skew),
            out_of_order_window: faults
                .duration("ingest.out_of_order_window", &raw.ingest.out_of_order_window),
            connections_max: faults.some("server.connections_max", raw.server.connections_max),
            request_bytes_max: faults.at_least(
                "ingest.request_bytes_max",
                raw.ingest.request_bytes_max,
                1024,
            ),
            decompressed_bytes_max: faults.at_least(
                "ingest.decompressed_bytes_max",
                raw.ingest.decompressed_bytes_max,
                1024,
            ),
            body_memory_max: faults.at_least(
                "ingest.body_memory_max",
                raw.ingest.body_memory_max,
                raw.ingest.request_bytes_max + raw.ingest.decompressed_bytes_max,
            ),
            request_series_max: faults.some("limits.request_series_max", limits.request_series_max),
            graphite: graphite(&raw.graphite, &mut faults),
            graphite_templates: graphite_templates(&raw.graphite, &mut faults),
            queue_bytes_max: faults.at_least(
                "ingest.queue_bytes_max",
                raw.ingest.queue_bytes_max,
                1 << 16,
            ),
            store_limits: store_limits(limits, &mut faults),
            series_limits: series_limits(limits, &mut faults),
            query_series_max: faults.some("limits.query_series_max", limits.query_series_max),
            query_points_max: faults.some("limits.query_points_max", limits.query_points_max),
            queries_max: faults.some("limits.queries_max", limits.queries_max),
            promql: promql(&raw.promql, &mut faults),
            tails_max: faults.some("limits.tails_max", limits.tails_max),
            preallocation_enabled: raw.preallocation.enabled,
            preallocation_per_second: faults.at_least(
                "preallocation.documents_per_second",
                raw.preallocation.documents_per_second,
                1,
            ),
            retention_interval: faults.duration("retention.interval", &raw.retention.interval),
            log_format,
            log_filter: raw.log.filter.clone(),
            granularities,
        };
        if faults.0.is_empty() { Ok(settings) } else { Err(ConfigError::Invalid(faults.0)) }
    }

    /// HTTP worker threads to start.
    pub fn worker_threads(&self) -> usize {
        match self.workers {
            0 => std::thread::available_parallelism().map_or(2, usize::from),
            workers => workers,
        }
    }
}

fn graphite(raw: &RawGraphite, faults: &mut Faults) -> GraphiteSettings {
    let mut address = |key: &str, text: &str| {
        (!text.is_empty()).then(|| socket_address(&format!("graphite.{key}"), text, faults))
    };
    GraphiteSettings {
        listen: address("listen", &raw.listen),
        pickle_listen: address("pickle_listen", &raw.pickle_listen),
        udp_listen: address("udp_listen", &raw.udp_listen),
        connections_max: raw.connections_max,
    }
}

fn graphite_templates(raw: &RawGraphite, faults: &mut Faults) -> Vec<Template> {
    let mut read = |text: &String| {
        Template::parse(text)
            .map_err(|problem| faults.0.push(format!("graphite.templates: {problem}")))
            .ok()
    };
    raw.templates.iter().filter_map(&mut read).collect()
}

fn promql(raw: &RawPromql, faults: &mut Faults) -> PromqlBounds {
    PromqlBounds {
        timeout: faults.duration("promql.timeout", &raw.timeout),
        lookback: faults.duration("promql.lookback", &raw.lookback),
        delayed_name_removal: raw.delayed_name_removal,
        series_max: faults.some("promql.series_max", raw.series_max),
        points_max: faults.some("promql.points_max", raw.points_max),
        query_bytes_max: faults.some("promql.query_bytes_max", raw.query_bytes_max),
        regex_bytes_max: faults.some("promql.regex_bytes_max", raw.regex_bytes_max),
        memory_max: faults.at_least("promql.memory_max", raw.memory_max, 1 << 20),
    }
}

fn log_format(word: &str, faults: &mut Faults) -> LogFormat {
    match word {
        "text" => LogFormat::Text,
        "json" => LogFormat::Json,
        other => {
            faults.0.push(format!("log.format = {other:?} is not known; use text or json"));
            LogFormat::Text
        }
    }
}

fn checkpoint_bounds(raw: &RawStorage, faults: &mut Faults) -> CheckpointBounds {
    CheckpointBounds {
        cell_bytes_max: faults.at_least(
            "storage.catalog_bytes_max",
            raw.catalog_bytes_max,
            1 << 20,
        ),
        journal_bytes_max: faults.at_least(
            "storage.journal_bytes_max",
            raw.journal_bytes_max,
            1 << 20,
        ),
    }
}

/// actix-http measures it by a clock that it reads twice a second.
fn client_timeout(text: &str, faults: &mut Faults) -> Duration {
    const LEAST: Duration = Duration::from_secs(1);
    let timeout = faults.duration("server.client_timeout", text);
    if timeout < LEAST {
        faults.0.push(format!("server.client_timeout = {text:?} is too small; use 1s or more"));
    }
    timeout
}

fn store_limits(raw: &RawLimits, faults: &mut Faults) -> StoreLimits {
    StoreLimits {
        series_max: faults.some("limits.series_max", raw.series_max),
        sender_series_max: faults.some("limits.sender_series_max", raw.sender_series_max),
        senders_max: faults.some("limits.senders_max", raw.senders_max),
    }
}

fn series_limits(raw: &RawLimits, faults: &mut Faults) -> SeriesLimits {
    SeriesLimits {
        tags_max: raw.tags_max,
        name_bytes_max: faults.at_least("limits.name_bytes_max", raw.name_bytes_max, 1),
        value_bytes_max: faults.at_least("limits.value_bytes_max", raw.value_bytes_max, 1),
    }
}

fn socket_address(key: &str, text: &str, faults: &mut Faults) -> SocketAddr {
    let found = text.to_socket_addrs().ok().and_then(|mut addresses| addresses.next());
    found.unwrap_or_else(|| {
        faults.0.push(format!("{key} = {text:?} is no address; use 127.0.0.1:7117"));
        SocketAddr::from(([127, 0, 0, 1], 0))
    })
}

fn granularities(raw: &Raw, faults: &mut Faults) -> GranularitySet {
    let mut levels = Vec::new();
    for granularity in &raw.granularity {
        let key = |part: &str| format!("granularity {}: {part}", granularity.slot);
        let slot = faults.span(&key("slot"), &granularity.slot);
        let document = faults.span(&key("document"), &granularity.document);
        let partition = faults.span(&key("partition"), &granularity.partition);
        let retention = faults.span(&key("retention"), &granularity.retention);
        match (slot, document, partition, retention) {
            (Some(Span::Fixed(width)), Some(document), Some(partition), Some(retention)) => {
                levels.push(Granularity::new(width, document, partition, retention));
            }
            (Some(Span::Months(_)), ..) => {
                faults.0.push(format!("{}: must be 1d or less", key("slot")));
            }
            _ => {}
        }
    }
    if !faults.0.is_empty() {
        return GranularitySet::default();
    }
    GranularitySet::new(levels).unwrap_or_else(|found| {
        faults.0.extend(found.0);
        GranularitySet::default()
    })
}

#[cfg(test)]
mod tests {
    use config::{Config, File, FileFormat};

    use super::*;
    use crate::config::{DEFAULTS, Overrides, load};

    fn with(text: &str) -> Result<Settings, String> {
        let raw = Config::builder()
            .add_source(File::from_str(DEFAULTS, FileFormat::Toml))
            .add_source(File::from_str(text, FileFormat::Toml))
            .build()
            .and_then(Config::try_deserialize::<Raw>)
            .map_err(|cause| cause.to_string())?;
        Settings::validate(&raw).map_err(|cause| cause.to_string())
    }

    #[test]
    fn the_defaults_file_is_valid_and_says_the_default_granularities() {
        let settings = load(None, &Overrides::default()).unwrap();
        assert_eq!(settings.granularities, GranularitySet::default());
        assert_eq!(settings.series_limits, SeriesLimits::default());
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
        assert!(with("limits.tag_max = 3").unwrap_err().contains("tag_max"));
        let message =
            with("[[granularity]]\nslot='1m'\ndocument='1h'\npartition='6h'\nretention='1h'");
        assert!(message.unwrap_err().contains("use 6h or more"));
    }
}
