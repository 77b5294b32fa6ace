//! The destination of notifications, and the remedy when there is none.
//!
//! Must never know: delivery.

use super::{KnownRules, RuleSet, RuleSources};
use crate::alerts::Action;

impl KnownRules {
    /// Returns the reason why firing alerts notify nobody, if there is one.
    pub fn no_receiver(&self) -> Option<String> {
        let loaded = self.loaded();
        no_receiver(&loaded.parts.sources, &loaded.set)
    }
}

/// Returns the reason why firing alerts of these rules notify nobody, if there is one.
fn no_receiver(sources: &RuleSources, set: &RuleSet) -> Option<String> {
    let rules = set.groups.iter().flat_map(|group| &group.rules);
    let alerting = rules.filter(|rule| matches!(rule.action, Action::Alert(_))).count();
    let has_integrations = set.routing.as_ref().is_some_and(|routing| routing.has_integrations());
    (alerting > 0 && !has_integrations && !sources.has_alertmanagers).then(|| {
        let remedy = match (&sources.notifications, &set.routing) {
            (Some(_), None) => "fix the file in alerts.notifications",
            (Some(_), Some(_)) => {
                "add an integration to the receivers in the file in alerts.notifications"
            }
            (None, Some(_)) => "add an integration to the receivers on the page",
            (None, None) => {
                "name receivers in a file, as in deploy/notifications.yml, set \
                 alerts.notifications to its path and reload; or save them as a text \
                 (docs/alerts.md); or name Alertmanagers in alerts.alertmanagers"
            }
        };
        let rules = if alerting == 1 { "rule has alerts" } else { "rules have alerts" };
        format!("{alerting} {rules}, but notifications have no destination: {remedy}")
    })
}

pub(super) fn warn_without_destination(sources: &RuleSources, set: &RuleSet) {
    if let Some(reason) = no_receiver(sources, set) {
        tracing::warn!(reason, "firing alerts notify nobody");
    }
}
