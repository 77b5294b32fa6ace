//! What keeps the daemon from being ready, in words.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;

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

/// The conditions that hold now, with their reasons. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Health(Arc<Mutex<BTreeMap<Condition, String>>>);

impl Health {
    /// Notes that something is wrong.
    pub fn raise(&self, condition: Condition, reason: impl Into<String>) {
        self.0.lock().insert(condition, reason.into());
    }

    /// Notes that it is well again.
    pub fn clear(&self, condition: Condition) {
        self.0.lock().remove(&condition);
    }

    /// What is wrong now; empty when the daemon is ready.
    pub fn reasons(&self) -> Vec<(Condition, String)> {
        self.0.lock().iter().map(|(condition, reason)| (*condition, reason.clone())).collect()
    }
}
