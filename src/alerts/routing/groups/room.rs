//! Room in a group: its limits, and the alerts that make room for others.
//!
//! Must never know: other groups, notifications.

use super::{
    group::AlertGroup,
    member::{Member, bytes},
};
use crate::alerts::{LabelSet, MessageAlert};

/// The maximum number of alerts of a group, and their size; a group is one object of the store.
const MEMBERS_MAX: usize = 500;
const MEMBER_BYTES_MAX: usize = 384 << 10;

impl AlertGroup {
    /// Makes room in a group for an alert, if necessary by removing ended alerts, then muted ones.
    /// Returns whether there is room.
    pub(super) fn make_room(
        &mut self,
        alert: &MessageAlert,
        is_muted: &dyn Fn(&LabelSet) -> bool,
        count: &mut usize,
    ) -> bool {
        while !self.has_room(alert) {
            let is_evicted = (self.left_out == 0 && self.evict())
                || (!is_muted(&alert.labels) && self.evict_muted(is_muted));
            if !is_evicted {
                return false;
            }
            *count -= 1;
        }
        // After the first alert that was left out, no further alert is listed.
        self.left_out == 0
    }

    fn has_room(&self, alert: &MessageAlert) -> bool {
        self.members.len() < MEMBERS_MAX && self.bytes() + bytes(alert) <= MEMBER_BYTES_MAX
    }

    /// Returns the approximate size of the alerts in the store, in bytes.
    pub(super) fn bytes(&self) -> usize {
        self.members.values().map(Member::bytes).sum()
    }

    /// Makes room for a firing alert: removes the alert that ended first, even if its end is
    /// pending. Returns whether an alert was removed.
    pub(super) fn evict(&mut self) -> bool {
        let ended = self.members.iter().filter(|(_, member)| member.is_end_decided);
        let oldest =
            ended.min_by_key(|(_, member)| member.alert.ends_at).map(|(key, _)| key.clone());
        oldest.is_some_and(|key| self.forget(&key))
    }

    /// Makes room for an alert that is not muted: removes a muted alert. Returns whether an alert
    /// was removed.
    pub(super) fn evict_muted(&mut self, is_muted: &dyn Fn(&LabelSet) -> bool) -> bool {
        let all = self.members.iter();
        let muted = self.muted.get_or_insert_with(|| {
            let muted =
                all.filter(|(_, member)| member.is_firing() && is_muted(&member.alert.labels));
            muted.map(|(key, _)| key.clone()).collect()
        });
        muted.pop().is_some_and(|key| self.forget(&key))
    }

    fn forget(&mut self, key: &str) -> bool {
        for delivery in self.deliveries.values_mut() {
            if let Some(confirmed) = &mut delivery.confirmed {
                confirmed.firing.remove(key);
            }
            if let Some(pending) = &mut delivery.pending {
                pending.alerts.remove(key);
            }
            delivery.muted.remove(key);
        }
        self.is_changed = true;
        self.members.remove(key).is_some()
    }
}
