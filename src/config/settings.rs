//! The settings as the daemon uses them: the sections, and values derived from several keys.

use std::{collections::BTreeMap, fmt, ops::Deref, path::PathBuf, sync::Arc};

use super::{
    ConfigError,
    alerting::{alertmanagers, rules},
    cluster::{ClusterSettings, cluster},
    exposure,
    faults::Faults,
    oidc::provider,
    projects::{ProjectSettings, projects},
    publish::{PublishSettings, publish},
    retention::{check_projects, retention_rules},
    sections::{Distribution, Ingest, Level, Project, Sections, Tls},
    tls::{check_graphite_clients, check_tls, client_scopes, trusted_proxies},
};
use crate::{
    access::{ClientScopes, TrustedProxies},
    alerts::{Alertmanager, ExternalIdentity},
    ingest::graphite::Template,
    kept::RuleSources,
    model::{
        DISTRIBUTIONS_MAX, Distributions, Granularity, GranularitySet, MetricLimits, MetricPattern,
        ProjectName, RetentionRule, Span,
    },
    oidc::ProviderSettings,
    query::PromqlSettings,
    tls::TlsFiles,
};

/// The divisor of `limits.query_points_max` that yields the maximum number of series of a query:
/// with more series, a response could have fewer than 40 points of each.
const POINTS_PER_SERIES: usize = 40;

/// Checked settings. The sections are accessible as fields: `settings.server.listen`.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The effective settings as TOML, one line per section.
    pub as_toml: Vec<String>,
    /// The effective settings by section, without secrets.
    pub shown: toml::Table,
    /// The effective settings by section, with secrets.
    pub(super) raw: Raw,
    /// The keys that differ from their defaults, with their values.
    pub changed: Vec<String>,
    /// Notes on effects that the operator may not expect.
    pub notes: Vec<String>,
    /// The parsed `graphite.templates`.
    pub graphite_templates: Vec<Template>,
    /// The parsed `server.trusted_proxies`.
    pub trusted_proxies: TrustedProxies,
    /// The parsed `tls.clients`.
    pub client_scopes: ClientScopes,
    /// The parsed `ingest.distribution`.
    pub distributions: Distributions,
    /// The parsed `limits.metric_series`.
    pub metric_limits: MetricLimits,
    /// The sources of rules and the routing of notifications.
    pub rules: RuleSources,
    /// The parsed `alerts.alertmanagers`.
    pub alertmanagers: Vec<Alertmanager>,
    /// The granularities of all `[[granularity]]` tables.
    pub granularities: GranularitySet,
    /// The projects other than `default`, by name.
    pub projects: Vec<ProjectSettings>,
    /// The checked `security.oidc`; `None` without a provider.
    pub provider: Option<ProviderSettings>,
    /// The settings of documents in MongoDB; `None` when none are published.
    pub publishing: Option<PublishSettings>,
    /// The checked section `cluster`; `None` for an embedded daemon.
    pub cluster_settings: Option<ClusterSettings>,
    /// The rules of `[[retention.rule]]`, the first match first.
    pub retention_rules: Vec<RetentionRule>,
    sections: Sections,
}

/// Settings as TOML, with secrets that no log shows.
#[derive(Clone, Default)]
pub(super) struct Raw(pub(super) toml::Table);

impl fmt::Debug for Raw {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("(hidden)")
    }
}

impl Deref for Settings {
    type Target = Sections;

    fn deref(&self) -> &Sections {
        &self.sections
    }
}

impl Settings {
    /// Checks all settings, and reports every fault.
    pub(super) fn validate(mut sections: Sections) -> Result<Self, ConfigError> {
        let mut faults = Faults::default();
        sections.check_bounds(&mut faults);
        check_ha_senders(&sections.ingest, &mut faults);
        check_tls(&sections, &mut faults);
        exposure::check(&sections, &mut faults);
        let projects = projects(&sections.security, &mut faults);
        let rules = rules(&sections, &mut faults);
        let setting = "alerts.alertmanagers";
        let alertmanagers = alertmanagers(setting, &sections.alerts.alertmanagers, &mut faults);
        let provider = provider(&sections, &rules.external.url, &mut faults);
        // The raw values may contain secrets, which only the parsed form hides from logs.
        sections.alerts.alertmanagers.clear();
        sections.security.projects.clear();
        sections.security.oidc.client_secret.clear();
        let granularities = granularities(&sections.granularity, &mut faults);
        let retention_rules =
            retention_rules(&sections.retention, &projects, &granularities, &mut faults);
        check_projects(&sections.retention, &projects, &mut faults);
        let has_projects = !projects.is_empty();
        let publishing = publish(&sections.publish, &granularities, has_projects, &mut faults);
        let cluster_settings = cluster(&sections, &mut faults);
        // Like the Alertmanagers, the raw values may contain passwords.
        sections.publish.uri.clear();
        sections.cluster.uri.clear();
        let settings = Self {
            as_toml: Vec::new(),
            shown: toml::Table::new(),
            raw: Raw::default(),
            changed: Vec::new(),
            notes: Vec::new(),
            graphite_templates: templates(&sections.graphite.templates, &mut faults),
            trusted_proxies: trusted_proxies(&sections.server, &mut faults),
            client_scopes: client_scopes(&sections.tls, &mut faults),
            distributions: distributions(&sections.ingest.distribution, &mut faults),
            metric_limits: metric_limits(&sections.limits.metric_series, &mut faults),
            rules,
            alertmanagers,
            granularities,
            projects,
            provider,
            publishing,
            cluster_settings,
            retention_rules,
            sections,
        };
        check_graphite_clients(&settings, &settings.client_scopes, &mut faults);
        if faults.0.is_empty() { Ok(settings) } else { Err(ConfigError::Invalid(faults.0)) }
    }

