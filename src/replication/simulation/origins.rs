//! Databases other than the one that a replica follows: another one, one that was created again, or
//! one that was restored from a backup. The replica applies none of their entries.

use std::{cell::RefCell, rc::Rc};

use super::state::{LOG, Shared, ToyShard};
use crate::replication::{
    entry::NodeName,
    medium::{Command, memory::Memory},
    mutants::{Mutant, switch},
    roles::{Event, Replica, Timing},
    shard::{Origin, Shard},
};

const NAMES: [&str; 3] = ["a", "b", "c"];
/// The number of random histories.
const HISTORIES: u64 = 300;

/// Three nodes with one shard, whose commands are executed at once.
struct Cluster {
    rng: fastrand::Rng,
    now_ms: u64,
    memory: Memory,
    shared: Rc<RefCell<Shared>>,
    nodes: Vec<(Replica, ToyShard)>,
    batch: u32,
    /// The nodes that refused the database.
    foreign: Vec<usize>,
}

impl Cluster {
    fn new(seed: u64) -> Self {
        let mut cluster = Self {
            rng: fastrand::Rng::with_seed(seed),
            now_ms: 0,
            memory: Memory::new(false),
            shared: Rc::default(),
            nodes: Vec::new(),
            batch: 0,
            foreign: Vec::new(),
        };
        cluster.start();
        cluster
    }

    /// Starts all nodes from their disks.
    fn start(&mut self) {
        self.nodes.clear();
        self.foreign.clear();
        for (node, name) in NAMES.iter().enumerate() {
            let name = NodeName::parse(name).unwrap();
            let mut replica = Replica::new(0, name, Timing::default(), self.rng.u64(..));
            replica.assign(Some(node as u32), true);
            self.nodes.push((replica, ToyShard::open(node, 0, self.shared.clone())));
        }
    }

    /// Runs the nodes for some steps; `chance` is the percentage of steps in which a node writes its
    /// state to its disk.
    fn run(&mut self, steps: usize, chance: u32) {
        for _ in 0..steps {
            self.now_ms += self.rng.u64(20..200);
            let node = self.rng.usize(..NAMES.len());
            let (replica, state) = &mut self.nodes[node];
            if replica.is_ready() && self.rng.bool() {
                self.batch += 1;
                replica.propose(&self.batch.to_le_bytes(), state).unwrap();
            }
            if self.rng.u32(..200) == 0 {
                replica.hand_over();
            }
            if self.rng.u32(..100) < chance {
                state.sync();
            }
            for (ticket, command) in replica.poll(self.now_ms, state) {
                let answer = self.memory.execute(&command);
                for event in replica.accept(self.now_ms, ticket, Ok(answer), state) {
                    match event {
                        Event::Foreign(_) => self.foreign.push(node),
                        Event::Damaged(text) => panic!("{text}"),
                        _ => {}
                    }
                }
            }
        }
    }

    fn disk(&self, node: usize) -> u64 {
        self.shared.borrow().disks.get(&(node, 0)).map_or(0, |disk| disk.applied)
    }

    /// Returns the last entry that a node knows after a restart: a fence is remembered before the
    /// state that has it is durable.
    fn remembered(&self, node: usize) -> u64 {
        let origin = self.shared.borrow().origins.get(&(node, 0)).copied();
        let fence = origin.and_then(|origin| origin.fence);
        self.disk(node).max(fence.map_or(0, |(number, _)| number))
    }

    fn last_entry(&self) -> u64 {
        self.memory.entries(0).last().map_or(0, |entry| entry.id.number)
    }
}

/// Restores a backup of the database below nodes that may be ahead of it. Returns the first fault.
fn restore(seed: u64) -> Option<String> {
    let mut cluster = Cluster::new(seed);
    let chance = cluster.rng.u32(1..40);
    cluster.run(800, chance);
    let backup = cluster.memory.clone();
    let steps = cluster.rng.usize(..1500);
    cluster.run(steps, chance);
    cluster.memory = backup;
    let end = cluster.last_entry();
    // The log continues differently after its end.
    cluster.shared.borrow_mut().digests.retain(|(_, number), _| *number <= end);
    let ahead = [0, 1, 2].map(|node| cluster.remembered(node) > end);
    cluster.start();
    let nodes_ahead = (0..3).filter(|node| ahead[*node]);
    cluster.shared.borrow_mut().unverified.extend(nodes_ahead);
    // The nodes do not start at the same time.
    let last = cluster.rng.usize(..3);
    cluster.nodes[last].0.assign(None, false);
    cluster.run(1000, chance);
    cluster.nodes[last].0.assign(Some(1), true);
    cluster.run(2000, chance);
    for (node, is_ahead) in ahead.into_iter().enumerate() {
        let applied = cluster.nodes[node].1.applied();
        if is_ahead && !cluster.foreign.contains(&node) {
            return Some(format!("FOLLOWED node {node} is ahead of {end} and applied {applied}"));
        }
        if !is_ahead && cluster.foreign.contains(&node) {
            return Some(format!("REFUSED node {node} is not ahead of {end}"));
        }
    }
    let difference = cluster.shared.borrow().difference.clone();
    difference.or_else(|| ahead.iter().any(|is_ahead| *is_ahead).then(|| "ahead".to_owned()))
}

