//! Schedules that are too rare for random ones: records are deleted between two commands of a
//! replica that lacks them, and a record arrives after its number was cut.

use std::{cell::RefCell, rc::Rc};

use super::state::{LOG, Shared, ToyShard};
use crate::replication::{
    entry::{Body, Entry, EntryId, NodeName},
    medium::{Command, memory::Memory},
    mutants::{Mutant, switch},
    roles::{Event, Lane, Replica, Timing},
    shard::Shard,
};

/// The number of commands with which a replica recognizes its log.
const VERIFIED: usize = 3;
/// The step after the first search for entries, and that after the read of the row.
const FOUND: usize = VERIFIED + 1;
const READ: usize = VERIFIED + 2;

fn record(number: u64) -> Entry {
    let body = Body::Record((number as u32).to_le_bytes()[..].into());
    Entry { id: EntryId::new(0, number), epoch: 1, nonce: number as i64, body }
}

/// Lets a replica with two records act, and returns its difference from one with three. `between`
/// changes the database before each command of the replica.
fn run(between: impl Fn(usize, &mut Memory)) -> Option<String> {
    let shared: Rc<RefCell<Shared>> = Rc::default();
    let (mut whole, mut behind) =
        (ToyShard::open(0, 0, shared.clone()), ToyShard::open(1, 0, shared.clone()).with_origin());
    for number in 1..=3 {
        whole.apply(number, &record(number).body).unwrap();
    }
    whole.sync();
    for number in 1..=2 {
        behind.apply(number, &record(number).body).unwrap();
    }
    behind.sync();
    let mut memory = Memory::new(false);
    memory.execute(&Command::CreateShard { shard: 0, log: LOG, cut: 0 });
    memory.execute(&Command::Take { shard: 0, epoch: 0, beat: 0, log: LOG, holder: name("a") });
    memory.execute(&Command::Insert((1..=2).map(record).collect()));
    for (node, floor) in [("a", 2), ("b", 2)] {
        let node = name(node);
        memory.execute(&Command::RaiseFloor { shard: 0, node, floor, joins: true });
    }
    let mut replica = Replica::new(0, name("b"), Timing::default(), 1);
    replica.assign(Some(0), true);
    for step in 0..24 {
        between(step, &mut memory);
        let now_ms = 1000 * step as u64;
        for (ticket, command) in replica.poll(now_ms, &behind) {
            let answer = memory.execute(&command);
            replica.accept(now_ms, ticket, Ok(answer), &mut behind);
        }
    }
    assert!(behind.applied() >= 3, "the replica has all records");
    shared.borrow().difference.clone()
}

fn name(text: &str) -> NodeName {
    NodeName::parse(text).unwrap()
}

/// Removes the replica from the members, and deletes the third record.
fn cut(memory: &mut Memory) {
    memory.execute(&Command::Strike { shard: 0, epoch: 1, node: name("b") });
    memory.execute(&Command::RaiseCut { shard: 0, epoch: 1, cut: 3 });
    memory.execute(&Command::Delete { shard: 0, after: 0, through: 3 });
}

fn check(mutant: Mutant, between: impl Fn(usize, &mut Memory)) {
    assert_eq!(run(&between), None);
    switch(Some(mutant));
    let difference = run(&between);
    switch(None);
    let is_found = difference.as_ref().is_some_and(|text| text.starts_with("DIFFERENT at 3"));
    assert!(is_found, "{mutant:?}: {difference:?}");
}

#[test]
fn a_follower_reads_the_row_after_the_entries() {
    check(Mutant::RowFirst, |step, memory| {
        if step == FOUND {
            memory.execute(&Command::Insert(vec![record(3)]));
            cut(memory);
            // A taker with two records inserts its fence, and gives up.
            let fence = Entry { epoch: 2, nonce: 9, body: Body::Fence, ..record(3) };
            memory.execute(&Command::Insert(vec![fence]));
        }
    });
}

#[test]
fn a_taker_gives_up_when_its_next_number_was_cut() {
    check(Mutant::TakesBelowCut, |step, memory| match step {
        // After the search for entries, the holder appends, and stops cleanly.
        FOUND => {
            memory.execute(&Command::Insert(vec![record(3)]));
            memory.execute(&Command::Beat { shard: 0, epoch: 1, log: LOG, least: 0, stops: true });
        }
        // Late commands of the holder, after the taker has read the row.
        READ => cut(memory),
        _ => {}
    });
}

/// Delays a holder's insert until the next holder has cut the log, and returns its outcome.
fn insert_late() -> Option<Event> {
    let mut state = ToyShard::open(0, 0, Rc::default());
    let mut memory = Memory::new(false);
    let mut holder = Replica::new(0, name("a"), Timing::default(), 1);
    holder.assign(Some(0), true);
    let mut now_ms = 0;
    while !holder.is_ready() {
        now_ms += 300;
        assert!(now_ms < 60_000, "the replica holds the shard");
        for (ticket, command) in holder.poll(now_ms, &state) {
            let answer = memory.execute(&command);
            holder.accept(now_ms, ticket, Ok(answer), &mut state);
        }
    }
    let number = state.applied() + 1;
    holder.propose(&1_u32.to_le_bytes(), &state).unwrap();
    let late = holder.poll(now_ms, &state);

    let row = memory.shard(0).unwrap().clone();
    let (epoch, beat, log) = (row.epoch, row.beat, row.log);
    let fence = Entry { epoch: epoch + 1, nonce: 9, body: Body::Fence, ..record(number) };
    for command in [
        Command::Take { shard: 0, epoch, beat, log, holder: name("b") },
        Command::Insert(vec![fence]),
        Command::RaiseCut { shard: 0, epoch: epoch + 1, cut: number },
        Command::Delete { shard: 0, after: 0, through: number },
    ] {
        memory.execute(&command);
    }
    let mut commands: Vec<_> =
        late.into_iter().filter(|(_, command)| matches!(command, Command::Insert(_))).collect();
    for _ in 0..4 {
        for (ticket, command) in std::mem::take(&mut commands) {
            let answer = memory.execute(&command);
            let events = holder.accept(now_ms, ticket, Ok(answer), &mut state);
            if let Some(event) = events.into_iter().next() {
                return Some(event);
            }
        }
        commands = holder.poll(now_ms, &state);
        commands.retain(|(ticket, _)| ticket.lane == Lane::Log);
    }
    None
}

#[test]
fn a_late_record_finds_the_fence_at_its_number() {
    assert_eq!(insert_late(), Some(Event::Fenced));
    switch(Some(Mutant::CutsFences));
    let outcome = insert_late();
    switch(None);
    assert!(matches!(outcome, Some(Event::Committed { .. })), "{outcome:?}");
}
