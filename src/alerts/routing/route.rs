//! The routing tree: the receivers of an alert, and its group.
//!
//! Must never know: files, time.

use std::{collections::BTreeMap, iter};

use super::{
    Receiver, TimeInterval,
    inhibition::{Inhibition, Inhibitors},
};
use crate::{
    alerts::{LabelMatcher, LabelSet, MessageAlert},
    model::UnixMillis,
};

/// The checked content of a notification file: routes and receivers.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Routing {
    /// The routes: the root first, and each before its children.
    pub routes: Vec<Route>,
    /// The indices of the routes, by key.
    pub(super) route_indexes: BTreeMap<String, usize>,
    /// The receivers.
    pub receivers: Vec<Receiver>,
    pub(super) inhibitions: Vec<Inhibition>,
    /// The texts of template files.
    pub templates: Vec<String>,
    /// The address of the daemon's page, for links; empty when messages have no links.
    pub external_url: String,
    /// The time after which a posted alert without an end counts as over, in milliseconds.
    pub resolve_timeout_ms: i64,
}

/// A node of the tree.
#[derive(Debug, Clone, PartialEq)]
pub struct Route {
    /// The matchers of the route and of its parents, in Alertmanager's form; a number distinguishes
    /// routes with the same matchers.
    pub key: String,
    /// The matchers that an alert must meet.
    pub matchers: Vec<LabelMatcher>,
    /// The index of the receiver.
    pub receiver: usize,
    /// The labels by which alerts are grouped; `None`: all labels.
    pub group_by: Option<Vec<String>>,
    /// `group_wait`: the wait before the first notification of a group, in milliseconds.
    pub group_wait_ms: i64,
    /// `group_interval`: the wait before the next notification, when something has changed.
    pub group_interval_ms: i64,
    /// The time after which an unchanged notification is repeated.
    pub repeat_interval_ms: i64,
    /// `continue`: true when the next siblings are tried after a match.
    pub continues: bool,
    /// The receivers of alerts that nobody acknowledges.
    pub escalations: Vec<Escalation>,
    /// The indices of the child routes.
    pub children: Vec<usize>,
    /// The intervals in which the route is muted.
    pub(super) muted_in: Vec<TimeInterval>,
    /// The intervals outside of which the route is muted; `None`: no such intervals are set.
    pub(super) active_in: Option<Vec<TimeInterval>>,
}

/// An escalation: a further receiver of alerts that nobody has acknowledged after some time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Escalation {
    /// The time after the start of the alert, in milliseconds.
    pub after_ms: i64,
    /// The index of the receiver.
    pub receiver: usize,
}

/// The identity of a group: the key of its route, the index of the escalation, and the common
/// labels.
pub type GroupKey<'a> = (&'a str, Option<usize>, LabelSet);

impl Route {
    /// Returns the labels by which an alert is grouped.
    pub fn group_labels(&self, labels: &LabelSet) -> LabelSet {
        let Some(names) = &self.group_by else { return labels.clone() };
        let pair = |name: &String| Some((name.clone(), labels.get(name)?.clone()));
        names.iter().filter_map(pair).collect()
    }

    /// Returns the index of the receiver of the route, or of one of its escalations.
    pub(super) fn receiver_of(&self, escalation: Option<usize>) -> Option<usize> {
        let receiver_at = |at: usize| Some(self.escalations.get(at)?.receiver);
        escalation.map_or(Some(self.receiver), receiver_at)
    }

    /// Returns the time at which an alert reaches an escalation; `None`: never, in its current
    /// state.
    pub(super) fn escalates_at(
        &self,
        escalation: usize,
        alert: &MessageAlert,
    ) -> Option<UnixMillis> {
        let escalation = self.escalations.get(escalation)?;
        let is_notified = alert.is_firing() && alert.acknowledged_by.is_none();
        is_notified.then(|| UnixMillis(alert.starts_at.saturating_add(escalation.after_ms)))
    }

