//! The sections of the settings file, with each key in the type that the daemon uses.
//!
//! `config/default.toml` explains each key. Must never know: how the roles use them.

#![expect(missing_docs, reason = "config/default.toml explains each key")]

use std::{
    collections::BTreeMap,
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use serde::{Deserialize, Serialize};

use super::{
    faults::Faults,
    graphite::GraphiteListen,
    values::{address, disk_max_or_none, duration, duration_or_none, failovers, role_or_none},
};
use crate::{
    access::{Role, Roles},
    policy::retention::budget::DiskMax,
    telemetry::LogFormat,
};

/// The least maximum size of a request, as sent: the size up to which agents fill their requests.
pub(super) const REQUEST_BYTES_MIN: usize = 1 << 20;
/// The maximum ratio of a decompressed body to the size limit of a request.
pub(super) const DECOMPRESSED_FACTOR: usize = 4;
/// The least value of `ingest.body_memory_max`: a decompressed request takes at most half of it.
const BODY_MEMORY_MIN: usize = 2 * DECOMPRESSED_FACTOR * REQUEST_BYTES_MIN;

/// All sections with their keys.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
#[expect(
    missing_docs,
    reason = "config/default.toml explains each key, and a test compares the two"
)]
pub struct Sections {
    pub server: Server,
    pub tls: Tls,
    pub security: Security,
    pub storage: Storage,
    pub ingest: Ingest,
    pub graphite: Graphite,
    pub limits: Limits,
    pub promql: Promql,
    pub alerts: Alerts,
    pub preallocation: Preallocation,
    pub publish: Publish,
    pub cluster: Cluster,
    pub snapshots: Snapshots,
    pub log: Log,
    pub telemetry: Telemetry,
    pub retention: Retention,
    pub granularity: Vec<Level>,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Server {
    #[serde(with = "address")]
    pub listen: SocketAddr,
    pub connections_max: usize,
    #[serde(with = "duration")]
    pub client_timeout: Duration,
    pub host_names: Vec<String>,
    pub trusted_proxies: Vec<String>,
    pub external_url: String,
    pub dashboards_dir: PathBuf,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Tls {
    pub certificate_file: PathBuf,
    pub key_file: PathBuf,
    pub client_ca_file: PathBuf,
    /// The scopes of clients by the names in their certificates.
    pub clients: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Security {
    pub access: bool,
    pub open: bool,
    #[serde(with = "role_or_none")]
    pub totp_role: Option<Role>,
    pub projects: BTreeMap<String, Project>,
    pub oidc: Oidc,
}

/// The table `[security.oidc]`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Oidc {
    #[serde(skip_serializing_if = "String::is_empty")]
    pub issuer: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub client_id: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub client_secret: String,
    #[serde(skip_serializing_if = "is_unset")]
    pub client_secret_file: PathBuf,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub name: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub scopes: Option<Vec<String>>,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub groups_claim: String,
    /// The roles by group.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    pub roles: BTreeMap<String, Roles>,
}

fn is_unset(path: &Path) -> bool {
    path.as_os_str().is_empty()
}

/// A table `[security.projects.NAME]`.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, Serialize)]
#[serde(deny_unknown_fields, default)]
pub struct Project {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub series_max: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub samples_per_second: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub query_points_max: Option<usize>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queries_max: Option<usize>,
    #[serde(with = "disk_max_or_none", skip_serializing_if = "Option::is_none")]
    pub disk_max: Option<DiskMax>,
    pub rules: Vec<String>,
    /// Addresses, or tables with an address.
    pub alertmanagers: Vec<toml::Value>,
    pub notifications: PathBuf,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Storage {
    pub data_dir: PathBuf,
    pub snapshot_dir: PathBuf,
    #[serde(with = "disk_max_or_none")]
    pub disk_max: Option<DiskMax>,
    #[serde(with = "duration")]
    pub checkpoint_interval: Duration,
    #[serde(with = "duration_or_none")]
    pub check_interval: Option<Duration>,
    pub cache_bytes_max: usize,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Ingest {
    #[serde(with = "duration")]
    pub out_of_order_window: Duration,
    #[serde(with = "failovers")]
    pub ha_senders: BTreeMap<Box<str>, Duration>,
    pub body_memory_max: usize,
    pub distribution: Vec<Distribution>,
}

/// A table `[[ingest.distribution]]`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Distribution {
    pub metric: String,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Graphite {
    pub listen: GraphiteListen,
    pub templates: Vec<String>,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Limits {
    pub series_max: usize,
    pub metric_series: BTreeMap<String, usize>,
    #[serde(with = "duration")]
    pub query_timeout: Duration,
    pub query_points_max: usize,
    pub query_memory_max: usize,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Promql {
    #[serde(with = "duration")]
    pub lookback: Duration,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Alerts {
    pub rules: Vec<String>,
    /// Addresses, or tables with an address.
    pub alertmanagers: Vec<toml::Value>,
    pub external_labels: BTreeMap<String, String>,
    pub notifications: PathBuf,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Preallocation {
    pub enabled: bool,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Publish {
    pub uri: String,
    /// The forms of documents by granularity.
    pub collections: BTreeMap<String, String>,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Cluster {
    pub uri: String,
    pub replicas: usize,
    pub shards: u16,
    pub advertise: String,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Snapshots {
    #[serde(with = "duration")]
    pub retention: Duration,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Log {
    pub format: LogFormat,
    pub filter: String,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Telemetry {
    #[serde(with = "duration_or_none")]
    pub interval: Option<Duration>,
}

#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Retention {
    pub rule: Vec<Rule>,
}

/// A table `[[retention.rule]]`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    pub name: String,
    /// The project of the rule's series; without it, all projects.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub project: Option<String>,
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub selector: String,
    pub keep: BTreeMap<String, String>,
}

/// A table `[[granularity]]`.
#[derive(Debug, Clone, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
pub struct Level {
    pub slot: String,
    pub document: String,
    pub partition: String,
    pub retention: String,
}

impl Sections {
    /// Reports each number that is too small.
    pub(super) fn check_bounds(&self, faults: &mut Faults) {
        let Self { server, ingest, limits, .. } = self;
        for (key, value, min) in [
            ("server.connections_max", server.connections_max, 1),
            ("ingest.body_memory_max", ingest.body_memory_max, BODY_MEMORY_MIN),
            ("limits.series_max", limits.series_max, 1),
            ("limits.query_points_max", limits.query_points_max, 1),
            ("limits.query_memory_max", limits.query_memory_max, 1 << 20),
        ] {
            faults.at_least(key, value, min);
        }
        // actix-http measures this timeout with a clock that it reads twice a second.
        let client_timeout = server.client_timeout;
        if client_timeout < Duration::from_secs(1) {
            let key = "server.client_timeout";
            faults.0.push(format!("{key} = {client_timeout:?} is too small; use 1s or more"));
        }
    }
}
