//! The parts of the settings that become types of the roles that use them.
//!
//! Each is checked by itself and notes its faults. Must never know: how the roles go by them.

use std::{
    net::{SocketAddr, ToSocketAddrs},
    time::Duration,
};

use super::{
    faults::Faults,
    raw::{
        Raw, RawGraphite, RawIngest, RawLimits, RawPreallocation, RawPromql, RawSnapshots,
        RawStorage, RawTelemetry,
    },
};
use crate::{
    actors::{GraphiteSettings, SealSettings},
    ingest::graphite::Template,
    model::{Granularity, GranularitySet, SeriesLimits, Span},
    policy::{SnapshotPolicy, TrustRules},
    query::PromqlSettings,
    store::{CheckpointBounds, StoreLimits},
    telemetry::LogFormat,
};

pub(super) fn log_format(word: &str, faults: &mut Faults) -> LogFormat {
    match word {
        "text" => LogFormat::Text,
        "json" => LogFormat::Json,
        other => {
            faults.0.push(format!("log.format = {other:?} is not known; use text or json"));
            LogFormat::Text
        }
    }
}

/// actix-http measures it by a clock that it reads twice a second.
pub(super) fn client_timeout(text: &str, faults: &mut Faults) -> Duration {
    const LEAST: Duration = Duration::from_secs(1);
    let timeout = faults.duration("server.client_timeout", text);
    if timeout < LEAST {
        faults.0.push(format!("server.client_timeout = {text:?} is too small; use 1s or more"));
    }
    timeout
}

pub(super) fn self_interval(raw: &RawTelemetry, faults: &mut Faults) -> Option<Duration> {
    let interval = faults.duration("telemetry.interval", &raw.interval);
    raw.of_itself.then_some(interval)
}

pub(super) fn socket_address(key: &str, text: &str, faults: &mut Faults) -> SocketAddr {
    let found = text.to_socket_addrs().ok().and_then(|mut addresses| addresses.next());
    found.unwrap_or_else(|| {
        faults.0.push(format!("{key} = {text:?} is no address; use 127.0.0.1:7117"));
        SocketAddr::from(([127, 0, 0, 1], 0))
    })
}

pub(super) fn graphite(
    raw: &RawGraphite,
    client_timeout: &str,
    faults: &mut Faults,
) -> GraphiteSettings {
    let idle_timeout = faults.duration("graphite.idle_timeout", &raw.idle_timeout);
    let first_timeout = faults.duration("server.client_timeout", client_timeout);
    let mut address = |key: &str, text: &str| {
        (!text.is_empty()).then(|| socket_address(&format!("graphite.{key}"), text, faults))
    };
    GraphiteSettings {
        listen: address("listen", &raw.listen),
        pickle_listen: address("pickle_listen", &raw.pickle_listen),
        udp_listen: address("udp_listen", &raw.udp_listen),
        connections_max: raw.connections_max,
        first_timeout: first_timeout.min(idle_timeout),
        idle_timeout,
        udp_buffer_bytes_max: raw.udp_buffer_bytes_max,
    }
}

pub(super) fn graphite_templates(raw: &RawGraphite, faults: &mut Faults) -> Vec<Template> {
    let mut read = |text: &String| {
        Template::parse(text)
            .map_err(|problem| faults.0.push(format!("graphite.templates: {problem}")))
            .ok()
    };
    raw.templates.iter().filter_map(&mut read).collect()
}

