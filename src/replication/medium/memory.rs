//! A replica set in memory for simulations: what the primary has, and what a majority has.
//!
//! Must never know: which commands are late or lost; the simulation executes them when it decides.

use std::collections::{BTreeMap, BTreeSet};

use crate::replication::{
    entry::{Body, Entry, EntryId, NodeName, STOPPED, ShardRow},
    medium::{Answer, Command, FOUND_ENTRIES_MAX, Inserted, NodeRow},
    mutants::{Mutant, is_on},
};

/// The rows at one moment.
#[derive(Debug, Clone, Default)]
struct Rows {
    entries: BTreeMap<EntryId, Entry>,
    shards: BTreeMap<u16, ShardRow>,
    nodes: BTreeMap<NodeName, NodeRow>,
    /// The fences whose epochs had a holder.
    held: BTreeSet<EntryId>,
}

/// A change of one row, `None` for its removal.
#[derive(Debug, Clone)]
enum Change {
    Entry(EntryId, Option<Entry>),
    Shard(u16, ShardRow),
    Node(NodeRow),
    Held(EntryId),
}

/// The replica set.
#[derive(Debug, Clone, Default)]
pub(crate) struct Memory {
    primary: Rows,
    majority: Rows,
    /// Changes that no majority has.
    unconfirmed: Vec<Change>,
    /// The number of changes that a majority has, or that were rolled back.
    settled: u64,
    rollbacks: u64,
    /// True if a majority has changes only after [`Memory::confirm`].
    is_slow: bool,
}

/// The moment after a command, at which its outcome is certain.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Position {
    change: u64,
    rollbacks: u64,
}

impl Memory {
    /// Creates a set; if it is slow, a majority has changes only after [`Memory::confirm`].
    pub(crate) fn new(is_slow: bool) -> Self {
        Self { is_slow, ..Self::default() }
    }

    /// Returns the position of the last command.
    pub(crate) fn position(&self) -> Position {
        let change = self.settled + self.unconfirmed.len() as u64;
        Position { change, rollbacks: self.rollbacks }
    }

    /// Returns a position that a majority has.
    pub(crate) fn settled(&self) -> Position {
        Position { change: 0, rollbacks: self.rollbacks }
    }

    /// Returns whether a majority has all up to a position; `None` if it was rolled back.
    pub(crate) fn has_majority(&self, position: Position) -> Option<bool> {
        (position.rollbacks == self.rollbacks).then_some(self.settled >= position.change)
    }

    /// Lets a majority have the next changes.
    pub(crate) fn confirm(&mut self, changes: usize) {
        let changes = changes.min(self.unconfirmed.len());
        for change in self.unconfirmed.drain(..changes) {
            self.majority.put(change);
        }
        self.settled += changes as u64;
    }

    /// Elects a primary without the changes that no majority has.
    pub(crate) fn roll_back(&mut self) -> usize {
        let lost = self.unconfirmed.len();
        self.settled += lost as u64;
        self.unconfirmed.clear();
        self.primary = self.majority.clone();
        self.rollbacks += 1;
        lost
    }

    /// Returns the row of a shard that a majority has.
    pub(crate) fn shard(&self, shard: u16) -> Option<&ShardRow> {
        self.majority.shards.get(&shard)
    }

    /// Returns the entries of a shard that a majority has.
    pub(crate) fn entries(&self, shard: u16) -> impl Iterator<Item = &Entry> {
        let range = EntryId::new(shard, 0)..EntryId::new(shard, u64::MAX);
        self.majority.entries.range(range).map(|(_, entry)| entry)
    }

    /// Executes a command at the primary.
    pub(crate) fn execute(&mut self, command: &Command) -> Answer {
        match command {
            Command::Insert(entries) => {
                Answer::Inserted(entries.iter().map(|entry| self.insert(entry)).collect())
            }
            Command::ReadEntry(id) => Answer::Entry(self.read().entries.get(id).cloned()),
            Command::Find(id) => {
                let end = EntryId::new(id.shard, u64::MAX);
                let after = EntryId::new(id.shard, id.number + 1);
                let found = self.read().entries.range(after..end).map(|(_, entry)| entry.clone());
                Answer::Entries(found.take(FOUND_ENTRIES_MAX as usize).collect())
            }
            Command::ReadShard(shard) => Answer::Shard(self.read().shards.get(shard).cloned()),
            Command::ReadNodes => Answer::Nodes(self.read().nodes.values().cloned().collect()),
            Command::LastFence { through, held } => {
                let rows = self.read();
                let is_found = |entry: &&Entry| {
                    entry.body == Body::Fence && (!held || rows.held.contains(&entry.id))
                };
                let range = EntryId::new(through.shard, 0)..=*through;
                let entries = rows.entries.range(range).map(|(_, entry)| entry);
                Answer::Entry(entries.rev().find(is_found).cloned())
            }
            Command::Hold { fence, nonce } => {
                let entry = self.primary.entries.get(fence);
                let matched =
                    entry.is_some_and(|entry| entry.body == Body::Fence && entry.nonce == *nonce);
                if matched {
                    self.put(Change::Held(*fence));
                }
                Answer::Matched(matched)
            }
            Command::CreateShard { shard, log, cut } => {
                if !self.primary.shards.contains_key(shard) {
                    let row = ShardRow { log: *log, cut: *cut, ..ShardRow::default() };
                    self.put(Change::Shard(*shard, row));
                }
                Answer::Done
            }
            Command::ClaimNode { .. } | Command::BeatNode { .. } => {
                Answer::Matched(self.change_node(command))
            }
            Command::Delete { after, through, .. } if after >= through => Answer::Done,
            Command::Delete { shard, after, through } => {
                let range = EntryId::new(*shard, after + 1)..=EntryId::new(*shard, *through);
                let entries = self.primary.entries.range(range);
                let is_deleted =
                    |entry: &Entry| entry.body != Body::Fence || is_on(Mutant::CutsFences);
                let deleted: Vec<_> =
                    entries.filter(|(_, entry)| is_deleted(entry)).map(|(id, _)| *id).collect();
                for id in deleted {
                    self.put(Change::Entry(id, None));
                }
                Answer::Done
            }
            Command::Take { .. }
            | Command::Beat { .. }
            | Command::RaiseCut { .. }
            | Command::RaiseFloor { .. }
            | Command::Leave { .. }
            | Command::Strike { .. } => Answer::Matched(self.change_shard(command)),
        }
    }

