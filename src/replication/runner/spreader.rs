//! The task of a node that beats for it, watches the other nodes, and assigns the node's replicas.
//!
//! Nothing changes while MongoDB is away.

use std::{sync::Arc, time::Duration};

use crate::replication::{
    entry::NodeName,
    medium::{Answer, Command, Medium},
    runner::{ReplicaHandle, now_ms},
    spreading::{Beats, decide, surplus},
};

/// The interval between beats.
const BEAT: Duration = Duration::from_secs(1);

/// A node and its replicas, by shard.
#[derive(Debug)]
pub struct Spreader<S> {
    /// The node.
    pub node: NodeName,
    /// The address at which other nodes reach it.
    pub address: String,
    /// The number of members of a shard.
    pub replicas_per_shard: usize,
    /// The replicas of all shards.
    pub replicas: Arc<Vec<ReplicaHandle<S>>>,
}

impl<S: Send + 'static> Spreader<S> {
    /// Runs until its task is aborted.
    pub async fn run(self, medium: Arc<dyn Medium>) {
        let mut beats = Beats::default();
        let mut ticks = tokio::time::interval(BEAT);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let (node, address) = (self.node.clone(), self.address.clone());
            // A lost beat is harmless: the next one follows.
            if medium.execute(Command::BeatNode { node, address }).await.is_err() {
                continue;
            }
            if let Ok(Answer::Nodes(rows)) = medium.execute(Command::ReadNodes).await {
                let now_ms = now_ms();
                beats.note(&rows, now_ms);
                self.assign(&beats, now_ms);
            }
        }
    }

    fn assign(&self, beats: &Beats, now_ms: u64) {
        for (shard, replica) in (0..).zip(&*self.replicas) {
            let status = replica.status();
            let row = status.row.unwrap_or_default();
            let wanted = self.replicas_per_shard;
            let assignment = decide(shard, &self.node, &row, beats, wanted, now_ms);
            // A full queue refuses: the next round follows.
            replica.assign(Some(assignment.rank), assignment.joins).ok();
            if status.epoch != Some(row.epoch) {
                continue;
            }
            if assignment.hands_over {
                replica.hand_over().ok();
            } else if let Some(node) = surplus(shard, &self.node, &row, beats, wanted, now_ms) {
                replica.strike(node).ok();
            }
        }
    }
}
