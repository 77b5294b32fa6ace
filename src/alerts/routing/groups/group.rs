//! A group of alerts that share notifications: its members, and the delivery to each integration of
//! its receiver.
//!
//! An integration that was unreachable gets one message, with the current alerts and all alerts
//! that have ended since. A confirmed message is never pending again. Must never know: other
//! groups, how anything is sent.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{
    delivery::{ConfirmedNotification, CurrentAlerts, DecisionContext, Delivery},
    member::Member,
};
use crate::alerts::{LabelSet, Message, MessageAlert, routing::Integration};

/// A group, as it is stored.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct AlertGroup {
    /// The route's key.
    pub(super) route: String,
    /// The index of the route's escalation, if the group belongs to one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) escalation: Option<usize>,
    /// The name of the receiver.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) receiver: Option<String>,
    /// The labels that the alerts share.
    pub(super) labels: LabelSet,
    /// The time of the last decision about notifications, Unix milliseconds; 0: never.
    pub(super) flushed_at: i64,
    /// The time of the next decision.
    pub(super) next_flush: i64,
    /// The alerts, by fingerprint.
    pub(super) members: BTreeMap<String, Member>,
    /// The delivery state of each integration of the receiver, by key.
    #[serde(rename = "ways")]
    pub(super) deliveries: BTreeMap<String, Delivery>,
    /// The number of firing alerts that are not members, because there are too many.
    #[serde(skip)]
    pub(super) left_out: usize,
    /// The muted members, which make room first. `None`: not computed yet.
    #[serde(skip)]
    pub(super) muted: Option<Vec<String>>,
    /// True when the stored group is out of date.
    #[serde(skip)]
    pub(super) is_changed: bool,
}

impl AlertGroup {
    pub(super) fn new(
        route: &str,
        escalation: Option<usize>,
        labels: LabelSet,
        next_flush: i64,
    ) -> Self {
        Self {
            route: route.to_owned(),
            escalation,
            receiver: None,
            labels,
            flushed_at: 0,
            next_flush,
            members: BTreeMap::new(),
            deliveries: BTreeMap::new(),
            left_out: 0,
            muted: None,
            is_changed: false,
        }
    }

    /// Returns the number of firing alerts that no message lists.
    pub(super) fn unlisted_count(&self) -> usize {
        let firing = self.members.values().filter(|member| member.is_firing());
        firing.map(|member| member.alert.more).sum::<usize>() + self.left_out
    }

    /// Updates an alert, or adds it.
    pub(super) fn put(&mut self, key: &str, alert: &MessageAlert) {
        let Some(member) = self.members.get_mut(key) else {
            self.members.insert(key.to_owned(), Member::new(alert));
            return;
        };
        member.is_seen = true;
        // A different end alone needs no notification.
        if alert.is_firing() {
            member.is_end_decided = false;
            member.ended_for.clear();
            member.end_muted_at = None;
        }
        if member.alert != *alert {
            member.alert.clone_from(alert);
        }
    }

    /// Sets the receiver. A different receiver has got no notifications yet.
    pub(super) fn set_receiver(&mut self, receiver: &str) {
        if self.receiver.as_deref() == Some(receiver) {
            return;
        }
        if self.receiver.replace(receiver.to_owned()).is_some() {
            self.deliveries.clear();
            self.members.values_mut().for_each(|member| member.ended_for.clear());
        }
        self.is_changed = true;
    }

    /// Removes alerts that have moved to another group and still fire there: they have not ended.
    pub(super) fn remove_moved(&mut self, fires: impl Fn(&str) -> bool) {
        let count = self.members.len();
        self.members.retain(|key, member| member.is_seen || !member.is_firing() || !fires(key));
        self.is_changed |= self.members.len() < count;
    }

    /// Ends alerts that are no longer seen. While `is_awaiting`, posted alerts do not end, because
    /// their clients may still post them again; returns whether there is such an alert.
    pub(super) fn end_unseen(&mut self, now: i64, is_awaiting: bool) -> bool {
        let mut are_some_awaited = false;
        for member in self.members.values_mut() {
            if member.is_seen || !member.is_firing() {
                continue;
            }
            if is_awaiting && member.alert.is_posted {
                are_some_awaited = true;
            } else {
                member.alert.ends_at = Some(now);
            }
        }
        are_some_awaited
    }

