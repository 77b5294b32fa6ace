//! All groups of alerts: their members, the times of their notifications, and the notifications
//! that are pending.
//!
//! A pure, durable state machine: a function of the routes, the current alerts and the time. The
//! stored record of a group suffices to continue after a crash: evaluations list the alerts again,
//! and the record contains the confirmed messages. Must never know: the store, the clock, how
//! anything is sent.

mod delivered;
mod delivery;
mod group;
mod member;
mod placing;
mod room;
#[cfg(test)]
mod tests;

pub use delivered::{AlertDeliveries, AlertDelivery};

use std::{
    cell::LazyCell,
    collections::{BTreeMap, BTreeSet},
};

use super::{Integration, Receiver, Route, Routing};
use crate::alerts::{Message, MessageAlert};
use crate::{alerts::LabelSet, model::UnixMillis};
use delivery::{DecisionContext, PendingDelivery};
use group::AlertGroup;

/// The groups.
#[derive(Debug, Default)]
pub struct Groups {
    all: BTreeMap<String, AlertGroup>,
    /// Groups whose stored records are to be removed.
    gone: BTreeSet<String>,
    left_out: usize,
    /// The time of the last step.
    stepped_at: UnixMillis,
    /// The time of the first placement of alerts.
    began_at: Option<UnixMillis>,
    /// The time at which unchanged alerts are placed again.
    place_at: UnixMillis,
}

/// A pending notification: the group, and the integration of its receiver.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct PendingNotification {
    /// The group.
    pub group: String,
    /// The receiver's name.
    pub receiver: String,
    /// The key of the integration.
    pub integration: String,
    /// The time since which a notification is pending.
    pub since: UnixMillis,
    /// The latest time at which one of its alerts began or ended.
    pub newest: UnixMillis,
    /// The time of the last decision.
    pub decided_at: UnixMillis,
    /// True when the receiver refused it, so that it waits for the next decision.
    pub is_refused: bool,
}

/// The record of a group to store; `None`: the record is to be removed.
pub type StoredGroup = (String, Option<Vec<u8>>);

impl Groups {
    /// Restores stored groups. Unreadable groups are returned as faults and start over.
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

    /// Returns the groups that changed since the last call.
    pub fn take_changes(&mut self) -> Vec<StoredGroup> {
        let mut changes: Vec<_> =
            std::mem::take(&mut self.gone).into_iter().map(|id| (id, None)).collect();
        for (id, group) in &mut self.all {
            if std::mem::take(&mut group.is_changed) {
                // All keys of maps are texts, so the serialization cannot fail.
                let bytes = serde_json::to_vec(group).unwrap_or_default();
                changes.push((id.clone(), Some(bytes)));
            }
        }
        changes
    }

    /// Returns the number of groups.
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Returns whether there is no group.
    pub fn is_empty(&self) -> bool {
        self.all.is_empty()
    }

    /// Returns the number of firing alerts that no message lists, because there are too many:
    /// messages count them.
    pub fn left_out(&self) -> usize {
        self.left_out
    }

    /// Advances to a time. `alerts` returns the firing and the recently ended alerts; it is called
    /// only when they have changed or their age matters. When it returns `None`, because not all
    /// alerts are known yet, nothing happens.
    pub fn step(
        &mut self,
        routing: &Routing,
        are_changed: bool,
        alerts: &mut dyn FnMut() -> Option<Vec<MessageAlert>>,
        is_muted: &dyn Fn(&LabelSet) -> bool,
        now: UnixMillis,
    ) {
        // After the clock was set back, alerts are placed as well.
        let is_placing = are_changed || !(self.stepped_at..self.place_at).contains(&now);
        let mut groups = self.all.values();
        let is_flushing = groups.any(|group| group.next_flush <= now.0);
        if !is_placing && !is_flushing {
            return;
        }
        let needs_alerts = is_placing || routing.has_inhibitions();
        let Some(alerts) = (if needs_alerts { alerts() } else { Some(Vec::new()) }) else { return };
        self.stepped_at = now;
        let firing = || alerts.iter().filter(|alert| alert.is_firing()).map(|alert| &alert.labels);
        // Computed at the first use.
        let inhibitors = LazyCell::new(|| routing.inhibitors(firing));
        let is_muted =
            |labels: &LabelSet| inhibitors.inhibiting(labels).is_some() || is_muted(labels);
        if is_placing {
            self.place_all(routing, &alerts, &is_muted, now);
        }
        self.decide(routing, &is_muted, now);
    }

    fn decide(&mut self, routing: &Routing, is_muted: &dyn Fn(&LabelSet) -> bool, now: UnixMillis) {
        let before = self.members();
        for group in self.all.values_mut() {
            let Some((route, receiver)) = settings(routing, group) else { continue };
            // The clock was set back.
            let longest = route.group_interval_ms.max(route.group_wait_ms);
            group.next_flush = group.next_flush.min(now.0.saturating_add(longest));
            if group.next_flush > now.0 {
                continue;
            }
            let is_muted_by_time = route.is_muted_by_time(now);
            let is_muted = |labels: &LabelSet| is_muted_by_time || is_muted(labels);
            group.decide(&DecisionContext {
                integrations: &receiver.integrations,
                group_interval_ms: route.group_interval_ms,
                repeat_interval_ms: route.repeat_interval_ms,
                is_muted: &is_muted,
                now: now.0,
            });
        }
        if self.members() < before {
            self.place_left_out();
        }
        self.remove_empty();
    }

