//! The state of a group between evaluations, as it is stored: JSON, in pieces where one
//! object cannot hold it.
//!
//! Must never know: where it is stored.

use std::{
    borrow::Cow,
    collections::{BTreeMap, BTreeSet},
    hash::Hasher,
};

use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::Xxh3;

use super::{Action, Alert, Due, RuleGroup};
use crate::model::UnixMillis;

/// Bytes of a piece, about.
const PIECE_BYTES_MAX: usize = 512 << 10;
/// Pieces of a group, at most.
const PIECES_MAX: usize = 4096;

/// Alerts by the keys of their rules.
type Piece<'a> = BTreeMap<Cow<'a, str>, Vec<Cow<'a, Alert>>>;

fn bytes_of<T: Serialize>(own: &T) -> Vec<u8> {
    // All keys of maps are texts, and no other thing cannot be written.
    serde_json::to_vec(own).unwrap_or_default()
}

/// The state of a group.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct GroupState {
    /// The group's file and name, for who looks at the store.
    pub file: String,
    /// See `file`.
    pub name: String,
    /// The time of the last evaluation, Unix milliseconds; 0: there was none.
    pub last: i64,
    /// The number of times that the clock was set back: samples are numbered anew each time.
    #[serde(default)]
    pub set_back: u32,
    /// The number of further objects with its alerts, as it is stored; 0: they are here.
    #[serde(default)]
    pub pieces: usize,
    /// By the rules' keys.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub rules: BTreeMap<String, RuleState>,
}

/// The state of a rule.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct RuleState {
    /// Its alerts, in order of their labels.
    pub alerts: Vec<Alert>,
    /// The hash of the rule.
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

    /// Reads the first of what [`GroupState::to_pieces`] wrote.
    ///
    /// # Errors
    /// When it is something else.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self, String> {
        serde_json::from_slice(bytes).map_err(|cause| cause.to_string())
    }

    /// Takes in a further piece. An alert may be in it as it was one evaluation before: a crash came
    /// between two pieces, and that evaluation is made again.
    ///
    /// # Errors
    /// When it is something else.
    pub fn add_piece(&mut self, bytes: &[u8]) -> Result<(), String> {
        let piece: Piece = serde_json::from_slice(bytes).map_err(|cause| cause.to_string())?;
        for (rule, alerts) in piece {
            let own = self.rules.entry(rule.into_owned()).or_default();
            own.alerts.extend(alerts.into_iter().map(Cow::into_owned));
            own.alerts.sort_by(|one, other| one.labels.cmp(&other.labels));
            own.alerts.dedup_by(|one, other| one.labels == other.labels);
        }
        Ok(())
    }

    /// The state as it is stored: the first object, then those of its alerts where there are too many for
    /// one. An alert is in the same one of so many each time.
    pub fn to_pieces(&self) -> Vec<Vec<u8>> {
        let whole = bytes_of(self);
        if whole.len() <= PIECE_BYTES_MAX {
            return vec![whole];
        }
        let mut count = (whole.len() / PIECE_BYTES_MAX + 1).next_power_of_two();
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
            for (key, own) in &self.rules {
                let (version, since) = (own.version, own.since);
                first.rules.insert(key.clone(), RuleState { alerts: Vec::new(), version, since });
            }
            return std::iter::once(bytes_of(&first)).chain(pieces).collect();
        }
    }

    fn split(&self, count: usize) -> Vec<Piece<'_>> {
        let mut pieces = vec![Piece::new(); count];
        for (key, own) in &self.rules {
            for alert in &own.alerts {
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

    /// The time of the last evaluation, if there was one.
    pub fn last(&self) -> Option<UnixMillis> {
        (self.last > 0).then_some(UnixMillis(self.last))
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
