//! Silences: matching alerts are muted for a time, once or in recurring windows.
//!
//! Pure: the definition of silences, the effect of a request on all of them, and whether an alert
//! is silenced at a time. As in Alertmanager, a silence is never deleted but ended early, and a
//! silence that cannot be changed as requested is ended and replaced. Must never know: where
//! silences are stored.

mod recurrence;
mod requested;
#[cfg(test)]
mod tests;

use std::{collections::BTreeMap, ops::Range};

use serde::{Deserialize, Serialize};

pub use recurrence::Recurrence;
pub use requested::NewSilence;

use super::{LabelMatcher, LabelSet};
use crate::model::UnixMillis;

/// A silence: alerts that meet all matchers are muted for a time.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Silence {
    /// The id: a UUID.
    pub id: String,
    /// The matchers of silenced alerts.
    pub matchers: Vec<LabelMatcher>,
    /// The start, Unix milliseconds.
    pub starts_at: i64,
    /// The end.
    pub ends_at: i64,
    /// The time of the last change.
    pub updated_at: i64,
    /// The author.
    pub created_by: String,
    /// The reason for the silence.
    pub comment: String,
    /// The recurring windows in which the silence applies; `None`: all the time.
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
    /// The silence has ended.
    Expired,
}

impl SilenceState {
    /// Returns the word for the state in responses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Active => "active",
            Self::Pending => "pending",
            Self::Expired => "expired",
        }
    }
}

/// A fault of a request for silences.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum SilenceFault {
    /// The silence is invalid.
    #[error("{0}")]
    Invalid(String),
    /// No silence has this id.
    #[error("silence {0} not found")]
    NotFound(String),
    /// The silence has already expired.
    #[error("silence {0} already expired")]
    Expired(String),
}

impl Silence {
    /// Returns the window in which the silence applies: the current or next one, otherwise the last
    /// one.
    pub fn window(&self, now: UnixMillis) -> Range<UnixMillis> {
        let whole_span = UnixMillis(self.starts_at)..UnixMillis(self.ends_at);
        let Some(recurring) = &self.recurring else { return whole_span };
        let found = recurring.window(now.max(whole_span.start));
        match found.filter(|window| window.start < whole_span.end) {
            Some(window) => window.start.max(whole_span.start)..window.end.min(whole_span.end),
            None => whole_span.end..whole_span.end,
        }
    }

    /// Returns the state at a time.
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

    /// Returns whether the silence mutes an alert with these labels at a time.
    pub fn silences(&self, labels: &LabelSet, at: UnixMillis) -> bool {
        // Most silences have expired or have other matchers, so windows are computed last.
        (self.starts_at..self.ends_at).contains(&at.0)
            && self.matchers.iter().all(|matcher| matcher.matches(labels))
            && self.state(at) == SilenceState::Active
    }

    fn is_forgotten(&self, now: UnixMillis, kept_ms: i64) -> bool {
        now.since(UnixMillis(self.ends_at)) > kept_ms
    }

    /// Returns the silence with its end set to a time.
    fn with_end_at(&self, now: UnixMillis) -> Self {
        let starts_at = self.starts_at.min(now.0);
        Self { starts_at, ends_at: now.0, updated_at: now.0, ..self.clone() }
    }
}

/// All silences, by id.
#[derive(Debug, Clone, Default)]
pub struct Silences(BTreeMap<String, Silence>);

impl FromIterator<Silence> for Silences {
    fn from_iter<I: IntoIterator<Item = Silence>>(all: I) -> Self {
        Self(all.into_iter().map(|silence| (silence.id.clone(), silence)).collect())
    }
}

impl Silences {
    /// Returns the ids of the silences that apply to an alert with these labels at a time.
    pub fn silencing(&self, labels: &LabelSet, at: UnixMillis) -> Vec<&str> {
        let all = self.0.values().filter(|silence| silence.silences(labels, at));
        all.map(|silence| silence.id.as_str()).collect()
    }

    /// Returns whether an alert with these labels is silenced at a time.
    pub fn is_silenced(&self, labels: &LabelSet, at: UnixMillis) -> bool {
        self.0.values().any(|silence| silence.silences(labels, at))
    }

    /// Adds a silence, or replaces the silence with the same id.
    pub fn put(&mut self, silence: Silence) {
        self.0.insert(silence.id.clone(), silence);
    }

    /// Removes a silence.
    pub fn remove(&mut self, id: &str) {
        self.0.remove(id);
    }

    /// Returns the silence with an id.
    pub fn get(&self, id: &str) -> Option<&Silence> {
        self.0.get(id)
    }

    /// Returns all silences: active ones first, then pending ones, by end and start, then expired
    /// ones, the latest end first.
    pub fn list(&self, now: UnixMillis, kept_ms: i64) -> Vec<(&Silence, SilenceState)> {
        let kept = self.0.values().filter(|silence| !silence.is_forgotten(now, kept_ms));
        let mut all: Vec<_> = kept.map(|silence| (silence, silence.state(now))).collect();
        all.sort_by_cached_key(|(silence, state)| {
            let window = silence.window(now);
            let order = match state {
                SilenceState::Active => window.end.0,
                SilenceState::Pending => window.start.0,
                SilenceState::Expired => -silence.ends_at,
            };
            (*state, order)
        });
        all
    }

    /// Returns the ids of silences that expired so long ago that they are removed.
    pub fn forgotten(&self, now: UnixMillis, kept_ms: i64) -> Vec<String> {
        let old = self.0.values().filter(|silence| silence.is_forgotten(now, kept_ms));
        old.map(|silence| silence.id.clone()).collect()
    }

    /// Returns the silence with its end set to now.
    ///
    /// # Errors
    /// When no silence has this id, or it has expired.
    pub fn expire(&self, id: &str, now: UnixMillis) -> Result<Silence, SilenceFault> {
        let silence = self.get(id).ok_or_else(|| SilenceFault::NotFound(id.to_owned()))?;
        if silence.state(now) == SilenceState::Expired {
            return Err(SilenceFault::Expired(id.to_owned()));
        }
        Ok(silence.with_end_at(now))
    }
}