#[test]
fn a_replica_that_is_ahead_of_a_restored_log_is_refused_and_others_follow() {
    let outcomes = || (1..=HISTORIES).map(restore).collect::<Vec<_>>();
    let right = outcomes();
    let fault = right
        .iter()
        .zip(1..)
        .find(|(outcome, _)| outcome.as_ref().is_some_and(|text| text != "ahead"));
    assert_eq!(fault, None);
    let ahead = right.iter().filter(|outcome| outcome.is_some()).count();
    assert!((50..HISTORIES as usize).contains(&ahead), "{ahead} histories had a node ahead");
    switch(Some(Mutant::IgnoresOrigin));
    let wrong = outcomes();
    switch(None);
    let followed = wrong.iter().flatten().filter(|text| text.starts_with("FOLLOWED")).count();
    assert_eq!(followed, ahead);
}

#[test]
fn another_log_is_never_followed() {
    let mut cluster = Cluster::new(1);
    cluster.run(800, 20);
    let before: Vec<_> = (0..3).map(|node| cluster.disk(node)).collect();
    assert!(before.iter().all(|applied| *applied > 3), "{before:?}");
    let other = {
        let mut other = Cluster::new(2);
        other.run(1600, 20);
        other.memory
    };
    // Another database, and one without a log.
    for memory in [other, Memory::new(false)] {
        let rows = format!("{:?}", memory.shard(0));
        cluster.memory = memory;
        cluster.start();
        cluster.run(600, 20);
        let after: Vec<_> = cluster.nodes.iter().map(|(_, state)| state.applied()).collect();
        assert_eq!(after, before);
        assert!((0..3).all(|node| cluster.foreign.contains(&node)));
        assert_eq!(format!("{:?}", cluster.memory.shard(0)), rows, "nothing was changed");
    }
}

#[test]
fn a_database_that_is_replaced_below_running_nodes_is_noticed() {
    let mut cluster = Cluster::new(3);
    cluster.run(800, 20);
    cluster.memory = Memory::new(false);
    cluster.run(600, 20);
    assert!((0..3).all(|node| cluster.foreign.contains(&node)), "{:?}", cluster.foreign);
    assert!(cluster.memory.shard(0).is_none());
}

#[test]
fn a_restored_replica_founds_a_log_and_joins_no_other() {
    let restored = |node| {
        let mut cluster = Cluster::new(4);
        cluster.run(400, 50);
        cluster.memory = Memory::new(false);
        let kept = cluster.shared.borrow().disks[&(node, 0)].clone();
        let through = kept.applied;
        cluster.shared = Rc::default();
        cluster.shared.borrow_mut().disks.insert((node, 0), kept);
        cluster.start();
        (cluster, through)
    };
    // The restored node starts first: the others copy it.
    let (mut cluster, through) = restored(0);
    for node in [1, 2] {
        cluster.nodes[node].0.assign(None, false);
    }
    cluster.run(100, 50);
    assert_eq!(cluster.memory.shard(0).map(|row| row.cut >= through), Some(true));
    for node in [1, 2] {
        cluster.nodes[node].0.assign(Some(node as u32), true);
    }
    cluster.run(1500, 50);
    assert!(cluster.foreign.is_empty() && cluster.shared.borrow().difference.is_none());
    assert!((0..3).all(|node| cluster.disk(node) > through), "{through}");
    // The others start first: they found a log, and the restored node refuses it.
    let (mut cluster, through) = restored(2);
    cluster.nodes[2].0.assign(None, false);
    cluster.run(300, 50);
    cluster.nodes[2].0.assign(Some(2), true);
    cluster.run(300, 50);
    assert!(cluster.foreign.contains(&2));
    assert_eq!(cluster.nodes[2].1.applied(), through);
}

#[test]
fn an_unknown_creation_is_repeated_with_the_same_identity() {
    let mut state = ToyShard::open(0, 0, Rc::default());
    let mut replica = Replica::new(0, NodeName::parse("a").unwrap(), Timing::default(), 1);
    replica.assign(Some(0), true);
    let (mut memory, mut created) = (Memory::new(false), Vec::new());
    for step in 0..40 {
        let now_ms = 3000 * step;
        for (ticket, command) in replica.poll(now_ms, &state) {
            let answer = memory.execute(&command);
            let outcome = match command {
                Command::CreateShard { log, .. } => {
                    created.push(log);
                    Err(crate::replication::Fault("lost".to_owned()))
                }
                _ => Ok(answer),
            };
            replica.accept(now_ms, ticket, outcome, &mut state);
        }
    }
    assert_eq!(created.len(), 1);
    let origin = state.origin().unwrap();
    assert!(origin.is_founded && origin.log == created[0] && origin.log != LOG, "{origin:?}");
    assert!(matches!(origin, Origin { fence: Some(_), .. }) && replica.epoch().is_some());
}
