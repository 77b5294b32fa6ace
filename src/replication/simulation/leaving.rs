//! Members that cannot do their part: damaged replicas, lost disks, members below the cut.

use std::{cell::RefCell, rc::Rc};

use super::state::{LOG, Shared, ToyShard};
use crate::replication::{
    entry::{Body, Entry, EntryId, NodeName, STOPPED, ShardRow},
    medium::{Command, Fault, memory::Memory},
    roles::{Event, Replica, Timing},
    shard::{Origin, Shard, ShardFault},
};

/// A state that fails at the first entry.
struct Broken;

impl Shard for Broken {
    fn applied(&self) -> u64 {
        0
    }

    fn apply(&mut self, _: u64, _: &Body) -> Result<(), ShardFault> {
        Err(ShardFault("the disk is damaged".to_owned()))
    }

    fn durable_floor(&self) -> u64 {
        0
    }

    fn origin(&self) -> Option<Origin> {
        None
    }

    fn set_origin(&mut self, _: Origin) -> Result<(), ShardFault> {
        Ok(())
    }

    fn seed(&mut self, _: &ShardRow) -> Result<(), ShardFault> {
        Err(ShardFault("the disk is damaged".to_owned()))
    }
}

fn name(text: &str) -> NodeName {
    NodeName::parse(text).unwrap()
}

fn replica(node: &str, rank: Option<u32>, joins: bool) -> Replica {
    let mut replica = Replica::new(0, name(node), Timing::default(), 1);
    replica.assign(rank, joins);
    replica
}

fn record(number: u64) -> Entry {
    let body = Body::Record((number as u32).to_le_bytes()[..].into());
    Entry { id: EntryId::new(0, number), epoch: 1, nonce: number as i64, body }
}

/// Returns a shard whose holder was `c`, with records, and members with their floors.
fn shard(records: u64, members: &[(&str, u64)]) -> Memory {
    let mut memory = Memory::new(false);
    memory.execute(&Command::CreateShard { shard: 0, log: LOG, cut: 0 });
    memory.execute(&Command::Take { shard: 0, epoch: 0, beat: 0, log: LOG, holder: name("c") });
    memory.execute(&Command::Insert((1..=records).map(record).collect()));
    for (node, floor) in members {
        let (node, floor) = (name(node), *floor);
        memory.execute(&Command::RaiseFloor { shard: 0, node, floor, joins: true });
    }
    memory
}

fn act(
    memory: &mut Memory,
    now_ms: u64,
    replica: &mut Replica,
    state: &mut impl Shard,
) -> Vec<Event> {
    let mut events = Vec::new();
    for (ticket, command) in replica.poll(now_ms, state) {
        let answer = memory.execute(&command);
        events.extend(replica.accept(now_ms, ticket, Ok(answer), state));
    }
    events
}

fn members(memory: &Memory) -> Vec<(String, u64)> {
    let row = memory.shard(0).unwrap();
    row.members.iter().map(|(node, floor)| (node.to_string(), *floor)).collect()
}

#[test]
fn a_damaged_replica_leaves_the_members_for_good() {
    let mut memory = shard(0, &[]);
    let shared: Rc<RefCell<Shared>> = Rc::default();
    let mut state = ToyShard::open(0, 0, shared);
    let (mut a, mut b) = (replica("a", Some(0), true), replica("b", Some(1), true));
    let mut damages = 0;
    for now_ms in (0..60_000).step_by(200) {
        act(&mut memory, now_ms, &mut a, &mut state);
        let events = act(&mut memory, now_ms, &mut b, &mut Broken);
        damages += events.iter().filter(|event| matches!(event, Event::Damaged(_))).count();
        assert!(now_ms < 30_000 || members(&memory) == [("a".to_owned(), 0)], "{now_ms}");
    }
    assert_eq!(damages, 1);
    assert!(a.epoch().is_some() && b.row().unwrap().members.len() == 1);
    // An operator, or a late command, brings it back.
    let join = Command::RaiseFloor { shard: 0, node: name("b"), floor: 0, joins: true };
    memory.execute(&join);
    (60..90).for_each(|second| drop(act(&mut memory, second * 1000, &mut b, &mut Broken)));
    assert_eq!(members(&memory), [("a".to_owned(), 0)]);
}

