//! Silences: alerts with certain labels are told to nobody for a time, once or again and again.
//!
//! Pure: what a silence is, what becomes of all of them by a change, and whether an alert is silenced
//! at a time. As in Alertmanager a silence is never taken back but ended early, and one that cannot be
//! changed as asked is ended and replaced. Must never know: where silences are kept, who asks.

mod recurrence;
#[cfg(test)]
mod tests;
mod wanted;

use std::{collections::BTreeMap, ops::Range};

use serde::{Deserialize, Serialize};

pub use recurrence::Recurrence;
pub use wanted::NewSilence;

use super::{LabelMatcher, LabelSet};
use crate::model::UnixMillis;

/// Alerts that all matchers fit are told to nobody for a time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Silence {
    /// The id: a UUID.
    pub id: String,
    /// Which alerts.
    pub matchers: Vec<LabelMatcher>,
    /// From when, Unix milliseconds.
    pub starts_at: i64,
    /// Until when.
    pub ends_at: i64,
    /// The time of the last change.
    pub updated_at: i64,
    /// Who says so.
    pub created_by: String,
    /// Why.
    pub comment: String,
    /// In which windows of that time; without, in all of it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recurring: Option<Recurrence>,
}

/// The state of a silence at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SilenceState {
    /// The silence is active.
    Active,
    /// The silence has not begun.
    Pending,
    /// The silence is over.
    Expired,
}

impl SilenceState {
    /// The word in answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Pending => "pending",
            Self::Expired => "expired",
        }
    }
}

/// Why silences are not as somebody wants.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SilenceFault {
    /// The silence is invalid.
    #[error("{0}")]
    Invalid(String),
    /// There is none with that id.
    #[error("silence {0} not found")]
    NotFound(String),
    /// The silence ended before.
    #[error("silence {0} already expired")]
    Expired(String),
}

impl Silence {
    /// The window in which it silences: the present or next one, else its last.
    pub fn window(&self, now: UnixMillis) -> Range<UnixMillis> {
        let whole = UnixMillis(self.starts_at)..UnixMillis(self.ends_at);
        let Some(recurring) = &self.recurring else { return whole };
        let found = recurring.window(now.max(whole.start));
        match found.filter(|window| window.start < whole.end) {
            Some(window) => window.start.max(whole.start)..window.end.min(whole.end),
            None => whole.end..whole.end,
        }
    }

    /// The state at a time.
    pub fn state(&self, now: UnixMillis) -> SilenceState {
        let window = self.window(now);
        if window.contains(&now) {
            SilenceState::Active
        } else if now < window.start && now.0 < self.ends_at {
            SilenceState::Pending
        } else {
            SilenceState::Expired
        }
    }

    /// True when it silences an alert with these labels at a time.
    pub fn silences(&self, labels: &LabelSet, at: UnixMillis) -> bool {
        // Most are over, or are about others: their windows are looked for last.
        (self.starts_at..self.ends_at).contains(&at.0)
            && self.matchers.iter().all(|own| own.matches(labels))
            && self.state(at) == SilenceState::Active
    }

    fn is_forgotten(&self, now: UnixMillis, kept_ms: i64) -> bool {
        now.since(UnixMillis(self.ends_at)) > kept_ms
    }

    /// The silence, ended at a time.
    fn ended(&self, now: UnixMillis) -> Self {
        let starts_at = self.starts_at.min(now.0);
        Self { starts_at, ends_at: now.0, updated_at: now.0, ..self.clone() }
    }
}

/// All silences, by their ids.
#[derive(Debug, Clone, Default)]
pub struct Silences(BTreeMap<String, Silence>);

impl FromIterator<Silence> for Silences {
    fn from_iter<I: IntoIterator<Item = Silence>>(all: I) -> Self {
        Self(all.into_iter().map(|own| (own.id.clone(), own)).collect())
    }
}

impl Silences {
    /// The ids of those that silence an alert with these labels at a time.
    pub fn silencing(&self, labels: &LabelSet, at: UnixMillis) -> Vec<&str> {
        let all = self.0.values().filter(|own| own.silences(labels, at));
        all.map(|own| own.id.as_str()).collect()
    }

    /// Whether an alert with these labels is silenced at a time.
    pub fn is_silenced(&self, labels: &LabelSet, at: UnixMillis) -> bool {
        self.0.values().any(|own| own.silences(labels, at))
    }

    /// Takes one in, in place of the one with its id.
    pub fn put(&mut self, silence: Silence) {
        self.0.insert(silence.id.clone(), silence);
    }

    /// Forgets one.
    pub fn remove(&mut self, id: &str) {
        self.0.remove(id);
    }

    /// One of them.
    pub fn get(&self, id: &str) -> Option<&Silence> {
        self.0.get(id)
    }

    /// All silences: active ones first, then those to come, by their ends and beginnings, then
    /// those that are over, the last to end first.
    pub fn listed(&self, now: UnixMillis, kept_ms: i64) -> Vec<(&Silence, SilenceState)> {
        let kept = self.0.values().filter(|own| !own.is_forgotten(now, kept_ms));
        let mut all: Vec<_> = kept.map(|own| (own, own.state(now))).collect();
        all.sort_by_cached_key(|(own, state)| {
            let window = own.window(now);
            let order = match state {
                SilenceState::Active => window.end.0,
                SilenceState::Pending => window.start.0,
                SilenceState::Expired => -own.ends_at,
            };
            (*state, order)
        });
        all
    }

    /// Silences that ended so long ago that they are removed.
    pub fn forgotten(&self, now: UnixMillis, kept_ms: i64) -> Vec<String> {
        let old = self.0.values().filter(|own| own.is_forgotten(now, kept_ms));
        old.map(|own| own.id.clone()).collect()
    }

    /// A silence, ended now.
    ///
    /// # Errors
    /// When there is none, or it is over.
    pub fn expire(&self, id: &str, now: UnixMillis) -> Result<Silence, SilenceFault> {
        let own = self.get(id).ok_or_else(|| SilenceFault::NotFound(id.to_owned()))?;
        if own.state(now) == SilenceState::Expired {
            return Err(SilenceFault::Expired(id.to_owned()));
        }
        Ok(own.ended(now))
    }
}
