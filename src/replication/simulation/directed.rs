//! A schedule that is too rare for random ones: a follower reads while a taker that gives up leaves
//! a fence at a deleted number.

use std::{cell::RefCell, rc::Rc};

use super::state::{Shared, ToyShard};
use crate::replication::{
    entry::{Body, Entry, EntryId, NodeName},
    medium::{Command, memory::Memory},
    mutants::{Mutant, switch},
    roles::{Replica, Timing},
    shard::Shard,
};

fn record(number: u64) -> Entry {
    let body = Body::Record((number as u32).to_le_bytes()[..].into());
    Entry { id: EntryId::new(0, number), epoch: 1, nonce: number as i64, body }
}

/// Returns the difference between a replica with three records and a follower with two, of which
/// the third is deleted after the first read of the follower's pass.
fn follow_across_a_cut() -> Option<String> {
    let shared: Rc<RefCell<Shared>> = Rc::default();
    let (mut whole, mut behind) =
        (ToyShard::open(0, 0, shared.clone()), ToyShard::open(1, 0, shared.clone()));
    for number in 1..=3 {
        whole.apply(number, &record(number).body).unwrap();
    }
    whole.sync();
    for number in 1..=2 {
        behind.apply(number, &record(number).body).unwrap();
    }
    let mut memory = Memory::new(false);
    let holder = NodeName::parse("a").unwrap();
    memory.execute(&Command::CreateShard(0));
    memory.execute(&Command::Take { shard: 0, epoch: 0, beat: 0, holder });
    memory.execute(&Command::Insert((1..=3).map(record).collect()));
    let name = NodeName::parse("b").unwrap();
    let mut follower = Replica::new(0, name, Timing::default(), 1);
    follower.assign(None, true);
    for step in 0..12 {
        if step == 1 {
            memory.execute(&Command::RaiseCut { shard: 0, epoch: 1, cut: 3 });
            memory.execute(&Command::Delete { shard: 0, after: 0, through: 3 });
            // Its node has two records: it takes the shard, inserts the fence and gives up.
            let fence = Entry { epoch: 2, nonce: 9, body: Body::Fence, ..record(3) };
            memory.execute(&Command::Insert(vec![fence]));
        }
        let now_ms = 1000 * step;
        for (ticket, command) in follower.poll(now_ms, &behind) {
            let answer = memory.execute(&command);
            follower.accept(now_ms, ticket, Ok(answer), &mut behind);
        }
    }
    assert_eq!(behind.applied(), 3, "the follower has all entries");
    shared.borrow().difference.clone()
}

#[test]
fn a_follower_reads_the_row_after_the_entries() {
    assert_eq!(follow_across_a_cut(), None);
    switch(Some(Mutant::RowFirst));
    let difference = follow_across_a_cut();
    switch(None);
    assert!(difference.is_some_and(|text| text.starts_with("DIFFERENT at 3")));
}
