//! An alert of a group, and the integrations for which its end is pending.
//!
//! Must never know: groups, notifications.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::alerts::MessageAlert;

/// The time for which the end of an alert is pending, in milliseconds.
const ENDS_OWED_MS: i64 = 24 * 3_600_000;

/// An alert of a group.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub(super) struct Member {
    #[serde(flatten)]
    pub(super) alert: MessageAlert,
    /// True when the alert had ended at the last decision.
    #[serde(default)]
    pub(super) is_end_decided: bool,
    /// The keys of the integrations that were notified of the end, or need not be.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub(super) ended_for: BTreeSet<String>,
    /// The time of the last decision at which the end was muted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) end_muted_at: Option<i64>,
    #[serde(skip)]
    pub(super) is_seen: bool,
}

impl Member {
    pub(super) fn new(alert: &MessageAlert) -> Self {
        let (is_end_decided, ended_for) = (false, BTreeSet::new());
        let alert = alert.clone();
        Self { alert, is_end_decided, ended_for, end_muted_at: None, is_seen: true }
    }

    pub(super) fn is_firing(&self) -> bool {
        self.alert.is_firing()
    }

    /// Returns true until the alert has ended for so long that its end is no longer pending.
    pub(super) fn is_end_pending(&self, now: i64) -> bool {
        let ended_at = self.alert.ends_at.unwrap_or(now);
        now.saturating_sub(ended_at.max(self.end_muted_at.unwrap_or(ended_at))) <= ENDS_OWED_MS
    }

    /// Returns the approximate size of the alert in the store, in bytes.
    pub(super) fn bytes(&self) -> usize {
        bytes(&self.alert)
    }
}

/// Returns the approximate size of an alert in the store, in bytes.
pub(super) fn bytes(alert: &MessageAlert) -> usize {
    let pairs = alert.labels.iter().chain(&alert.annotations);
    let link = alert.generator_url.len();
    200 + link + pairs.map(|(name, value)| name.len() + value.len() + 8).sum::<usize>()
}
