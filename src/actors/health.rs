//! What keeps the daemon from being ready, in words.

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

/// The conditions that hold now, with their reasons. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Health(Arc<Mutex<BTreeMap<Condition, Reason>>>);

#[derive(Debug, Clone)]
struct Reason {
    text: String,
    is_disk_full: bool,
}

impl Health {
    /// Notes that something is wrong.
    pub fn raise(&self, condition: Condition, reason: impl Into<String>) {
        let reason = Reason { text: reason.into(), is_disk_full: false };
        self.0.lock().insert(condition, reason);
    }

    /// Notes that an operation on the store failed.
    pub fn raise_fault(&self, condition: Condition, fault: &StoreError) {
        let reason = Reason { text: fault.reason(), is_disk_full: fault.is_disk_full() };
        self.0.lock().insert(condition, reason);
    }

    /// Notes that it is well again.
    pub fn clear(&self, condition: Condition) {
        self.0.lock().remove(&condition);
    }

    /// What is wrong now; empty when the daemon is ready.
    pub fn reasons(&self) -> Vec<(Condition, String)> {
        let reasons = self.0.lock();
        reasons.iter().map(|(condition, reason)| (*condition, reason.text.clone())).collect()
    }

    /// Why a role failed, when a full disk is the cause.
    pub fn full_disk(&self) -> Option<String> {
        let reasons = self.0.lock();
        reasons.values().find(|reason| reason.is_disk_full).map(|reason| reason.text.clone())
    }
}
