//! The problems of the shards after the first one, of a node of a cluster.
//!
//! Must never know: clusters, why a shard is held.

use std::{collections::BTreeMap, sync::Arc};

use parking_lot::Mutex;

use super::Health;

/// The problems of the shards of a node. Clones are cheap.
#[derive(Debug, Clone, Default)]
pub struct ShardHealth(Arc<Mutex<BTreeMap<u16, State>>>);

#[derive(Debug)]
enum State {
    /// The node could not follow or hold the shard, and tries again.
    Failed(String),
    Held(Health),
}

impl ShardHealth {
    /// Notes that a shard could not be followed or held.
    pub fn fail(&self, shard: u16, reason: String) {
        self.0.lock().insert(shard, State::Failed(reason));
    }

    /// Notes that the node holds a shard, whose roles report their problems.
    pub fn hold(&self, shard: u16, health: Health) {
        self.0.lock().insert(shard, State::Held(health));
    }

    /// Notes that the node follows a shard.
    pub fn follow(&self, shard: u16) {
        self.0.lock().remove(&shard);
    }

    /// Returns the problems of all shards; `None` without one.
    pub fn reason(&self) -> Option<String> {
        let states = self.0.lock();
        let of_shard = |(shard, state): (&u16, &State)| match state {
            State::Failed(reason) => Some(format!("shard {shard}: {reason}")),
            State::Held(health) => {
                let conditions = health.reasons().into_iter();
                let conditions = conditions.map(|(condition, text)| (condition.as_str(), text));
                let shortfalls = health.shortfalls().into_iter();
                let shortfalls = shortfalls.map(|(shortfall, text)| (shortfall.as_str(), text));
                let (word, text) = conditions.chain(shortfalls).next()?;
                Some(format!("shard {shard}: {word}: {text}"))
            }
        };
        let reasons: Vec<_> = states.iter().filter_map(of_shard).collect();
        (!reasons.is_empty()).then(|| reasons.join("; "))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::telemetry::Condition;

    #[test]
    fn each_shard_reports_its_fault_until_it_is_followed_or_works() {
        let (shards, health) = (ShardHealth::default(), Health::default());
        assert_eq!(shards.reason(), None);
        shards.hold(2, health.clone());
        assert_eq!(shards.reason(), None);
        health.raise(Condition::Checkpoint, "disk full");
        shards.fail(1, "the writer ended".to_owned());
        let both = "shard 1: the writer ended; shard 2: checkpoint: disk full";
        assert_eq!(shards.reason().as_deref(), Some(both));
        shards.follow(1);
        health.clear(Condition::Checkpoint);
        assert_eq!(shards.reason(), None);
    }
}
