//! All groups of alerts: which alert is in which, which are due, and what is owed to whom.
//!
//! A pure, durable state machine: a function of the routes, the alerts as they are and the time. What
//! is stored of a group is enough to go on after a crash: alerts are seen again, what was confirmed
//! is known. Must never know: the store, the clock, how anything is sent.

mod group;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use xxhash_rust::xxh3::xxh3_128;

use super::{Integration, Message, MessageAlert, Receiver, Route, Routing, inhibition::Inhibitors};
use crate::{
    alerts::{LabelSet, fingerprint},
    model::UnixMillis,
};
use group::{Deciding, Group};

/// Groups, at most.
const GROUPS_MAX: usize = 2000;
/// Alerts of a group, at most, and their bytes; a group is one object of the store.
const MEMBERS_MAX: usize = 500;
const MEMBER_BYTES_MAX: usize = 384 << 10;
/// Alerts of all groups, at most.
const ALL_MEMBERS_MAX: usize = 20_000;

/// The groups.
#[derive(Debug, Default)]
pub struct Groups {
    all: BTreeMap<String, Group>,
    gone: BTreeSet<String>,
    left_out: usize,
}

/// Something that is to be told: which group, and which way of its receiver.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Owing {
    /// The group.
    pub group: String,
    /// The receiver's name.
    pub receiver: String,
    /// The integration's key.
    pub way: String,
    /// Since when something is owed.
    pub since: UnixMillis,
    /// When it was decided last.
    pub decided_at: UnixMillis,
    /// Whether it was refused, and waits for what is decided next.
    pub is_refused: bool,
}

/// A group as it is to be stored; `None`: not at all.
pub type StoredGroup = (String, Option<Vec<u8>>);

impl Groups {
    /// Goes on with what is stored. What cannot be read is named and begun anew.
    pub fn load(stored: impl Iterator<Item = (String, Vec<u8>)>) -> (Self, Vec<String>) {
        let (mut groups, mut faults) = (Self::default(), Vec::new());
        for (id, bytes) in stored {
            match serde_json::from_slice(&bytes) {
                Ok(group) => drop(groups.all.insert(id, group)),
                Err(cause) => {
                    faults.push(format!("{id}: {cause}"));
                    groups.gone.insert(id);
                }
            }
        }
        (groups, faults)
    }

    /// What has changed since this was asked last.
    pub fn take_changes(&mut self) -> Vec<StoredGroup> {
        let mut changes: Vec<_> =
            std::mem::take(&mut self.gone).into_iter().map(|id| (id, None)).collect();
        for (id, group) in &mut self.all {
            if std::mem::take(&mut group.is_changed) {
                // All keys of maps are texts.
                let bytes = serde_json::to_vec(group).unwrap_or_default();
                changes.push((id.clone(), Some(bytes)));
            }
        }
        changes
    }

    /// How many groups there are.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Alerts that are in no group, or not in all of theirs, because there are too many.
    pub fn left_out(&self) -> usize {
        self.left_out
    }

    /// Goes on to a time, with all alerts that fire and those that have ended lately.
    pub fn step(
        &mut self,
        routing: &Routing,
        alerts: &[MessageAlert],
        is_muted: &dyn Fn(&LabelSet) -> bool,
        now: UnixMillis,
    ) {
        self.left_out = 0;
        for group in self.all.values_mut() {
            group.left_out = 0;
            group.members.values_mut().for_each(|member| member.is_seen = false);
        }
        self.forget_unrouted(routing);
        let mut count: usize = self.all.values().map(|group| group.members.len()).sum();
        for alert in merged(alerts) {
            let key = fingerprint(&alert.labels);
            for place in routing.routes_of(&alert.labels) {
                let Some(route) = routing.routes.get(place) else { continue };
                count += self.place(route, None, &key, alert, count, now);
                for at in 0..route.escalations.len() {
                    count += self.place(route, Some(at), &key, alert, count, now);
                }
            }
        }
        self.decide(routing, alerts, is_muted, now);
    }

