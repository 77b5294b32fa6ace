//! Answers about senders that number their batches: their list, and the result of a removal.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::{
    model::UnixMillis,
    store::{SenderInfo, Store},
};

/// A list of senders, by name.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SendersAnswer {
    /// Number of senders.
    pub total: usize,
    /// The senders.
    pub senders: Vec<SenderEntry>,
}

/// A sender in a list.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SenderEntry {
    /// The sender's name.
    pub agent: String,
    /// The time at which the sender's last batch was accepted, Unix milliseconds.
    pub heard: i64,
    /// Number of series that the sender registered.
    pub series: usize,
    /// The epochs, the latest first.
    pub epochs: Vec<SenderEpoch>,
}

/// One epoch of a sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SenderEpoch {
    /// The epoch.
    pub epoch: i64,
    /// The highest number of an accepted batch.
    pub seq: u64,
}

/// The result of a removal of senders, or of its dry run.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SendersRemoved {
    /// Number of senders that were removed or, in a dry run, would be removed.
    pub total: usize,
    /// True when nothing was changed.
    pub dry_run: bool,
    /// The senders that a dry run would remove.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub senders: Vec<SenderEntry>,
}

impl SendersRemoved {
    /// Returns the result of a dry run that would remove these senders.
    pub fn dry_run(listed: SendersAnswer) -> Self {
        Self { total: listed.total, dry_run: true, senders: listed.senders }
    }
}

/// Lists the senders whose name is in `names` (any name if empty) and begins with `prefix`, and
/// whose last accepted batch is older than `idle_ms`.
pub fn senders(
    store: &Store,
    names: &BTreeSet<String>,
    prefix: &str,
    idle_ms: Option<i64>,
    now: UnixMillis,
) -> SendersAnswer {
    let is_named = |sender: &SenderInfo| {
        sender.name.starts_with(prefix) && (names.is_empty() || names.contains(&*sender.name))
    };
    let is_idle = |sender: &SenderInfo| {
        idle_ms.is_none_or(|idle_ms| sender.window.last_batch_at() < now.minus(idle_ms))
    };
    let all = store.senders().into_iter().filter(|sender| is_named(sender) && is_idle(sender));
    let senders: Vec<_> = all
        .map(|sender| SenderEntry {
            agent: sender.name.to_string(),
            heard: sender.window.last_batch_at().0,
            series: sender.series,
            epochs: sender
                .window
                .epochs()
                .rev()
                .map(|(epoch, seq)| SenderEpoch { epoch, seq })
                .collect(),
        })
        .collect();
    SendersAnswer { total: senders.len(), senders }
}