    /// Decides which notifications are pending for the integrations.
    pub(super) fn decide(&mut self, context: &DecisionContext<'_>) {
        let deliveries_before = std::mem::take(&mut self.deliveries);
        let member_count_before = self.members.len();
        let delivery = |integration: &Integration| {
            let delivery = deliveries_before.get(&integration.key).cloned().unwrap_or_default();
            (integration.key.clone(), delivery)
        };
        self.deliveries = context.integrations.iter().map(delivery).collect();
        self.mute(context);
        let is_unmuted = |member: &&Member| !(context.is_muted)(&member.alert.labels);
        let unmuted: Vec<_> =
            self.members.iter().filter(|(_, member)| is_unmuted(member)).collect();
        let keys_of = |meets: &dyn Fn(&Member) -> bool| -> BTreeSet<String> {
            let matching = unmuted.iter().filter(|(_, member)| meets(member));
            matching.map(|(key, _)| (*key).clone()).collect()
        };
        let mut current = CurrentAlerts {
            firing: keys_of(&Member::is_firing),
            resolved: BTreeSet::new(),
            left_out: unmuted.iter().map(|(_, member)| member.alert.more).sum::<usize>()
                + self.left_out,
            is_acknowledged: self.left_out == 0
                && unmuted.iter().all(|(_, member)| {
                    !member.is_firing() || member.alert.acknowledged_by.is_some()
                }),
        };
        for integration in context.integrations {
            let Some(delivery) = self.deliveries.get_mut(&integration.key) else { continue };
            let is_new = |member: &Member| {
                !member.is_firing()
                    && !member.ended_for.contains(&integration.key)
                    && member.is_end_pending(context.now)
            };
            current.resolved = keys_of(&is_new);
            if unmuted.is_empty() {
                delivery.pending = None;
            } else {
                delivery.decide(integration.send_resolved, &current, context);
            }
        }
        for member in self.members.values_mut() {
            member.is_end_decided |= !member.is_firing();
        }
        self.flushed_at = context.now;
        self.next_flush = context.now.saturating_add(context.group_interval_ms);
        self.prune();
        let is_muted_now = |member: &Member| member.end_muted_at == Some(context.now);
        self.is_changed |= deliveries_before != self.deliveries
            || member_count_before != self.members.len()
            || self.members.values().any(is_muted_now);
    }

    /// Records the muted alerts and, for each integration, the alerts whose ends are sent after the
    /// mute.
    fn mute(&mut self, context: &DecisionContext<'_>) {
        let now = context.now;
        let is_muted = |member: &Member| (context.is_muted)(&member.alert.labels);
        for member in self.members.values_mut().filter(|member| is_muted(member)) {
            member.end_muted_at = (!member.is_firing()).then_some(now);
        }
        let members = &self.members;
        let muted: Vec<_> = members.iter().filter(|(_, member)| is_muted(member)).collect();
        for integration in context.integrations {
            let Some(delivery) = self.deliveries.get_mut(&integration.key) else { continue };
            delivery.follow_clock(now);
            let has_end = |member: &Member| member.ended_for.contains(&integration.key);
            for (key, member) in muted.iter().filter(|(_, member)| !has_end(member)) {
                delivery.mute(key, member.is_firing());
            }
            let is_end_pending = |member: &Member| !has_end(member) && member.is_end_pending(now);
            delivery.muted.retain(|key| {
                integration.send_resolved && members.get(key).is_some_and(is_end_pending)
            });
        }
    }

    /// Returns the alerts of the next message to an integration; empty when none is pending.
    pub(super) fn pending_alerts(
        &self,
        integration: &str,
        send_resolved: bool,
    ) -> Vec<MessageAlert> {
        let Some(Delivery { confirmed, pending: Some(pending), .. }) =
            self.deliveries.get(integration)
        else {
            return Vec::new();
        };
        let was_confirmed = |key: &String| {
            confirmed.as_ref().is_some_and(|confirmed| confirmed.firing.contains(key))
        };
        let members = pending.alerts.iter().filter_map(|key| Some((key, self.members.get(key)?)));
        let listed = members.filter(|(key, member)| {
            member.is_firing()
                || (!member.ended_for.contains(integration)
                    && (send_resolved || !was_confirmed(key)))
        });
        listed.map(|(_, member)| member.alert.clone()).collect()
    }

