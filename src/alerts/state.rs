//! What is remembered of a group between evaluations, as it is stored: JSON.
//!
//! Must never know: where it is stored.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

use super::{Action, Alert, Due, RuleGroup, Written, evaluation};
use crate::model::UnixMillis;

/// What is remembered of a group.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct GroupState {
    /// The group's file and name, for who looks at the store.
    pub file: String,
    /// See `file`.
    pub name: String,
    /// The time of the last evaluation, Unix milliseconds; 0: there was none.
    pub last: i64,
    /// By the rules' keys.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub rules: BTreeMap<String, RuleState>,
}

/// What is remembered of a rule.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RuleState {
    /// Its alerts, in order of their labels.
    pub alerts: Vec<Alert>,
    /// What it says, as a hash.
    #[serde(default)]
    pub version: u64,
    /// Since when it says so and no evaluation of it was missed or failed, Unix milliseconds.
    #[serde(default)]
    pub since: i64,
}

impl GroupState {
    /// Nothing is known of a group yet.
    pub fn new(group: &RuleGroup) -> Self {
        Self { file: group.file.clone(), name: group.name.clone(), ..Self::default() }
    }

    /// Reads what [`GroupState::to_bytes`] wrote.
    ///
    /// # Errors
    /// When it is something else.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(bytes).map_err(|cause| cause.to_string())
    }

    /// As it is stored.
    pub fn to_bytes(&self) -> Vec<u8> {
        // All keys of maps are texts, and no other thing cannot be written.
        serde_json::to_vec(self).unwrap_or_default()
    }

    /// When it was evaluated last, if it was.
    pub fn last(&self) -> Option<UnixMillis> {
        (self.last > 0).then_some(UnixMillis(self.last))
    }

    /// The series that say what a rule's alerts are.
    pub fn series_of(&self, rule: &str) -> Written {
        let alerts = self.rules.get(rule).map_or(&[][..], |own| &own.alerts);
        evaluation::series_of_alerts(alerts).into_iter().map(|(labels, _)| labels).collect()
    }

    /// Goes on with the rules of a group at an evaluation: forgets those that are gone, and notes
    /// which are new or another one, or were not evaluated in time.
    pub fn follow(&mut self, group: &RuleGroup, due: Due) {
        let keys: BTreeSet<_> = group.rules.iter().map(|rule| &rule.key).collect();
        self.rules.retain(|key, _| keys.contains(key));
        for rule in group.rules.iter().filter(|rule| matches!(rule.action, Action::Alert(_))) {
            let own = self.rules.entry(rule.key.clone()).or_default();
            let version = group.version_of(rule);
            if own.version != version || due.missed > 0 {
                (own.version, own.since) = (version, due.at.0);
            }
        }
    }
}
