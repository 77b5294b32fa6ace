//! Delivery of a group to one integration of its receiver: the last confirmed notification, and the
//! pending one.
//!
//! Must never know: other integrations, how anything is sent.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::alerts::{LabelSet, routing::Integration};

/// The state of delivery to one integration.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct Delivery {
    /// The last notification that was confirmed.
    #[serde(rename = "told", default, skip_serializing_if = "Option::is_none")]
    pub(super) confirmed: Option<ConfirmedNotification>,
    /// The notification that is not confirmed yet.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) pending: Option<PendingDelivery>,
    /// The fingerprints of alerts whose firing was sent, perhaps without a confirmation, and that
    /// have been muted since: their ends are pending when the mute is over.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(super) muted: BTreeSet<String>,
}

/// The alerts of a confirmed notification, by fingerprints.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub(super) struct ConfirmedNotification {
    /// The time of the decision.
    pub(super) at: i64,
    pub(super) firing: BTreeSet<String>,
    pub(super) resolved: BTreeSet<String>,
    /// The number of firing alerts that the notification only counted.
    #[serde(default)]
    pub(super) left_out: usize,
}

/// A pending notification.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct PendingDelivery {
    /// The time since which a notification is pending.
    pub(super) since: i64,
    /// The time of the last decision.
    pub(super) decided_at: i64,
    /// The fingerprints of the alerts.
    pub(super) alerts: BTreeSet<String>,
    /// True after the receiver refused it.
    #[serde(default)]
    pub(super) is_refused: bool,
}

/// The parameters of a decision.
pub(super) struct DecisionContext<'a> {
    pub(super) integrations: &'a [Integration],
    pub(super) group_interval_ms: i64,
    pub(super) repeat_interval_ms: i64,
    /// True when an alert is muted now.
    pub(super) is_muted: &'a dyn Fn(&LabelSet) -> bool,
    pub(super) now: i64,
}

/// The current alerts, without muted ones.
pub(super) struct CurrentAlerts {
    pub(super) firing: BTreeSet<String>,
    pub(super) resolved: BTreeSet<String>,
    /// The number of firing alerts that a message only counts.
    pub(super) left_out: usize,
    /// True when all firing alerts are acknowledged.
    pub(super) is_acknowledged: bool,
}

impl CurrentAlerts {
    /// Returns whether a notification is due, by the rule of Alertmanager (`notify.DedupStage`). An
    /// unchanged notification is repeated when the last one was decided at `again` or before.
    pub(super) fn is_news(
        &self,
        confirmed: Option<&ConfirmedNotification>,
        send_resolved: bool,
        again: Option<i64>,
        muted: &BTreeSet<String>,
    ) -> bool {
        let is_over = self.firing.is_empty() && self.left_out == 0;
        if is_over && send_resolved && !self.resolved.is_disjoint(muted) {
            return true;
        }
        let Some(confirmed) = confirmed else { return !is_over };
        if !self.firing.is_subset(&confirmed.firing) || self.left_out > confirmed.left_out {
            return true;
        }
        if is_over {
            return !confirmed.firing.is_empty();
        }
        (send_resolved && !self.resolved.is_subset(&confirmed.resolved))
            || (!self.is_acknowledged && again.is_some_and(|again| confirmed.at <= again))
    }
}

impl Delivery {
    /// Adapts to a clock that was set back, so that repetitions do not wait until it has caught up.
    pub(super) fn follow_clock(&mut self, now: i64) {
        if let Some(confirmed) = &mut self.confirmed {
            confirmed.at = confirmed.at.min(now);
        }
        if let Some(pending) = &mut self.pending {
            pending.since = pending.since.min(now);
        }
    }

    /// Remembers a muted alert whose firing was sent, perhaps without a confirmation: its end is
    /// pending.
    pub(super) fn mute(&mut self, key: &str, is_firing: bool) {
        let confirmed = self.confirmed.as_mut().map(|confirmed| &mut confirmed.firing);
        let was_confirmed = confirmed.is_some_and(|confirmed| {
            // An ended alert is removed, so that a notification is due when it fires again.
            if is_firing { confirmed.contains(key) } else { confirmed.remove(key) }
        });
        if was_confirmed
            || self.pending.as_ref().is_some_and(|pending| pending.alerts.contains(key))
        {
            self.muted.insert(key.to_owned());
        }
    }

    /// Decides whether a notification is pending, and with which alerts.
    pub(super) fn decide(
        &mut self,
        send_resolved: bool,
        seen: &CurrentAlerts,
        context: &DecisionContext<'_>,
    ) {
        let repeat_before = context.now.saturating_sub(context.repeat_interval_ms);
        let before = self.pending.take();
        let is_news =
            seen.is_news(self.confirmed.as_ref(), send_resolved, Some(repeat_before), &self.muted);
        if before.is_none() && !is_news {
            return;
        }
        // Alerts that fired while the receiver was unreachable are sent although they have ended.
        let was_owed =
            |key: &&String| before.as_ref().is_some_and(|pending| pending.alerts.contains(*key));
        let was_confirmed = |key: &&String| {
            self.confirmed.as_ref().is_some_and(|confirmed| confirmed.firing.contains(*key))
        };
        let ended = seen
            .resolved
            .iter()
            .filter(|key| send_resolved || (was_owed(key) && !was_confirmed(key)));
        let alerts: BTreeSet<_> = seen.firing.iter().chain(ended).cloned().collect();
        if alerts.is_empty() {
            let (at, resolved) = (context.now, seen.resolved.clone());
            let left_out = seen.left_out;
            self.confirmed =
                Some(ConfirmedNotification { at, firing: BTreeSet::new(), resolved, left_out });
            return;
        }
        let since = before.map_or(context.now, |pending| pending.since);
        let decided_at = context.now;
        self.pending = Some(PendingDelivery { since, decided_at, alerts, is_refused: false });
    }
}
