//! The senders that number their batches, as they are listed.

use std::collections::BTreeSet;

use serde::{Deserialize, Serialize};

use crate::{
    model::UnixMillis,
    store::{SenderInfo, Store},
};

/// The senders that were asked for, by name.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SendersAnswer {
    /// How many.
    pub total: usize,
    /// All of them.
    pub senders: Vec<SenderEntry>,
}

/// What is known of a sender.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SenderEntry {
    /// Its name.
    pub agent: String,
    /// When the last batch of it was accepted, Unix milliseconds.
    pub heard: i64,
    /// Series that it made known.
    pub series: usize,
    /// The epochs that are remembered, the latest first.
    pub epochs: Vec<SenderEpoch>,
}

/// One epoch of a sender.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct SenderEpoch {
    /// The epoch.
    pub epoch: i64,
    /// The highest number that was accepted.
    pub seq: u64,
}

/// What was removed, or would be.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SendersRemoved {
    /// How many.
    pub total: usize,
    /// Whether nothing was changed.
    pub dry_run: bool,
    /// Those that would go.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub senders: Vec<SenderEntry>,
}

impl From<SendersAnswer> for SendersRemoved {
    fn from(listed: SendersAnswer) -> Self {
        Self { total: listed.total, dry_run: false, senders: listed.senders }
    }
}

/// The senders of these names, all when there is none, whose names begin with `prefix`, and of which no
/// batch was accepted for `idle_ms`.
pub fn senders(
    store: &Store,
    names: &BTreeSet<String>,
    prefix: &str,
    idle_ms: Option<i64>,
    now: UnixMillis,
) -> SendersAnswer {
    let is_named = |own: &SenderInfo| {
        own.name.starts_with(prefix) && (names.is_empty() || names.contains(&*own.name))
    };
    let is_idle =
        |own: &SenderInfo| idle_ms.is_none_or(|idle_ms| own.window.heard() < now.minus(idle_ms));
    let all = store.senders().into_iter().filter(|own| is_named(own) && is_idle(own));
    let senders: Vec<_> = all
        .map(|own| SenderEntry {
            agent: own.name.to_string(),
            heard: own.window.heard().0,
            series: own.series,
            epochs: own
                .window
                .epochs()
                .rev()
                .map(|(epoch, seq)| SenderEpoch { epoch, seq })
                .collect(),
        })
        .collect();
    SendersAnswer { total: senders.len(), senders }
}
