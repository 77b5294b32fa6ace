//! The part of prometheus.yml that scraping needs (prometheus.io, "Configuration"), read as it is.
//!
//! What is not supported is refused by its name and place: an agent that left out a part of its
//! settings in silence would measure something else than it was told. Parts of Prometheus' that do
//! not matter here, such as how often it evaluates rules, are passed over.

mod units;

use std::{
    collections::{BTreeMap, HashSet},
    path::{Path, PathBuf},
    time::Duration,
};

use granary_agent_kit::relabel::{RULES_MAX, Rule};
use serde::{Deserialize, Deserializer, de};

use crate::fetch::Client;

pub(crate) use units::{Size, Span, span};

/// Bytes of a settings file.
const FILE_BYTES_MAX: u64 = 4 << 20;
/// Jobs of a file.
const JOBS_MAX: usize = 10_000;
/// An answer is at most as long, whatever the settings say.
pub(crate) const BODY_BYTES_MAX: u64 = 256 << 20;

/// Why settings cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", path.display())]
pub struct ConfigError {
    path: PathBuf,
    problem: String,
}

/// What is scraped, and how.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    global: Global,
    scrape_configs: Vec<Job>,
    /// Empty, as it is in many files.
    #[serde(deserialize_with = "nothing")]
    rule_files: (),
    #[serde(deserialize_with = "nothing")]
    scrape_config_files: (),
    /// Files that it names are relative to this folder.
    #[serde(skip)]
    folder: PathBuf,
}

/// A section that has nothing in it.
fn nothing<'de, D: Deserializer<'de>>(deserializer: D) -> Result<(), D::Error> {
    match Option::<Vec<String>>::deserialize(deserializer)? {
        Some(list) if !list.is_empty() => {
            Err(de::Error::custom("not supported by this agent: remove it or leave it empty"))
        }
        _ => Ok(()),
    }
}

#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Global {
    scrape_interval: Span,
    scrape_timeout: Option<Span>,
    /// Of rules, which are not evaluated here.
    evaluation_interval: Option<Span>,
    external_labels: BTreeMap<String, String>,
    scrape_protocols: Vec<Protocol>,
    body_size_limit: Size,
    sample_limit: u64,
    label_limit: u64,
    label_name_length_limit: u64,
    label_value_length_limit: u64,
    target_limit: u64,
}

