//! Notified alerts of the loaded rules: firing alerts, and alerts that have ended.
//!
//! Must never know: HTTP, delivery.

use std::sync::{Arc, atomic::Ordering};

use super::{GroupStatus, KnownRules, RuleSet};
use crate::alerts::{Alert, AlertDeliveries, ExternalIdentity, MessageAlert, RuleGroup};

impl KnownRules {
    /// Returns the number of changes of notified alerts: while it stays the same, a reader's copy
    /// is current.
    pub fn notified_changes(&self) -> u64 {
        self.0.notified_changes.load(Ordering::Acquire)
    }

    /// Publishes the deliveries of firing alerts.
    pub(crate) fn note_deliveries(&self, deliveries: AlertDeliveries) {
        *self.0.deliveries.write() = deliveries.into();
    }

    /// Returns the deliveries of firing alerts, by the fingerprints of their labels with the
    /// external labels.
    pub fn deliveries(&self) -> Arc<AlertDeliveries> {
        self.0.deliveries.read().clone()
    }

    /// Returns the states of all groups with notified alerts, and true when all of them are known.
    /// Alerts of a file that was unusable at the start keep their state: a mistake in a file
    /// resolves no alert.
    pub fn notified_groups(&self) -> (Vec<NotifiedGroup>, bool) {
        let set = self.loaded().set;
        let mut groups = Vec::new();
        let statuses = self.0.statuses.read();
        for (index, group) in set.groups.iter().enumerate() {
            let Some(status) = statuses.get(&group.id()).cloned() else { continue };
            groups.push(NotifiedGroup { status, group: Some((set.clone(), index)) });
        }
        drop(statuses);
        let mut are_all_known = groups.len() == set.groups.len();
        if !set.unread.is_empty() {
            let unread = self.0.unread.read();
            are_all_known &= unread.is_some();
            let unread = unread.iter().flatten().cloned();
            groups.extend(unread.map(|status| NotifiedGroup { status, group: None }));
        }
        (groups, are_all_known)
    }

    /// Returns the states of groups whose files were unusable at the start.
    pub fn unread(&self) -> Vec<Arc<GroupStatus>> {
        self.0.unread.read().clone().unwrap_or_default()
    }

    /// Returns all firing alerts, and those that ended recently, as messages show them; `None`
    /// until all groups are known.
    pub fn notified_alerts(&self) -> Option<Vec<MessageAlert>> {
        let (groups, are_all_known) = self.notified_groups();
        let external = &self.external();
        let mut alerts = Vec::new();
        for group in groups.iter().filter(|_| are_all_known) {
            for (alert, link) in group.alerts(external) {
                let alert = MessageAlert::new(alert)
                    .map(|message| message.with_external_labels(external, &link));
                let interval_ms = group.interval_ms();
                alerts.extend(alert.map(|message| MessageAlert { interval_ms, ..message }));
            }
        }
        are_all_known.then_some(alerts)
    }
}

/// A group of rules with notified alerts.
#[derive(Debug)]
pub struct NotifiedGroup {
    /// The result of the group's evaluations.
    pub status: Arc<GroupStatus>,
    /// The loaded rules and the index of the group in them; `None` while its file is unusable.
    group: Option<(Arc<RuleSet>, usize)>,
}

impl NotifiedGroup {
    fn group(&self) -> Option<&RuleGroup> {
        self.group.as_ref().and_then(|(set, index)| set.groups.get(*index))
    }

    /// Returns the interval between evaluations, in milliseconds; 0 while the file is unusable.
    pub fn interval_ms(&self) -> i64 {
        self.group().map_or(0, |group| group.interval_ms)
    }

    /// Returns all alerts, each with the link to the expression of its rule.
    pub fn alerts(&self, external: &ExternalIdentity) -> impl Iterator<Item = (&Alert, Arc<str>)> {
        let rules = self.status.state.rules.iter().filter(|(_, rule)| !rule.alerts.is_empty());
        rules.flat_map(move |(key, state)| {
            let mut rules = self.group().into_iter().flat_map(|group| &group.rules);
            let rule = rules.find(|rule| rule.key == *key);
            let link = rule.map_or_else(String::new, |rule| external.table_link(&rule.expression));
            let link: Arc<str> = link.into();
            state.alerts.iter().map(move |alert| (alert, link.clone()))
        })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::fixtures::{alert, empty_rules, status_with};

    #[test]
    fn changes_are_counted_when_notifications_would_differ() {
        let known = empty_rules();
        let alert = |state: &str, value: &str, summary: &str| {
            let (labels, annotations) =
                (json!({ "alertname": "A" }), json!({ "summary": summary }));
            alert(state, json!({ "labels": labels, "annotations": annotations, "value": value }))
        };
        let mut counts = Vec::new();
        for alerts in [
            vec![],
            vec![alert("pending", "1", "x")],
            vec![alert("firing", "1", "x")],
            vec![alert("firing", "2", "x")],
            vec![alert("firing", "2", "y")],
            vec![],
        ] {
            known.note_status("g", status_with(alerts));
            counts.push(known.notified_changes());
        }
        let steps: Vec<_> = counts.windows(2).map(|pair| pair[1] - pair[0]).collect();
        assert_eq!(steps, [0, 1, 0, 1, 1]);
    }
}
