//! Replicas: seeded histories of three stores that apply one log, each with checkpoints, restarts,
//! power cuts, sealing and retention at its own times. One of them leads, and others take over.
//!
//! Invariant: replicas that applied the same records have equal digests and equal answers, and a
//! record that was acknowledged is in all of them. `GRANARY_SIM_SEED` replays one history,
//! `GRANARY_SIM_HISTORIES` sets the number of histories.

mod comparison;
mod mutants;
mod node;
mod object_records;
mod objects;
mod operations;
mod rule_texts;

use std::collections::BTreeMap;

use fastrand::Rng;
use granary::{
    model::{GranularitySet, RetentionRule, UnixMillis},
    store::{RecordLog, RecordSink, Replica, Store},
};

use crate::{
    env_number,
    memory_log::{Fate, MemoryLog},
    setup::{DAY, HOUR, NOW, granularities, retention_rule},
};
use node::Node;

/// The number of histories in a default run.
const HISTORIES: u64 = 100;
/// The seed of the first history in a default run.
const FIRST_SEED: u64 = 4_811_207_390_225;
const NODES: usize = 3;

/// Counts of what happened, by name.
type Tally = BTreeMap<&'static str, u64>;

/// Three replicas and their log.
struct Cluster {
    rng: Rng,
    log: MemoryLog,
    nodes: Vec<Node>,
    leader: usize,
    set: GranularitySet,
    rules: Vec<RetentionRule>,
    /// Record 1 of the log.
    first: Vec<u8>,
    /// The true time.
    time: UnixMillis,
    /// The latest time of any clock so far: what is beyond the retention then may be dropped.
    latest: UnixMillis,
    /// True while the leader has a record of objects whose outcome is unknown.
    is_unsettled: bool,
    tally: Tally,
}

fn levels(finest_kept: &str) -> GranularitySet {
    granularities(&[
        ["1m", "1h", "2h", finest_kept],
        ["5m", "4h", "1d", "2d"],
        ["1d", "1mo", "1y", "5y"],
    ])
}

impl Cluster {
    fn new(seed: u64) -> Self {
        let mut rng = Rng::with_seed(seed);
        let set = levels("6h");
        let rule = || retention_rule(("short", "m[01]"), &[("1m", Some("4h"))], &set);
        let rules = if rng.bool() { vec![rule()] } else { Vec::new() };
        let clock = |rng: &mut Rng| rng.i64(-HOUR..HOUR);
        let nodes = (0..NODES).map(|_| Node::new(rng.u64(..), clock(&mut rng))).collect();
        let mut log = MemoryLog::default();
        let first = Replica::first_record(&set, &rules, NOW.minus(DAY));
        log.append(1, &first).unwrap();
        let (time, latest, is_unsettled, tally) = (NOW, NOW, false, Tally::default());
        let leader = 0;
        let mut this =
            Self { rng, log, nodes, leader, set, rules, first, time, latest, is_unsettled, tally };
        for node in 0..NODES {
            this.open(node);
        }
        this.take_over(0);
        this
    }

    fn note(&mut self, event: &'static str) {
        *self.tally.entry(event).or_default() += 1;
    }

    fn store(&self, node: usize) -> Store {
        self.nodes[node].store()
    }

    /// Returns the time of a node's clock.
    fn clock(&mut self, node: usize) -> UnixMillis {
        let now = self.time.plus(self.nodes[node].clock_offset);
        self.latest = self.latest.max(now);
        now
    }

    fn run(mut self) -> Tally {
        for _ in 0..self.rng.usize(20..90) {
            self.step();
        }
        self.compare();
        for node in 0..NODES {
            let now = self.clock(node);
            if self.rng.bool() {
                self.store(node).checkpoint(now).unwrap();
            }
            self.nodes[node].close();
            self.open(node);
        }
        self.compare();
        self.tally
    }

    fn step(&mut self) {
        match self.rng.u8(0..100) {
            0..50 => self.write(),
            50..58 => self.time = self.time.plus(self.rng.i64(0..12 * HOUR)),
            58..72 => self.maintain(),
            72..77 => self.follow_a_little(),
            77..82 => self.restart(),
            82..86 => self.arm(),
            86..89 => self.move_leader(),
            89 => self.renew(),
            90..93 => self.log.set_fate([Fate::AnswerLost, Fate::RecordLost][self.rng.usize(0..2)]),
            93..96 => self.cut(),
            _ => self.compare(),
        }
    }

    /// Opens a node; faults of its medium end meanwhile.
    fn open(&mut self, node: usize) {
        let now = self.clock(node);
        self.nodes[node].open(&self.first, now);
    }

    /// Replaces a node by a new one, which begins with the first record.
    fn renew(&mut self) {
        let node = self.rng.usize(0..NODES);
        if node != self.leader && self.log.is_whole() {
            self.nodes[node].close();
            self.nodes[node] = Node::new(self.rng.u64(..), self.rng.i64(-HOUR..HOUR));
            self.open(node);
            self.note("new nodes");
        }
    }

    /// Makes a node the leader, after it has applied all records.
    fn take_over(&mut self, node: usize) {
        for other in 0..NODES {
            self.nodes[other].stop_leading();
        }
        self.is_unsettled = false;
        self.catch_up(node);
        let log = Box::new(self.log.clone());
        self.nodes[node].lead(log);
        self.leader = node;
    }

