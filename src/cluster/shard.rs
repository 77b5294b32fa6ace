//! The store as a shard of the replicated log.
//!
//! The thread of the replica applies entries while the node follows. The appender of the store
//! applies its own records while the node holds, and the shard only notes their numbers. Must
//! never know: who holds, what records mean.

use std::{path::Path, sync::Arc, time::Duration};

use anyhow::Context;
use parking_lot::Mutex;

use super::{
    remembered::{read_origin, write_origin},
    seed::Seeding,
    upkeep::{Upkeep, UpkeepSettings},
};
use crate::{
    clock::{Clock, SystemClock},
    replication::{Body, Origin, Shard, ShardFault, ShardRow},
    store::{
        Appender, ClosedStore, Folder, Medium, RecordSink, Replica, Store, discard_replica,
        finish_transfer,
    },
};

/// The time limit for the end of all uses of the store.
const CLOSED_WITHIN: Duration = Duration::from_secs(10);

/// The state of a replica.
enum State {
    /// The disk has no replica yet.
    New {
        /// The number of the last fence.
        passed: u64,
        /// True if the disk has files of a replica that is not used any more.
        discards: bool,
    },
    Following {
        replica: Box<Replica>,
        store: Store,
        upkeep: Upkeep,
    },
    /// The store's appender applies its own records.
    Leading {
        applied: u64,
        store: Store,
    },
    Closed,
}

/// The replica of this node, which its thread and the daemon share. Clones are cheap.
#[derive(Clone)]
pub struct SharedReplica(Arc<Mutex<State>>);

impl std::fmt::Debug for SharedReplica {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SharedReplica")
    }
}

impl Default for SharedReplica {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(State::Closed)))
    }
}

impl SharedReplica {
    /// Returns the store, whether this node follows or holds; `None` without one.
    pub fn store(&self) -> Option<Store> {
        match &*self.0.lock() {
            State::Following { store, .. } | State::Leading { store, .. } => Some(store.clone()),
            State::New { .. } | State::Closed => None,
        }
    }

    /// Returns true if the disk has no replica yet, although the log was read.
    pub fn is_new(&self) -> bool {
        matches!(&*self.0.lock(), State::New { .. })
    }

    /// Makes the store's appender the one that appends to the log; `None` unless the replica
    /// follows.
    pub fn lead(&self, log: Box<dyn RecordSink>) -> Option<(Store, Appender)> {
        let mut state = self.0.lock();
        match std::mem::replace(&mut *state, State::Closed) {
            // A checkpoint may be running: the thread of the local work ends after it.
            State::Following { replica, store, upkeep: _ } => {
                let applied = replica.applied();
                *state = State::Leading { applied, store: store.clone() };
                Some((store, replica.lead(log)))
            }
            other @ (State::New { .. } | State::Leading { .. } | State::Closed) => {
                *state = other;
                None
            }
        }
    }

    /// Drops this node's handles of the store. Returns the means to wait until it is closed.
    pub fn close(&self) -> Option<ClosedStore> {
        // The lock is free while a checkpoint ends.
        let state = std::mem::replace(&mut *self.0.lock(), State::Closed);
        match state {
            State::Following { store, upkeep, .. } => {
                upkeep.end();
                Some(store.closed())
            }
            State::Leading { store, .. } => Some(store.closed()),
            State::New { .. } | State::Closed => None,
        }
    }
}

/// The replica as the thread of the replica uses it.
#[derive(Debug)]
pub struct StoreShard {
    seeding: Seeding,
    upkeep: UpkeepSettings,
    replica: SharedReplica,
    /// The log that the files follow from.
    origin: Mutex<Option<Origin>>,
    /// The last known durable number. A failed read must not look like a lost disk.
    floor: Mutex<u64>,
}

impl StoreShard {
    /// Opens the replica in a data directory, if there is one.
    ///
    /// # Errors
    /// When the files cannot be used.
    pub fn open(
        seeding: Seeding,
        upkeep: UpkeepSettings,
        replica: SharedReplica,
    ) -> anyhow::Result<Self> {
        let (origin, floor) = (Mutex::default(), Mutex::new(0));
        let shard = Self { seeding, upkeep, replica, origin, floor };
        shard.reopen()?;
        Ok(shard)
    }

    fn folder(&self) -> &Path {
        &self.seeding.folder
    }

    fn medium(&self) -> anyhow::Result<Arc<dyn Medium>> {
        let medium = Folder::new(self.folder());
        let folder = self.folder().display();
        Ok(Arc::new(medium.with_context(|| format!("create the data directory {folder}"))?))
    }

