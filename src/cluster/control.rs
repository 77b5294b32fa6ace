//! The operation of a cluster: its state, and the changes that an operator orders.
//!
//! Must never know: routes.

mod orders;

pub use orders::OrderRefusal;
pub(super) use orders::{HAND_OVER_PATH, STRIKE_PATH};

use std::{
    collections::BTreeMap,
    sync::{Arc, Weak},
    time::Duration,
};

use actix_web::http::header::HeaderMap;
use serde::{Deserialize, Serialize};

use super::{forward::FORWARDED_SECRET, node::Node, shard::StoreShard, shards::FIRST};
use crate::{
    clock::Stopwatch,
    replication::{
        NodeName,
        entry::STOPPED,
        runner::{ReplicaHandle, Status},
    },
};

/// The time within which a node that runs renews its row, with a reserve.
const BEATS_WITHIN: Duration = Duration::from_millis(3500);
const LOOK: Duration = Duration::from_millis(100);

/// The state of a cluster. Without `shards`, the values are those of the first shard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClusterStatus {
    /// The node that answers.
    pub node: String,
    /// The node that holds the store; `None` before the first one.
    pub holder: Option<String>,
    /// The number of times that the store changed its holder, or its holder restarted.
    pub epoch: u64,
    /// The number of the last renewal of the lease.
    pub beat: i64,
    /// The last record that the answering node applied.
    pub last_record: u64,
    /// The record up to which the log was deleted.
    pub cut: u64,
    /// The members first, each group in the order of names.
    pub nodes: Vec<NodeStatus>,
    /// The last reason why MongoDB did not answer.
    pub last_fault: Option<String>,
    /// The shards, in order.
    #[serde(default)]
    pub shards: Vec<ShardStatus>,
}

/// The state of a shard.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardStatus {
    /// The number of the shard.
    pub shard: u16,
    /// The node that holds the shard; `None` before the first one.
    pub holder: Option<String>,
    /// The number of times that the shard changed its holder, or its holder restarted.
    pub epoch: u64,
    /// The record up to which the log was deleted.
    pub cut: u64,
    /// The members, and the records up to which their disks have the log.
    pub members: BTreeMap<String, u64>,
}

/// The state of a node in a cluster.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeStatus {
    /// The name.
    pub node: String,
    /// The address; `None` when the node has never run.
    pub address: Option<String>,
    /// True when the node renewed its row meanwhile.
    pub alive: bool,
    /// True for the holder.
    pub holds: bool,
    /// The record up to which the disk has the log; `None` for a node without a replica.
    pub floor: Option<u64>,
    /// The number of records that the disk lacks.
    pub lag_records: Option<u64>,
}

/// The means to operate a cluster by one of its nodes. Clones are cheap.
#[derive(Debug, Clone)]
pub struct ClusterControl(Node);

/// The holder of a shard.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Place {
    /// This node.
    Here,
    /// Another node.
    There {
        /// The address.
        address: String,
        /// The header `Authorization` of requests to the node.
        authorization: String,
    },
}

/// The role of this node in a shard at some time.
pub(super) struct Role {
    replica: Weak<ReplicaHandle<StoreShard>>,
    epoch: Option<u64>,
}

impl Role {
    /// Returns true when the node has another role since then.
    pub(super) fn is_over(&self) -> bool {
        self.replica.upgrade().is_none_or(|replica| replica.status().epoch != self.epoch)
    }
}

impl ClusterControl {
    /// Returns the means of a node.
    pub fn of(node: &Node) -> Self {
        Self(node.clone())
    }

    pub(super) fn node(&self) -> &Node {
        &self.0
    }

    /// Returns the name of this node.
    pub fn name(&self) -> &NodeName {
        &self.0.parts().node
    }

    /// Returns true if a node of this cluster passed a request with these headers on.
    pub fn is_from_node(&self, headers: &HeaderMap) -> bool {
        let Some(secret) = self.0.secret().get() else { return false };
        let given = headers.get(FORWARDED_SECRET).and_then(|value| value.to_str().ok());
        given.is_some_and(|given| secret.admits(given))
    }

    /// Returns true once this node's replica of a shard was found to follow from the log.
    pub(super) fn is_verified(&self, shard: u16) -> bool {
        let status = self.status_of(shard);
        status.epoch.is_some() || status.caught_up_ms.is_some()
    }

    /// Returns the number of shards; `None` while MongoDB was not reachable yet.
    pub fn shards(&self) -> Option<u16> {
        self.0.shards().get()
    }

