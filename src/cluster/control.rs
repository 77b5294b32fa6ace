//! The operation of a cluster: its state, and the changes that an operator orders.
//!
//! Must never know: routes.

use std::{collections::BTreeMap, sync::Weak, time::Duration};

use actix_web::http::header::HeaderMap;
use serde::{Deserialize, Serialize};

use super::{
    SHARD,
    forward::FORWARDED_SECRET,
    node::{Membership, Node},
    seed::{SEED_PATH, agent, refusal},
    shard::StoreShard,
};
use crate::{
    clock::Stopwatch,
    replication::{
        NodeName, Refusal, ShardRow,
        runner::{ReplicaHandle, StatusReader},
    },
};

/// The time within which a node that runs renews its row, with a reserve.
const BEATS_WITHIN: Duration = Duration::from_millis(3500);
const LOOK: Duration = Duration::from_millis(100);
/// The time that an operator's request needs for its answer.
const ANSWERED_WITHIN: Duration = Duration::from_millis(300);

/// The state of a cluster.
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

/// The reason why an order is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct OrderRefusal(pub String);

fn refused<T>(text: impl Into<String>) -> Result<T, OrderRefusal> {
    Err(OrderRefusal(text.into()))
}

/// The means to operate a cluster by one of its nodes. Clones are cheap.
#[derive(Debug, Clone)]
pub struct ClusterControl {
    node: Node,
    status: StatusReader,
    replicas: Weak<Vec<ReplicaHandle<StoreShard>>>,
}

impl ClusterControl {
    /// Returns the means of a membership.
    pub fn of(membership: &Membership) -> Self {
        let (node, status) = (membership.node().clone(), membership.status());
        Self { node, status, replicas: membership.replicas() }
    }

    pub(super) fn node(&self) -> &Node {
        &self.node
    }

    /// Returns the name of this node.
    pub fn name(&self) -> &NodeName {
        &self.node.parts().node
    }

    /// Returns true if a node of this cluster passed a request with these headers on.
    pub fn is_from_node(&self, headers: &HeaderMap) -> bool {
        let Some(secret) = self.node.secret().get() else { return false };
        let given = headers.get(FORWARDED_SECRET).and_then(|value| value.to_str().ok());
        given.is_some_and(|given| secret.admits(given))
    }

    /// Returns true once this node's replica was found to follow from the log.
    pub(super) fn is_verified(&self) -> bool {
        let status = self.status.get();
        status.epoch.is_some() || status.caught_up_ms.is_some()
    }

    /// Returns the epoch that this node holds, and false when its membership is over.
    pub(super) fn role(&self) -> (Option<u64>, bool) {
        (self.status.get().epoch, self.replicas.strong_count() > 0)
    }