    /// Groups of routes that are gone.
    fn forget_unrouted(&mut self, routing: &Routing) {
        let gone = &mut self.gone;
        self.all.retain(|id, group| {
            let is_routed = settings(routing, group).is_some();
            if !is_routed {
                gone.insert(id.clone());
            }
            is_routed
        });
    }

    /// Puts an alert into its group of a route; returns how many members there are more.
    fn place(
        &mut self,
        route: &Route,
        escalation: Option<usize>,
        key: &str,
        alert: &MessageAlert,
        count: usize,
        now: UnixMillis,
    ) -> usize {
        let labels = route.group_of(&alert.labels);
        let id = id(&route.key, escalation, &labels);
        let group = self.all.get_mut(&id);
        if let Some(group) = group.filter(|group| group.members.contains_key(key)) {
            group.put(key, alert);
            return 0;
        }
        // An end alone is no news.
        if !alert.is_firing() || !is_due(route, escalation, alert, now) {
            return 0;
        }
        let is_full = count >= ALL_MEMBERS_MAX
            || (!self.all.contains_key(&id) && self.all.len() >= GROUPS_MAX);
        if is_full {
            self.left_out += 1;
            return 0;
        }
        let wait_ms = if escalation.is_some() { 0 } else { route.group_wait_ms };
        self.gone.remove(&id);
        let group = self.all.entry(id).or_insert_with(|| {
            Group::new(&route.key, escalation, labels, now.0.saturating_add(wait_ms))
        });
        let bytes = group.members.values().map(|own| bytes(&own.alert)).sum::<usize>();
        if group.members.len() >= MEMBERS_MAX || bytes + self::bytes(alert) > MEMBER_BYTES_MAX {
            group.left_out += 1;
            self.left_out += 1;
            return 0;
        }
        // As Alertmanager: what fires for long does not wait for others.
        if group.flushed_at == 0 && alert.starts_at.saturating_add(wait_ms) < now.0 {
            group.next_flush = now.0;
        }
        group.put(key, alert);
        1
    }

    fn decide(
        &mut self,
        routing: &Routing,
        alerts: &[MessageAlert],
        is_muted: &dyn Fn(&LabelSet) -> bool,
        now: UnixMillis,
    ) {
        let firing = || alerts.iter().filter(|own| own.is_firing()).map(|own| &own.labels);
        // Made when the first group is due.
        let mut inhibitors = None;
        for group in self.all.values_mut() {
            group.end_unseen(now.0);
            let Some((route, receiver)) = settings(routing, group) else { continue };
            // The clock was set back.
            let longest = route.group_interval_ms.max(route.group_wait_ms);
            group.next_flush = group.next_flush.min(now.0.saturating_add(longest));
            if group.next_flush > now.0 {
                continue;
            }
            let inhibitors =
                inhibitors.get_or_insert_with(|| Inhibitors::new(&routing.inhibitions, firing));
            let is_silent = route.is_silent(now);
            let is_muted =
                |labels: &LabelSet| is_silent || inhibitors.inhibit(labels) || is_muted(labels);
            group.decide(&Deciding {
                ways: &receiver.integrations,
                group_interval_ms: route.group_interval_ms,
                repeat_interval_ms: route.repeat_interval_ms,
                is_muted: &is_muted,
                now: now.0,
            });
        }
        self.forget_empty();
    }

    fn forget_empty(&mut self) {
        let gone = &mut self.gone;
        self.all.retain(|id, group| {
            let is_empty = group.members.is_empty() && group.left_out == 0;
            if is_empty {
                gone.insert(id.clone());
            }
            !is_empty
        });
    }

    /// What is to be told, the newest first.
    pub fn owing(&self, routing: &Routing) -> Vec<Owing> {
        let mut owing = Vec::new();
        for (id, group) in &self.all {
            let Some((_, receiver)) = settings(routing, group) else { continue };
            let owed = group.ways.iter().filter_map(|(way, own)| Some((way, own.owed.as_ref()?)));
            owing.extend(owed.map(|(way, owed)| Owing {
                group: id.clone(),
                receiver: receiver.name.clone(),
                way: way.clone(),
                since: UnixMillis(owed.since),
                decided_at: UnixMillis(owed.decided_at),
                is_refused: owed.is_refused,
            }));
        }
        owing.sort_by_key(|own| std::cmp::Reverse(own.decided_at));
        owing
    }

