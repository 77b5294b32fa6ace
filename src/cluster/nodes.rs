//! The addresses of all nodes, which the task that beats for this node reads.
//!
//! Must never know: who uses them.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::replication::{NodeName, medium::NodeRow};

/// The addresses of all nodes, as of the last read. Clones are cheap.
#[derive(Debug, Clone, Default)]
pub struct KnownNodes(pub(super) Arc<Mutex<Vec<NodeRow>>>);

impl KnownNodes {
    /// Returns the rows of all nodes.
    pub fn rows(&self) -> Vec<NodeRow> {
        self.0.lock().clone()
    }

    /// Returns the address of a node.
    pub fn address(&self, node: &NodeName) -> Option<String> {
        let nodes = self.0.lock();
        nodes.iter().find(|row| row.node == *node).map(|row| row.address.clone())
    }

    /// Returns the nodes whose rules have another digest. A node that runs has one.
    pub fn with_other_rules(&self, digest: &str) -> Vec<NodeName> {
        let nodes = self.0.lock();
        let other = nodes
            .iter()
            .filter(|row| !row.rules.is_empty() && !digest.is_empty() && row.rules != digest);
        other.map(|row| row.node.clone()).collect()
    }

    /// Returns the number of the last beat of a node.
    pub fn beat(&self, node: &NodeName) -> Option<i64> {
        let nodes = self.0.lock();
        nodes.iter().find(|row| row.node == *node).map(|row| row.beat)
    }
}
