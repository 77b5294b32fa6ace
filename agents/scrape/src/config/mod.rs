//! The scraping part of a prometheus.yml (prometheus.io, "Configuration").
//!
//! Unsupported keys are rejected with their name and location, because an agent that silently
//! ignored them would measure something else. Parts for a server, such as the evaluation interval
//! of rules, are listed in the log and skipped.

mod credentials;
mod job;
mod known;
mod kubernetes;
mod shard;
mod units;

use std::{
    collections::{BTreeMap, HashSet},
    path::{Path, PathBuf},
    time::Duration,
};

use granary_agent_kit::relabel::RULES_MAX;
use serde::Deserialize;

use self::{
    job::DEFAULT_TIMEOUT,
    known::{IgnoredSetting, with_alternative},
};

pub(crate) use credentials::{Authorization, Credentials, Tls};
pub(crate) use job::{
    DnsDiscovery, FileDiscovery, Group, Header, HttpDiscovery, Job, Protocol, RecordType,
};
pub(crate) use kubernetes::{KubernetesDiscovery, Role, Selector};
pub use shard::Shard;
pub(crate) use units::{Size, Span, parse_span};

/// The maximum size of a settings file.
const FILE_BYTES_MAX: u64 = 4 << 20;
/// The maximum number of jobs in a file.
const JOBS_MAX: usize = 10_000;
/// The maximum size of a response, even if the settings allow more.
pub(crate) const BODY_BYTES_MAX: u64 = 256 << 20;

/// The reason why settings are invalid.
#[derive(Debug, thiserror::Error)]
#[error("{}: {problem}", path.display())]
pub struct ConfigError {
    path: PathBuf,
    problem: String,
}

/// The settings of the scraper.
#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Config {
    global: Global,
    scrape_configs: Vec<Job>,
    // Parts for a Prometheus server.
    alerting: IgnoredSetting,
    rule_files: IgnoredSetting,
    remote_read: IgnoredSetting,
    storage: IgnoredSetting,
    tracing: IgnoredSetting,
    otlp: IgnoredSetting,
    runtime: IgnoredSetting,
    /// The folder of the settings; file names are relative to it.
    #[serde(skip)]
    folder: PathBuf,
    /// The share of the targets that the agent scrapes.
    #[serde(skip)]
    shard: Shard,
}

#[derive(Debug, Clone, PartialEq, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct Global {
    scrape_interval: Option<Span>,
    scrape_timeout: Option<Span>,
    // Keys for rules and queries.
    evaluation_interval: IgnoredSetting,
    rule_query_offset: IgnoredSetting,
    query_log_file: IgnoredSetting,
    scrape_failure_log_file: IgnoredSetting,
    keep_dropped_targets: IgnoredSetting,
    metric_name_validation_scheme: IgnoredSetting,
    metric_name_escaping_scheme: IgnoredSetting,
    convert_classic_histograms_to_nhcb: IgnoredSetting,
    scrape_native_histograms: Option<bool>,
    always_scrape_classic_histograms: Option<bool>,
    external_labels: BTreeMap<String, String>,
    scrape_protocols: Vec<Protocol>,
    body_size_limit: Size,
    sample_limit: u64,
    label_limit: u64,
    label_name_length_limit: u64,
    label_value_length_limit: u64,
    target_limit: u64,
}

impl Config {
    /// Reads a file.
    ///
    /// # Errors
    /// The file is unreadable or invalid; the error names the file, the location and the fault.
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

    /// Parses settings; file names are relative to `folder`.
    pub(crate) fn parse(text: &str, folder: PathBuf) -> Result<Self, String> {
        let parsed: Option<Self> =
            serde_saphyr::from_str(text).map_err(|cause| with_alternative(cause.to_string()))?;
        let mut config = parsed.unwrap_or_default();
        config.folder = folder;
        config.inherit();
        config.check()?;
        Ok(config)
    }

    /// Limits the targets to a share.
    #[must_use]
    pub fn with_shard(self, shard: Shard) -> Self {
        Self { shard, ..self }
    }

    pub(crate) fn shard(&self) -> Shard {
        self.shard
    }

    /// Returns the jobs, with global settings applied.
    pub(crate) fn jobs(&self) -> &[Job] {
        &self.scrape_configs
    }