#[test]
fn a_taker_that_cannot_read_ends_its_take() {
    let mut memory = shard(1, &[("b", 0)]);
    memory.execute(&Command::Beat { shard: 0, epoch: 1, log: LOG, least: 0, stops: true });
    let mut state = ToyShard::open(1, 0, Rc::default());
    let mut b = replica("b", Some(0), true);
    let mut last_ms = 0;
    for now_ms in (0..15_000).step_by(100) {
        for (ticket, command) in b.poll(now_ms, &state) {
            let fails = b.has_lease() && matches!(command, Command::Find(_));
            last_ms = if matches!(command, Command::Beat { .. }) { now_ms } else { last_ms };
            let answer = memory.execute(&command);
            let outcome = if fails { Err(Fault("slow".to_owned())) } else { Ok(answer) };
            b.accept(now_ms, ticket, outcome, &mut state);
        }
    }
    assert!((5000..10_000).contains(&last_ms), "{last_ms}");
    assert!(memory.shard(0).unwrap().epoch == 2 && !b.has_lease());
}

#[test]
fn an_ordered_stop_ends_a_take() {
    let mut memory = shard(1, &[("b", 0)]);
    memory.execute(&Command::Beat { shard: 0, epoch: 1, log: LOG, least: 0, stops: true });
    let mut state = ToyShard::open(1, 0, Rc::default());
    let mut b = replica("b", Some(0), true);
    for now_ms in 0..100 {
        act(&mut memory, now_ms, &mut b, &mut state);
        if b.has_lease() {
            assert_eq!(b.epoch(), None);
            b.assign(None, false);
            b.hand_over();
        }
    }
    let row = memory.shard(0).unwrap();
    assert!(!b.has_lease() && (row.epoch, row.beat) == (2, STOPPED), "{row:?}");
}

#[test]
fn the_last_member_stays_even_if_it_is_damaged() {
    let mut memory = shard(1, &[("b", 0)]);
    let mut b = replica("b", Some(0), true);
    (0..60).for_each(|second| drop(act(&mut memory, second * 1000, &mut b, &mut Broken)));
    assert_eq!(members(&memory), [("b".to_owned(), 0)]);
}

#[test]
fn a_member_whose_disk_was_lost_joins_again_with_what_it_has() {
    let mut memory = shard(3, &[("a", 3), ("b", 3)]);
    let mut state = ToyShard::open(1, 0, Rc::default());
    let mut b = replica("b", None, true);
    (0..10).for_each(|second| drop(act(&mut memory, second * 1000, &mut b, &mut state)));
    assert_eq!(state.applied(), 3);
    assert_eq!(members(&memory), [("a".to_owned(), 3), ("b".to_owned(), 0)]);
    state.sync();
    (10..20).for_each(|second| drop(act(&mut memory, second * 1000, &mut b, &mut state)));
    assert_eq!(members(&memory), [("a".to_owned(), 3), ("b".to_owned(), 3)]);
}

#[test]
fn a_node_takes_nothing_below_the_cut_or_before_its_assignment() {
    let mut memory = shard(3, &[("a", 3), ("b", 0)]);
    memory.execute(&Command::RaiseCut { shard: 0, epoch: 1, cut: 3 });
    memory.execute(&Command::Beat { shard: 0, epoch: 1, log: LOG, least: 0, stops: true });
    assert_eq!(memory.shard(0).unwrap().beat, STOPPED);
    let mut state = ToyShard::open(1, 0, Rc::default());
    let mut unassigned = Replica::new(0, name("b"), Timing::default(), 1);
    let mut b = replica("b", Some(0), false);
    for second in 0..20 {
        act(&mut memory, second * 1000, &mut unassigned, &mut state);
        act(&mut memory, second * 1000, &mut b, &mut state);
        assert_eq!((state.applied(), memory.shard(0).unwrap().epoch), (0, 1));
        assert!(b.row().is_some_and(|row| row.cut == 3));
    }
    let mut memory = shard(0, &[("b", 0)]);
    memory.execute(&Command::Beat { shard: 0, epoch: 1, log: LOG, least: 0, stops: true });
    let mut fresh = Replica::new(0, name("b"), Timing::default(), 1);
    (0..20).for_each(|second| drop(act(&mut memory, second * 1000, &mut fresh, &mut state)));
    assert_eq!(memory.shard(0).unwrap().epoch, 1);
    fresh.assign(Some(0), true);
    (20..30).for_each(|second| drop(act(&mut memory, second * 1000, &mut fresh, &mut state)));
    assert!(fresh.epoch().is_some());
}

