//! The numbers of firing alerts by host.
//!
//! Must never know: which silences there are.

use super::KnownRules;
use crate::{alerts::LabelSet, query::HostAlerts};

/// The label that names the host of an alert.
const HOST: &str = "host";
/// The label with the severity of an alert.
const SEVERITY: &str = "severity";

impl KnownRules {
    /// Counts the firing alerts of each host by severity, except for silenced ones.
    pub fn firing_by_host(&self, is_silenced: &dyn Fn(&LabelSet) -> bool) -> HostAlerts {
        let (_, statuses) = self.groups();
        let unread = self.unread();
        let rules = statuses.iter().chain(&unread).flat_map(|status| status.state.rules.values());
        let mut counts = HostAlerts::new();
        for alert in rules.flat_map(|rule| &rule.alerts) {
            let Some(host) = alert.labels.get(HOST) else { continue };
            if !alert.state.is_notified() || is_silenced(&alert.labels) {
                continue;
            }
            let severity = alert.labels.get(SEVERITY).cloned().unwrap_or_default();
            *counts.entry(host.clone()).or_default().entry(severity).or_insert(0) += 1;
        }
        counts
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::fixtures::{alert, empty_rules, state_with};

    #[test]
    fn alerts_that_fire_and_are_not_silenced_count_by_host_and_severity() {
        let known = empty_rules();
        let alert = |labels: serde_json::Value, state: &str| {
            alert(state, json!({ "labels": labels, "annotations": {}, "value": "1" }))
        };
        let alerts = vec![
            alert(json!({ "host": "web1", "severity": "critical" }), "firing"),
            alert(json!({ "host": "web1", "severity": "critical", "mount": "/" }), "firing"),
            alert(json!({ "host": "web1" }), "firing"),
            alert(json!({ "host": "web2", "severity": "critical" }), "pending"),
            alert(json!({ "host": "web3", "severity": "critical" }), "firing"),
            alert(json!({ "severity": "critical" }), "firing"),
        ];
        // Alerts of a file that cannot be read any more keep their state.
        known.note_unread(vec![state_with(alerts)]);
        let found = known.firing_by_host(&|labels| labels["host"] == "web3");
        assert_eq!(json!(found), json!({ "web1": { "": 1, "critical": 2 } }));
    }
}
