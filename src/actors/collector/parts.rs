//! The parts of a collector, its settings, and the quotas of its project.
//!
//! Must never know: the paths of batches and of rows.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use granary_protocol::IngestAnswer;
use parking_lot::Mutex;
use xxhash_rust::xxh3::xxh3_64;

use super::{answers::CollectFault, others::OtherShards, tally::IngestTally};
use crate::{
    actors::WriterHandle,
    clock::{Stopwatch, TrustedClock},
    ingest::{
        graphite::Template, protocol::RowProtocol, refusals::Refusals, remote_write::Families,
    },
    kept::LiveValue,
    model::{Distributions, SeriesLimits, replica::Replica},
    policy::{Admission, SampleQuota},
    store::Store,
    telemetry::{Metrics, Protocol},
};

/// The time between two counts of a project's bytes on disk.
const DISK_CHECK_MS: u64 = 1000;

/// Returns the label of a protocol in metrics.
pub fn protocol_label(protocol: RowProtocol) -> Protocol {
    match protocol {
        RowProtocol::RemoteWrite(_) => Protocol::RemoteWrite,
        RowProtocol::Influx(_) => Protocol::Influx,
        RowProtocol::Otlp(_) => Protocol::Otlp,
        RowProtocol::GraphiteLines | RowProtocol::GraphitePickle => Protocol::Graphite,
        RowProtocol::Collectd => Protocol::Collectd,
        RowProtocol::Part => Protocol::Native,
    }
}

/// The parts of a collector.
#[derive(Debug, Clone)]
#[expect(missing_docs, reason = "the types describe the fields")]
pub struct CollectorParts {
    pub store: Store,
    pub writer: WriterHandle,
    pub clock: TrustedClock,
    pub metrics: Metrics,
    pub tally: IngestTally,
    pub series_limits: SeriesLimits,
    pub request_series_max: usize,
    pub settings: LiveValue<CollectorSettings>,
    /// The metric types of remote write, which all collectors share: a sender may send types on one
    /// connection and samples on others.
    pub families: Families,
    /// The project's quota of samples, if it has one.
    pub quota: Option<SharedQuota>,
    /// The project's quota of bytes on disk, if it has one.
    pub disk: Option<SharedDiskQuota>,
    /// The other shards of the store, if it has several.
    pub others: Option<Arc<dyn OtherShards>>,
}

/// The quota of bytes of a project, which all of its collectors share.
#[derive(Debug, Clone)]
pub struct SharedDiskQuota {
    bytes_max: u64,
    watch: Stopwatch,
    /// The bytes at the last check, and the time of the next one.
    last: Arc<Mutex<(u64, u64)>>,
}

impl SharedDiskQuota {
    /// Creates a quota.
    pub fn new(bytes_max: u64) -> Self {
        Self { bytes_max, watch: Stopwatch::start(), last: Arc::default() }
    }

    /// Returns the bytes on disk at the last check.
    fn bytes(&self, store: &Store) -> u64 {
        let mut last = self.last.lock();
        let (bytes, next_check) = &mut *last;
        let now = self.watch.millis();
        if now >= *next_check {
            (*bytes, *next_check) = (store.bytes_of_project(), now + DISK_CHECK_MS);
        }
        *bytes
    }
}

/// The quota of samples of a project, which all of its collectors share.
#[derive(Debug, Clone)]
pub struct SharedQuota {
    per_second: u64,
    watch: Stopwatch,
    quota: Arc<Mutex<SampleQuota>>,
}

impl SharedQuota {
    /// Creates a quota.
    pub fn new(per_second: u64) -> Self {
        let quota = Arc::new(Mutex::new(SampleQuota::new(per_second)));
        Self { per_second, watch: Stopwatch::start(), quota }
    }
}

/// The settings of a collector; each request uses the current ones.
#[derive(Debug)]
#[expect(missing_docs, reason = "each field is the setting of its name")]
pub struct CollectorSettings {
    pub sender_series_max: usize,
    pub series_max: usize,
    pub future_skew: Duration,
    pub out_of_order_window: Duration,
    pub graphite_templates: Arc<[Template]>,
    pub ha_senders: BTreeMap<Box<str>, Duration>,
    pub distributions: Distributions,
}

impl CollectorSettings {
    /// Returns the out-of-order window in milliseconds.
    pub(super) fn window_ms(&self) -> i64 {
        self.out_of_order_window.as_millis().max(1) as i64
    }
}

impl CollectorParts {
    /// Takes samples from the project's quotas.
    ///
    /// # Errors
    /// A quota is used up.
    pub(super) fn take_quota(&self, samples: u64) -> Result<(), CollectFault> {
        if let Some(disk) = &self.disk {
            let (bytes, bytes_max) = (disk.bytes(&self.store), disk.bytes_max);
            if bytes >= bytes_max {
                self.metrics.requests_refused.with_label_values(&["quota"]).inc();
                let project = self.store.project().clone();
                return Err(CollectFault::DiskQuota { project, bytes, bytes_max });
            }
        }
        let Some(SharedQuota { per_second, watch, quota }) = &self.quota else { return Ok(()) };
        if quota.lock().take(samples, watch.millis()) {
            return Ok(());
        }
        self.metrics.requests_refused.with_label_values(&["quota"]).inc();
        let project = self.store.project().clone();
        Err(CollectFault::Quota { project, per_second: *per_second })
    }

    /// Returns the current limits for the times of samples.
    pub(super) fn admission(&self) -> Admission {
        let future_skew_ms = self.settings.get().future_skew.as_millis() as i64;
        Admission::by_rule(self.store.classes(), future_skew_ms, self.clock.moment())
    }

    /// Returns the sender's identity among replicas, if its name has a prefix of `ha_senders`; the
    /// longest prefix counts.
    pub(super) fn replica(&self, sender: &str) -> Option<Replica> {
        let settings = self.settings.get();
        let mut by_prefix = settings.ha_senders.iter().enumerate().rev();
        let (group, (_, failover)) =
            by_prefix.find(|(_, (prefix, _))| sender.starts_with(&***prefix))?;
        let failover_ms = u32::try_from(failover.as_millis()).unwrap_or(u32::MAX);
        Some(Replica { group: group as u16, failover_ms, sender: xxh3_64(sender.as_bytes()) })
    }

    /// Updates the metrics of accepted and refused samples.
    pub(super) fn count(
        &self,
        protocol_label: Protocol,
        answer: &IngestAnswer,
        refused: &Refusals,
    ) {
        let metrics = &self.metrics;
        let protocol = protocol_label.as_str();
        for (reason, count) in &refused.counts {
            let labels = [protocol, reason.as_str()];
            metrics.samples_refused.with_label_values(&labels).inc_by(*count);
        }
        self.tally.refuse(protocol_label, refused, || self.clock.now());
        metrics.samples_accepted.with_label_values(&[protocol]).inc_by(answer.accepted);
        metrics.samples_duplicate.with_label_values(&[protocol]).inc_by(answer.duplicates);
    }
}
