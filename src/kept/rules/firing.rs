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

    use super::*;
    use crate::{
        alerts::{GroupState, RuleState},
        config,
        kept::RuleSources,
        telemetry::Metrics,
    };

    #[test]
    fn alerts_that_fire_and_are_not_silenced_count_by_host_and_severity() {
        let settings = config::load(None, &config::Overrides::default()).unwrap();
        let metrics = Metrics::new().unwrap();
        let known = KnownRules::open(RuleSources::default(), &settings.promql_settings(), metrics);
        let alert = |labels: serde_json::Value, state: &str| {
            serde_json::from_value(json!({
                "labels": labels, "annotations": {}, "state": state, "value": "1", "active_at": 1,
            }))
            .unwrap()
        };
        let alerts = vec![
            alert(json!({ "host": "web1", "severity": "critical" }), "firing"),
            alert(json!({ "host": "web1", "severity": "critical", "mount": "/" }), "firing"),
            alert(json!({ "host": "web1" }), "firing"),
            alert(json!({ "host": "web2", "severity": "critical" }), "pending"),
            alert(json!({ "host": "web3", "severity": "critical" }), "firing"),
            alert(json!({ "severity": "critical" }), "firing"),
        ];
        let rules = [("r".to_owned(), RuleState { alerts, ..RuleState::default() })].into();
        let state = GroupState { rules, ..GroupState::default() };
        // Alerts of a file that cannot be read any more keep their state.
        known.note_unread(vec![state]);
        let found = known.firing_by_host(&|labels| labels["host"] == "web3");
        assert_eq!(json!(found), json!({ "web1": { "": 1, "critical": 2 } }));
    }
}
