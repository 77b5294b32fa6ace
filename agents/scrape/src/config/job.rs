//! An entry of `scrape_configs`: targets, requests, and rules for samples.

use std::{collections::BTreeMap, path::PathBuf, time::Duration};

use granary_agent_kit::relabel::Rule;
use serde::Deserialize;

use super::{
    BODY_BYTES_MAX, KubernetesDiscovery, Size, Span,
    credentials::{Authorization, BasicAuth, Credentials, Tls},
    known::IgnoredSetting,
};

/// The default interval of Prometheus.
const DEFAULT_INTERVAL: Duration = Duration::from_secs(60);
/// The default timeout of Prometheus.
pub(super) const DEFAULT_TIMEOUT: Duration = Duration::from_secs(10);

/// A requested exposition format.
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

/// The scheme of requests.
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

/// An entry of `scrape_configs`.
#[expect(clippy::struct_field_names, reason = "Prometheus defines the names")]
#[expect(clippy::struct_excessive_bools, reason = "Prometheus defines these switches")]
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
    /// Accepted for compatibility; requests always use HTTP/1.1.
    pub(crate) enable_http2: bool,
    pub(crate) basic_auth: Option<BasicAuth>,
    pub(crate) authorization: Option<Authorization>,
    /// The former name of `authorization`.
    pub(crate) bearer_token: Option<String>,
    pub(crate) bearer_token_file: Option<PathBuf>,
    pub(crate) tls_config: Tls,
    /// `http://`, `https://` or `socks5://`, with user and password where needed.
    pub(crate) proxy_url: Option<String>,
    /// Headers of each request.
    pub(crate) http_headers: BTreeMap<String, Header>,
    /// The format of responses whose `Content-Type` is unknown.
    pub(crate) fallback_scrape_protocol: Option<Protocol>,
    /// True when series whose timestamps come from the target end as soon as a response lacks them.
    pub(crate) track_timestamps_staleness: bool,
    pub(crate) static_configs: Vec<Group>,
    pub(crate) file_sd_configs: Vec<FileDiscovery>,
    pub(crate) dns_sd_configs: Vec<DnsDiscovery>,
    pub(crate) http_sd_configs: Vec<HttpDiscovery>,
    pub(crate) kubernetes_sd_configs: Vec<KubernetesDiscovery>,
    pub(crate) relabel_configs: Vec<Rule>,
    pub(crate) metric_relabel_configs: Vec<Rule>,
    pub(crate) body_size_limit: Size,
    pub(crate) sample_limit: u64,
    pub(crate) label_limit: u64,
    pub(crate) label_name_length_limit: u64,
    pub(crate) label_value_length_limit: u64,
    pub(crate) target_limit: u64,
    /// True when targets are asked for native histograms, which only Protocol Buffers contain.
    pub(crate) scrape_native_histograms: Option<bool>,
    /// True when the classic series of a native histogram are stored too.
    #[serde(alias = "scrape_classic_histograms")]
    pub(crate) always_scrape_classic_histograms: Option<bool>,
    /// The maximum number of buckets of a native histogram; 0 for no limit.
    pub(crate) native_histogram_bucket_limit: u64,
    /// The minimum factor by which the bounds of neighbouring buckets differ; 0 for any.
    pub(crate) native_histogram_min_bucket_factor: f64,
    // Keys for the names and the web pages of a Prometheus server.
    pub(crate) keep_dropped_targets: IgnoredSetting,
    pub(crate) convert_classic_histograms_to_nhcb: IgnoredSetting,
    pub(crate) metric_name_validation_scheme: IgnoredSetting,
    pub(crate) metric_name_escaping_scheme: IgnoredSetting,
    pub(crate) scrape_failure_log_file: IgnoredSetting,
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
            bearer_token: None,
            bearer_token_file: None,
            tls_config: Tls::default(),
            proxy_url: None,
            http_headers: BTreeMap::new(),
            fallback_scrape_protocol: None,
            track_timestamps_staleness: false,
            static_configs: Vec::new(),
            file_sd_configs: Vec::new(),
            dns_sd_configs: Vec::new(),
            http_sd_configs: Vec::new(),
            kubernetes_sd_configs: Vec::new(),
            relabel_configs: Vec::new(),
            metric_relabel_configs: Vec::new(),
            body_size_limit: Size::default(),
            sample_limit: 0,
            label_limit: 0,
            label_name_length_limit: 0,
            label_value_length_limit: 0,
            target_limit: 0,
            scrape_native_histograms: None,
            always_scrape_classic_histograms: None,
            native_histogram_bucket_limit: 0,
            native_histogram_min_bucket_factor: 0.0,
            keep_dropped_targets: IgnoredSetting::default(),
            convert_classic_histograms_to_nhcb: IgnoredSetting::default(),
            metric_name_validation_scheme: IgnoredSetting::default(),
            metric_name_escaping_scheme: IgnoredSetting::default(),
            scrape_failure_log_file: IgnoredSetting::default(),
        }
    }
}

