//! The tree of routes: who is told of an alert, and with which others together.
//!
//! Must never know: files, time.

use std::{collections::BTreeMap, iter};

use super::{
    MessageAlert, Receiver, TimeInterval,
    inhibition::{Inhibition, Inhibitors},
};
use crate::{
    alerts::{LabelMatcher, LabelSet},
    model::UnixMillis,
};

/// The checked content of a file of notifications: routes and receivers.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Routing {
    /// The first one is the root; each comes before those below it.
    pub routes: Vec<Route>,
    /// Their places by their keys.
    pub(super) places: BTreeMap<String, usize>,
    /// Who can be told.
    pub receivers: Vec<Receiver>,
    pub(super) inhibitions: Vec<Inhibition>,
    /// Texts of template files.
    pub templates: Vec<String>,
    /// The address of the daemon's page, for links; empty: there are none.
    pub external_url: String,
    /// After how long an alert that another program sent without an end counts as over, in
    /// milliseconds.
    pub resolve_timeout_ms: i64,
}

/// A node of the tree.
#[derive(Debug, Clone, PartialEq)]
pub struct Route {
    /// Its matchers and those above, as Alertmanager writes them; with a number for the second one
    /// of the same.
    pub key: String,
    /// The matchers that an alert must meet.
    pub matchers: Vec<LabelMatcher>,
    /// Its receiver's place.
    pub receiver: usize,
    /// By which labels alerts are told together; `None`: by all.
    pub group_by: Option<Vec<String>>,
    /// `group_wait`: the wait before the first notification of a group, in milliseconds.
    pub group_wait_ms: i64,
    /// `group_interval`: the wait before the next one, when something has changed.
    pub group_interval_ms: i64,
    /// After how long the same is told again.
    pub repeat_interval_ms: i64,
    /// `continue`: true when an alert that matches goes on to the next sibling.
    pub goes_on: bool,
    /// Who is told of what nobody acknowledges.
    pub escalations: Vec<Escalation>,
    /// The routes directly below, by their places.
    pub below: Vec<usize>,
    /// Within any of them nobody is told.
    pub(super) muted_in: Vec<TimeInterval>,
    /// Outside of all of them nobody is told; `None`: at all times somebody is.
    pub(super) active_in: Option<Vec<TimeInterval>>,
}

/// Another receiver is told of what fires for so long, and nobody has acknowledged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Escalation {
    /// Since when it fires, in milliseconds.
    pub after_ms: i64,
    /// The receiver's place.
    pub receiver: usize,
}

/// Which group: the key of its route, which of its escalations, and the labels in common.
pub type GroupKey<'a> = (&'a str, Option<usize>, LabelSet);

impl Route {
    /// The labels by which an alert is told together with others.
    pub fn group_of(&self, labels: &LabelSet) -> LabelSet {
        let Some(names) = &self.group_by else { return labels.clone() };
        let own = |name: &String| Some((name.clone(), labels.get(name)?.clone()));
        names.iter().filter_map(own).collect()
    }

    /// The place of who is told by it, or by one of its escalations.
    pub(super) fn receiver_of(&self, escalation: Option<usize>) -> Option<usize> {
        let own = |at: usize| Some(self.escalations.get(at)?.receiver);
        escalation.map_or(Some(self.receiver), own)
    }

    /// The time at which an alert reaches one of its escalations; `None`: never, as it is.
    pub(super) fn begins_at(&self, escalation: usize, alert: &MessageAlert) -> Option<UnixMillis> {
        let own = self.escalations.get(escalation)?;
        let is_told = alert.is_firing() && alert.acknowledged_by.is_none();
        is_told.then(|| UnixMillis(alert.starts_at.saturating_add(own.after_ms)))
    }

    /// True when its time intervals mute it now.
    pub(super) fn is_silent(&self, now: UnixMillis) -> bool {
        let within = |times: &[TimeInterval]| times.iter().any(|own| own.contains(now));
        within(&self.muted_in) || self.active_in.as_ref().is_some_and(|own| !within(own))
    }

    fn accepts(&self, labels: &LabelSet) -> bool {
        self.matchers.iter().all(|own| own.matches(labels))
    }
}

impl Routing {
    /// True when at least one receiver has an integration.
    pub fn has_ways(&self) -> bool {
        self.receivers.iter().any(|receiver| !receiver.integrations.is_empty())
    }

    /// The routing whose messages link to the page at an address.
    #[must_use]
    pub fn linking_to(mut self, external_url: &str) -> Self {
        external_url.clone_into(&mut self.external_url);
        self
    }

    /// The route of a key.
    pub(super) fn route(&self, key: &str) -> Option<&Route> {
        self.routes.get(*self.places.get(key)?)
    }

    /// All templates of receivers, each with its place.
    pub fn texts(&self) -> Vec<(String, &str)> {
        let mut texts = Vec::new();
        for receiver in &self.receivers {
            for own in &receiver.integrations {
                let place = |key: &str| format!("receiver {:?}, {}: {key}", receiver.name, own.key);
                texts.extend(own.target.texts().into_iter().map(|(key, text)| (place(key), text)));
            }
        }
        texts
    }

    /// True when there are rules of inhibition.
    pub(super) fn has_inhibitions(&self) -> bool {
        !self.inhibitions.is_empty()
    }

    /// The inhibition that firing alerts with these labels cause.
    pub fn inhibitors<'a, I: Iterator<Item = &'a LabelSet>>(
        &'a self,
        firing: impl Fn() -> I,
    ) -> Inhibitors<'a> {
        Inhibitors::new(&self.inhibitions, firing)
    }

    /// Who is told of an alert at a time, each with the key and the labels of the group in which it
    /// is: those of its routes, and who is told of what nobody acknowledges.
    pub fn told(&self, alert: &MessageAlert, now: UnixMillis) -> Vec<(&Receiver, GroupKey<'_>)> {
        let told = self.routes_and_escalations_of(&alert.labels).filter(|(route, escalation)| {
            escalation.is_none_or(|at| route.begins_at(at, alert).is_some_and(|begin| begin <= now))
        });
        told.filter_map(|(route, escalation)| {
            let receiver = self.receivers.get(route.receiver_of(escalation)?)?;
            Some((receiver, (route.key.as_str(), escalation, route.group_of(&alert.labels))))
        })
        .collect()
    }

    /// The routes to which an alert comes, each as such and then with each of its escalations.
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

    /// The places of the routes to which an alert comes: the deepest ones.
    pub fn routes_of(&self, labels: &LabelSet) -> Vec<usize> {
        let mut found = Vec::new();
        if !self.routes.is_empty() {
            self.descend(0, labels, &mut found);
        }
        found
    }

    /// No deeper than files may nest.
    fn descend(&self, place: usize, labels: &LabelSet, found: &mut Vec<usize>) {
        let Some(route) = self.routes.get(place) else { return };
        let before = found.len();
        for below in &route.below {
            let Some(own) = self.routes.get(*below).filter(|own| own.accepts(labels)) else {
                continue;
            };
            self.descend(*below, labels, found);
            if !own.goes_on {
                break;
            }
        }
        if found.len() == before {
            found.push(place);
        }
    }
}
