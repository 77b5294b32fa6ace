//! A simulation of alerts, which tests fire and end, and of the receivers of their notifications.

use std::{
    collections::{BTreeMap, BTreeSet},
    path::Path,
};

use super::{super::*, STEP_MS};
use crate::alerts::routing::file::check_routing;

pub(super) fn routing(more: &str, send_resolved: bool) -> Routing {
    let text = format!(
        "route: {{receiver: one, group_wait: 30s, group_interval: 1m, repeat_interval: 5m{more}}}\n\
         receivers:\n- name: one\n  webhook_configs: [{{url: 'http://x', send_resolved: {send_resolved}}}]\n\
         - name: boss\n  webhook_configs: [{{url: 'http://y'}}]\n"
    );
    check_routing("notifications.yml", Some(Path::new("")), &text).unwrap()
}

/// Returns a routing whose receiver has two integrations.
pub(super) fn two_integrations() -> Routing {
    let text = "route: {receiver: one, group_wait: 30s, group_interval: 1m, repeat_interval: 5m}\n\
                receivers:\n- name: one\n  webhook_configs: [{url: 'http://x'}, {url: 'http://y'}]\n";
    check_routing("notifications.yml", Some(Path::new("")), text).unwrap()
}

pub(super) fn labels(name: &str) -> LabelSet {
    [("alertname".to_owned(), name.to_owned())].into()
}

pub(super) fn alert(name: &str, starts_at: i64, ends_at: Option<i64>) -> MessageAlert {
    let annotations = LabelSet::new();
    let labels = labels(name);
    MessageAlert { labels, annotations, starts_at, ends_at, ..MessageAlert::default() }
}

/// The names of the alerts in a message: first the firing alerts, then the resolved alerts.
pub(super) type AlertNames = (Vec<String>, Vec<String>);

pub(super) fn content_of(message: &Message) -> AlertNames {
    let names = |is_firing: bool| {
        let alerts = message.alerts.iter().filter(|alert| alert.is_firing() == is_firing);
        alerts.map(|alert| alert.labels["alertname"].clone()).collect()
    };
    (names(true), names(false))
}

/// The alerts of a test, their groups, and the stored groups.
pub(super) struct World {
    pub(super) routing: Routing,
    pub(super) groups: Groups,
    pub(super) stored: BTreeMap<String, Vec<u8>>,
    pub(super) alerts: BTreeMap<&'static str, MessageAlert>,
    pub(super) muted: BTreeSet<&'static str>,
    pub(super) now: i64,
    /// The alerts at the last step.
    pub(super) seen: Option<Vec<MessageAlert>>,
}

impl World {
    pub(super) fn new(routing: Routing) -> Self {
        let (stored, alerts, muted) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
        Self {
            routing,
            groups: Groups::default(),
            stored,
            alerts,
            muted,
            now: 1_000_000,
            seen: None,
        }
    }

    pub(super) fn fire(&mut self, name: &'static str) {
        let fires = self.alerts.get(name).is_some_and(MessageAlert::is_firing);
        if !fires {
            self.alerts.insert(name, alert(name, self.now, None));
        }
    }

    pub(super) fn end(&mut self, name: &'static str) {
        if let Some(alert) = self.alerts.get_mut(name).filter(|alert| alert.is_firing()) {
            alert.ends_at = Some(self.now);
        }
    }

    pub(super) fn step(&mut self) {
        let alerts: Vec<_> = self.alerts.values().cloned().collect();
        let muted = &self.muted;
        let is_muted = |labels: &LabelSet| muted.contains(labels["alertname"].as_str());
        let are_changed = self.seen.as_ref() != Some(&alerts);
        let mut current = || Some(alerts.clone());
        let now = UnixMillis(self.now);
        self.groups.step(&self.routing, are_changed, &mut current, &is_muted, now);
        self.seen = Some(alerts);
        self.store();
    }

    pub(super) fn store(&mut self) {
        for (id, bytes) in self.groups.take_changes() {
            match bytes {
                Some(bytes) => drop(self.stored.insert(id, bytes)),
                None => drop(self.stored.remove(&id)),
            }
        }
    }

    /// Simulates a kill and a start with the stored groups.
    pub(super) fn crash(&mut self) {
        let (groups, faults) = Groups::load(self.stored.clone().into_iter());
        assert_eq!(faults, [""; 0]);
        (self.groups, self.seen) = (groups, None);
    }

    /// Delivers all pending messages; the receivers confirm them.
    pub(super) fn deliver_all(&mut self) -> Vec<(String, AlertNames)> {
        self.deliver_to(|_| true)
    }

    /// Delivers the messages to the reachable integrations; other deliveries fail.
    pub(super) fn deliver_to(
        &mut self,
        is_reachable: impl Fn(&str) -> bool,
    ) -> Vec<(String, AlertNames)> {
        let mut delivered = Vec::new();
        for notification in self.groups.pending_notifications(&self.routing) {
            let message = self.groups.message(&self.routing, &notification);
            if let Some((message, _)) = message.filter(|_| is_reachable(&notification.integration))
            {
                delivered.push((notification.receiver.clone(), content_of(&message)));
                self.groups.confirm(&self.routing, &notification, &message);
            }
        }
        self.store();
        delivered
    }

    /// Advances by a time with reachable receivers; returns the messages and their times.
    pub(super) fn run(&mut self, ms: i64) -> Vec<(i64, AlertNames)> {
        let until = self.now + ms;
        let mut delivered = Vec::new();
        while self.now < until {
            self.step();
            delivered
                .extend(self.deliver_all().into_iter().map(|(_, content)| (self.now, content)));
            self.now += STEP_MS;
        }
        delivered
    }
}

pub(super) fn names(text: &str) -> Vec<String> {
    text.split_whitespace().map(str::to_owned).collect()
}
