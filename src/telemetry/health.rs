//! Reasons why the daemon is not ready or degraded.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;

use crate::{model::ProjectName, store::StoreError};

/// A problem of one of the daemon's roles.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Condition {
    /// The daemon has not started yet, or is stopping.
    Lifecycle,
    /// The last group commit failed.
    Journal,
    /// The last checkpoint failed.
    Checkpoint,
    /// The last retention run failed.
    Retention,
    /// The last preallocation failed.
    Preallocation,
    /// The last sealing failed.
    Sealing,
}

impl Condition {
    /// Returns true when the daemon accepts no samples until the problem is over. With the other
    /// problems it is degraded: work is postponed, while batches are accepted and queries answered.
    pub fn stops_ingest(self) -> bool {
        matches!(self, Self::Lifecycle | Self::Journal)
    }

    /// Returns the word used in responses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Lifecycle => "lifecycle",
            Self::Journal => "journal",
            Self::Checkpoint => "checkpoint",
            Self::Retention => "retention",
            Self::Preallocation => "preallocation",
            Self::Sealing => "sealing",
        }
    }
}

/// A reason why the daemon is degraded while it serves all requests.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shortfall {
    /// Samples that the daemon itself writes are lost.
    OwnSamples,
    /// State that must survive a restart is only in memory.
    NotStored,
    /// The disk lacks space for the documents of the next turn.
    Disk,
    /// The TLS certificate has expired, or its changed files cannot be used.
    Certificate,
    /// Documents are not published, because MongoDB is not available or refuses them.
    Publish,
}

impl Shortfall {
    /// Returns the word used in responses.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OwnSamples => "own_samples",
            Self::NotStored => "not_stored",
            Self::Disk => "disk",
            Self::Certificate => "certificate",
            Self::Publish => "publish",
        }
    }
}

/// The current conditions with their reasons. Clones are cheap.
#[derive(Debug, Clone, Default)]
pub struct Health {
    state: Arc<HealthState>,
    /// The project to which the parts of shortfalls belong.
    project: ProjectName,
}

#[derive(Debug, Default)]
struct HealthState {
    conditions: Mutex<BTreeMap<Condition, Reason>>,
    /// The reasons of each shortfall, by the part that it affects.
    shortfalls: Mutex<BTreeMap<Shortfall, BTreeMap<String, String>>>,
}

#[derive(Debug, Clone)]
struct Reason {
    text: String,
    is_disk_full: bool,
}

impl Health {
    /// Returns a handle whose shortfalls name a project.
    pub fn for_project(&self, project: &ProjectName) -> Self {
        Self { state: self.state.clone(), project: project.clone() }
    }

    /// Sets a condition with its reason.
    pub fn raise(&self, condition: Condition, reason: impl Into<String>) {
        let reason = Reason { text: reason.into(), is_disk_full: false };
        self.state.conditions.lock().insert(condition, reason);
    }

    /// Sets a condition after a failed operation of the store.
    pub fn raise_fault(&self, condition: Condition, fault: &StoreError) {
        let reason = Reason { text: fault.reason(), is_disk_full: fault.is_disk_full() };
        self.state.conditions.lock().insert(condition, reason);
    }

    /// Clears a condition.
    pub fn clear(&self, condition: Condition) {
        self.state.conditions.lock().remove(&condition);
    }

    /// Returns the current conditions with their reasons; empty when the daemon is ready.
    pub fn reasons(&self) -> Vec<(Condition, String)> {
        let reasons = self.state.conditions.lock();
        reasons.iter().map(|(condition, reason)| (*condition, reason.text.clone())).collect()
    }

    /// Returns the reason of a condition that a full disk caused.
    pub fn full_disk(&self) -> Option<String> {
        let reasons = self.state.conditions.lock();
        reasons.values().find(|reason| reason.is_disk_full).map(|reason| reason.text.clone())
    }

    /// Sets the reason of a shortfall for one part, or clears it.
    pub fn set_shortfall(&self, shortfall: Shortfall, part: &str, reason: Option<String>) {
        let part = if self.project.is_default() {
            part.to_owned()
        } else {
            format!("project {}: {part}", self.project)
        };
        let mut shortfalls = self.state.shortfalls.lock();
        if let Some(reason) = reason {
            shortfalls.entry(shortfall).or_default().insert(part, reason);
            return;
        }
        let parts = shortfalls.get_mut(&shortfall);
        let is_last = parts.is_some_and(|parts| parts.remove(&part).is_some() && parts.is_empty());
        if is_last {
            shortfalls.remove(&shortfall);
        }
    }

    /// Returns the current shortfalls, each with its first reason and the number of further
    /// reasons.
    pub fn shortfalls(&self) -> Vec<(Shortfall, String)> {
        let shortfalls = self.state.shortfalls.lock();
        let shown = shortfalls.iter().filter_map(|(shortfall, parts)| {
            let (part, reason) = parts.first_key_value()?;
            let more = match parts.len() - 1 {
                0 => String::new(),
                more => format!("; and {more} more"),
            };
            Some((*shortfall, format!("{part}: {reason}{more}")))
        });
        shown.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shortfall_lasts_until_it_is_cleared_for_all_parts() {
        let health = Health::default();
        let note = |part: &str, reason: Option<&str>| {
            health.set_shortfall(Shortfall::OwnSamples, part, reason.map(str::to_owned));
        };
        let shown = || health.shortfalls().into_iter().map(|(_, shown)| shown).collect::<Vec<_>>();
        note("b", Some("refused"));
        note("a", Some("lost"));
        note("a", Some("refused"));
        assert_eq!(shown(), ["a: refused; and 1 more"]);
        note("a", None);
        note("none", None);
        assert_eq!(shown(), ["b: refused"]);
        note("b", None);
        assert!(shown().is_empty() && health.reasons().is_empty());
    }
}