impl Job {
    pub(crate) fn interval(&self) -> Duration {
        self.scrape_interval.map_or(DEFAULT_INTERVAL, |span| span.0)
    }

    pub(crate) fn timeout(&self) -> Duration {
        self.scrape_timeout.map_or(DEFAULT_TIMEOUT, |span| span.0)
    }

    pub(crate) fn scrapes_native_histograms(&self) -> bool {
        self.scrape_native_histograms == Some(true)
    }

    /// Returns the formats to request, with preferred formats first, as Prometheus does.
    pub(crate) fn protocols(&self) -> &[Protocol] {
        use Protocol::{OpenMetrics0, OpenMetrics1, PrometheusProto, PrometheusText};
        match &self.scrape_protocols[..] {
            [] if self.scrapes_native_histograms() => {
                &[PrometheusProto, OpenMetrics1, OpenMetrics0, PrometheusText]
            }
            [] => &[OpenMetrics1, OpenMetrics0, PrometheusText],
            protocols => protocols,
        }
    }

    /// Returns the keys that have no effect in an agent.
    pub(super) fn ignored_settings(&self) -> [(&'static str, IgnoredSetting); 5] {
        [
            ("keep_dropped_targets", self.keep_dropped_targets),
            ("convert_classic_histograms_to_nhcb", self.convert_classic_histograms_to_nhcb),
            ("metric_name_validation_scheme", self.metric_name_validation_scheme),
            ("metric_name_escaping_scheme", self.metric_name_escaping_scheme),
            ("scrape_failure_log_file", self.scrape_failure_log_file),
        ]
    }

    /// Converts a bearer token to an `authorization`, if the job has no `authorization`.
    pub(super) fn take_bearer_token(&mut self) {
        let (token, file) = (self.bearer_token.take(), self.bearer_token_file.take());
        if self.authorization.is_none() && (token.is_some() || file.is_some()) {
            let credentials = token.unwrap_or_default();
            let bearer =
                Authorization { credentials, credentials_file: file, ..Authorization::default() };
            self.authorization = Some(bearer);
        }
    }

    /// Returns the credentials for targets and for service discovery.
    pub(super) fn credentials_mut(&mut self) -> Vec<Credentials<'_>> {
        let Self { basic_auth, authorization, tls_config, .. } = self;
        let (http_sd_configs, clusters) =
            (&mut self.http_sd_configs, &mut self.kubernetes_sd_configs);
        let discoveries = http_sd_configs.iter_mut().map(|list| Credentials {
            basic_auth: &mut list.basic_auth,
            authorization: &mut list.authorization,
            tls_config: &mut list.tls_config,
        });
        std::iter::once(Credentials { basic_auth, authorization, tls_config })
            .chain(discoveries)
            .chain(clusters.iter_mut().map(KubernetesDiscovery::credentials_mut))
            .collect()
    }

