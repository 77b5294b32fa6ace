//! The history of a group: the episodes in which its alerts fired, as JSON.
//!
//! Must never know: where histories are stored, how rules are evaluated.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{Acknowledgement, Alert, AlertState, GroupState, LabelSet, alert::value};

/// The maximum number of episodes of a group; the oldest are dropped.
const EPISODES_MAX: usize = 200;
/// The maximum size of a group's history, in bytes.
const BYTES_MAX: usize = 256 << 10;
/// The time for which episodes are kept, in milliseconds.
const KEPT_MS: i64 = 90 * 86_400_000;

/// An episode: a period in which an alert fired or samples were missing. Times are those of
/// evaluations.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Episode {
    /// The rule's key.
    pub rule: String,
    /// The alert's labels.
    pub labels: LabelSet,
    /// The state of the alert.
    pub state: AlertState,
    /// The time at which it fired.
    pub fired_at: i64,
    /// The time at which it ended; `None` while it fires.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolved_at: Option<i64>,
    /// The value at the last evaluation at which it was active.
    #[serde(with = "value")]
    pub value: f64,
    /// The acknowledgement.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub acknowledged: Option<Acknowledgement>,
    /// The time since which it was pending, or samples were missing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub active_at: Option<i64>,
    /// The hash of the rule if no evaluation was missed, otherwise 0.
    #[serde(default)]
    pub version: u64,
    /// The difference that late samples would have made.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub revised: Option<Revision>,
}

/// A difference between an episode and its review.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Revision {
    /// The time of the first repeated evaluation with a different result.
    pub at: i64,
    /// True when the alert had ended but would have been firing; false when it would not have been
    /// active.
    pub active: bool,
}

/// The past episodes of a group, the oldest end first.
#[derive(Debug, Clone, PartialEq, Default, Serialize, Deserialize)]
pub struct GroupHistory {
    episodes: Vec<Episode>,
}

impl Episode {
    /// Returns the episode of a firing alert; `None` for other alerts.
    fn of(rule: &str, alert: &Alert) -> Option<Self> {
        alert.state.is_notified().then(|| Self {
            rule: rule.to_owned(),
            labels: alert.labels.clone(),
            state: alert.state,
            fired_at: alert.fired_at.unwrap_or(alert.active_at),
            resolved_at: None,
            value: alert.value,
            acknowledged: alert.acknowledged.clone(),
            active_at: Some(alert.active_at),
            version: 0,
            revised: None,
        })
    }
}

impl GroupHistory {
    /// Drops the oldest episodes until the rest fits into one object of the store.
    pub fn drop_oldest_to_fit(&mut self) {
        while serde_json::to_vec(self).is_ok_and(|bytes| bytes.len() > BYTES_MAX) {
            self.episodes.drain(..self.episodes.len().div_ceil(2));
        }
    }

    /// Returns the episodes, the oldest end first.
    pub fn episodes(&self) -> &[Episode] {
        &self.episodes
    }

    /// Sets the revision of the episode at an index.
    pub fn revise(&mut self, index: usize, revision: Revision) {
        if let Some(episode) = self.episodes.get_mut(index) {
            episode.revised = Some(revision);
        }
    }

    /// Returns the episodes that an evaluation ended and that are not in the history yet, because
    /// the evaluation may be repeated.
    pub fn newly_ended(&self, before: &GroupState, after: &GroupState) -> Vec<Episode> {
        let mut ended = Vec::new();
        for (rule, state) in &before.rules {
            let next = after.rules.get(rule);
            let version =
                |since: i64| next.filter(|next| next.since <= since).map_or(0, |next| next.version);
            let now = next.map_or(&[][..], |next| &next.alerts);
            let now: BTreeMap<_, _> = now.iter().map(|alert| (&alert.labels, alert)).collect();
            for previous in &state.alerts {
                let Some(episode) = Episode::of(rule, previous) else { continue };
                let is_known = |known: &Episode| {
                    known.fired_at == episode.fired_at && known.labels == episode.labels
                };
                let continues = now.get(&previous.labels).is_some_and(|alert| {
                    alert.state.is_notified() && alert.fired_at == previous.fired_at
                });
                if !continues && !self.episodes.iter().any(is_known) {
                    let (resolved_at, version) = (Some(after.last), version(previous.active_at));
                    ended.push(Episode { resolved_at, version, ..episode });
                }
            }
        }
        ended
    }

