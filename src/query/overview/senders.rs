//! Answers about senders that number their batches: their list, and the result of a removal.

use std::collections::{BTreeMap, BTreeSet, btree_map::Entry};

use serde::{Deserialize, Serialize};

use crate::{
    model::UnixMillis,
    query::{Budget, QueryError},
    store::{SenderInfo, Store},
};

/// The approximate memory of a sender in a list, without its name and its epochs.
const SENDER_BYTES: usize = 128;

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

/// A selection of senders.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SendersRequest {
    /// The names of the senders; all names if empty.
    pub names: BTreeSet<String>,
    /// The beginning of their names.
    pub prefix: String,
    /// The minimum time since the last accepted batch, in milliseconds.
    pub idle_ms: Option<i64>,
}

/// The senders of one shard with any time of their last batch, because a sender may have a later
/// batch in another shard.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct SendersPart {
    /// The senders with batches in the shard, by name.
    senders: Vec<SenderEntry>,
    /// The number of series that senders without batches in the shard registered there.
    others: BTreeMap<String, usize>,
}

impl SendersRequest {
    fn has_name(&self, name: &str) -> bool {
        name.starts_with(&self.prefix) && (self.names.is_empty() || self.names.contains(name))
    }

    /// Lists the senders of one store.
    pub fn list(&self, store: &Store, now: UnixMillis) -> SendersAnswer {
        self.answer(self.entries(store), now)
    }

    /// Returns the senders of one shard.
    ///
    /// # Errors
    /// When the query times out, or its memory is used up.
    pub fn part(&self, store: &Store, budget: &Budget) -> Result<SendersPart, QueryError> {
        let senders = self.entries(store);
        budget.check()?;
        budget.reserve(senders.iter().map(SenderEntry::bytes).sum())?;
        let listed: BTreeSet<&str> = senders.iter().map(|sender| &*sender.agent).collect();
        let (mut others, mut reserved) = (BTreeMap::new(), Ok(()));
        store.dictionary().visit_senders(|name, series| {
            if reserved.is_ok() && self.has_name(name) && !listed.contains(name) {
                reserved = budget.reserve(name.len() + SENDER_BYTES);
                others.insert(name.to_owned(), series);
            }
        });
        reserved?;
        Ok(SendersPart { senders, others })
    }

    /// Lists the senders of all shards: a sender of several shards has the series and the epochs of
    /// all, and the time of its latest batch.
    ///
    /// # Errors
    /// When the query times out, or its memory is used up.
    pub fn join(
        &self,
        parts: Vec<SendersPart>,
        budget: &Budget,
        now: UnixMillis,
    ) -> Result<SendersAnswer, QueryError> {
        let (mut whole, mut others) = (BTreeMap::<String, SenderEntry>::new(), Vec::new());
        for SendersPart { senders, others: without_batches } in parts {
            budget.check()?;
            budget.reserve(senders.iter().map(SenderEntry::bytes).sum())?;
            for sender in senders {
                match whole.entry(sender.agent.clone()) {
                    Entry::Vacant(entry) => drop(entry.insert(sender)),
                    Entry::Occupied(mut entry) => entry.get_mut().add(sender),
                }
            }
            others.push(without_batches);
        }
        for (name, series) in others.into_iter().flatten() {
            if let Some(sender) = whole.get_mut(&name) {
                sender.series += series;
            }
        }
        Ok(self.answer(whole.into_values().collect(), now))
    }

    fn entries(&self, store: &Store) -> Vec<SenderEntry> {
        let all = store.senders().into_iter().filter(|sender| self.has_name(&sender.name));
        all.map(|sender| SenderEntry::new(&sender)).collect()
    }

    fn answer(&self, mut senders: Vec<SenderEntry>, now: UnixMillis) -> SendersAnswer {
        if let Some(idle_ms) = self.idle_ms {
            senders.retain(|sender| UnixMillis(sender.heard) < now.minus(idle_ms));
        }
        SendersAnswer { total: senders.len(), senders }
    }
}

impl SenderEntry {
    fn new(sender: &SenderInfo) -> Self {
        let epochs = sender.window.epochs().rev();
        Self {
            agent: sender.name.to_string(),
            heard: sender.window.last_batch_at().0,
            series: sender.series,
            epochs: epochs.map(|(epoch, seq)| SenderEpoch { epoch, seq }).collect(),
        }
    }

    /// Returns the approximate memory of the entry.
    fn bytes(&self) -> usize {
        SENDER_BYTES + self.agent.len() + size_of_val(&self.epochs[..])
    }

    /// Adds the batches and series of the sender in another shard.
    fn add(&mut self, other: Self) {
        self.heard = self.heard.max(other.heard);
        self.series += other.series;
        let known = self.epochs.drain(..).chain(other.epochs);
        let mut epochs = BTreeMap::<i64, u64>::new();
        for SenderEpoch { epoch, seq } in known {
            let highest = epochs.entry(epoch).or_default();
            *highest = seq.max(*highest);
        }
        let latest_first = epochs.into_iter().rev();
        self.epochs = latest_first.map(|(epoch, seq)| SenderEpoch { epoch, seq }).collect();
    }
}