    fn move_leader(&mut self) {
        let next = self.rng.usize(0..NODES);
        if self.rng.bool() {
            self.log.fence();
            self.note("fences");
        }
        self.note("takeovers");
        self.take_over(next);
    }

    /// Applies all records to a node, whatever fails in between.
    fn catch_up(&mut self, node: usize) {
        self.follow(node, u64::MAX);
        assert_eq!(self.nodes[node].applied(), self.log.last());
    }

    /// Applies at most `count` records to a node that follows.
    fn follow(&mut self, node: usize, count: u64) {
        let until = self.nodes[node].applied().saturating_add(count).min(self.log.last());
        while self.nodes[node].applied() < until {
            let next = self.nodes[node].applied() + 1;
            let record = self.log.record(next);
            if let Err(fault) = self.nodes[node].apply(next, record.as_deref()) {
                assert!(self.nodes[node].had_fault(), "record {next}: {fault}");
                self.note("failed applications");
                self.recover(node);
            }
        }
    }

    fn follow_a_little(&mut self) {
        let (node, count) = (self.rng.usize(0..NODES), self.rng.u64(1..9));
        if node != self.leader {
            self.follow(node, count);
        }
    }

    /// Continues after a fault of a node's medium: perhaps with a restart.
    fn recover(&mut self, node: usize) {
        if self.nodes[node].has_lost_power() || self.rng.bool() {
            self.note("restarts after faults");
            self.nodes[node].close();
            self.open(node);
        } else {
            self.nodes[node].medium.lift();
        }
        if self.nodes[node].is_behind_files() {
            self.note("replicas behind their files");
        }
    }

    fn restart(&mut self) {
        let node = self.rng.usize(0..NODES);
        self.note("restarts");
        if self.rng.bool() {
            let now = self.clock(node);
            let outcome = self.store(node).checkpoint(now);
            self.expect(node, outcome.map(drop));
        }
        self.nodes[node].close();
        self.open(node);
        if node == self.leader {
            self.take_over(node);
        }
    }

    fn arm(&mut self) {
        let node = self.rng.usize(0..NODES);
        self.nodes[node].arm(&mut self.rng);
    }

    /// Work of a node's roles, at its own time.
    fn maintain(&mut self) {
        let node = self.rng.usize(0..NODES);
        let (now, store) = (self.clock(node), self.store(node));
        let outcome = match self.rng.u8(0..8) {
            0 => store.seal(now, 0, &|_| true).map(drop),
            1 => store.complete_erasure(),
            2 => {
                let dropped = granary::actors::drop_expired(&store, now);
                dropped.failed.map_or(Ok(()), Err)
            }
            _ => store.checkpoint(now).map(|_| store.pack_idle(now.minus(HOUR))),
        };
        self.note("maintenance");
        drop(store);
        self.expect(node, outcome);
    }

    /// Accepts a failure that a fault of the medium caused.
    fn expect(&mut self, node: usize, outcome: Result<(), granary::store::StoreError>) {
        let Err(fault) = outcome else { return };
        assert!(self.nodes[node].had_fault(), "{}", fault.with_causes());
        self.recover(node);
        if node == self.leader {
            self.take_over(node);
        }
    }

    /// Removes the records that all nodes have in files.
    fn cut(&mut self) {
        self.end_faults();
        let floors: Vec<_> = self.nodes.iter_mut().map(Node::durable_floor).collect();
        self.log.cut(floors.into_iter().min().unwrap()).unwrap();
        self.take_over(self.leader);
        self.note("cuts");
    }

    /// Ends all faults.
    fn end_faults(&mut self) {
        for node in 0..NODES {
            self.nodes[node].medium.lift();
            if self.nodes[node].has_lost_power() {
                self.recover(node);
            }
        }
    }
}

#[test]
fn replicas_that_applied_the_same_records_have_equal_states() {
    if let Some(seed) = env_number("GRANARY_SIM_SEED") {
        eprintln!("{:?}", Cluster::new(seed).run());
        return;
    }
    let requested = env_number("GRANARY_SIM_HISTORIES");
    let count = requested.map_or(HISTORIES, |count| (count / 50).max(1));
    let first = requested.map_or(FIRST_SEED, |_| fastrand::u64(..));
    let (mut all, mut failed) = (Tally::new(), Vec::new());
    for seed in (0..count).map(|index| first.wrapping_add(index)) {
        match std::panic::catch_unwind(|| Cluster::new(seed).run()) {
            Ok(tally) => tally.into_iter().for_each(|(event, count)| {
                *all.entry(event).or_default() += count;
            }),
            Err(_) => failed.push(seed),
        }
    }
    eprintln!("{count} histories from seed {first}: {all:?}");
    assert!(failed.is_empty(), "histories failed; replay one with GRANARY_SIM_SEED: {failed:?}");
    let missing: Vec<_> =
        operations::EVENTS.iter().filter(|event| !all.contains_key(*event)).collect();
    assert!(count < HISTORIES || missing.is_empty(), "never happened: {missing:?}");
}
