//! The settings as the daemon uses them: the sections, and values derived from several keys.

use std::{num::NonZero, ops::Deref, sync::Arc, thread::available_parallelism};

use super::{
    ConfigError,
    alerting::{alertmanagers, rules},
    faults::Faults,
    sections::{DECOMPRESSED_FACTOR, Ingest, Level, Sections},
};
use crate::{
    alerts::{Alertmanager, External},
    ingest::graphite::Template,
    kept::RuleSources,
    model::{Granularity, GranularitySet, Span},
    query::PromqlSettings,
    store::CheckpointBounds,
};

/// Checked settings. The sections are accessible as fields: `settings.server.listen`.
#[derive(Debug, Clone)]
pub struct Settings {
    /// The effective settings as TOML, one line per section.
    pub as_toml: Vec<String>,
    /// The keys that differ from their defaults, with their values.
    pub changed: Vec<String>,
    /// Notes on effects that the operator may not expect.
    pub notes: Vec<String>,
    /// The parsed `graphite.templates`.
    pub graphite_templates: Vec<Template>,
    /// The sources of rules and the routing of notifications.
    pub rules: RuleSources,
    /// The parsed `alerts.alertmanagers`.
    pub alertmanagers: Vec<Alertmanager>,
    /// The granularities of all `[[granularity]]`.
    pub granularities: GranularitySet,
    sections: Sections,
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
        let rules = rules(&sections, &mut faults);
        let alertmanagers = alertmanagers(&sections.alerts, &mut faults);
        // The parsed form hides secrets from logs.
        sections.alerts.alertmanagers.clear();
        let settings = Self {
            as_toml: Vec::new(),
            changed: Vec::new(),
            notes: Vec::new(),
            graphite_templates: templates(&sections.graphite.templates, &mut faults),
            rules,
            alertmanagers,
            granularities: granularities(&sections.granularity, &mut faults),
            sections,
        };
        if faults.0.is_empty() { Ok(settings) } else { Err(ConfigError::Invalid(faults.0)) }
    }

    /// Returns the sources of rules on the named machine: without `server.external_url`, links
    /// contain the machine's name and the port, as in Prometheus.
    pub fn rule_sources(&self, machine: Option<&str>) -> RuleSources {
        let mut sources = self.rules.clone();
        if sources.external.url.is_empty() {
            let port = self.server.listen.port();
            let url = format!("http://{}:{port}", machine.unwrap_or("localhost"));
            let external = External { url, ..External::clone(&sources.external) };
            sources.external = Arc::new(external);
        }
        sources
    }

    /// Returns the number of HTTP worker threads.
    pub fn worker_threads(&self) -> usize {
        let cores = || available_parallelism().map_or(2, NonZero::get);
        NonZero::new(self.server.workers).map_or_else(cores, NonZero::get)
    }

    /// Returns the sizes at which a checkpoint starts.
    pub fn checkpoint_bounds(&self) -> CheckpointBounds {
        CheckpointBounds {
            cell_bytes_max: self.storage.catalog_bytes_max,
            journal_bytes_max: self.storage.journal_bytes_max,
        }
    }

    /// Returns the maximum size of a decompressed body.
    pub fn decompressed_bytes_max(&self) -> usize {
        self.ingest.request_bytes_max.saturating_mul(DECOMPRESSED_FACTOR)
    }

    /// Returns the settings of `PromQL` queries.
    pub fn promql_settings(&self) -> PromqlSettings {
        let limits = &self.limits;
        PromqlSettings {
            timeout: limits.query_timeout,
            lookback: self.promql.lookback,
            delayed_name_removal: self.promql.delayed_name_removal,
            series_max: limits.query_series_max,
            points_max: limits.query_points_max,
            memory_max: limits.query_memory_max,
        }
    }
}

/// Checks the prefixes of redundant senders; every request is compared with each.
fn check_ha_senders(ingest: &Ingest, faults: &mut Faults) {
    const MOST: usize = 64;
    if ingest.ha_senders.len() > MOST {
        faults.0.push(format!("ingest.ha_senders names more than {MOST}; name fewer"));
    }
    if ingest.ha_senders.iter().any(|prefix| prefix.is_empty()) {
        faults.0.push(
            "ingest.ha_senders: \"\" would be all senders; name what senders that send the same \
             samples begin with, such as \"statsd-\""
                .to_owned(),
        );
    }
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
            "server.listen = 'nowhere'\nlimits.queries_max = 0\nalerts.interval = 'often'\n\
             log.format = 'xml'",
        )
        .unwrap_err();
        for part in ["server.listen", "alerts.interval", "xml", "limits.queries_max = 0"] {
            assert!(message.contains(part), "{part} in {message}");
        }
        let message = with("limits.host_max = 3").unwrap_err();
        assert_eq!(message, "limits.host_max is no known key; did you mean hosts_max?");
        // Keys that are not known, values of a wrong type and values that cannot be used.
        let message = with(
            "servers.listen = ':1'\nserver = { lissen = ':1', workers = 'many' }\nlog = 3\n\
             [limits]\nqueries_max = 0\nhosts_max = 'long'\nzzzzzzzzz = 1\n\
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
            "limits.hosts_max: ",
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
