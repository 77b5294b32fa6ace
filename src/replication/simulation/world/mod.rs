//! One schedule: nodes, commands in flight, and faults.

mod healing;

use std::{cell::RefCell, rc::Rc};

use super::{
    checks::Checks,
    state::{NODES, SHARDS, Shared, State, ToyShard, batches_of},
};
use crate::replication::{
    entry::NodeName,
    gather::{divide, gather},
    medium::{Answer, Command, Fault, Inserted, memory::Memory, memory::Position},
    roles::{Event, Replica, Ticket, Timing},
    shard::Shard,
};

/// The steps of a schedule before everything heals.
const STEPS: usize = 900;
const BATCHES_MAX: u32 = 60;

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
    nodes: Vec<Node>,
    awake: Vec<usize>,
    calls: Vec<Call>,
    late: Vec<Command>,
    /// The shard of each batch.
    batches: Vec<u16>,
    pub(super) checks: Checks,
    is_healed: bool,
    is_wiped: bool,
    pub(super) trace: Option<Vec<String>>,
}

impl World {
    pub(super) fn new(seed: u64, is_traced: bool) -> Self {
        let mut rng = fastrand::Rng::with_seed(seed);
        // Half of the schedules have leases that end all the time, and a third has cuts all the time.
        let ttl_ms = if rng.bool() { 6000 } else { rng.u64(500..3000) };
        let cut_ms = if rng.u32(..3) == 0 { rng.u64(20..200) } else { rng.u64(200..3000) };
        let timing = Timing {
            ttl_ms,
            margin_ms: ttl_ms / 3,
            follow_ms: 200,
            watch_ms: 500,
            cut_ms,
            ..Timing::default()
        };
        let faults = Faults {
            rolls_back: rng.u32(..3) == 0,
            strikes: rng.u32(..3) > 0,
            naps: *rng.choice(&[4, 10, 26]).unwrap(),
        };
        let mut world = Self {
            memory: Memory::new(faults.rolls_back),
            shared: Rc::default(),
            nodes: Vec::new(),
            awake: (0..NODES).collect(),
            calls: Vec::new(),
            late: Vec::new(),
            batches: Vec::new(),
            checks: Checks::default(),
            is_healed: false,
            is_wiped: false,
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
        let leases = self.nodes.iter().flat_map(|node| node.replicas.iter().zip(&node.states));
        self.checks.check_leases(self.now_ms, &self.memory, leases);
        self.checks.check_rows(&self.memory);
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

    fn kill(&mut self) {
        let node = self.rng.usize(..NODES);
        for call in self.calls.extract_if(.., |call| call.node == node) {
            if call.executed.is_none() && self.rng.bool() {
                self.late.push(call.command);
            }
        }
        let wipes = !self.is_wiped && self.rng.u32(..30) == 0 && self.can_wipe(node);
        if wipes {
            self.is_wiped = true;
            for shard in 0..SHARDS {
                self.shared.borrow_mut().disks.insert((node, shard), State::default());
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

    fn strike(&mut self) {
        let (node, shard) = self.any_replica();
        let other = self.nodes[self.rng.usize(..NODES)].name.clone();
        self.nodes[node].replicas[shard].strike(other);
    }

    /// Lets the nodes that are awake send commands, and some commands progress.
    fn work(&mut self) {
        let node = self.awake[self.rng.usize(..self.awake.len())];
        let Node { life, replicas, states, .. } = &mut self.nodes[node];
        let (life, mut commands) = (*life, Vec::new());
        for (shard, (replica, state)) in (0..).zip(replicas.iter_mut().zip(states)) {
            let due = replica.poll(self.now_ms, state).into_iter();
            commands.extend(due.map(|(ticket, command)| ((shard, ticket), command)));
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

    /// Executes a command or delivers its answer, or a fault.
    fn progress(&mut self, index: usize) {
        let call = &self.calls[index];
        let (node, is_awake) = (call.node, self.awake.contains(&call.node));
        if let Some((answer, position)) = &call.executed {
            let outcome = match self.memory.has_majority(*position) {
                Some(true) => Ok(answer.clone()),
                None => Err(Fault("rolled back".to_owned())),
                Some(false) => return,
            };
            if is_awake {
                self.deliver(index, &outcome);
            }
            return;
        }
        let chance = if self.is_healed { 1000 } else { self.rng.u32(..1000) };
        let lost = || Err(Fault("lost".to_owned()));
        if chance < 50 {
            if chance < 30 {
                self.late.push(call.command.clone());
            }
            if is_awake {
                self.deliver(index, &lost());
            }
            return;
        }
        let command = call.command.clone();
        let answer = self.execute(&command, ["a", "b", "c"][node]);
        if chance < 70 {
            self.late.push(command.clone());
        }
        if chance < 100 && is_awake {
            self.deliver(index, &lost());
            return;
        }
        let changes = match &answer {
            Answer::Inserted(outcomes) => outcomes.contains(&Inserted::Done),
            Answer::Matched(matched) => *matched,
            Answer::Done => true,
            _ => false,
        };
        let position = if changes { self.memory.position() } else { self.memory.settled() };
        self.calls[index].executed = Some((answer, position));
    }

    fn execute(&mut self, command: &Command, sender: &str) -> Answer {
        self.checks.check_command(command, &self.memory);
        let answer = self.memory.execute(command);
        self.log(|| format!("{sender}: {command:?} -> {answer:?}"));
        answer
    }

    fn deliver(&mut self, index: usize, outcome: &Result<Answer, Fault>) {
        let call = self.calls.swap_remove(index);
        let is_fault = outcome.is_err();
        for ((shard, ticket), outcome) in divide(call.senders, outcome) {
            let node = &mut self.nodes[call.node];
            if node.life != call.life {
                continue;
            }
            let (replica, state) =
                (&mut node.replicas[usize::from(shard)], &mut node.states[usize::from(shard)]);
            let before = replica.proposed().map(<[u8]>::to_vec);
            let events = replica.accept(self.now_ms, ticket, outcome, state);
            let applied = state.applied();
            for event in events {
                self.log(|| format!("{}, shard {shard}: {event:?}", call.node));
                self.note(shard, event, before.as_deref(), applied);
            }
        }
        if is_fault {
            self.log(|| format!("{}: {:?} has an unknown outcome", call.node, call.command));
        }
    }

    fn note(&mut self, shard: u16, event: Event, proposed: Option<&[u8]>, applied: u64) {
        match event {
            Event::Committed { number, epoch } => {
                let batches = batches_of(proposed.unwrap_or_default());
                self.checks.note_acked(shard, number, epoch, batches);
            }
            Event::Damaged(text) => self.checks.fail(format!("DAMAGED {text}")),
            Event::Took { epoch } => self.checks.note_took(shard, epoch, applied),
            Event::Seeded => self.checks.seeds += 1,
            Event::Fenced | Event::Stopped | Event::NotSeeded(_) => {}
        }
    }
}
