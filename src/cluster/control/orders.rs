//! The changes of a cluster that an operator orders, carried out here or by the node concerned.
//!
//! Must never know: routes.

use std::time::Duration;

use super::ClusterControl;
use crate::{
    cluster::{
        seed::{SEED_PATH, agent, refusal},
        shard::StoreShard,
    },
    replication::{NodeName, Refusal, ShardRow, runner::ReplicaHandle},
};

/// The path at which another node orders that this one ends the lease of a shard.
pub(in crate::cluster) const HAND_OVER_PATH: &str = "/cluster/v1/hand-over";
/// The path at which another node orders that this one removes a member of a shard.
pub(in crate::cluster) const STRIKE_PATH: &str = "/cluster/v1/strike";
/// The time that an operator's request needs for its answer.
const ANSWERED_WITHIN: Duration = Duration::from_millis(300);

/// The reason why an order is refused.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct OrderRefusal(pub String);

fn refused<T>(text: impl Into<String>) -> Result<T, OrderRefusal> {
    Err(OrderRefusal(text.into()))
}

impl ClusterControl {
    /// Ends the lease of a shard in order, so that another member takes it. It blocks.
    ///
    /// # Errors
    /// When no node holds the shard, or no other member could take it.
    pub fn hand_over(&self, shard: u16) -> Result<(), OrderRefusal> {
        let holder = self.holder(shard)?;
        if holder != *self.name() {
            return self.order_node(&holder, &format!("{HAND_OVER_PATH}?shard={shard}"));
        }
        self.hand_over_here(shard)
    }

    /// Ends this node's lease of a shard in order. An order of another node is not passed on, so it
    /// cannot circulate while nodes know different holders.
    ///
    /// # Errors
    /// When this node does not hold the shard, or no other member could take it.
    pub(in crate::cluster) fn hand_over_here(&self, shard: u16) -> Result<(), OrderRefusal> {
        let row = self.held_row(shard)?;
        if !row.members.keys().any(|node| node != self.name() && row.has_cut(node)) {
            return refused("no other member has a replica that is new enough to hold the store");
        }
        // The lease must outlast the answer to the operator.
        let this = self.clone();
        self.0.runtime().spawn(async move {
            tokio::time::sleep(ANSWERED_WITHIN).await;
            if let Err(refusal) = this.order(shard, ReplicaHandle::hand_over) {
                tracing::warn!(%refusal, "cannot hand the store over");
            }
        });
        Ok(())
    }

    /// Removes a member of a shard. It blocks.
    ///
    /// # Errors
    /// When no node holds the shard, or the node is no other member.
    pub fn strike(&self, shard: u16, node: &str) -> Result<(), OrderRefusal> {
        let node = NodeName::parse(node).map_err(OrderRefusal)?;
        let holder = self.holder(shard)?;
        if holder != *self.name() {
            return self.order_node(&holder, &format!("{STRIKE_PATH}?shard={shard}&node={node}"));
        }
        self.strike_here(shard, &node)
    }

    /// Removes a member of a shard that this node holds.
    ///
    /// # Errors
    /// When this node does not hold the shard, or the node is no other member.
    pub(in crate::cluster) fn strike_here(
        &self,
        shard: u16,
        node: &NodeName,
    ) -> Result<(), OrderRefusal> {
        let row = self.held_row(shard)?;
        if node == self.name() {
            return refused(format!("{node} holds the store: hand over first"));
        }
        if !row.members.contains_key(node) {
            return refused(format!("{node} is no member: {}", members(&row)));
        }
        self.order(shard, move |replica| replica.strike(node.clone()))
    }

    /// Lets another member copy its replica of a shard anew. It blocks.
    ///
    /// # Errors
    /// When the node is this one, or refuses or does not answer.
    pub fn seed(&self, shard: u16, node: &str) -> Result<(), OrderRefusal> {
        let node = NodeName::parse(node).map_err(OrderRefusal)?;
        if node == *self.name() {
            return self.begin_anew(shard);
        }
        self.order_node(&node, &format!("{SEED_PATH}?shard={shard}"))
    }

    /// Sends an order to another node. It blocks.
    fn order_node(&self, node: &NodeName, path: &str) -> Result<(), OrderRefusal> {
        let Some(address) = self.0.nodes().address(node) else {
            return refused(format!("{node} is no node of this cluster"));
        };
        let Some(secret) = self.0.secret().get() else {
            return refused("this node has not read the secret of the cluster yet");
        };
        let agent = agent().map_err(|cause| OrderRefusal(format!("{cause:#}")))?;
        let request = agent.post(format!("{address}{path}"));
        match request.header("Authorization", secret.authorization()).send_empty() {
            Ok(response) if response.status().is_success() => Ok(()),
            Ok(mut response) => {
                let body = response.body_mut().with_config().limit(2048).read_to_string();
                refused(format!("{node}: {}", refusal(&body.unwrap_or_default())))
            }
            Err(cause) => refused(format!("{node} does not answer: {cause}")),
        }
    }

    /// Lets this node copy its replica of a shard anew.
    ///
    /// # Errors
    /// When this node holds the shard, or no other member has what was cut.
    pub(in crate::cluster) fn begin_anew(&self, shard: u16) -> Result<(), OrderRefusal> {
        let status = self.status_of(shard);
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
        tracing::warn!(shard, "an operator ordered that this node copies its replica anew");
        self.order(shard, |replica| replica.query(Box::new(|shard, _| shard.begin_anew())))
    }

    /// Returns the holder of a shard, as this node knows it.
    fn holder(&self, shard: u16) -> Result<NodeName, OrderRefusal> {
        match self.status_of(shard).row.and_then(|row| row.holder) {
            Some(holder) => Ok(holder),
            None => refused(format!("no node holds the shard {shard} at present; retry")),
        }
    }

    /// Returns the row of a shard, if this node holds it.
    fn held_row(&self, shard: u16) -> Result<ShardRow, OrderRefusal> {
        let status = self.status_of(shard);
        match (status.epoch, status.row) {
            (Some(_), Some(row)) => Ok(row),
            _ => refused("this node does not hold the store at present; retry"),
        }
    }

    fn order(
        &self,
        shard: u16,
        order: impl FnOnce(&ReplicaHandle<StoreShard>) -> Result<(), Refusal>,
    ) -> Result<(), OrderRefusal> {
        let Some(replica) = self.0.running().get(shard) else {
            return refused("this node changes its role at present; retry");
        };
        order(&replica).map_err(|refusal| OrderRefusal(refusal.to_string()))
    }
}

fn members(row: &ShardRow) -> String {
    let names: Vec<_> = row.members.keys().map(NodeName::as_str).collect();
    format!("the members are {}", names.join(", "))
}
