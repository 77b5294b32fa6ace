//! The settings of alerts: Alertmanagers, the external address and external labels.
//!
//! Must never know: rules, how notifications are sent.

use std::sync::Arc;

use super::{faults::Faults, sections::Sections};
use crate::{
    alerts::{Alertmanager, ExternalIdentity, Http, LabelSet, is_label_name, read_http},
    kept::RuleSources,
    model::{METRIC_TAG, without_password},
};

/// The maximum number of Alertmanagers, each of which has a thread.
const ALERTMANAGERS_MAX: usize = 8;
/// The evaluation interval of rule groups that name none, in milliseconds: Prometheus' default.
const EVALUATION_INTERVAL_MS: i64 = 60_000;
/// The maximum number of external labels.
const LABELS_MAX: usize = 64;
/// The maximum length of a label's name and value.
const LABEL_BYTES_MAX: usize = 1024;

/// Parses Alertmanagers: addresses, or tables with an address and Alertmanager's `http_config`.
pub(super) fn alertmanagers(
    setting: &str,
    values: &[toml::Value],
    faults: &mut Faults,
) -> Vec<Alertmanager> {
    if values.len() > ALERTMANAGERS_MAX {
        faults.0.push(format!("{setting} has more than {ALERTMANAGERS_MAX} entries; remove some"));
    }
    let read = |raw: &toml::Value| {
        let parsed = alertmanager(raw);
        parsed.map_err(|fault| faults.0.push(format!("{setting}: {fault}"))).ok()
    };
    values.iter().filter_map(read).collect()
}

fn alertmanager(raw: &toml::Value) -> Result<Alertmanager, String> {
    let no_address =
        "use an address such as \"http://localhost:9093\", or { url = ..., http_config = ... }";
    let (url, http) = match raw {
        toml::Value::String(url) => (url, Http::default()),
        toml::Value::Table(table) => {
            let unknown = table.keys().find(|key| !matches!(key.as_str(), "url" | "http_config"));
            if let Some(key) = unknown {
                return Err(format!("unknown key {key:?}; known keys are url and http_config"));
            }
            let Some(toml::Value::String(url)) = table.get("url") else {
                return Err(no_address.to_owned());
            };
            let http = table.get("http_config").cloned().map(read_http).transpose();
            (url, http.map_err(|cause| format!("http_config: {cause}"))?.unwrap_or_default())
        }
        toml::Value::Integer(_)
        | toml::Value::Float(_)
        | toml::Value::Boolean(_)
        | toml::Value::Datetime(_)
        | toml::Value::Array(_) => return Err(no_address.to_owned()),
    };
    if !is_address(url) {
        let shown = without_password(url);
        return Err(format!("{shown:?} is not an address; use http://localhost:9093"));
    }
    Ok(Alertmanager { url: url.trim_end_matches('/').to_owned(), http })
}

/// Returns true when a text is an address of a web server with a host.
fn is_address(url: &str) -> bool {
    let rest = url.strip_prefix("http://").or_else(|| url.strip_prefix("https://"));
    rest.is_some_and(|rest| {
        let host = rest.split('/').next().unwrap_or_default();
        !host.is_empty() && !host.starts_with(':')
    })
}

pub(super) fn rules(sections: &Sections, faults: &mut Faults) -> RuleSources {
    let alerts = &sections.alerts;
    let is_named = !alerts.notifications.as_os_str().is_empty();
    let url = external_url(&sections.server.external_url, faults);
    let labels = external_labels(&alerts.external_labels, faults);
    RuleSources {
        paths: alerts.rules.clone(),
        interval_ms: EVALUATION_INTERVAL_MS,
        notifications: is_named.then(|| alerts.notifications.clone()),
        has_alertmanagers: !alerts.alertmanagers.is_empty(),
        external: Arc::new(ExternalIdentity { url, labels }),
    }
}

/// Checks the page's address, and removes a trailing slash. An empty address stays empty; the
/// machine's name replaces it later.
fn external_url(url: &str, faults: &mut Faults) -> String {
    let is_plain = !url.contains(|c: char| matches!(c, '?' | '#') || c.is_control() || c == ' ');
    if !(url.is_empty() || is_address(url) && is_plain && !url.contains('@')) {
        let shown = without_password(url);
        faults.0.push(format!(
            "server.external_url = {shown:?} is not an address of the page; use https://granary.example.org"
        ));
    }
    url.trim_end_matches('/').to_owned()
}

fn external_labels(labels: &LabelSet, faults: &mut Faults) -> LabelSet {
    if labels.len() > LABELS_MAX {
        faults
            .0
            .push(format!("alerts.external_labels has more than {LABELS_MAX} labels; remove some"));
    }
    for (name, value) in labels {
        let is_name = is_label_name(name) && name != METRIC_TAG;
        let is_value = !value.is_empty() && !value.contains(char::is_control);
        if !is_name || !is_value || name.len() + value.len() > LABEL_BYTES_MAX {
            faults.0.push(format!(
                "alerts.external_labels: {name:?} = {value:?} is not a valid label; use for example region = \"eu\""
            ));
        }
    }
    labels.clone()
}