    fn insert(&mut self, entry: &Entry) -> Inserted {
        if self.primary.entries.contains_key(&entry.id) {
            return Inserted::Duplicate;
        }
        self.put(Change::Entry(entry.id, Some(entry.clone())));
        Inserted::Done
    }

    /// Changes the row of a node, and returns false if its guard does not match.
    fn change_node(&mut self, command: &Command) -> bool {
        let row = match command {
            Command::ClaimNode { node, run, seen } => {
                let row = self.primary.nodes.get(node);
                if row.map(|row| (row.run, row.beat)) != *seen {
                    return false;
                }
                let new = NodeRow {
                    node: node.clone(),
                    address: String::new(),
                    beat: 0,
                    run: 0,
                    rules: String::new(),
                };
                NodeRow { run: *run, ..row.cloned().unwrap_or(new) }
            }
            Command::BeatNode { node, run, address, rules } => {
                let row = self.primary.nodes.get(node).filter(|row| row.run == *run);
                let Some(row) = row.cloned() else { return false };
                let (address, beat, rules) = (address.clone(), row.beat + 1, rules.clone());
                NodeRow { address, beat, rules, ..row }
            }
            _ => return false,
        };
        self.put(Change::Node(row));
        true
    }

    /// Changes the row of a shard, and returns false if its guard does not match.
    fn change_shard(&mut self, command: &Command) -> bool {
        let (Command::Take { shard, .. }
        | Command::Beat { shard, .. }
        | Command::RaiseCut { shard, .. }
        | Command::RaiseFloor { shard, .. }
        | Command::Leave { shard, .. }
        | Command::Strike { shard, .. }) = command
        else {
            return false;
        };
        let Some(mut row) = self.primary.shards.get(shard).cloned() else { return false };
        match command {
            Command::Take { log, .. } | Command::Beat { log, .. } if row.log != *log => {
                return false;
            }
            Command::Take { epoch, beat, holder, .. } => {
                let is_same_beat = row.beat == *beat || is_on(Mutant::TakesWithoutBeat);
                if row.epoch != *epoch || !is_same_beat {
                    return false;
                }
                (row.epoch, row.holder, row.beat) = (epoch + 1, Some(holder.clone()), 0);
            }
            Command::RaiseFloor { node, floor, joins, .. } => {
                let is_member = row.members.contains_key(node);
                if !is_member && !joins {
                    return false;
                }
                let known = row.members.entry(node.clone()).or_insert(*floor);
                *known = (*known).max(*floor);
            }
            Command::Beat { epoch, .. }
            | Command::RaiseCut { epoch, .. }
            | Command::Strike { epoch, .. }
                if row.epoch != *epoch =>
            {
                return false;
            }
            Command::Beat { stops: true, .. } => row.beat = STOPPED,
            // A late renewal does not undo the end of a lease.
            Command::Beat { least, .. } if row.beat == STOPPED || row.beat < *least => {
                return false;
            }
            Command::Beat { .. } => row.beat += 1,
            Command::RaiseCut { cut, .. } if is_on(Mutant::SetsCut) => row.cut = *cut,
            Command::RaiseCut { cut, .. } => row.cut = row.cut.max(*cut),
            Command::Strike { node, .. } => {
                row.members.remove(node);
            }
            Command::Leave { node, heir, cut, .. } => {
                if row.cut != *cut || !row.has_cut(heir) || row.members.remove(node).is_none() {
                    return false;
                }
            }
            _ => return false,
        }
        self.put(Change::Shard(*shard, row));
        true
    }

    fn read(&self) -> &Rows {
        if is_on(Mutant::LocalReads) { &self.primary } else { &self.majority }
    }

    fn put(&mut self, change: Change) {
        self.primary.put(change.clone());
        self.unconfirmed.push(change);
        if !self.is_slow {
            self.confirm(usize::MAX);
        }
    }
}

impl Rows {
    fn put(&mut self, change: Change) {
        match change {
            Change::Entry(id, Some(entry)) => {
                self.entries.insert(id, entry);
            }
            Change::Entry(id, None) => {
                self.entries.remove(&id);
            }
            Change::Shard(shard, row) => {
                self.shards.insert(shard, row);
            }
            Change::Held(id) => {
                self.held.insert(id);
            }
            Change::Node(row) => {
                self.nodes.insert(row.node.clone(), row);
            }
        }
    }
}
