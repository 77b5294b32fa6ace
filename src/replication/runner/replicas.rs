//! The replicas of a node that run at present.
//!
//! Must never know: which node holds a shard.

use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
};

use parking_lot::Mutex;

use crate::replication::runner::{ReplicaHandle, now_ms};

/// The time in which the lease of another process can be valid, with a reserve.
const OTHER_LEASE_MS: u64 = 30_000;

/// The replicas of a node by shard; a replica that is being opened again is missing. Clones are
/// cheap.
pub struct Replicas<S>(Arc<Mutex<All<S>>>);

struct All<S> {
    replicas: BTreeMap<u16, Weak<ReplicaHandle<S>>>,
    /// The time at which another process was found to have used the node's name.
    other_process_ms: Option<u64>,
}

impl<S> Replicas<S> {
    /// Adds the replica of a shard, in place of its earlier one. The replica ends when its owner
    /// drops it.
    pub fn add(&self, shard: u16, replica: &Arc<ReplicaHandle<S>>) {
        let mut all = self.0.lock();
        all.replicas.insert(shard, Arc::downgrade(replica));
        if all.other_process_ms.is_some_and(|at| now_ms().saturating_sub(at) < OTHER_LEASE_MS) {
            replica.note_other_process().ok();
        }
    }

    /// Returns the replica of a shard; `None` while it does not run.
    pub fn get(&self, shard: u16) -> Option<Arc<ReplicaHandle<S>>> {
        self.0.lock().replicas.get(&shard).and_then(Weak::upgrade)
    }

    /// Returns all replicas that run, in the order of shards.
    pub fn all(&self) -> Vec<(u16, Arc<ReplicaHandle<S>>)> {
        let all = self.0.lock();
        let running = |(shard, replica): (&u16, &Weak<_>)| Some((*shard, replica.upgrade()?));
        all.replicas.iter().filter_map(running).collect()
    }

    /// Notes that another process used this node's name, whose leases may still be valid.
    pub fn note_other_process(&self) {
        self.0.lock().other_process_ms = Some(now_ms());
        for (_, replica) in self.all() {
            // A full queue refuses; the replica then waits for a lease that nobody renews.
            replica.note_other_process().ok();
        }
    }
}

impl<S> Clone for Replicas<S> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

impl<S> Default for Replicas<S> {
    fn default() -> Self {
        Self(Arc::new(Mutex::new(All { replicas: BTreeMap::new(), other_process_ms: None })))
    }
}

impl<S> std::fmt::Debug for Replicas<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Replicas")
    }
}