    /// What a way is told now, and how; when all that was owed is void, that is noted, and `None`.
    pub fn message<'a>(
        &mut self,
        routing: &'a Routing,
        owing: &Owing,
    ) -> Option<(Message, &'a Integration)> {
        let group = self.all.get_mut(&owing.group)?;
        let (_, receiver) = settings(routing, group)?;
        let integration = receiver.integrations.iter().find(|own| own.key == owing.way)?;
        let mut alerts = group.owed_alerts(&owing.way, integration.send_resolved);
        if alerts.is_empty() {
            group.confirm(integration, &[], owing.decided_at.0);
            self.forget_empty();
            return None;
        }
        Message::sort(&mut alerts);
        let labels: Vec<_> =
            group.labels.iter().map(|(name, value)| format!("{name}={value:?}")).collect();
        let message = Message {
            receiver: receiver.name.clone(),
            alerts,
            group_labels: group.labels.clone(),
            group_key: format!("{}:{{{}}}", group.route, labels.join(", ")),
            left_out: group.left_out,
        };
        Some((message, integration))
    }

    /// Notes that a message was confirmed.
    pub fn confirm(&mut self, routing: &Routing, owing: &Owing, message: &Message) {
        let Some(group) = self.all.get_mut(&owing.group) else { return };
        let Some((_, receiver)) = settings(routing, group) else { return };
        let mut ways = receiver.integrations.iter();
        if let Some(integration) = ways.find(|own| own.key == owing.way) {
            group.confirm(integration, &message.alerts, owing.decided_at.0);
        }
        self.forget_empty();
    }

    /// Notes that a message was refused, and would be again.
    pub fn refuse(&mut self, owing: &Owing) {
        if let Some(group) = self.all.get_mut(&owing.group) {
            group.refuse(&owing.way);
        }
        self.forget_empty();
    }
}

/// The route and the receiver of a group; `None` when they are gone.
fn settings<'a>(routing: &'a Routing, group: &Group) -> Option<(&'a Route, &'a Receiver)> {
    let route = routing.route(&group.route)?;
    let receiver = match group.escalation {
        None => route.receiver,
        Some(at) => route.escalations.get(at)?.receiver,
    };
    Some((route, routing.receivers.get(receiver)?))
}

fn is_due(route: &Route, escalation: Option<usize>, alert: &MessageAlert, now: UnixMillis) -> bool {
    let Some(at) = escalation else { return true };
    let after_ms = route.escalations.get(at).map_or(i64::MAX, |own| own.after_ms);
    alert.acknowledged_by.is_none() && now.since(UnixMillis(alert.starts_at)) >= after_ms
}

/// Each alert once: rules may give the same labels, and one that fires goes before one that ended.
fn merged(alerts: &[MessageAlert]) -> impl Iterator<Item = &MessageAlert> {
    let mut all: BTreeMap<&LabelSet, &MessageAlert> = BTreeMap::new();
    for own in alerts {
        let order = |own: &MessageAlert| (!own.is_firing(), own.starts_at);
        let kept = all.entry(&own.labels).or_insert(own);
        if order(own) < order(kept) {
            *kept = own;
        }
    }
    all.into_values()
}

fn id(route: &str, escalation: Option<usize>, labels: &LabelSet) -> String {
    let own = format!("{route}\0{escalation:?}\0{labels:?}");
    format!("{:032x}", xxh3_128(own.as_bytes()))
}

/// About how many bytes an alert takes when it is stored.
fn bytes(alert: &MessageAlert) -> usize {
    let pairs = alert.labels.iter().chain(&alert.annotations);
    200 + pairs.map(|(name, value)| name.len() + value.len() + 8).sum::<usize>()
}
