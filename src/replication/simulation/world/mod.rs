//! One schedule: nodes, commands in flight, and faults.

mod calling;
mod failing;
mod healing;

use std::{cell::RefCell, rc::Rc};

use super::{
    checks::Checks,
    state::{NODES, SHARDS, Shared, State, ToyShard, batches_of},
};
use crate::replication::{
    entry::NodeName,
    gather::gather,
    medium::{Answer, Command, memory::Memory, memory::Position},
    roles::{Replica, Ticket, Timing},
    shard::Shard,
};

/// The steps of a schedule before everything heals.
const STEPS: usize = 900;
const BATCHES_MAX: u32 = 60;
/// The speeds of clocks in thousandths: the margin covers a ratio of 1.25.
const SPEEDS: [u64; 3] = [900, 1000, 1100];

/// A node: its replicas and their states.
struct Node {
    name: NodeName,
    /// The number of kills.
    life: u64,
    replicas: Vec<Replica>,
    states: Vec<ToyShard>,
}

/// A command in flight.
struct Call {
    node: usize,
    life: u64,
    senders: Vec<(u16, Ticket)>,
    command: Command,
    /// The answer, once the command was executed, and the moment of its certainty.
    executed: Option<(Answer, Position)>,
}

/// The faults of a schedule.
#[derive(Debug, Clone, Copy)]
struct Faults {
    rolls_back: bool,
    strikes: bool,
    /// The number of changes of the awake nodes, in a thousand steps: with few, nodes sleep long.
    naps: u32,
}

pub(super) struct World {
    rng: fastrand::Rng,
    now_ms: u64,
    timing: Timing,
    faults: Faults,
    memory: Memory,
    shared: Rc<RefCell<Shared>>,
    /// The speed of each node's clock, in thousandths of the right one.
    speeds: [u64; NODES],
    nodes: Vec<Node>,
    awake: Vec<usize>,
    calls: Vec<Call>,
    late: Vec<Command>,
    /// The shard of each batch.
    batches: Vec<u16>,
    pub(super) checks: Checks,
    is_healed: bool,
    /// The node whose disk was lost.
    wiped: Option<usize>,
    pub(super) trace: Option<Vec<String>>,
}