pub(super) fn promql(raw: &RawPromql, faults: &mut Faults) -> PromqlSettings {
    PromqlSettings {
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

pub(super) fn queue_bytes_max(raw: &RawIngest, faults: &mut Faults) -> usize {
    faults.at_least("ingest.queue_bytes_max", raw.queue_bytes_max, 1 << 16)
}

/// What the names of senders begin with; each is compared with the sender of each request.
pub(super) fn ha_senders(raw: &RawIngest, faults: &mut Faults) -> Vec<Box<str>> {
    const MOST: usize = 64;
    if raw.ha_senders.len() > MOST {
        faults.0.push(format!("ingest.ha_senders names more than {MOST}; name fewer"));
    }
    if raw.ha_senders.iter().any(String::is_empty) {
        faults.0.push(
            "ingest.ha_senders: \"\" would be all senders; name what senders that send the same \
             samples begin with, such as \"statsd-\""
                .to_owned(),
        );
    }
    raw.ha_senders.iter().map(|prefix| prefix.as_str().into()).collect()
}

pub(super) fn checkpoint_bounds(raw: &RawStorage, faults: &mut Faults) -> CheckpointBounds {
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

pub(super) fn preallocation_rate(raw: &RawPreallocation, faults: &mut Faults) -> u32 {
    faults.at_least("preallocation.documents_per_second", raw.documents_per_second, 1)
}

pub(super) fn idle_after(raw: &RawStorage, faults: &mut Faults) -> Option<Duration> {
    (raw.idle_after != "0").then(|| faults.duration("storage.idle_after", &raw.idle_after))
}

pub(super) fn sealing(raw: &RawStorage, faults: &mut Faults) -> SealSettings {
    SealSettings {
        after: faults.duration("storage.seal_after", &raw.seal_after),
        bytes_per_second: faults.at_least(
            "storage.seal_bytes_per_second",
            raw.seal_bytes_per_second,
            65_536,
        ) as u64,
        segment_documents_min: faults
            .some("storage.segment_documents_min", raw.segment_documents_min),
    }
}

/// A sender may be as far ahead as its samples may.
pub(super) fn clock(raw: &Raw, faults: &mut Faults) -> TrustRules {
    let mut ms = |key, text: &str| faults.duration(key, text).as_millis() as i64;
    let step_max_ms = ms("clock.step_max", &raw.clock.step_max);
    let sender_skew_ms = ms("ingest.future_skew", &raw.ingest.future_skew);
    let senders_min = faults.some("clock.senders_min", raw.clock.senders_min);
    TrustRules { step_max_ms, sender_skew_ms, senders_min }
}

pub(super) fn snapshots(raw: &RawSnapshots, faults: &mut Faults) -> SnapshotPolicy {
    let retention = faults.duration("snapshots.retention", &raw.retention);
    SnapshotPolicy {
        count_max: faults.some("snapshots.count_max", raw.count_max),
        bytes_max: raw.bytes_max,
        retention_ms: i64::try_from(retention.as_millis()).unwrap_or(i64::MAX),
    }
}

/// Others that people make must have room beside them.
pub(super) fn annotations_max(raw: &RawLimits, faults: &mut Faults) -> usize {
    const MOST: usize = 8000;
    if raw.annotations_max > MOST {
        let given = raw.annotations_max;
        faults.0.push(format!("limits.annotations_max = {given} is too large; use {MOST} or less"));
    }
    faults.some("limits.annotations_max", raw.annotations_max)
}

pub(super) fn store_limits(raw: &Raw, faults: &mut Faults) -> StoreLimits {
    let failover = faults.duration("ingest.ha_failover", &raw.ingest.ha_failover);
    let raw = &raw.limits;
    StoreLimits {
        ha_failover_ms: failover.as_millis() as i64,
        series_max: faults.some("limits.series_max", raw.series_max),
        sender_series_max: faults.some("limits.sender_series_max", raw.sender_series_max),
        senders_max: faults.some("limits.senders_max", raw.senders_max),
        sender_idle_ms: faults.duration("limits.sender_idle", &raw.sender_idle).as_millis() as i64,
    }
}

pub(super) fn series_limits(raw: &RawLimits, faults: &mut Faults) -> SeriesLimits {
    SeriesLimits {
        tags_max: raw.tags_max,
        name_bytes_max: faults.at_least("limits.name_bytes_max", raw.name_bytes_max, 1),
        value_bytes_max: faults.at_least("limits.value_bytes_max", raw.value_bytes_max, 1),
    }
}

pub(super) fn granularities(raw: &Raw, faults: &mut Faults) -> GranularitySet {
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