    /// Returns the keys that were set but have no effect in an agent, because they only concern a
    /// Prometheus server.
    pub fn ignored_settings(&self) -> Vec<&'static str> {
        let global = &self.global;
        let mut all = vec![
            ("alerting", self.alerting),
            ("rule_files", self.rule_files),
            ("remote_read", self.remote_read),
            ("storage", self.storage),
            ("tracing", self.tracing),
            ("otlp", self.otlp),
            ("runtime", self.runtime),
            ("global.evaluation_interval", global.evaluation_interval),
            ("global.rule_query_offset", global.rule_query_offset),
            ("global.query_log_file", global.query_log_file),
            ("global.scrape_failure_log_file", global.scrape_failure_log_file),
            ("global.keep_dropped_targets", global.keep_dropped_targets),
            ("global.metric_name_validation_scheme", global.metric_name_validation_scheme),
            ("global.metric_name_escaping_scheme", global.metric_name_escaping_scheme),
            (
                "global.convert_classic_histograms_to_nhcb",
                global.convert_classic_histograms_to_nhcb,
            ),
        ];
        all.extend(self.scrape_configs.iter().flat_map(Job::ignored_settings));
        let mut names: Vec<_> =
            all.into_iter().filter(|(_, unused)| unused.0).map(|(name, _)| name).collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Returns the labels to add to samples without them.
    pub(crate) fn external_labels(&self) -> &BTreeMap<String, String> {
        &self.global.external_labels
    }

    /// Applies global settings to jobs that do not override them.
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
            job.scrape_interval = job.scrape_interval.or(scrape_interval);
            // A shorter interval limits the default timeout and the global timeout.
            let timeout = scrape_timeout.unwrap_or(Span(DEFAULT_TIMEOUT));
            job.scrape_timeout.get_or_insert(timeout.min(Span(job.interval())));
            if job.scrape_protocols.is_empty() {
                job.scrape_protocols.clone_from(&global.scrape_protocols);
            }
            let (native, classic) =
                (&mut job.scrape_native_histograms, &mut job.always_scrape_classic_histograms);
            *native = native.or(global.scrape_native_histograms);
            *classic = classic.or(global.always_scrape_classic_histograms);
            let inherit_limit =
                |value: &mut u64, global: u64| *value = if *value == 0 { global } else { *value };
            inherit_limit(&mut job.body_size_limit.0, global.body_size_limit.0);
            inherit_limit(&mut job.sample_limit, global.sample_limit);
            inherit_limit(&mut job.label_limit, global.label_limit);
            inherit_limit(&mut job.label_name_length_limit, global.label_name_length_limit);
            inherit_limit(&mut job.label_value_length_limit, global.label_value_length_limit);
            inherit_limit(&mut job.target_limit, global.target_limit);
            job.take_bearer_token();
            let credentials = job.credentials_mut();
            for Credentials { basic_auth, authorization, tls_config: tls } in credentials {
                if let Some(auth) = basic_auth {
                    join(&mut auth.password_file);
                }
                if let Some(auth) = authorization {
                    join(&mut auth.credentials_file);
                }
                [&mut tls.ca_file, &mut tls.cert_file, &mut tls.key_file]
                    .into_iter()
                    .for_each(join);
            }
            for file in job.http_headers.values_mut().flat_map(|header| &mut header.files) {
                *file = folder.join(&*file);
            }
            for file in job.file_sd_configs.iter_mut().flat_map(|list| &mut list.files) {
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
                return fault("the job has no job_name");
            }
            if !names.insert(name) {
                return fault("two jobs have this name");
            }
            if job.interval() < Duration::from_millis(100) {
                return fault("scrape_interval must be 100ms or more");
            }
            if job.timeout() > job.interval() || job.timeout().is_zero() {
                return fault("scrape_timeout must be more than 0 and at most scrape_interval");
            }
            if job.relabel_configs.len().max(job.metric_relabel_configs.len()) > RULES_MAX {
                return fault(&format!("more than {RULES_MAX} rules in a list"));
            }
            if let Err(problem) = job.check_requests() {
                return fault(&problem);
            }
            if job
                .dns_sd_configs
                .iter()
                .any(|names| names.kind != RecordType::Srv && names.port == 0)
            {
                return fault("dns_sd_configs: records of type A and AAAA need a port");
            }
            let files = job.file_sd_configs.iter().flat_map(|list| &list.files);
            if let Some(bad) = files.into_iter().find(|file| !is_list_file(file)) {
                return fault(&format!("{}: must end in .json, .yml or .yaml", bad.display()));
            }
        }
        Ok(())
    }
}

fn is_list_file(file: &Path) -> bool {
    file.extension().is_some_and(|end| ["json", "yml", "yaml"].iter().any(|known| end == *known))
}

#[cfg(test)]
mod tests;