    /// Returns whether the time intervals mute the route now.
    pub(super) fn is_muted_by_time(&self, now: UnixMillis) -> bool {
        let is_in = |times: &[TimeInterval]| times.iter().any(|interval| interval.contains(now));
        is_in(&self.muted_in) || self.active_in.as_ref().is_some_and(|times| !is_in(times))
    }

    fn accepts(&self, labels: &LabelSet) -> bool {
        self.matchers.iter().all(|matcher| matcher.matches(labels))
    }
}

impl Routing {
    /// Returns whether any receiver has an integration.
    pub fn has_integrations(&self) -> bool {
        self.receivers.iter().any(|receiver| !receiver.integrations.is_empty())
    }

    /// Sets the address of the page for links in messages.
    #[must_use]
    pub fn linking_to(mut self, external_url: &str) -> Self {
        external_url.clone_into(&mut self.external_url);
        self
    }

    /// Returns the route with a key.
    pub(super) fn route(&self, key: &str) -> Option<&Route> {
        self.routes.get(*self.route_indexes.get(key)?)
    }

    /// Returns all templates of receivers, with their locations.
    pub fn texts(&self) -> Vec<(String, &str)> {
        let mut texts = Vec::new();
        for receiver in &self.receivers {
            for integration in &receiver.integrations {
                let location =
                    |key: &str| format!("receiver {:?}, {}: {key}", receiver.name, integration.key);
                texts.extend(
                    integration.target.texts().into_iter().map(|(key, text)| (location(key), text)),
                );
            }
        }
        texts
    }

    /// Returns whether there are inhibition rules.
    pub(super) fn has_inhibitions(&self) -> bool {
        !self.inhibitions.is_empty()
    }

    /// Returns the inhibition by firing alerts with these labels.
    pub fn inhibitors<'a, I: Iterator<Item = &'a LabelSet>>(
        &'a self,
        firing: impl Fn() -> I,
    ) -> Inhibitors<'a> {
        Inhibitors::new(&self.inhibitions, firing)
    }

    /// Returns the receivers of an alert at a time, each with the key and labels of its group:
    /// those of the matching routes, and the escalations of alerts that nobody acknowledges.
    pub fn receivers_of(
        &self,
        alert: &MessageAlert,
        now: UnixMillis,
    ) -> Vec<(&Receiver, GroupKey<'_>)> {
        let routes = self.routes_and_escalations_of(&alert.labels).filter(|(route, escalation)| {
            escalation
                .is_none_or(|at| route.escalates_at(at, alert).is_some_and(|begin| begin <= now))
        });
        routes
            .filter_map(|(route, escalation)| {
                let receiver = self.receivers.get(route.receiver_of(escalation)?)?;
                Some((
                    receiver,
                    (route.key.as_str(), escalation, route.group_labels(&alert.labels)),
                ))
            })
            .collect()
    }

    /// Returns the routes of an alert, each without and with each of its escalations.
    pub(super) fn routes_and_escalations_of(
        &self,
        labels: &LabelSet,
    ) -> impl Iterator<Item = (&Route, Option<usize>)> {
        let routes = self.routes_of(labels).into_iter().filter_map(|at| self.routes.get(at));
        routes.flat_map(|route| {
            let escalations = (0..route.escalations.len()).map(Some);
            iter::once(None).chain(escalations).map(move |escalation| (route, escalation))
        })
    }

    /// Returns the indices of the deepest matching routes.
    pub fn routes_of(&self, labels: &LabelSet) -> Vec<usize> {
        let mut found = Vec::new();
        if !self.routes.is_empty() {
            self.descend(0, labels, &mut found);
        }
        found
    }

    /// Finds the deepest matching routes below a route; the depth of the file limits the recursion.
    fn descend(&self, index: usize, labels: &LabelSet, found: &mut Vec<usize>) {
        let Some(route) = self.routes.get(index) else { return };
        let before = found.len();
        for below in &route.children {
            let Some(route) = self.routes.get(*below).filter(|route| route.accepts(labels)) else {
                continue;
            };
            self.descend(*below, labels, found);
            if !route.continues {
                break;
            }
        }
        if found.len() == before {
            found.push(index);
        }
    }
}