    /// Returns the number of alerts of all groups.
    fn members(&self) -> usize {
        self.all.values().map(|group| group.members.len()).sum()
    }

    /// Makes the next step place alerts that were left out, because there may be room now.
    fn place_left_out(&mut self) {
        self.remove_empty();
        if self.left_out > 0 {
            self.place_at = UnixMillis::EARLIEST;
        }
    }

    fn remove_empty(&mut self) {
        let gone = &mut self.gone;
        self.all.retain(|id, group| {
            let is_empty = group.members.is_empty() && group.left_out == 0;
            if is_empty {
                gone.insert(id.clone());
            }
            !is_empty
        });
    }

    /// Returns the pending notifications. The group whose alerts changed last comes first.
    pub fn pending_notifications(&self, routing: &Routing) -> Vec<PendingNotification> {
        let mut notifications = Vec::new();
        for (id, group) in &self.all {
            let Some((_, receiver)) = settings(routing, group) else { continue };
            let newest = |pending: &PendingDelivery| {
                let members = pending.alerts.iter().filter_map(|key| group.members.get(key));
                let times =
                    members.map(|member| member.alert.ends_at.unwrap_or(member.alert.starts_at));
                UnixMillis(times.max().unwrap_or(pending.since))
            };
            let pending = group
                .deliveries
                .iter()
                .filter_map(|(key, delivery)| Some((key, delivery.pending.as_ref()?)));
            notifications.extend(pending.map(|(key, pending)| PendingNotification {
                group: id.clone(),
                receiver: receiver.name.clone(),
                integration: key.clone(),
                since: UnixMillis(pending.since),
                newest: newest(pending),
                decided_at: UnixMillis(pending.decided_at),
                is_refused: pending.is_refused,
            }));
        }
        notifications.sort_by_key(|notification| std::cmp::Reverse(notification.newest));
        notifications
    }

    /// Returns the message for an integration. When no pending alert is left, the notification is
    /// removed, and the result is `None`.
    pub fn message<'a>(
        &mut self,
        routing: &'a Routing,
        notification: &PendingNotification,
    ) -> Option<(Message, &'a Integration)> {
        let group = self.all.get_mut(&notification.group)?;
        let (_, receiver) = settings(routing, group)?;
        let integration = receiver
            .integrations
            .iter()
            .find(|integration| integration.key == notification.integration)?;
        let mut alerts = group.pending_alerts(&notification.integration, integration.send_resolved);
        if alerts.is_empty() {
            group.confirm(integration, &Message::default(), notification.decided_at.0);
            self.remove_empty();
            return None;
        }
        Message::sort(&mut alerts);
        let labels: Vec<_> =
            group.labels.iter().map(|(name, value)| format!("{name}={value:?}")).collect();
        let mut message = Message {
            receiver: receiver.name.clone(),
            alerts,
            group_labels: group.labels.clone(),
            group_key: format!("{}:{{{}}}", group.route, labels.join(", ")),
            external_url: routing.external_url.clone(),
            left_out: group.unlisted_count(),
            ended_left_out: 0,
            decided_at: notification.decided_at.0,
        };
        if message.status() == "resolved" {
            message.ended_left_out = group.confirmed_left_out(&notification.integration);
        }
        Some((message, integration))
    }

    /// Records that the receiver confirmed a message.
    pub fn confirm(
        &mut self,
        routing: &Routing,
        notification: &PendingNotification,
        message: &Message,
    ) {
        let Some(group) = self.all.get_mut(&notification.group) else { return };
        let Some((_, receiver)) = settings(routing, group) else { return };
        // The group's receiver has changed since.
        if group.receiver.as_ref().is_some_and(|name| *name != notification.receiver) {
            return;
        }
        let mut integrations = receiver.integrations.iter();
        if let Some(integration) =
            integrations.find(|integration| integration.key == notification.integration)
        {
            group.confirm(integration, message, notification.decided_at.0);
        }
        self.place_left_out();
    }

    /// Records that the receiver refused a message, and would refuse it again.
    pub fn refuse(&mut self, notification: &PendingNotification) {
        let group = self.all.get_mut(&notification.group);
        if let Some(group) =
            group.filter(|group| group.receiver.as_ref() == Some(&notification.receiver))
        {
            group.refuse(&notification.integration, notification.decided_at.0);
        }
        self.place_left_out();
    }
}

/// Returns the route and the receiver of a group; `None` when the routing no longer contains them.
fn settings<'a>(routing: &'a Routing, group: &AlertGroup) -> Option<(&'a Route, &'a Receiver)> {
    let route = routing.route(&group.route)?;
    Some((route, routing.receivers.get(route.receiver_of(group.escalation)?)?))
}
