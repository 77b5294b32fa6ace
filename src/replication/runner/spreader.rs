//! The task of a node that beats for it, watches the other nodes, and assigns the node's replicas.
//!
//! Nothing changes while MongoDB is away.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use parking_lot::Mutex;

use crate::replication::{
    claim::{Claimed, NameClaim},
    entry::NodeName,
    medium::{Answer, Command, Medium, NodeRow},
    returning::HandOvers,
    runner::{Replicas, now_ms},
    spreading::{Beats, decide, surplus},
};

/// The interval between beats.
const BEAT: Duration = Duration::from_secs(1);

/// A node and its replicas.
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
    /// The replicas that run.
    pub replicas: Replicas<S>,
    /// The rows of all nodes as of the last read.
    pub nodes: Arc<Mutex<Vec<NodeRow>>>,
}

impl<S: Send + 'static> Spreader<S> {
    /// Runs until its task is aborted, or another process beats under the name of this node:
    /// returns the address of that process.
    pub async fn run(self, medium: Arc<dyn Medium>) -> String {
        let mut claim = NameClaim::new(self.runs.0, self.runs.1);
        let mut beats = Beats::default();
        let mut hand_overs = BTreeMap::new();
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
                            self.replicas.note_other_process();
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

    fn assign(&self, beats: &Beats, hand_overs: &mut BTreeMap<u16, HandOvers>, now_ms: u64) {
        for (shard, replica) in self.replicas.all() {
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
                let hand_overs: &mut HandOvers = hand_overs.entry(shard).or_default();
                if hand_overs.note(row.epoch, now_ms) {
                    replica.hand_over().ok();
                }
            } else if let Some(node) = surplus(shard, &self.node, &row, beats, wanted) {
                replica.strike(node).ok();
            }
        }
    }
}
