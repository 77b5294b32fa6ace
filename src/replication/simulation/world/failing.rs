//! The faults of nodes: kills, lost disks, removed members.

use super::{NODES, Node, SHARDS, State, World};

impl World {
    pub(super) fn kill(&mut self) {
        let node = self.rng.usize(..NODES);
        for call in self.calls.extract_if(.., |call| call.node == node) {
            if call.executed.is_none() && self.rng.bool() {
                self.late.push(call.command);
            }
        }
        let wipes = self.wiped.is_none() && self.rng.u32(..30) == 0 && self.can_wipe(node);
        if wipes {
            self.wiped = Some(node);
            for shard in 0..SHARDS {
                self.shared.borrow_mut().disks.insert((node, shard), State::default());
                self.shared.borrow_mut().origins.remove(&(node, shard));
            }
        }
        let life = self.nodes[node].life + 1;
        self.nodes[node] = self.start(node, life);
        self.log(|| format!("kill -9 {node}{}", if wipes { ", disk wiped" } else { "" }));
    }

    /// Returns true if another member has everything that was deleted, so that a lost disk loses
    /// nothing.
    fn can_wipe(&self, node: usize) -> bool {
        (0..SHARDS).all(|shard| {
            let Some(row) = self.memory.shard(shard) else { return true };
            let shared = self.shared.borrow();
            self.nodes.iter().enumerate().any(|(other, Node { name, .. })| {
                let disk = shared.disks.get(&(other, shard)).map_or(0, |disk| disk.applied);
                other != node && row.members.contains_key(name) && disk >= row.cut
            })
        })
    }

    pub(super) fn strike(&mut self) {
        let (node, shard) = self.any_replica();
        let other = self.nodes[self.rng.usize(..NODES)].name.clone();
        self.nodes[node].replicas[shard].strike(other);
    }
}
