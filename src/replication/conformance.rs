//! The behaviour that the protocol needs of a medium, as one suite for all of them.
//!
//! Each case uses shards of its own, and begins in an empty database.

use crate::replication::{
    entry::{Body, Entry, EntryId, NodeName, RECORD_BYTES_MAX, STOPPED, ShardRow},
    medium::{Answer, Command, Fault, Inserted, NodeRow},
    roles::{Insertion, Settled},
};

/// A medium under test.
pub trait Bed {
    /// Executes a command.
    ///
    /// # Errors
    /// The outcome is unknown.
    fn run(&mut self, command: Command) -> Result<Answer, Fault>;

    /// Lets the next write be executed without a confirmation by the majority.
    fn lose_next_confirmation(&mut self);
}

type Outcome = Result<(), String>;
/// A case: its name, and its check with a shard of its own.
type Case = (&'static str, fn(&mut dyn Bed, u16) -> Outcome);

/// The log of the cases.
const LOG: i64 = -7;

const CASES: [Case; 11] = [
    ("an unknown commit is found by its nonce", unknown_commit),
    ("duplicates are found among other entries", duplicates),
    ("a late record meets the fence of a later epoch", late_record),
    ("late changes of an earlier epoch have no effect", late_changes),
    ("entries are found in order, with their gaps, in their shard only", gaps),
    ("deletions leave fences and what is above them", fences_stay),
    ("a cut rises and never falls", cuts),
    ("members join, rise and are struck", members),
    ("a change for another log, or for a later state of it, has no effect", other_log),
    ("the last fence with a holder is found, other fences are not", held),
    ("nodes beat, one process under each name", nodes),
];

/// Runs the suite.
///
/// # Errors
/// The message names the first case that fails.
pub fn check(bed: &mut dyn Bed) -> Outcome {
    for (shard, (name, case)) in (0..).step_by(2).zip(CASES) {
        case(bed, shard).map_err(|cause| format!("{name}: {cause}"))?;
    }
    Ok(())
}

fn expect<T: PartialEq + std::fmt::Debug>(what: &str, found: T, expected: T) -> Outcome {
    // Both values are consumed, so that callers can pass them as they are.
    let values = [found, expected];
    let is_equal = values[0] == values[1];
    is_equal.then_some(()).ok_or_else(|| format!("{what}: found, expected: {values:?}"))
}

fn run(bed: &mut dyn Bed, command: Command) -> Result<Answer, String> {
    let name = format!("{command:?}").chars().take(60).collect::<String>();
    bed.run(command).map_err(|fault| format!("{name}: {fault}"))
}

fn record(shard: u16, number: u64, epoch: u64, nonce: i64) -> Entry {
    let body = Body::Record([number as u8, 7][..].into());
    Entry { id: EntryId::new(shard, number), epoch, nonce, body }
}

fn fence(shard: u16, number: u64, epoch: u64) -> Entry {
    Entry { id: EntryId::new(shard, number), epoch, nonce: -1, body: Body::Fence }
}

fn insert(bed: &mut dyn Bed, entries: &[Entry]) -> Result<Vec<Inserted>, String> {
    match run(bed, Command::Insert(entries.to_vec()))? {
        Answer::Inserted(outcomes) => Ok(outcomes),
        answer => Err(format!("an insert answered {answer:?}")),
    }
}

fn numbers(bed: &mut dyn Bed, shard: u16, after: u64) -> Result<Vec<u64>, String> {
    match run(bed, Command::Find(EntryId::new(shard, after)))? {
        Answer::Entries(entries) => Ok(entries.iter().map(|entry| entry.id.number).collect()),
        answer => Err(format!("a find answered {answer:?}")),
    }
}

fn row(bed: &mut dyn Bed, shard: u16) -> Result<ShardRow, String> {
    match run(bed, Command::ReadShard(shard))? {
        Answer::Shard(Some(row)) => Ok(row),
        answer => Err(format!("a read of the row answered {answer:?}")),
    }
}

fn node(name: &str) -> Result<NodeName, String> {
    NodeName::parse(name)
}

/// Creates the row of a shard, with a first holder.
fn take_first(bed: &mut dyn Bed, shard: u16) -> Outcome {
    run(bed, Command::CreateShard { shard, log: LOG, cut: 0 })?;
    let holder = node("a")?;
    let taken = run(bed, Command::Take { shard, epoch: 0, beat: 0, log: LOG, holder })?;
    expect("the first take", taken, Answer::Matched(true))
}

fn unknown_commit(bed: &mut dyn Bed, shard: u16) -> Outcome {
    let mut insertion = Insertion::new(record(shard, 1, 1, 5));
    bed.lose_next_confirmation();
    if let Ok(answer) = bed.run(insertion.command()) {
        return Err(format!("a write without a majority answered {answer:?}"));
    }
    // The same entry again: a duplicate, whose nonce shows that it is the same.
    let mut settled = Settled::Undecided;
    for _ in 0..4 {
        if settled == Settled::Undecided {
            let answer = run(bed, insertion.command())?;
            settled = insertion.judge(&answer);
        }
    }
    expect("the unknown entry", settled, Settled::Own)?;
    expect("copies", numbers(bed, shard, 0)?, vec![1])
}

fn duplicates(bed: &mut dyn Bed, shard: u16) -> Outcome {
    let large =
        Entry { body: Body::Record(vec![9; RECORD_BYTES_MAX].into()), ..record(shard, 3, 1, 3) };
    insert(bed, &[record(shard, 2, 1, 2)])?;
    let entries = [record(shard, 1, 1, 1), record(shard, 2, 1, 20), large.clone()];
    let outcomes = vec![Inserted::Done, Inserted::Duplicate, Inserted::Done];
    expect("outcomes", insert(bed, &entries)?, outcomes)?;
    let found = run(bed, Command::ReadEntry(EntryId::new(shard, 2)))?;
    expect("another's entry", found, Answer::Entry(Some(record(shard, 2, 1, 2))))?;
    let found = run(bed, Command::ReadEntry(EntryId::new(shard, 3)))?;
    expect("the largest entry", found == Answer::Entry(Some(large)), true)
}

fn late_record(bed: &mut dyn Bed, shard: u16) -> Outcome {
    insert(bed, &[record(shard, 1, 1, 1), fence(shard, 2, 2)])?;
    let mut late = Insertion::new(record(shard, 2, 1, 2));
    let answer = run(bed, late.command())?;
    expect("the late record", late.judge(&answer), Settled::Undecided)?;
    let answer = run(bed, late.command())?;
    expect("the entry at its number", late.judge(&answer), Settled::Others)
}

fn late_changes(bed: &mut dyn Bed, shard: u16) -> Outcome {
    take_first(bed, shard)?;
    let beat = |epoch, stops| Command::Beat { shard, epoch, log: LOG, least: 0, stops };
    let take = |epoch, beat| {
        let holder = node("b")?;
        Ok::<_, String>(Command::Take { shard, epoch, beat, log: LOG, holder })
    };
    expect("a renewal", run(bed, beat(1, false))?, Answer::Matched(true))?;
    let taken = run(bed, take(1, 0)?)?;
    expect("a take despite a renewal", taken, Answer::Matched(false))?;
    expect("a take", run(bed, take(1, 1)?)?, Answer::Matched(true))?;
    let late = [
        beat(1, false),
        beat(1, true),
        take(1, 1)?,
        Command::RaiseCut { shard, epoch: 1, cut: 9 },
        Command::Strike { shard, epoch: 1, node: node("b")? },
    ];
    for command in late {
        expect("a late change", run(bed, command)?, Answer::Matched(false))?;
    }
    let holder = Some(node("b")?);
    expect(
        "the row",
        row(bed, shard)?,
        ShardRow { log: LOG, epoch: 2, holder, ..ShardRow::default() },
    )?;
    expect("an ordered end", run(bed, beat(2, true))?, Answer::Matched(true))?;
    expect("a late renewal", run(bed, beat(2, false))?, Answer::Matched(false))?;
    expect("the beat", row(bed, shard)?.beat, STOPPED)
}

fn gaps(bed: &mut dyn Bed, shard: u16) -> Outcome {
    let neighbour = record(shard + 1, 1, 1, 1);
    let entries = [4, 1, 2, 300].map(|number| record(shard, number, 1, 1));
    insert(bed, &[&entries[..], &[neighbour]].concat())?;
    expect("all", numbers(bed, shard, 0)?, vec![1, 2, 4, 300])?;
    expect("the rest", numbers(bed, shard, 2)?, vec![4, 300])?;
    expect("nothing", numbers(bed, shard, 300)?, vec![])
}

fn fences_stay(bed: &mut dyn Bed, shard: u16) -> Outcome {
    let records = [1, 3, 4, 5].map(|number| record(shard, number, 1, 1));
    insert(bed, &[&records[..], &[fence(shard, 2, 2), record(shard + 1, 1, 1, 1)]].concat())?;
    for _ in 0..2 {
        run(bed, Command::Delete { shard, after: 0, through: 4 })?;
        expect("what stays", numbers(bed, shard, 0)?, vec![2, 5])?;
    }
    expect("the neighbour", numbers(bed, shard + 1, 0)?, vec![1])
}

fn cuts(bed: &mut dyn Bed, shard: u16) -> Outcome {
    take_first(bed, shard)?;
    for (cut, expected) in [(5, 5), (3, 5), (7, 7)] {
        let raised = run(bed, Command::RaiseCut { shard, epoch: 1, cut })?;
        expect("the epoch", raised, Answer::Matched(true))?;
        expect("the cut", row(bed, shard)?.cut, expected)?;
    }
    // A second creation changes nothing.
    run(bed, Command::CreateShard { shard, log: LOG, cut: 0 })?;
    expect("the cut", row(bed, shard)?.cut, 7)
}

fn members(bed: &mut dyn Bed, shard: u16) -> Outcome {
    take_first(bed, shard)?;
    let floor = |floor, joins| {
        Ok::<_, String>(Command::RaiseFloor { shard, node: node("b")?, floor, joins })
    };
    let absent = run(bed, floor(4, false)?)?;
    expect("the floor of no member", absent, Answer::Matched(false))?;
    for (command, expected) in [(floor(4, true)?, 4), (floor(9, false)?, 9), (floor(2, true)?, 9)] {
        expect("a floor", run(bed, command)?, Answer::Matched(true))?;
        let known = row(bed, shard)?.members.get(&node("b")?).copied();
        expect("the known floor", known, Some(expected))?;
    }
    let strike = Command::Strike { shard, epoch: 1, node: node("b")? };
    expect("a strike", run(bed, strike)?, Answer::Matched(true))?;
    expect("members", row(bed, shard)?.members.len(), 0)?;
    expect("a struck member's floor", run(bed, floor(10, false)?)?, Answer::Matched(false))?;
    // A member leaves only while another one has what was cut.
    let leave = |name, heir, cut| {
        let (node, heir) = (node(name)?, node(heir)?);
        Ok::<_, String>(Command::Leave { shard, node, heir, cut })
    };
    for (name, floor) in [("a", 5), ("b", 4)] {
        let join = Command::RaiseFloor { shard, node: node(name)?, floor, joins: true };
        expect("a join", run(bed, join)?, Answer::Matched(true))?;
    }
    run(bed, Command::RaiseCut { shard, epoch: 1, cut: 5 })?;
    for (name, heir, cut, leaves) in [
        ("a", "b", 5, false),
        ("b", "a", 4, false),
        ("c", "a", 5, false),
        ("b", "a", 5, true),
        ("a", "b", 5, false),
    ] {
        expect("a leave", run(bed, leave(name, heir, cut)?)?, Answer::Matched(leaves))?;
    }
    expect("who stays", row(bed, shard)?.members, [(node("a")?, 5)].into())
}

fn other_log(bed: &mut dyn Bed, shard: u16) -> Outcome {
    run(bed, Command::CreateShard { shard, log: LOG, cut: 5 })?;
    // The first log stays.
    run(bed, Command::CreateShard { shard, log: 8, cut: 9 })?;
    expect("the row", row(bed, shard)?, ShardRow { log: LOG, cut: 5, ..ShardRow::default() })?;
    for (log, matches) in [(8, false), (LOG, true)] {
        let holder = node("a")?;
        let take = Command::Take { shard, epoch: 0, beat: 0, log, holder };
        expect("a take", run(bed, take)?, Answer::Matched(matches))?;
    }
    for (log, least, stops, matches) in [
        (8, 0, false, false),
        (8, 0, true, false),
        // The backup of a database has a lower beat.
        (LOG, 1, false, false),
        (LOG, 0, false, true),
        (LOG, 1, false, true),
        (LOG, 3, false, false),
        (LOG, 3, true, true),
    ] {
        let beat = Command::Beat { shard, epoch: 1, log, least, stops };
        expect("a renewal", run(bed, beat)?, Answer::Matched(matches))?;
    }
    Ok(())
}

fn held(bed: &mut dyn Bed, shard: u16) -> Outcome {
    let entries = [fence(shard, 1, 1), record(shard, 2, 1, 2), fence(shard, 3, 2)];
    insert(bed, &[&entries[..], &[fence(shard + 1, 1, 1)]].concat())?;
    let find = |bed: &mut dyn Bed, number, held| {
        run(bed, Command::LastFence { through: EntryId::new(shard, number), held })
    };
    let last = |bed: &mut dyn Bed, number| find(bed, number, true);
    expect("any fence", find(bed, 9, false)?, Answer::Entry(Some(fence(shard, 3, 2))))?;
    expect("an earlier fence", find(bed, 2, false)?, Answer::Entry(Some(fence(shard, 1, 1))))?;
    expect("no fence with a holder", last(bed, 9)?, Answer::Entry(None))?;
    for (number, nonce, matches) in [(1, -1, true), (1, -1, true), (2, 2, false), (3, 8, false)] {
        let hold = Command::Hold { fence: EntryId::new(shard, number), nonce };
        expect("a mark", run(bed, hold)?, Answer::Matched(matches))?;
    }
    expect("the fence", last(bed, 9)?, Answer::Entry(Some(fence(shard, 1, 1))))?;
    expect("the fence itself", last(bed, 1)?, Answer::Entry(Some(fence(shard, 1, 1))))?;
    run(bed, Command::Hold { fence: EntryId::new(shard, 3), nonce: -1 })?;
    expect("the later fence", last(bed, 3)?, Answer::Entry(Some(fence(shard, 3, 2))))?;
    expect("the earlier fence", last(bed, 2)?, Answer::Entry(Some(fence(shard, 1, 1))))
}

fn nodes(bed: &mut dyn Bed, _: u16) -> Outcome {
    let a = node("a")?;
    let claim = |run, seen| Command::ClaimNode { node: a.clone(), run, seen };
    let beat = |run, address: &str| {
        let (address, rules) = (address.to_owned(), "r1".to_owned());
        Command::BeatNode { node: a.clone(), run, address, rules }
    };
    for (command, matches) in [
        (beat(5, "https://a:0"), false),
        (claim(5, Some((1, 1))), false),
        (claim(5, None), true),
        (claim(6, None), false),
        (beat(5, "https://a:1"), true),
        (beat(6, "https://b:1"), false),
        (claim(6, Some((5, 0))), false),
        (claim(6, Some((5, 1))), true),
        (beat(5, "https://a:1"), false),
        (beat(6, "https://a:2"), true),
    ] {
        let text = format!("{command:?}");
        expect(&text, run(bed, command)?, Answer::Matched(matches))?;
    }
    let Answer::Nodes(nodes) = run(bed, Command::ReadNodes)? else {
        return Err("no nodes".to_owned());
    };
    let row = NodeRow {
        node: a,
        address: "https://a:2".to_owned(),
        beat: 2,
        run: 6,
        rules: "r1".to_owned(),
    };
    expect("the nodes", nodes, vec![row])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::replication::medium::memory::Memory;

    struct InMemory {
        memory: Memory,
        loses: bool,
    }

    impl Bed for InMemory {
        fn run(&mut self, command: Command) -> Result<Answer, Fault> {
            let answer = self.memory.execute(&command);
            if std::mem::take(&mut self.loses) {
                return Err(Fault("no majority".to_owned()));
            }
            self.memory.confirm(usize::MAX);
            Ok(answer)
        }

        fn lose_next_confirmation(&mut self) {
            self.loses = true;
        }
    }

    #[test]
    fn the_log_in_memory_conforms() {
        for is_slow in [false, true] {
            let mut bed = InMemory { memory: Memory::new(is_slow), loses: false };
            assert_eq!(check(&mut bed), Ok(()));
        }
    }
}