    /// Adds episodes that ended at a time, and drops the oldest ones.
    pub fn add(&mut self, ended: Vec<Episode>, at: i64) {
        self.episodes.extend(ended);
        let is_old = |episode: &Episode| at - episode.resolved_at.unwrap_or(0) > KEPT_MS;
        let old = self.episodes.iter().take_while(|episode| is_old(episode)).count();
        self.episodes.drain(..old.max(self.episodes.len().saturating_sub(EPISODES_MAX)));
    }

    /// Returns past and current episodes, the latest start first.
    pub fn with_present(&self, state: &GroupState) -> Vec<Episode> {
        let present = state.rules.iter().flat_map(|(rule, state)| {
            state.alerts.iter().filter_map(|alert| Episode::of(rule, alert))
        });
        let mut all: Vec<_> = self.episodes.iter().cloned().chain(present).collect();
        all.sort_by_key(|episode| std::cmp::Reverse(episode.fired_at));
        all
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::alerts::RuleState;

    fn state(last: i64, alerts: &[(&str, AlertState, i64)]) -> GroupState {
        let alert = |(host, state, fired_at): &(&str, AlertState, i64)| Alert {
            state: *state,
            fired_at: Some(*fired_at),
            value: f64::INFINITY,
            ..Alert::inactive([("host".to_owned(), (*host).to_owned())].into())
        };
        let alerts = alerts.iter().map(alert).collect();
        let rules = [("r".to_owned(), RuleState { alerts, ..RuleState::default() })].into();
        GroupState { last, rules, ..GroupState::default() }
    }

    fn summaries(all: &[Episode]) -> Vec<(&str, i64, Option<i64>)> {
        all.iter()
            .map(|episode| (&*episode.labels["host"], episode.fired_at, episode.resolved_at))
            .collect()
    }

    fn note(history: &mut GroupHistory, before: &GroupState, after: &GroupState) -> bool {
        let ended = history.newly_ended(before, after);
        let is_some = !ended.is_empty();
        history.add(ended, after.last);
        is_some
    }

    #[test]
    fn an_episode_is_kept_once_when_it_ends_and_shown_while_it_continues() {
        use AlertState::{Firing, Inactive, NoData, Pending};
        let mut history = GroupHistory::default();
        let first = state(10, &[("a", Firing, 10), ("b", Pending, 0), ("c", Firing, 5)]);
        let second = state(20, &[("a", Inactive, 10), ("b", Firing, 20), ("c", NoData, 20)]);
        assert!(!note(&mut history, &first, &first));
        assert!(note(&mut history, &first, &second));
        // After a crash, the same evaluation is repeated.
        assert!(!note(&mut history, &first, &second));
        let expected = [("b", 20, None), ("c", 20, None), ("a", 10, Some(20)), ("c", 5, Some(20))];
        assert_eq!(summaries(&history.with_present(&second)), expected);
        let json = serde_json::to_vec(&history).unwrap();
        assert_eq!(serde_json::from_slice::<GroupHistory>(&json).unwrap(), history);
        // A removed rule ends its firing alerts.
        assert!(note(&mut history, &second, &GroupState { last: 30, ..GroupState::default() }));
        assert_eq!(history.episodes.len(), 4);
    }

    #[test]
    fn the_oldest_episodes_make_room() {
        let mut history = GroupHistory::default();
        for at in 0..EPISODES_MAX as i64 + 10 {
            let before = state(at, &[("a", AlertState::Firing, at)]);
            note(&mut history, &before, &state(at + 1, &[]));
        }
        assert_eq!((history.episodes.len(), history.episodes[0].fired_at), (EPISODES_MAX, 10));
        let late = state(KEPT_MS + 1000, &[]);
        note(&mut history, &late, &late);
        assert_eq!(history.episodes, []);
        let long_text = "x".repeat(2000);
        for at in 0..200 {
            let before = state(at, &[(&long_text, AlertState::Firing, at)]);
            note(&mut history, &before, &state(at + 1, &[]));
        }
        history.drop_oldest_to_fit();
        let bytes = serde_json::to_vec(&history).unwrap().len();
        assert!(bytes <= BYTES_MAX && !history.episodes.is_empty());
    }
}