    /// Checks the settings of requests.
    pub(super) fn check_requests(&self) -> Result<(), String> {
        let mut copy = self.clone();
        for Credentials { basic_auth, authorization, tls_config } in copy.credentials_mut() {
            if basic_auth.is_some() && authorization.is_some() {
                return Err("only one of basic_auth and authorization can be sent".to_owned());
            }
            if tls_config.cert_file.is_some() != tls_config.key_file.is_some() {
                return Err("tls_config: cert_file and key_file belong together".to_owned());
            }
        }
        if self.scrapes_native_histograms()
            && !self.protocols().contains(&Protocol::PrometheusProto)
        {
            let remedy = "add PrometheusProto as the first of scrape_protocols";
            return Err(format!("scrape_native_histograms has no effect: {remedy}"));
        }
        self.kubernetes_sd_configs.iter().try_for_each(KubernetesDiscovery::check)?;
        if let Some(url) = &self.proxy_url {
            ureq::Proxy::new(url).map_err(|_| "proxy_url: use http://HOST:PORT".to_owned())?;
        }
        for name in self.http_headers.keys() {
            let is_reserved =
                RESERVED_HEADERS.iter().any(|reserved| reserved.eq_ignore_ascii_case(name));
            if is_reserved || ureq::http::HeaderName::from_bytes(name.as_bytes()).is_err() {
                return Err(format!("http_headers: {name:?} cannot be set"));
            }
        }
        let is_http_url = |url: &str| url.starts_with("http://") || url.starts_with("https://");
        if let Some(list) = self.http_sd_configs.iter().find(|list| !is_http_url(&list.url)) {
            return Err(format!(
                "http_sd_configs: {:?} must begin with http:// or https://",
                list.url
            ));
        }
        Ok(())
    }

    /// Returns the maximum size of a response.
    pub(crate) fn body_bytes_max(&self) -> u64 {
        let Size(limit) = self.body_size_limit;
        if limit == 0 { BODY_BYTES_MAX } else { limit.min(BODY_BYTES_MAX) }
    }
}

/// Headers that the agent sets itself.
const RESERVED_HEADERS: [&str; 7] = [
    "accept",
    "accept-encoding",
    "authorization",
    "content-length",
    "host",
    "user-agent",
    "x-prometheus-scrape-timeout-seconds",
];

/// The values of a header.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Header {
    pub(crate) values: Vec<String>,
    pub(crate) secrets: Vec<String>,
    pub(crate) files: Vec<PathBuf>,
}

/// Targets that a server lists (prometheus.io, "HTTP service discovery").
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct HttpDiscovery {
    pub(crate) url: String,
    pub(crate) refresh_interval: Span,
    pub(crate) basic_auth: Option<BasicAuth>,
    pub(crate) authorization: Option<Authorization>,
    pub(crate) tls_config: Tls,
    pub(crate) follow_redirects: bool,
    pub(crate) enable_http2: bool,
    pub(crate) proxy_url: Option<String>,
}

impl Default for HttpDiscovery {
    fn default() -> Self {
        Self {
            url: String::new(),
            refresh_interval: Span(Duration::from_secs(60)),
            basic_auth: None,
            authorization: None,
            tls_config: Tls::default(),
            follow_redirects: true,
            enable_http2: true,
            proxy_url: None,
        }
    }
}

/// Targets with the labels that they share.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Group {
    pub(crate) targets: Vec<String>,
    pub(crate) labels: BTreeMap<String, String>,
}

/// Targets listed in files.
#[derive(Debug, Clone, PartialEq, Eq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct FileDiscovery {
    pub(crate) files: Vec<PathBuf>,
    /// Accepted for compatibility; files are checked more often.
    pub(crate) refresh_interval: Option<Span>,
}

/// Targets found by DNS.
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

/// The type of DNS records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "UPPERCASE")]
pub(crate) enum RecordType {
    Srv,
    A,
    Aaaa,
}
