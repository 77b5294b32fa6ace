//! The task of a node that beats for it, watches the other nodes, and assigns the node's replicas.
//!
//! Nothing changes while MongoDB is away.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;

use crate::replication::{
    entry::NodeName,
    medium::{Answer, Command, Medium, NodeRow},
    returning::HandOvers,
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
    /// True if a holder hands over to the preferred member, which balances many shards.
    pub hands_over: bool,
    /// The replicas of all shards.
    pub replicas: Arc<Vec<ReplicaHandle<S>>>,
    /// The rows of all nodes as of the last read.
    pub nodes: Arc<Mutex<Vec<NodeRow>>>,
}

impl<S: Send + 'static> Spreader<S> {
    /// Runs until its task is aborted.
    pub async fn run(self, medium: Arc<dyn Medium>) {
        let mut beats = Beats::default();
        let mut hand_overs = vec![HandOvers::default(); self.replicas.len()];
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
                self.assign(&beats, &mut hand_overs, now_ms);
                *self.nodes.lock() = rows;
            }
        }
    }

    fn assign(&self, beats: &Beats, hand_overs: &mut [HandOvers], now_ms: u64) {
        for ((shard, replica), hand_overs) in (0..).zip(&*self.replicas).zip(hand_overs) {
            let status = replica.status();
            let row = status.row.unwrap_or_default();
            let wanted = self.replicas_per_shard;
            let assignment = decide(shard, &self.node, &row, beats, wanted);
            // A full queue refuses: the next round follows.
            replica.assign(Some(assignment.rank), assignment.joins).ok();
            if status.epoch != Some(row.epoch) {
                continue;
            }
            if assignment.hands_over && self.hands_over {
                if hand_overs.note(row.epoch, now_ms) {
                    replica.hand_over().ok();
                }
            } else if let Some(node) = surplus(shard, &self.node, &row, beats, wanted) {
                replica.strike(node).ok();
            }
        }
    }
}
