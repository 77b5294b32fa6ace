//! The task of a node that beats for it, watches the other nodes, and assigns the node's replicas.
//!
//! Nothing changes while MongoDB is away.

use std::{sync::Arc, time::Duration};

use parking_lot::Mutex;

use crate::replication::{
    claim::{Claimed, NameClaim},
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
    /// A random number of this process, and that of the last one with the same data directory.
    pub runs: (i64, Option<i64>),
    /// The digest of the rules that the node would evaluate.
    pub rules: Arc<Mutex<String>>,
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
    /// Runs until its task is aborted, or another process beats under the name of this node:
    /// returns the address of that process.
    pub async fn run(self, medium: Arc<dyn Medium>) -> String {
        let mut claim = NameClaim::new(self.runs.0, self.runs.1);
        let mut beats = Beats::default();
        let mut hand_overs = vec![HandOvers::default(); self.replicas.len()];
        let mut ticks = tokio::time::interval(BEAT);
        ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            ticks.tick().await;
            let (node, run, address) = (self.node.clone(), self.runs.0, self.address.clone());
            let rules = self.rules.lock().clone();
            let beat = Command::BeatNode { node, run, address, rules };
            // A lost beat is harmless: the next one follows.
            let Ok(beaten) = medium.execute(beat).await else { continue };
            let Ok(Answer::Nodes(rows)) = medium.execute(Command::ReadNodes).await else {
                continue;
            };
            if beaten == Answer::Matched(true) {
                claim = NameClaim::new(self.runs.0, self.runs.1);
                let now_ms = now_ms();
                beats.note(&rows, now_ms);
                self.assign(&beats, &mut hand_overs, now_ms);
            } else {
                match claim.note(rows.iter().find(|row| row.node == self.node)) {
                    Claimed::Own | Claimed::Waits => {}
                    Claimed::Free { seen, is_others } => {
                        if is_others {
                            self.note_other_process();
                        }
                        let (node, run) = (self.node.clone(), self.runs.0);
                        // Without an answer, the next beat shows whether the claim succeeded.
                        drop(medium.execute(Command::ClaimNode { node, run, seen }).await);
                        ticks.reset_immediately();
                    }
                    Claimed::Taken(address) => return address,
                }
            }
            *self.nodes.lock() = rows;
        }
    }

    /// The lease of the other process may still be valid.
    fn note_other_process(&self) {
        for replica in &*self.replicas {
            // A full queue refuses; the replica then waits for a lease that nobody renews.
            replica.note_other_process().ok();
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
