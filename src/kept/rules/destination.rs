//! The destination of notifications, and the remedy when there is none.
//!
//! Must never know: delivery.

use super::{KnownRules, RuleSet, RuleSources};
use crate::{alerts::Action, model::ProjectName};

impl KnownRules {
    /// Returns the reason why firing alerts notify nobody, if there is one.
    pub fn no_receiver(&self) -> Option<String> {
        let loaded = self.loaded();
        no_receiver(self.0.store.project(), &loaded.parts.sources, &loaded.set)
    }

    /// Writes the reason why firing alerts notify nobody to the log, if there is one.
    pub(super) fn warn_without_destination(&self) {
        if let Some(reason) = self.no_receiver() {
            tracing::warn!(reason, "firing alerts notify nobody");
        }
    }
}

/// Returns the reason why firing alerts of these rules notify nobody, if there is one.
fn no_receiver(project: &ProjectName, sources: &RuleSources, set: &RuleSet) -> Option<String> {
    let rules = set.groups.iter().flat_map(|group| &group.rules);
    let alerting = rules.filter(|rule| matches!(rule.action, Action::Alert(_))).count();
    let has_integrations = set.routing.as_ref().is_some_and(|routing| routing.has_integrations());
    (alerting > 0 && !has_integrations && !sources.has_alertmanagers).then(|| {
        // The receivers of other projects than `default` cannot be a text.
        let (section, or_text) = if *project == ProjectName::default() {
            ("alerts".to_owned(), "; or save them as a text (docs/alerts.md)")
        } else {
            (format!("security.projects.{project}"), "")
        };
        let remedy = match (&sources.notifications, &set.routing) {
            (Some(_), None) => format!("fix the file in {section}.notifications"),
            (Some(_), Some(_)) => format!(
                "add an integration to the receivers in the file in {section}.notifications"
            ),
            (None, Some(_)) => "add an integration to the receivers on the page".to_owned(),
            (None, None) => format!(
                "name receivers in a file, as in deploy/notifications.yml, set \
                 {section}.notifications to its path and reload{or_text}; or name Alertmanagers in \
                 {section}.alertmanagers"
            ),
        };
        let rules = if alerting == 1 { "rule has alerts" } else { "rules have alerts" };
        format!("{alerting} {rules}, but notifications have no destination: {remedy}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alerts::read_rules;

    #[test]
    fn the_remedy_names_the_settings_of_the_project_and_texts_only_where_they_can_be_saved() {
        let rules = "groups: [{name: g, rules: [{alert: Down, expr: up == 0}]}]";
        let limits = super::super::fixtures::promql().limits(&crate::query::Budget::UNLIMITED);
        let groups = read_rules("a.yml", rules, 60_000, &limits).unwrap();
        let set = RuleSet { groups, ..RuleSet::default() };
        let reason =
            |project: ProjectName| no_receiver(&project, &RuleSources::default(), &set).unwrap();
        let of_default = reason(ProjectName::default());
        assert!(of_default.contains("set alerts.notifications to its path"), "{of_default}");
        assert!(of_default.contains("save them as a text"), "{of_default}");
        let of_shop = reason("shop".parse().unwrap());
        let setting = "set security.projects.shop.notifications to its path and reload; or name \
                       Alertmanagers in security.projects.shop.alertmanagers";
        assert!(of_shop.ends_with(setting), "{of_shop}");
    }
}