    /// Returns the state of the cluster. It waits a few seconds for signs of life of all nodes.
    pub async fn status(&self) -> ClusterStatus {
        let beats = || -> BTreeMap<_, _> {
            let rows = self.node.nodes().rows();
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
        let status = self.status.get();
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
        ClusterStatus {
            node: self.name().to_string(),
            holder: row.holder.as_ref().map(ToString::to_string),
            epoch: row.epoch,
            beat: row.beat,
            last_record: status.applied,
            cut: row.cut,
            nodes: names.iter().map(node).collect(),
            last_fault: status.last_fault,
        }
    }

    /// Ends the lease of this node in order, so that another member takes the store.
    ///
    /// # Errors
    /// When this node does not hold the store, or no other member could take it.
    pub fn hand_over(&self) -> Result<(), OrderRefusal> {
        let row = self.held_row()?;
        if !row.members.keys().any(|node| node != self.name() && row.has_cut(node)) {
            return refused("no other member has a replica that is new enough to hold the store");
        }
        // The lease must outlast the answer to the operator.
        let this = self.clone();
        self.node.runtime().spawn(async move {
            tokio::time::sleep(ANSWERED_WITHIN).await;
            if let Err(refusal) = this.order(ReplicaHandle::hand_over) {
                tracing::warn!(%refusal, "cannot hand the store over");
            }
        });
        Ok(())
    }

    /// Removes a member from the cluster.
    ///
    /// # Errors
    /// When this node does not hold the store, or the node is no other member.
    pub fn strike(&self, node: &str) -> Result<(), OrderRefusal> {
        let node = NodeName::parse(node).map_err(OrderRefusal)?;
        let row = self.held_row()?;
        if node == *self.name() {
            return refused(format!("{node} holds the store: hand over first"));
        }
        if !row.members.contains_key(&node) {
            return refused(format!("{node} is no member: {}", members(&row)));
        }
        self.order(move |replica| replica.strike(node.clone()))
    }

    /// Lets another member copy its replica anew. It blocks.
    ///
    /// # Errors
    /// When the node is this one, or refuses or does not answer.
    pub fn seed(&self, node: &str) -> Result<(), OrderRefusal> {
        let node = NodeName::parse(node).map_err(OrderRefusal)?;
        if node == *self.name() {
            return refused(format!("{node} holds the store: hand over first"));
        }
        let Some(address) = self.node.nodes().address(&node) else {
            return refused(format!("{node} is no node of this cluster"));
        };
        let Some(secret) = self.node.secret().get() else {
            return refused("this node has not read the secret of the cluster yet");
        };
        let agent = agent().map_err(|cause| OrderRefusal(format!("{cause:#}")))?;
        let request = agent.post(format!("{address}{SEED_PATH}"));
        match request.header("Authorization", secret.authorization()).send_empty() {
            Ok(response) if response.status().is_success() => Ok(()),
            Ok(mut response) => {
                let body = response.body_mut().with_config().limit(2048).read_to_string();
                refused(format!("{node}: {}", refusal(&body.unwrap_or_default())))
            }
            Err(cause) => refused(format!("{node} does not answer: {cause}")),
        }
    }

    /// Lets this node copy its replica anew.
    ///
    /// # Errors
    /// When this node holds the store, or no other member has what was cut.
    pub(super) fn begin_anew(&self) -> Result<(), OrderRefusal> {
        let status = self.status.get();
        if status.epoch.is_some() {
            return refused(format!("{} holds the store: hand over first", self.name()));
        }
        let row = status.row.unwrap_or_default();
        if !row.members.keys().any(|node| node != self.name() && row.has_cut(node)) {
            return refused("no other member has a replica that could be copied");
        }
        let waits = |node: &&NodeName| *node != self.name() && !row.has_cut(node);
        if let Some(node) = row.members.keys().find(waits) {
            return refused(format!("{node} copies its replica at present: wait until it has"));
        }
        tracing::warn!("an operator ordered that this node copies its replica anew");
        self.order(|replica| replica.query(Box::new(|shard, _| shard.begin_anew())))
    }

    /// Returns the row of the shard, if this node holds it.
    fn held_row(&self) -> Result<ShardRow, OrderRefusal> {
        let status = self.status.get();
        match (status.epoch, status.row) {
            (Some(_), Some(row)) => Ok(row),
            _ => refused("this node does not hold the store at present; retry"),
        }
    }

    fn order(
        &self,
        order: impl FnOnce(&ReplicaHandle<StoreShard>) -> Result<(), Refusal>,
    ) -> Result<(), OrderRefusal> {
        let replicas = self.replicas.upgrade();
        let replica = replicas.as_ref().and_then(|replicas| replicas.get(usize::from(SHARD)));
        let Some(replica) = replica else {
            return refused("this node changes its role at present; retry");
        };
        order(replica).map_err(|refusal| OrderRefusal(refusal.to_string()))
    }
}

fn members(row: &ShardRow) -> String {
    let names: Vec<_> = row.members.keys().map(NodeName::as_str).collect();
    format!("the members are {}", names.join(", "))
}