    /// Returns the holder of a shard; `None` if no node holds it, or this one does not know it.
    pub fn place(&self, shard: u16) -> Option<Place> {
        let status = self.status_of(shard);
        if status.epoch.is_some() {
            return Some(Place::Here);
        }
        let row = status.row?;
        let holder = row.holder.filter(|holder| holder != self.name() && row.beat != STOPPED)?;
        let address = self.0.nodes().address(&holder)?;
        let authorization = self.0.secret().get()?.authorization();
        Some(Place::There { address, authorization })
    }

    /// Returns the problems of the shards after the first one: those of this node, and shards that
    /// no node holds.
    pub fn fault_of_shards(&self) -> Option<String> {
        let without = |shard: &u16| self.place(*shard).is_none();
        let without = (FIRST + 1..self.shards().unwrap_or_default()).filter(without);
        let without = without.map(|shard| format!("shard {shard}: no node holds it"));
        let all: Vec<_> = self.0.health().reason().into_iter().chain(without).collect();
        (!all.is_empty()).then(|| all.join("; "))
    }

    /// Returns true if a request has the secret of the cluster.
    pub fn admits(&self, authorization: &str) -> bool {
        self.0.secret().get().is_some_and(|secret| secret.admits(authorization))
    }

    /// Runs blocking work outside of the HTTP workers.
    ///
    /// # Errors
    /// When the work panicked.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, tokio::task::JoinError> {
        self.0.runtime().spawn_blocking(work).await
    }

    /// Returns the role of this node in a shard; `None` without one.
    pub(super) fn role(&self, shard: u16) -> Option<Role> {
        let replica = self.0.running().get(shard)?;
        Some(Role { epoch: replica.status().epoch, replica: Arc::downgrade(&replica) })
    }

    /// Returns the status of this node's replica of a shard.
    fn status_of(&self, shard: u16) -> Status {
        self.0.running().get(shard).map_or_else(Status::default, |replica| replica.status())
    }

    /// Returns the state of the cluster. It waits a few seconds for signs of life of all nodes.
    pub async fn status(&self) -> ClusterStatus {
        let beats = || -> BTreeMap<_, _> {
            let rows = self.0.nodes().rows();
            rows.into_iter().map(|row| (row.node, (row.address, row.beat))).collect()
        };
        let (first, watch) = (beats(), Stopwatch::start());
        let mut last = first.clone();
        let is_alive = |last: &BTreeMap<NodeName, (String, i64)>, node: &NodeName| {
            let beat = |beats: &BTreeMap<NodeName, (String, i64)>| beats.get(node).map(|row| row.1);
            beat(last) != beat(&first)
        };
        while watch.elapsed() < BEATS_WITHIN && !first.keys().all(|node| is_alive(&last, node)) {
            tokio::time::sleep(LOOK).await;
            last = beats();
        }
        let status = self.status_of(FIRST);
        let row = status.row.unwrap_or_default();
        // Rows of nodes that ended stay in the database.
        let others = last.keys().filter(|node| is_alive(&last, node));
        let mut names: Vec<_> = row.members.keys().chain(others).collect();
        names.sort_by_key(|node| (!row.members.contains_key(*node), *node));
        names.dedup();
        let node = |node: &&NodeName| NodeStatus {
            node: node.to_string(),
            address: last.get(*node).map(|found| found.0.clone()),
            alive: is_alive(&last, node),
            holds: row.holder.as_ref() == Some(*node),
            floor: row.members.get(*node).copied(),
            lag_records: row.members.get(*node).map(|floor| status.applied.saturating_sub(*floor)),
        };
        let shards = 0..self.0.shards().get().unwrap_or_default();
        ClusterStatus {
            node: self.name().to_string(),
            holder: row.holder.as_ref().map(ToString::to_string),
            epoch: row.epoch,
            beat: row.beat,
            last_record: status.applied,
            cut: row.cut,
            nodes: names.iter().map(node).collect(),
            last_fault: status.last_fault,
            shards: shards.map(|shard| self.shard_status(shard)).collect(),
        }
    }

    fn shard_status(&self, shard: u16) -> ShardStatus {
        let row = self.status_of(shard).row.unwrap_or_default();
        let members = row.members.iter().map(|(node, floor)| (node.to_string(), *floor));
        ShardStatus {
            shard,
            holder: row.holder.as_ref().map(ToString::to_string),
            epoch: row.epoch,
            cut: row.cut,
            members: members.collect(),
        }
    }
}