    /// Returns the sources of rules on the named machine: without `server.external_url`, links
    /// contain the machine's name and the port, as in Prometheus.
    pub fn rule_sources(&self, machine: Option<&str>) -> RuleSources {
        let mut sources = self.rules.clone();
        if sources.external.url.is_empty() {
            let port = self.server.listen.port();
            let scheme = if self.tls_files().is_some() { "https" } else { "http" };
            let url = format!("{scheme}://{}:{port}", machine.unwrap_or("localhost"));
            let external = ExternalIdentity { url, ..ExternalIdentity::clone(&sources.external) };
            sources.external = Arc::new(external);
        }
        sources
    }

    /// Returns the settings of a project; the defaults for one that is not in the settings.
    pub fn project(&self, name: &ProjectName) -> Project {
        self.project_settings(name).settings
    }

    /// Returns the checked settings of a project; the defaults for one that is not in the settings.
    pub fn project_settings(&self, name: &ProjectName) -> ProjectSettings {
        let known = self.projects.iter().find(|project| project.name == *name);
        known.cloned().unwrap_or_default()
    }

    /// Returns the sources of a project's rules on the named machine.
    pub fn rule_sources_of(&self, name: &ProjectName, machine: Option<&str>) -> RuleSources {
        let ProjectSettings { settings, alertmanagers, .. } = self.project_settings(name);
        let Project { rules, notifications, .. } = settings;
        let is_named = !notifications.as_os_str().is_empty();
        RuleSources {
            paths: rules,
            notifications: is_named.then_some(notifications),
            has_alertmanagers: !alertmanagers.is_empty(),
            ..self.rule_sources(machine)
        }
    }

    /// Returns the files of TLS; `None` when TLS is off.
    pub fn tls_files(&self) -> Option<TlsFiles> {
        let Tls { certificate_file, key_file, client_ca_file, clients: _ } = &self.tls;
        let path = |path: &PathBuf| (!path.as_os_str().is_empty()).then(|| path.clone());
        let (certificate, key) = path(certificate_file).zip(path(key_file))?;
        Some(TlsFiles { certificate, key, client_ca: path(client_ca_file) })
    }

    /// Returns the warnings about addresses by topic: other machines can use them without a key, or
    /// send keys to them without encryption.
    pub fn exposure(&self) -> BTreeMap<&'static str, String> {
        exposure::warnings(&self.sections, &self.trusted_proxies)
    }

    /// Returns the maximum number of series of a query.
    pub fn query_series_max(&self) -> usize {
        self.limits.query_points_max.div_ceil(POINTS_PER_SERIES)
    }

    /// Returns the settings of `PromQL` queries.
    pub fn promql_settings(&self) -> PromqlSettings {
        let limits = &self.limits;
        PromqlSettings {
            timeout: limits.query_timeout,
            lookback: self.promql.lookback,
            series_max: self.query_series_max(),
            points_max: limits.query_points_max,
            memory_max: limits.query_memory_max,
        }
    }
}

/// Checks the prefixes of redundant senders; they are few, because each request is compared with
/// all.
fn check_ha_senders(ingest: &Ingest, faults: &mut Faults) {
    const PREFIXES_MAX: usize = 64;
    if ingest.ha_senders.len() > PREFIXES_MAX {
        faults
            .0
            .push(format!("ingest.ha_senders has more than {PREFIXES_MAX} entries; remove some"));
    }
    if ingest.ha_senders.keys().any(|prefix| prefix.is_empty()) {
        faults.0.push(
            "ingest.ha_senders: \"\" would match all senders; use a prefix of the senders that send \
             the same samples, such as \"statsd-\""
                .to_owned(),
        );
    }
}

fn metric_limits(limits: &BTreeMap<String, usize>, faults: &mut Faults) -> MetricLimits {
    let pairs = limits.iter().map(|(pattern, series_max)| (pattern.as_str(), *series_max));
    MetricLimits::new(pairs).unwrap_or_else(|found| {
        faults.0.extend(found.iter().map(|fault| format!("limits.metric_series: {fault}")));
        MetricLimits::default()
    })
}

fn distributions(tables: &[Distribution], faults: &mut Faults) -> Distributions {
    if tables.len() > DISTRIBUTIONS_MAX {
        faults.0.push(format!(
            "ingest.distribution: {} tables are more than {DISTRIBUTIONS_MAX}: join some of them, \
             with a prefix such as \"http_*\"",
            tables.len()
        ));
        return Distributions::default();
    }
    let parse = |table: &Distribution| {
        MetricPattern::parse(&table.metric).map_err(|fault| {
            faults.0.push(format!("ingest.distribution: metric {fault}"));
        })
    };
    Distributions::new(tables.iter().map(parse).filter_map(Result::ok).collect())
}

fn templates(texts: &[String], faults: &mut Faults) -> Vec<Template> {
    let mut read = |text: &String| {
        Template::parse(text)
            .map_err(|problem| faults.0.push(format!("graphite.templates: {problem}")))
            .ok()
    };
    texts.iter().filter_map(&mut read).collect()
}

fn granularities(given: &[Level], faults: &mut Faults) -> GranularitySet {
    let mut levels = Vec::new();
    for level in given {
        let key = |part: &str| format!("granularity {}: {part}", level.slot);
        let slot = faults.span(&key("slot"), &level.slot);
        let document = faults.span(&key("document"), &level.document);
        let partition = faults.span(&key("partition"), &level.partition);
        let retention = faults.span(&key("retention"), &level.retention);
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
