//! Placement of alerts in groups, and the limits of all groups together.
//!
//! Must never know: notifications.

use std::collections::{BTreeMap, BTreeSet};

use xxhash_rust::xxh3::xxh3_128;

use super::{Groups, group::AlertGroup, settings};
use crate::{
    alerts::{
        LabelSet, MessageAlert, fingerprint,
        routing::{Route, Routing},
    },
    model::UnixMillis,
};

/// The maximum number of groups.
const GROUPS_MAX: usize = 2000;
/// The maximum number of alerts of all groups.
const ALL_MEMBERS_MAX: usize = 20_000;
/// The interval at which alerts that were left out are placed again, in milliseconds, because
/// silences end.
const PLACE_AGAIN_MS: i64 = 30_000;

impl Groups {
    /// Puts all alerts into the groups of their routes. Members that are no longer listed have
    /// ended.
    pub(super) fn place_all(
        &mut self,
        routing: &Routing,
        alerts: &[MessageAlert],
        is_muted: &dyn Fn(&LabelSet) -> bool,
        now: UnixMillis,
    ) {
        self.left_out = 0;
        self.place_at = UnixMillis::MAX;
        for group in self.all.values_mut() {
            (group.left_out, group.muted) = (0, None);
            group.members.values_mut().for_each(|member| member.is_seen = false);
        }
        self.forget_unrouted(routing);
        let mut count = self.members();
        let mut firing = BTreeSet::new();
        for alert in merged(alerts) {
            let key = fingerprint(&alert.labels);
            for (route, escalation) in routing.routes_and_escalations_of(&alert.labels) {
                let placement = Placement { route, escalation, key: &key, alert };
                self.place(&placement, &mut count, is_muted, now);
            }
            if alert.is_firing() {
                firing.insert(key);
            }
        }
        let awaited_until = self.awaited_until(routing, now);
        for group in self.all.values_mut() {
            if let Some((_, receiver)) = settings(routing, group) {
                group.set_receiver(&receiver.name);
            }
            group.remove_moved(|key| firing.contains(key));
            if group.end_unseen(now.0, now < awaited_until) {
                self.place_at = self.place_at.min(awaited_until);
            }
        }
    }

    /// Returns the time until which posted alerts are awaited after a restart, because they are not
    /// stored.
    fn awaited_until(&mut self, routing: &Routing, now: UnixMillis) -> UnixMillis {
        // The clock may be set back.
        let began_at = self.began_at.map_or(now, |began_at| began_at.min(now));
        self.began_at = Some(began_at);
        began_at.plus(routing.resolve_timeout_ms)
    }

    /// Removes the groups of removed routes.
    fn forget_unrouted(&mut self, routing: &Routing) {
        let ended = &mut self.gone;
        self.all.retain(|id, group| {
            let is_routed = settings(routing, group).is_some();
            if !is_routed {
                ended.insert(id.clone());
            }
            is_routed
        });
    }

    /// Puts an alert into its group of a route, and counts it when it is a new member. When there
    /// are too many groups, the alert is put into the overflow group of the route.
    fn place(
        &mut self,
        placement: &Placement<'_>,
        count: &mut usize,
        is_muted: &dyn Fn(&LabelSet) -> bool,
        now: UnixMillis,
    ) {
        let Placement { route, escalation, key, alert } = *placement;
        let mut labels = route.group_labels(&alert.labels);
        let mut id = group_id(&route.key, escalation, &labels);
        let overflow = overflow_id(&route.key, escalation);
        for id in [&id, &overflow] {
            let group = self.all.get_mut(id);
            if let Some(group) = group.filter(|group| group.members.contains_key(key)) {
                group.put(key, alert);
                self.left_out += alert.more;
                return;
            }
        }
        // An end alone needs no notification.
        if !alert.is_firing() {
            return;
        }
        if let Some(at) = escalation {
            let Some(begin) = route.escalates_at(at, alert) else { return };
            if now < begin {
                self.place_at = self.place_at.min(begin);
                return;
            }
        }
        // Once an alert was left out, there is no ended alert to remove.
        if *count >= ALL_MEMBERS_MAX && self.left_out == 0 {
            *count -= usize::from(self.evict_any());
        }
        let is_full = *count >= ALL_MEMBERS_MAX;
        let is_beyond = !self.all.contains_key(&id) && (is_full || self.all.len() >= GROUPS_MAX);
        if is_beyond {
            (id, labels) = (overflow, LabelSet::new());
        }
        let wait_ms = if escalation.is_some() { 0 } else { route.group_wait_ms };
        self.gone.remove(&id);
        let group = self.all.entry(id).or_insert_with(|| {
            AlertGroup::new(&route.key, escalation, labels, now.0.saturating_add(wait_ms))
        });
        let is_room = (!is_full || is_beyond) && group.make_room(alert, is_muted, count);
        if !is_room {
            self.place_at = self.place_at.min(now.plus(PLACE_AGAIN_MS));
            if !is_muted(&alert.labels) {
                group.left_out += 1 + alert.more;
                self.left_out += 1 + alert.more;
            }
            return;
        }
        // As in Alertmanager, an alert that has fired for long does not wait for others. The times
        // of evaluations lag behind the clock.
        let lag_ms = alert.interval_ms.saturating_add(wait_ms);
        if group.flushed_at == 0 && alert.starts_at.saturating_add(lag_ms) < now.0 {
            group.next_flush = now.0;
        }
        group.put(key, alert);
        *count += 1;
        self.left_out += alert.more;
    }

    /// Removes the oldest ended alert of one group; returns whether any group had one.
    fn evict_any(&mut self) -> bool {
        self.all.values_mut().any(AlertGroup::evict)
    }
}

/// An alert to place, with its route and escalation.
#[derive(Clone, Copy)]
struct Placement<'a> {
    route: &'a Route,
    escalation: Option<usize>,
    key: &'a str,
    alert: &'a MessageAlert,
}

/// Returns each alert once: rules may produce the same labels, and a firing alert precedes an ended
/// one.
fn merged(alerts: &[MessageAlert]) -> impl Iterator<Item = &MessageAlert> {
    let mut all: BTreeMap<&LabelSet, &MessageAlert> = BTreeMap::new();
    for alert in alerts {
        let order = |alert: &MessageAlert| (!alert.is_firing(), alert.starts_at);
        let kept = all.entry(&alert.labels).or_insert(alert);
        if order(alert) < order(kept) {
            *kept = alert;
        }
    }
    all.into_values()
}

fn group_id(route: &str, escalation: Option<usize>, labels: &LabelSet) -> String {
    let key = format!("{route}\0{escalation:?}\0{labels:?}");
    format!("{:032x}", xxh3_128(key.as_bytes()))
}

/// Returns the overflow group of a route, which takes the alerts of groups without room.
fn overflow_id(route: &str, escalation: Option<usize>) -> String {
    format!("{:032x}", xxh3_128(format!("{route}\0{escalation:?}\0overflow").as_bytes()))
}
