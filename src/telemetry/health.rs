//! Reasons for which the daemon is not ready or falls short.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;

use crate::store::StoreError;

/// Things that can be wrong.
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
    /// The word used in answers.
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

/// Things that are not done as they should be, while all requests are served.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Shortfall {
    /// Samples that the daemon writes itself are lost.
    OwnSamples,
    /// Something that must outlive a restart is in memory alone.
    NotStored,
}

impl Shortfall {
    /// The word used in answers.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OwnSamples => "own_samples",
            Self::NotStored => "not_stored",
        }
    }
}

/// The conditions that hold now, with their reasons. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Health(Arc<Inner>);

#[derive(Debug, Default)]
struct Inner {
    conditions: Mutex<BTreeMap<Condition, Reason>>,
    /// Each of whom it is, with its reason.
    shortfalls: Mutex<BTreeMap<Shortfall, BTreeMap<String, String>>>,
}

#[derive(Debug, Clone)]
struct Reason {
    text: String,
    is_disk_full: bool,
}

impl Health {
    /// Notes that something is wrong.
    pub fn raise(&self, condition: Condition, reason: impl Into<String>) {
        let reason = Reason { text: reason.into(), is_disk_full: false };
        self.0.conditions.lock().insert(condition, reason);
    }

    /// Notes that an operation on the store failed.
    pub fn raise_fault(&self, condition: Condition, fault: &StoreError) {
        let reason = Reason { text: fault.reason(), is_disk_full: fault.is_disk_full() };
        self.0.conditions.lock().insert(condition, reason);
    }

    /// Notes that it is well again.
    pub fn clear(&self, condition: Condition) {
        self.0.conditions.lock().remove(&condition);
    }

    /// The conditions that hold now, with their reasons; empty when the daemon is ready.
    pub fn reasons(&self) -> Vec<(Condition, String)> {
        let reasons = self.0.conditions.lock();
        reasons.iter().map(|(condition, reason)| (*condition, reason.text.clone())).collect()
    }

    /// Why a role failed, when a full disk is the cause.
    pub fn full_disk(&self) -> Option<String> {
        let reasons = self.0.conditions.lock();
        reasons.values().find(|reason| reason.is_disk_full).map(|reason| reason.text.clone())
    }

    /// Notes why something falls short for somebody, or that it does not any more.
    pub fn fall_short(&self, shortfall: Shortfall, whose: &str, reason: Option<String>) {
        let mut all = self.0.shortfalls.lock();
        if let Some(reason) = reason {
            all.entry(shortfall).or_default().insert(whose.to_owned(), reason);
            return;
        }
        let of_all = all.get_mut(&shortfall);
        let is_last = of_all.is_some_and(|own| own.remove(whose).is_some() && own.is_empty());
        if is_last {
            all.remove(&shortfall);
        }
    }

    /// The present shortfalls, each with its first reason and the number of further ones.
    pub fn shortfalls(&self) -> Vec<(Shortfall, String)> {
        let all = self.0.shortfalls.lock();
        let shown = all.iter().filter_map(|(shortfall, own)| {
            let (whose, reason) = own.first_key_value()?;
            let more = match own.len() - 1 {
                0 => String::new(),
                more => format!("; and {more} more"),
            };
            Some((*shortfall, format!("{whose}: {reason}{more}")))
        });
        shown.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shortfall_is_there_until_it_ends_for_all() {
        let health = Health::default();
        let note = |whose: &str, reason: Option<&str>| {
            health.fall_short(Shortfall::OwnSamples, whose, reason.map(str::to_owned));
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