    fn reopen(&self) -> anyhow::Result<()> {
        // A kill or a fault of the disk may have interrupted the replacement of the files.
        finish_transfer(self.folder())?;
        let medium = self.medium()?;
        let folder = self.folder().display();
        let context = || format!("open the replica in {folder}");
        // A damaged journal could be that of an embedded store, which a copy must not replace.
        if !Replica::exists(&medium).with_context(context)? {
            *self.replica.0.lock() = State::New { passed: 0, discards: false };
            (*self.floor.lock(), *self.origin.lock()) = (0, None);
            return Ok(());
        }
        *self.origin.lock() = read_origin(self.folder())?;
        let state = match Replica::open(medium, None, SystemClock.now()) {
            Ok((store, replica)) => {
                tracing::info!(
                    data_dir = %folder,
                    series = store.all_series().len(),
                    applied = replica.applied(),
                    "opened the replica"
                );
                self.following(store, replica)?
            }
            Err(cause) if cause.is_damage() => {
                let cause: &dyn std::error::Error = &cause;
                tracing::error!(
                    cause,
                    data_dir = %folder,
                    "the replica is damaged: this node copies the one of another member"
                );
                State::New { passed: 0, discards: true }
            }
            Err(cause) => return Err(cause).with_context(context),
        };
        *self.replica.0.lock() = state;
        *self.floor.lock() = 0;
        Ok(())
    }

    fn following(&self, store: Store, replica: Replica) -> anyhow::Result<State> {
        let upkeep = Upkeep::start(store.clone(), self.upkeep);
        let upkeep = upkeep.context("start the thread of the replica's local work")?;
        Ok(State::Following { replica: Box::new(replica), store, upkeep })
    }

    /// Closes the replica, and begins as a node without one: it is copied from another member, or
    /// the log is applied from its beginning. The files are replaced then.
    pub(super) fn begin_anew(&self) {
        if let State::Leading { .. } = &*self.replica.0.lock() {
            tracing::warn!("this node holds the store now: it keeps its replica");
            return;
        }
        if let Some(closed) = self.replica.close()
            && !closed.wait(CLOSED_WITHIN)
        {
            tracing::warn!("a request still uses the store: this node keeps its replica");
            if let Err(fault) = self.reopen() {
                tracing::error!("{fault:#}");
            }
            return;
        }
        *self.replica.0.lock() = State::New { passed: 0, discards: true };
        *self.floor.lock() = 0;
    }

    /// Creates a replica with the first record of the log, before which the log has only fences.
    fn found(&self, number: u64, bytes: &[u8], discards: bool) -> anyhow::Result<State> {
        if discards {
            discard_replica(self.folder())?;
        }
        let medium = self.medium()?;
        let (store, mut replica) = Replica::open(medium, Some(bytes), SystemClock.now())?;
        for fence in 1..number {
            replica.pass(fence)?;
        }
        replica.apply(number, bytes)?;
        tracing::info!(number, "created the replica with the first record of the log");
        self.following(store, replica)
    }

    fn apply_entry(&self, number: u64, body: &Body) -> anyhow::Result<()> {
        let mut state = self.replica.0.lock();
        match (&mut *state, body) {
            (State::New { passed, .. }, Body::Fence) => *passed = number,
            (State::New { discards, .. }, Body::Record(bytes)) => {
                *state = self.found(number, bytes, *discards)?;
            }
            (State::Following { replica, .. }, Body::Fence) => {
                replica.pass(number)?;
            }
            (State::Following { replica, .. }, Body::Record(bytes)) => {
                replica.apply(number, bytes)?;
            }
            (State::Leading { applied, .. }, _) => *applied = number,
            (State::Closed, _) => anyhow::bail!("the store is closed"),
        }
        Ok(())
    }
}

impl Shard for StoreShard {
    fn applied(&self) -> u64 {
        match &*self.replica.0.lock() {
            State::New { passed, .. } => *passed,
            State::Following { replica, .. } => replica.applied(),
            State::Leading { applied, .. } => *applied,
            State::Closed => 0,
        }
    }

    fn apply(&mut self, number: u64, body: &Body) -> Result<(), ShardFault> {
        self.apply_entry(number, body).map_err(|fault| ShardFault(format!("{fault:#}")))
    }

    fn durable_floor(&self) -> u64 {
        let mut floor = self.floor.lock();
        if let Some(Ok(found)) = self.replica.store().map(|store| store.durable_floor()) {
            *floor = found;
        }
        *floor
    }

    fn origin(&self) -> Option<Origin> {
        *self.origin.lock()
    }

    fn set_origin(&mut self, origin: Origin) -> Result<(), ShardFault> {
        let written = write_origin(self.folder(), origin);
        written.map_err(|fault| ShardFault(format!("{fault:#}")))?;
        *self.origin.lock() = Some(origin);
        Ok(())
    }

    fn seed(&mut self, row: &ShardRow) -> Result<(), ShardFault> {
        let fault = |fault: anyhow::Error| ShardFault(format!("{fault:#}"));
        // The copy may end with a fence that this node has not seen.
        self.set_origin(Origin { log: row.log, is_founded: true, fence: None })?;
        if let Some(closed) = self.replica.close()
            && !closed.wait(CLOSED_WITHIN)
        {
            self.reopen().map_err(fault)?;
            return Err(ShardFault("a request still uses the store".to_owned()));
        }
        let outcome = self.seeding.seed(row);
        self.reopen().map_err(fault)?;
        outcome
    }
}
