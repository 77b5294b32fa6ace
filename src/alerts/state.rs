//! The state of a group between evaluations: JSON, split into pieces when it is too large for one
//! object of the store.
//!
//! Must never know: where it is stored.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    hash::Hasher,
};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

use super::{Action, Alert, DueEvaluation, RuleGroup};
use crate::model::UnixMillis;

/// The approximate size of a piece, in bytes.
const PIECE_BYTES_MAX: usize = 512 << 10;
/// The maximum number of pieces of a group.
const PIECES_MAX: usize = 4096;

/// Alerts by the keys of their rules.
type AlertsByRule<'a> = BTreeMap<Cow<'a, str>, Vec<Cow<'a, Alert>>>;

fn bytes_of<T: Serialize>(value: &T) -> Vec<u8> {
    // All keys of maps are texts, so writing cannot fail.
    serde_json::to_vec(value).unwrap_or_default()
}

/// The state of a group.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct GroupState {
    /// The group's file, for readers of the store.
    pub file: String,
    /// The group's name, for readers of the store.
    pub name: String,
    /// The time of the last evaluation, Unix milliseconds; 0: none.
    pub last: i64,
    /// The number of times that the clock was set back: numbers of samples start over each time.
    #[serde(default)]
    pub set_back: u32,
    /// The number of further objects with alerts; 0: all alerts are in this object.
    #[serde(default)]
    pub pieces: usize,
    /// The state of each rule, by key.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub rules: BTreeMap<String, RuleState>,
}

/// The state of a rule.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RuleState {
    /// The alerts, in order of their labels.
    pub alerts: Vec<Alert>,
    /// The hash of the rule.
    #[serde(default)]
    pub version: u64,
    /// The time since which the rule has been the same and no evaluation was missed or failed, Unix
    /// milliseconds.
    #[serde(default)]
    pub since: i64,
}

impl GroupState {
    /// Creates the state of a group that was never evaluated.
    pub fn new(group: &RuleGroup) -> Self {
        Self { file: group.file.clone(), name: group.name.clone(), ..Self::default() }
    }

    /// Reads the first object that [`GroupState::to_pieces`] wrote.
    ///
    /// # Errors
    /// When the bytes are not such an object.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(bytes).map_err(|cause| cause.to_string())
    }

    /// Adds a further piece. After a crash between two pieces, it may contain alerts of the
    /// previous evaluation; that evaluation is repeated.
    ///
    /// # Errors
    /// When the bytes are not a piece.
    pub fn add_piece(&mut self, bytes: &[u8]) -> Result<(), String> {
        let piece: AlertsByRule =
            serde_json::from_slice(bytes).map_err(|cause| cause.to_string())?;
        for (rule, alerts) in piece {
            let state = self.rules.entry(rule.into_owned()).or_default();
            state.alerts.extend(alerts.into_iter().map(Cow::into_owned));
            state.alerts.sort_by(|left, right| left.labels.cmp(&right.labels));
            state.alerts.dedup_by(|left, right| left.labels == right.labels);
        }
        Ok(())
    }

    /// Returns the objects to store: the whole state, or a first object and then pieces with the
    /// alerts. While the number of pieces does not change, an alert stays in its piece.
    pub fn to_pieces(&self) -> Vec<Vec<u8>> {
        let bytes = bytes_of(self);
        if bytes.len() <= PIECE_BYTES_MAX {
            return vec![bytes];
        }
        let mut count = (bytes.len() / PIECE_BYTES_MAX + 1).next_power_of_two();
        loop {
            let pieces: Vec<_> = self.split(count).iter().map(bytes_of).collect();
            if count < PIECES_MAX && pieces.iter().any(|piece| piece.len() > PIECE_BYTES_MAX) {
                count *= 2;
                continue;
            }
            let (file, name) = (self.file.clone(), self.name.clone());
            let Self { last, set_back, .. } = *self;
            let rules = BTreeMap::new();
            let mut first = Self { file, name, last, set_back, pieces: count, rules };
            for (key, state) in &self.rules {
                let (version, since) = (state.version, state.since);
                first.rules.insert(key.clone(), RuleState { alerts: Vec::new(), version, since });
            }
            return std::iter::once(bytes_of(&first)).chain(pieces).collect();
        }
    }

    fn split(&self, count: usize) -> Vec<AlertsByRule<'_>> {
        let mut pieces = vec![AlertsByRule::new(); count];
        for (key, state) in &self.rules {
            for alert in &state.alerts {
                let mut hasher = Xxh3::new();
                hasher.write(key.as_bytes());
                for (name, value) in &alert.labels {
                    for text in [name, "\0", value, "\0"] {
                        hasher.write(text.as_bytes());
                    }
                }
                let at = hasher.finish() as usize & (count - 1);
                if let Some(piece) = pieces.get_mut(at) {
                    piece.entry(key.into()).or_default().push(Cow::Borrowed(alert));
                }
            }
        }
        pieces
    }

    /// Returns the time of the last evaluation, if there was one.
    pub fn last(&self) -> Option<UnixMillis> {
        (self.last > 0).then_some(UnixMillis(self.last))
    }

    /// Adapts the state to a group's rules at an evaluation: removes deleted rules, and restarts
    /// the time of rules that are new, changed, or missed an evaluation.
    pub fn adapt_to(&mut self, group: &RuleGroup, due: DueEvaluation) {
        let keys: BTreeSet<_> = group.rules.iter().map(|rule| &rule.key).collect();
        self.rules.retain(|key, _| keys.contains(key));
        for rule in group.rules.iter().filter(|rule| matches!(rule.action, Action::Alert(_))) {
            let state = self.rules.entry(rule.key.clone()).or_default();
            let version = group.version_of(rule);
            if state.version != version || due.missed > 0 {
                (state.version, state.since) = (version, due.at.0);
            }
        }
    }
}