impl Default for Global {
    fn default() -> Self {
        Self {
            scrape_interval: Span(Duration::from_secs(60)),
            scrape_timeout: None,
            evaluation_interval: None,
            external_labels: BTreeMap::new(),
            scrape_protocols: Vec::new(),
            body_size_limit: Size::default(),
            sample_limit: 0,
            label_limit: 0,
            label_name_length_limit: 0,
            label_value_length_limit: 0,
            target_limit: 0,
        }
    }
}

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
        self.scrape_interval.map_or(Duration::from_secs(60), |span| span.0)
    }

    pub(crate) fn timeout(&self) -> Duration {
        self.scrape_timeout.map_or(Duration::from_secs(10), |span| span.0)
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

impl Config {
    /// Reads a file.
    ///
    /// # Errors
    /// When it cannot be read or used; the error names the file, the place and what is wrong.
    pub fn read(path: &Path) -> Result<Self, ConfigError> {
        let fault = |problem: String| ConfigError { path: path.to_owned(), problem };
        let bytes = std::fs::metadata(path).map_err(|cause| fault(cause.to_string()))?.len();
        if bytes > FILE_BYTES_MAX {
            return Err(fault(format!("{bytes} bytes; at most {FILE_BYTES_MAX}")));
        }
        let text = std::fs::read_to_string(path).map_err(|cause| fault(cause.to_string()))?;
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        Self::parse(&text, folder).map_err(fault)
    }

    /// Reads settings; files that they name are relative to `folder`.
    pub(crate) fn parse(text: &str, folder: PathBuf) -> Result<Self, String> {
        let read: Option<Self> = serde_saphyr::from_str(text).map_err(|cause| cause.to_string())?;
        let mut config = read.unwrap_or_default();
        config.folder = folder;
        config.inherit();
        config.check()?;
        Ok(config)
    }

    /// The jobs, with what is set for all of them.
    pub(crate) fn jobs(&self) -> &[Job] {
        &self.scrape_configs
    }

    /// Reads the certificates and keys that the jobs name, to see that they can be.
    ///
    /// # Errors
    /// Which job's cannot, and why.
    pub fn check_files(&self) -> Result<(), String> {
        let check = |job: &Job| {
            let client = Client::new(job);
            client.map(drop).map_err(|cause| format!("job {:?}: {cause}", job.job_name))
        };
        self.scrape_configs.iter().try_for_each(check)
    }

    /// Labels that each sample has, where it lacks them.
    pub(crate) fn external_labels(&self) -> &BTreeMap<String, String> {
        &self.global.external_labels
    }

    /// A job takes what is set for all where it sets nothing itself.
    fn inherit(&mut self) {
        let Global { scrape_interval, scrape_timeout, .. } = self.global;
        let global = &self.global;
        let folder = &self.folder;
        let join = |file: &mut Option<PathBuf>| {
            if let Some(file) = file {
                *file = folder.join(&*file);
            }
        };
        for job in &mut self.scrape_configs {
            let interval = *job.scrape_interval.get_or_insert(scrape_interval);
            // The default of ten seconds, and that of all, give way to a shorter interval.
            let default = scrape_timeout.unwrap_or(Span(Duration::from_secs(10))).min(interval);
            job.scrape_timeout.get_or_insert(default);
            if job.scrape_protocols.is_empty() {
                job.scrape_protocols.clone_from(&global.scrape_protocols);
            }
            let or = |own: &mut u64, all: u64| *own = if *own == 0 { all } else { *own };
            or(&mut job.body_size_limit.0, global.body_size_limit.0);
            or(&mut job.sample_limit, global.sample_limit);
            or(&mut job.label_limit, global.label_limit);
            or(&mut job.label_name_length_limit, global.label_name_length_limit);
            or(&mut job.label_value_length_limit, global.label_value_length_limit);
            or(&mut job.target_limit, global.target_limit);
            job.basic_auth.iter_mut().for_each(|auth| join(&mut auth.password_file));
            job.authorization.iter_mut().for_each(|auth| join(&mut auth.credentials_file));
            let tls = &mut job.tls_config;
            [&mut tls.ca_file, &mut tls.cert_file, &mut tls.key_file].into_iter().for_each(join);
            for file in job.file_sd_configs.iter_mut().flat_map(|own| &mut own.files) {
                *file = folder.join(&*file);
            }
        }
    }

    fn check(&self) -> Result<(), String> {
        if self.scrape_configs.len() > JOBS_MAX {
            return Err(format!("more than {JOBS_MAX} scrape_configs"));
        }
        let mut names = HashSet::new();
        for (index, job) in self.scrape_configs.iter().enumerate() {
            let name = &job.job_name;
            let fault = |problem: &str| {
                Err(format!("scrape_configs.{index} (job_name {name:?}): {problem}"))
            };
            if name.is_empty() {
                return fault("a job needs a job_name");
            }
            if !names.insert(name) {
                return fault("there are two jobs of this name");
            }
            if job.interval() < Duration::from_millis(100) {
                return fault("scrape_interval must be 100ms or more");
            }
            if job.timeout() > job.interval() || job.timeout().is_zero() {
                return fault("scrape_timeout must be more than 0 and at most scrape_interval");
            }
            if job.relabel_configs.len().max(job.metric_relabel_configs.len()) > RULES_MAX {
                return fault("more than 1000 rules in a list");
            }
            if job.basic_auth.is_some() && job.authorization.is_some() {
                return fault("only one of basic_auth and authorization can be sent");
            }
            let tls = &job.tls_config;
            if tls.cert_file.is_some() != tls.key_file.is_some() {
                return fault("tls_config: cert_file and key_file belong together");
            }
            if job.dns_sd_configs.iter().any(|own| own.kind != RecordType::Srv && own.port == 0) {
                return fault("dns_sd_configs: records of type A and AAAA need a port");
            }
            let files = job.file_sd_configs.iter().flat_map(|own| &own.files);
            if let Some(bad) = files.into_iter().find(|file| !is_list_file(file)) {
                return fault(&format!("{}: must end in .json, .yml or .yaml", bad.display()));
            }
        }
        Ok(())
    }
}

fn is_list_file(file: &Path) -> bool {
    file.extension().is_some_and(|end| ["json", "yml", "yaml"].iter().any(|own| end == *own))
}

#[cfg(test)]
mod tests;