    /// Returns the number of firing alerts that the last confirmed message to an integration only
    /// counted.
    pub(super) fn confirmed_left_out(&self, integration: &str) -> usize {
        let confirmed =
            self.deliveries.get(integration).and_then(|delivery| delivery.confirmed.as_ref());
        confirmed.map_or(0, |confirmed| confirmed.left_out)
    }

    /// Records that an integration confirmed a message that was decided at a time.
    pub(super) fn confirm(
        &mut self,
        integration: &Integration,
        message: &Message,
        decided_at: i64,
    ) {
        let Message { alerts, left_out, .. } = message;
        let listed_keys = |is_firing: bool| -> BTreeSet<String> {
            let listed = alerts.iter().filter(|listed| listed.is_firing() == is_firing);
            listed.map(MessageAlert::fingerprint).collect()
        };
        let left_out = *left_out;
        let confirmed = ConfirmedNotification {
            at: decided_at,
            firing: listed_keys(true),
            resolved: listed_keys(false),
            left_out,
        };
        for ended in alerts.iter().filter(|alert| !alert.is_firing()) {
            let member = self.members.get_mut(&ended.fingerprint());
            // The alert may have fired again since, or have another end.
            let is_same = |member: &&mut Member| {
                !member.is_firing() && member.alert.starts_at == ended.starts_at
            };
            if let Some(member) = member.filter(is_same) {
                member.ended_for.insert(integration.key.clone());
                if let Some(delivery) = self.deliveries.get_mut(&integration.key) {
                    delivery.muted.remove(&ended.fingerprint());
                }
            }
        }
        let Some(delivery) = self.deliveries.get_mut(&integration.key) else { return };
        if let Some(pending) =
            delivery.pending.take().filter(|pending| pending.decided_at != decided_at)
        {
            // A later decision was made while the message was sent, which may deliver a part of it.
            let keys_of = |is_firing: bool| -> BTreeSet<String> {
                let is_matching = |key: &&String| {
                    self.members.get(*key).is_some_and(|member| {
                        member.is_firing() == is_firing
                            && !member.ended_for.contains(&integration.key)
                    })
                };
                pending.alerts.iter().filter(is_matching).cloned().collect()
            };
            let (firing, resolved) = (keys_of(true), keys_of(false));
            let current = CurrentAlerts { firing, resolved, left_out, is_acknowledged: true };
            if current.is_news(Some(&confirmed), integration.send_resolved, None, &delivery.muted) {
                delivery.pending = Some(pending);
            }
        }
        delivery.confirmed = Some(confirmed);
        self.prune();
        self.is_changed = true;
    }

    /// Records that an integration refused a message that was decided at a time. The next decision
    /// repeats the message; ends are repeated as long as they are pending.
    pub(super) fn refuse(&mut self, integration: &str, decided_at: i64) {
        let pending =
            self.deliveries.get_mut(integration).and_then(|delivery| delivery.pending.as_mut());
        // A later decision, made while the message was sent, was not refused.
        if let Some(pending) = pending.filter(|pending| pending.decided_at == decided_at) {
            pending.is_refused = true;
            self.is_changed = true;
        }
    }

    /// Removes ended alerts whose end is not pending for any integration. When a removed alert
    /// fires again, a notification is due, even for integrations that get no resolved messages.
    fn prune(&mut self) {
        let (deliveries, is_changed) = (&mut self.deliveries, &mut self.is_changed);
        self.members.retain(|key, member| {
            let mut is_end_pending = false;
            for (name, delivery) in deliveries.iter_mut().filter(|_| member.is_end_decided) {
                if delivery.pending.as_ref().is_some_and(|pending| pending.alerts.contains(key)) {
                    is_end_pending |= !member.ended_for.contains(name);
                    continue;
                }
                if delivery.muted.contains(key) {
                    is_end_pending = true;
                    continue;
                }
                *is_changed |= member.ended_for.insert(name.clone());
                if let Some(confirmed) = &mut delivery.confirmed {
                    confirmed.firing.remove(key);
                }
            }
            !member.is_end_decided || is_end_pending
        });
    }
}
