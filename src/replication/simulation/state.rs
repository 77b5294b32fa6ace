//! The state of a shard in the simulation: batches, a digest of all entries, and a disk.

use std::{
    cell::RefCell,
    collections::{BTreeMap, BTreeSet},
    rc::Rc,
};

use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::replication::{
    entry::{Body, ShardRow},
    shard::{Origin, Shard, ShardFault},
};

pub(super) const NODES: usize = 3;
pub(super) const SHARDS: u16 = 2;

/// The log of directed schedules.
pub(super) const LOG: i64 = 7;

/// A state that follows from the entries.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct State {
    pub(super) applied: u64,
    /// The number of times that each batch was applied.
    pub(super) batches: BTreeMap<u32, u32>,
    pub(super) digest: u64,
}

/// The disks of all nodes, and the digests after each entry.
#[derive(Debug, Default)]
pub(super) struct Shared {
    /// The disks by node and shard.
    pub(super) disks: BTreeMap<(usize, u16), State>,
    /// The logs of the replicas by node and shard.
    pub(super) origins: BTreeMap<(usize, u16), Origin>,
    /// The digest after each entry, as the first replica computed it.
    pub(super) digests: BTreeMap<(u16, u64), u64>,
    /// The nodes that do not send their states, because they have not recognized their log.
    pub(super) unverified: BTreeSet<usize>,
    /// The first difference between replicas.
    pub(super) difference: Option<String>,
}

/// A replica's state.
#[derive(Debug)]
pub(super) struct ToyShard {
    node: usize,
    shard: u16,
    pub(super) memory: State,
    shared: Rc<RefCell<Shared>>,
}

impl ToyShard {
    pub(super) fn open(node: usize, shard: u16, shared: Rc<RefCell<Shared>>) -> Self {
        let memory = shared.borrow().disks.get(&(node, shard)).cloned().unwrap_or_default();
        Self { node, shard, memory, shared }
    }

    /// Lets the state belong to [`LOG`].
    pub(super) fn with_origin(mut self) -> Self {
        self.set_origin(Origin { log: LOG, is_founded: true, fence: None }).unwrap();
        self
    }

    /// Writes the state to the disk.
    pub(super) fn sync(&self) {
        self.shared.borrow_mut().disks.insert((self.node, self.shard), self.memory.clone());
    }
}

/// Returns the batches of a record.
pub(super) fn batches_of(bytes: &[u8]) -> impl Iterator<Item = u32> {
    bytes.as_chunks::<4>().0.iter().map(|batch| u32::from_le_bytes(*batch))
}

impl Shard for ToyShard {
    fn applied(&self) -> u64 {
        self.memory.applied
    }

    fn apply(&mut self, number: u64, body: &Body) -> Result<(), ShardFault> {
        let state = &mut self.memory;
        let bytes = match body {
            Body::Record(bytes) => &bytes[..],
            Body::Fence => b"fence",
        };
        if let Body::Record(bytes) = body {
            for batch in batches_of(bytes) {
                *state.batches.entry(batch).or_default() += 1;
            }
        }
        state.applied = number;
        state.digest = xxh3_64_with_seed(bytes, state.digest ^ number);
        let mut shared = self.shared.borrow_mut();
        let digest = *shared.digests.entry((self.shard, number)).or_insert(state.digest);
        if digest != state.digest && shared.difference.is_none() {
            shared.difference =
                Some(format!("DIFFERENT at {number} of shard {}, node {}", self.shard, self.node));
        }
        Ok(())
    }

    fn durable_floor(&self) -> u64 {
        let shared = self.shared.borrow();
        shared.disks.get(&(self.node, self.shard)).map_or(0, |disk| disk.applied)
    }

    fn origin(&self) -> Option<Origin> {
        self.shared.borrow().origins.get(&(self.node, self.shard)).copied()
    }

    fn set_origin(&mut self, origin: Origin) -> Result<(), ShardFault> {
        self.shared.borrow_mut().origins.insert((self.node, self.shard), origin);
        Ok(())
    }

    fn seed(&mut self, row: &ShardRow) -> Result<(), ShardFault> {
        let newest = {
            let shared = self.shared.borrow();
            let disks = shared.disks.iter().filter(|((node, shard), _)| {
                *shard == self.shard && !shared.unverified.contains(node)
            });
            disks.max_by_key(|(_, disk)| disk.applied).map(|(_, disk)| disk.clone())
        };
        let newest = newest.filter(|newest| newest.applied >= row.cut);
        self.memory = newest.ok_or_else(|| ShardFault("no snapshot".to_owned()))?;
        self.set_origin(Origin { log: row.log, is_founded: true, fence: None })?;
        self.sync();
        Ok(())
    }
}