#[test]
fn a_member_below_the_cut_knows_the_row_while_no_snapshot_comes() {
    let mut memory = shard(3, &[("a", 3)]);
    memory.execute(&Command::RaiseCut { shard: 0, epoch: 1, cut: 3 });
    let mut b = replica("b", Some(0), true);
    (0..9).for_each(|second| drop(act(&mut memory, second * 1000, &mut b, &mut Broken)));
    assert!(b.row().is_some_and(|row| row.cut == 3));
}

#[test]
fn a_node_holds_the_cut_back_while_it_waits_for_a_snapshot() {
    let mut memory = shard(5, &[("a", 5)]);
    memory.execute(&Command::RaiseCut { shard: 0, epoch: 1, cut: 5 });
    let mut b = replica("b", None, true);
    (0..9).for_each(|second| drop(act(&mut memory, second * 1000, &mut b, &mut Broken)));
    assert_eq!(members(&memory), [("a".to_owned(), 5), ("b".to_owned(), 4)]);
    assert!(!memory.shard(0).unwrap().has_cut(&name("b")));
    // The snapshot arrives, and the node has what was cut.
    let shared: Rc<RefCell<Shared>> = Rc::default();
    let mut source = ToyShard::open(0, 0, shared.clone());
    (1..=5).for_each(|number| source.apply(number, &record(number).body).unwrap());
    source.sync();
    let mut state = ToyShard::open(1, 0, shared);
    let mut b = replica("b", None, true);
    (0..9).for_each(|second| drop(act(&mut memory, second * 1000, &mut b, &mut state)));
    assert_eq!(members(&memory), [("a".to_owned(), 5), ("b".to_owned(), 5)]);
}

#[test]
fn a_member_that_lost_its_disk_does_not_count_as_having_what_was_cut() {
    let mut memory = shard(5, &[("a", 5), ("b", 5)]);
    memory.execute(&Command::RaiseCut { shard: 0, epoch: 1, cut: 5 });
    let mut b = replica("b", None, true);
    (0..9).for_each(|second| drop(act(&mut memory, second * 1000, &mut b, &mut Broken)));
    assert_eq!(members(&memory), [("a".to_owned(), 5), ("b".to_owned(), 4)]);
    // Without another member that has what was cut, it stays.
    let mut memory = shard(5, &[("b", 5)]);
    memory.execute(&Command::RaiseCut { shard: 0, epoch: 1, cut: 5 });
    let mut b = replica("b", None, true);
    (0..9).for_each(|second| drop(act(&mut memory, second * 1000, &mut b, &mut Broken)));
    assert_eq!(members(&memory), [("b".to_owned(), 5)]);
}

#[test]
fn a_holder_knows_how_long_a_member_held_back_before_its_lease() {
    let mut memory = shard(1, &[("a", 0), ("b", 0)]);
    let mut state = ToyShard::open(0, 0, Rc::default());
    let mut a = replica("a", Some(0), true);
    for second in 0..3620 {
        if second < 3500 {
            memory.execute(&Command::Beat {
                shard: 0,
                epoch: 1,
                log: LOG,
                least: 0,
                stops: second == 3499,
            });
        }
        act(&mut memory, second * 1000, &mut a, &mut state);
        let is_struck = members(&memory).len() == 1;
        assert!(second > 3600 || !is_struck, "after {second} s");
    }
    assert!(a.epoch() == Some(2) && members(&memory).len() == 1);
}
