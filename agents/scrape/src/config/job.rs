//! One of `scrape_configs`: what is asked, how, and what becomes of the answers.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use granary_agent_kit::relabel::Rule;
use serde::Deserialize;

use super::{BODY_BYTES_MAX, Size, Span};

/// Where nothing says how often, as in Prometheus.
const INTERVAL: Duration = Duration::from_secs(60);
/// And how long.
pub(super) const TIMEOUT: Duration = Duration::from_secs(10);

/// A form of answers that is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
pub(crate) enum Protocol {
    PrometheusProto,
    #[serde(rename = "OpenMetricsText1.0.0")]
    OpenMetrics1,
    #[serde(rename = "OpenMetricsText0.0.1")]
    OpenMetrics0,
    #[serde(rename = "PrometheusText0.0.4", alias = "PrometheusText1.0.0")]
    PrometheusText,
}

/// How requests are made.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Scheme {
    #[default]
    Http,
    Https,
}

impl Scheme {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Http => "http",
            Self::Https => "https",
        }
    }
}

/// One of `scrape_configs`.
#[expect(clippy::struct_field_names, reason = "the names are Prometheus'")]
#[expect(clippy::struct_excessive_bools, reason = "so many switches has Prometheus")]
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Job {
    pub(crate) job_name: String,
    pub(crate) scrape_interval: Option<Span>,
    pub(crate) scrape_timeout: Option<Span>,
    pub(crate) scrape_protocols: Vec<Protocol>,
    pub(crate) metrics_path: String,
    pub(crate) scheme: Scheme,
    pub(crate) params: BTreeMap<String, Vec<String>>,
    pub(crate) honor_labels: bool,
    pub(crate) honor_timestamps: bool,
    pub(crate) enable_compression: bool,
    pub(crate) follow_redirects: bool,
    /// Requests are made in HTTP/1.1 whatever it says.
    pub(crate) enable_http2: bool,
    pub(crate) basic_auth: Option<BasicAuth>,
    pub(crate) authorization: Option<Authorization>,
    pub(crate) tls_config: Tls,
    pub(crate) static_configs: Vec<Group>,
    pub(crate) file_sd_configs: Vec<FileDiscovery>,
    pub(crate) dns_sd_configs: Vec<DnsDiscovery>,
    pub(crate) relabel_configs: Vec<Rule>,
    pub(crate) metric_relabel_configs: Vec<Rule>,
    pub(crate) body_size_limit: Size,
    pub(crate) sample_limit: u64,
    pub(crate) label_limit: u64,
    pub(crate) label_name_length_limit: u64,
    pub(crate) label_value_length_limit: u64,
    pub(crate) target_limit: u64,
}

impl Default for Job {
    fn default() -> Self {
        Self {
            job_name: String::new(),
            scrape_interval: None,
            scrape_timeout: None,
            scrape_protocols: Vec::new(),
            metrics_path: "/metrics".to_owned(),
            scheme: Scheme::default(),
            params: BTreeMap::new(),
            honor_labels: false,
            honor_timestamps: true,
            enable_compression: true,
            follow_redirects: true,
            enable_http2: true,
            basic_auth: None,
            authorization: None,
            tls_config: Tls::default(),
            static_configs: Vec::new(),
            file_sd_configs: Vec::new(),
            dns_sd_configs: Vec::new(),
            relabel_configs: Vec::new(),
            metric_relabel_configs: Vec::new(),
            body_size_limit: Size::default(),
            sample_limit: 0,
            label_limit: 0,
            label_name_length_limit: 0,
            label_value_length_limit: 0,
            target_limit: 0,
        }
    }
}

impl Job {
    pub(crate) fn interval(&self) -> Duration {
        self.scrape_interval.map_or(INTERVAL, |span| span.0)
    }

    pub(crate) fn timeout(&self) -> Duration {
        self.scrape_timeout.map_or(TIMEOUT, |span| span.0)
    }

    /// The longest answer that is read.
    pub(crate) fn body_bytes_max(&self) -> u64 {
        let Size(set) = self.body_size_limit;
        if set == 0 { BODY_BYTES_MAX } else { set.min(BODY_BYTES_MAX) }
    }
}

/// A name and a password for each request.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct BasicAuth {
    pub(crate) username: String,
    pub(crate) password: String,
    pub(crate) password_file: Option<PathBuf>,
}

/// What is sent as `Authorization`.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Authorization {
    #[serde(rename = "type")]
    pub(crate) kind: String,
    pub(crate) credentials: String,
    pub(crate) credentials_file: Option<PathBuf>,
}

impl Default for Authorization {
    fn default() -> Self {
        let (credentials, credentials_file) = (String::new(), None);
        Self { kind: "Bearer".to_owned(), credentials, credentials_file }
    }
}

/// Whom TLS trusts, and who one is.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Tls {
    pub(crate) ca_file: Option<PathBuf>,
    pub(crate) cert_file: Option<PathBuf>,
    pub(crate) key_file: Option<PathBuf>,
    pub(crate) insecure_skip_verify: bool,
}

/// Targets with the labels that they share.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Group {
    pub(crate) targets: Vec<String>,
    pub(crate) labels: BTreeMap<String, String>,
}

/// Targets that stand in files.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct FileDiscovery {
    pub(crate) files: Vec<PathBuf>,
    /// Files are looked at more often than any setting says.
    pub(crate) refresh_interval: Option<Span>,
}

/// Targets that DNS names.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct DnsDiscovery {
    pub(crate) names: Vec<String>,
    #[serde(rename = "type")]
    pub(crate) kind: RecordType,
    pub(crate) port: u16,
    pub(crate) refresh_interval: Span,
}

impl Default for DnsDiscovery {
    fn default() -> Self {
        let refresh_interval = Span(Duration::from_secs(30));
        Self { names: Vec::new(), kind: RecordType::Srv, port: 0, refresh_interval }
    }
}

/// What DNS is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum RecordType {
    Srv,
    A,
    Aaaa,
}
