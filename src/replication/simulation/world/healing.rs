//! The end of a schedule: all faults end, and the replicas become equal.

use std::collections::BTreeMap;

use super::{NODES, Node, SHARDS, World};
use crate::replication::shard::Shard;

/// The steps after which a healed world must have applied everything.
const HEALED_STEPS: usize = 6000;

impl World {
    /// Ends all faults, lets the late commands come, and compares the replicas.
    pub(super) fn heal(&mut self) -> Option<String> {
        self.log(|| "all faults end".to_owned());
        self.is_healed = true;
        self.awake = (0..NODES).collect();
        self.memory.confirm(usize::MAX);
        for _ in 0..self.late.len() / 2 {
            let command = self.late.swap_remove(self.rng.usize(..self.late.len()));
            self.execute(&command, "late");
        }
        if self.rng.bool() {
            (0..NODES).for_each(|_| self.kill());
        }
        for step in 0..HEALED_STEPS {
            self.now_ms += self.rng.u64(..100);
            if step == HEALED_STEPS / 20 {
                for command in std::mem::take(&mut self.late) {
                    self.execute(&command, "late");
                }
            }
            self.memory.confirm(usize::MAX);
            self.work();
            if step % 8 == 0 {
                self.send_batches();
            }
            if let Some(violation) = self.violation() {
                return Some(violation);
            }
            if step % 50 == 0 && step > HEALED_STEPS / 10 && self.has_converged() {
                break;
            }
        }
        self.checks.check_rows(&self.memory);
        self.violation().or_else(|| self.compare())
    }

    fn has_converged(&self) -> bool {
        let acked = (0..self.batches.len() as u32).all(|batch| self.checks.is_acked(batch));
        acked
            && (0..usize::from(SHARDS)).all(|shard| {
                let last = self.memory.entries(shard as u16).last();
                let last = last.map_or(0, |entry| entry.id.number);
                let applied = |node: &Node| node.states[shard].applied() >= last;
                let mut holders = self.nodes.iter().map(|node| node.replicas[shard].epoch());
                self.nodes.iter().all(applied) && holders.any(|epoch| epoch.is_some())
            })
    }

    fn compare(&self) -> Option<String> {
        for shard in 0..usize::from(SHARDS) {
            let states: Vec<_> = self.nodes.iter().map(|node| &node.states[shard].memory).collect();
            let mut lost = BTreeMap::new();
            for (batch, of) in (0..).zip(&self.batches) {
                for (node, state) in states.iter().enumerate() {
                    let count = state.batches.get(&batch).copied().unwrap_or(0);
                    if count > 1 {
                        return Some(format!("TWICE batch {batch} on {node}"));
                    }
                    if usize::from(*of) == shard && count == 0 && self.checks.is_acked(batch) {
                        lost.insert(batch, node);
                    }
                }
            }
            if let Some((batch, node)) = lost.first_key_value() {
                return Some(format!("LOST batch {batch} on {node}"));
            }
            if states.iter().any(|state| *state != states[0]) {
                return Some(format!("DIFFERENT states of shard {shard}"));
            }
        }
        (!self.has_converged()).then(|| "STUCK".to_owned())
    }
}