impl World {
    pub(super) fn new(seed: u64, is_traced: bool) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed);
        // Leases end all the time in half of the schedules, and cuts happen so in a third.
        let usual = Timing::default();
        let ttl_ms = if rng.bool() { usual.ttl_ms } else { rng.u64(500..3000) };
        let cut_ms = if rng.u32(..3) == 0 { rng.u64(20..200) } else { rng.u64(200..3000) };
        let timing = Timing {
            ttl_ms,
            margin_ms: ttl_ms * usual.margin_ms / usual.ttl_ms,
            follow_ms: 200,
            watch_ms: 500,
            cut_ms,
            ..usual
        };
        let faults = Faults {
            rolls_back: rng.u32(..3) == 0,
            strikes: rng.u32(..3) > 0,
            naps: *rng.choice(&[4, 10, 26]).unwrap(),
        };
        let mut world = Self {
            memory: Memory::new(faults.rolls_back),
            shared: Rc::default(),
            speeds: [(); NODES].map(|()| SPEEDS[rng.usize(..SPEEDS.len())]),
            nodes: Vec::new(),
            awake: (0..NODES).collect(),
            calls: Vec::new(),
            late: Vec::new(),
            batches: Vec::new(),
            checks: Checks::default(),
            is_healed: false,
            wiped: None,
            now_ms: 0,
            trace: is_traced.then(Vec::new),
            rng,
            timing,
            faults,
        };
        for node in 0..NODES {
            let fresh = world.start(node, 0);
            world.nodes.push(fresh);
        }
        world
    }

    fn start(&mut self, node: usize, life: u64) -> Node {
        let name = NodeName::parse(["a", "b", "c"][node]).unwrap();
        let (mut replicas, mut states) = (Vec::new(), Vec::new());
        for shard in 0..SHARDS {
            let seed = self.rng.u64(..);
            let mut replica = Replica::new(shard, name.clone(), self.timing, seed);
            replica.assign(Some(self.rng.u32(..2)), true);
            replicas.push(replica);
            states.push(ToyShard::open(node, shard, self.shared.clone()));
        }
        Node { name, life, replicas, states }
    }

    fn log(&mut self, text: impl FnOnce() -> String) {
        if let Some(trace) = &mut self.trace {
            trace.push(format!("{:>6} {}", self.now_ms, text()));
        }
    }

    /// Runs the schedule, and returns the violated invariant.
    pub(super) fn run(&mut self) -> Option<String> {
        for _ in 0..STEPS {
            self.step();
            if let Some(violation) = self.violation() {
                return Some(violation);
            }
        }
        self.heal()
    }

    fn violation(&self) -> Option<String> {
        self.checks.violation.clone().or_else(|| self.shared.borrow().difference.clone())
    }

    fn step(&mut self) {
        self.now_ms += self.rng.u64(..150);
        match self.rng.u32(..1000) {
            0..50 if self.batches.len() < BATCHES_MAX as usize => {
                self.batches.push(self.rng.u16(..SHARDS));
            }
            50..130 => self.send_batches(),
            130..138 => self.kill(),
            138..170 if !self.late.is_empty() => {
                let command = self.late.swap_remove(self.rng.usize(..self.late.len()));
                self.execute(&command, "late");
            }
            170..250 => self.memory.confirm(self.rng.usize(..5)),
            250..254 if self.faults.rolls_back => {
                let lost = self.memory.roll_back();
                self.log(|| format!("ROLLBACK of {lost}"));
            }
            254..280 if self.faults.strikes => self.strike(),
            280..330 => {
                // Often a node alone, often all.
                let (first, shard) = self.any_replica();
                let last = if self.rng.bool() { first } else { NODES - 1 };
                (first..=last).for_each(|node| self.nodes[node].states[shard].sync());
            }
            330..334 => {
                let (node, shard) = self.any_replica();
                self.nodes[node].replicas[shard].hand_over();
                self.log(|| format!("{node} hands shard {shard} over"));
            }
            360..400 if self.rng.u32(..40) < self.faults.naps => {
                // Nodes sleep: a process that was stopped, or a host that swaps.
                let awake = *self.rng.choice([1, 1, 2, 3].iter()).unwrap();
                self.awake = self.rng.choose_multiple(0..NODES, awake);
            }
            _ => self.work(),
        }
        for (node, Node { replicas, states, .. }) in self.nodes.iter().enumerate() {
            self.checks.check_leases(
                self.clock_ms(node),
                &self.memory,
                replicas.iter().zip(states),
            );
        }
        self.checks.check_rows(&self.memory);
    }

    /// Returns the time of a node's clock.
    fn clock_ms(&self, node: usize) -> u64 {
        self.now_ms * self.speeds[node] / 1000
    }

    fn any_replica(&mut self) -> (usize, usize) {
        (self.rng.usize(..NODES), self.rng.usize(..usize::from(SHARDS)))
    }

    /// Sends waiting batches to a holder of their shard.
    fn send_batches(&mut self) {
        let (node, shard) = self.any_replica();
        let waiting: Vec<u32> = (0..)
            .zip(&self.batches)
            .filter(|(batch, of)| usize::from(**of) == shard && !self.checks.is_acked(*batch))
            .map(|(batch, _)| batch)
            .collect();
        let chosen = self.rng.choose_multiple(waiting, 3);
        let Node { replicas, states, .. } = &mut self.nodes[node];
        if !replicas[shard].is_ready() {
            return;
        }
        let mut bytes = Vec::new();
        for batch in chosen {
            // A retry of a batch that was applied is recognized.
            if states[shard].memory.batches.contains_key(&batch) {
                self.checks.note_known(batch);
            } else {
                bytes.extend(batch.to_le_bytes());
            }
        }
        if !bytes.is_empty() {
            replicas[shard].propose(&bytes, &states[shard]).unwrap();
        }
    }

    /// Lets the nodes that are awake send commands, and some commands progress.
    fn work(&mut self) {
        let node = self.awake[self.rng.usize(..self.awake.len())];
        let now_ms = self.clock_ms(node);
        let Node { life, replicas, states, .. } = &mut self.nodes[node];
        let (life, mut commands) = (*life, Vec::new());
        for (shard, (replica, state)) in (0..).zip(replicas.iter_mut().zip(states)) {
            let due = replica.poll(now_ms, state).into_iter();
            commands.extend(due.map(|(ticket, command)| ((shard, ticket), command)));
        }
        for ((shard, _), command) in &commands {
            let row = self.nodes[node].replicas[usize::from(*shard)].row();
            let lost = self.wiped.as_ref().map(|node| &self.nodes[*node].name);
            let members = row.into_iter().flat_map(|row| row.members.keys());
            for member in members.filter(|member| Some(*member) != lost) {
                let index = self.nodes.iter().position(|node| node.name == *member).unwrap();
                let disk = self.nodes[index].states[usize::from(*shard)].durable_floor();
                self.checks.check_cut(command, member, disk);
            }
        }
        for gathered in gather(commands) {
            let (senders, command) = (gathered.senders, gathered.command);
            self.calls.push(Call { node, life, senders, command, executed: None });
        }
        for _ in 0..self.rng.usize(1..4) {
            if !self.calls.is_empty() {
                let index = self.rng.usize(..self.calls.len());
                self.progress(index);
            }
        }
    }
}
