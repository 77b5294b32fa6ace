//! A node of a cluster: several nodes have replicas of one store, and apply one log in MongoDB.
//!
//! The crate `replication` decides which node holds the log. [`shard`] applies its records to the
//! store, [`log`] appends those of the holder, and [`node`] starts and ends the membership of this
//! node. `daemon/clustering` alternates between following and holding; [`forward`] passes requests
//! to the holder meanwhile, and [`lease`] refuses answers that may be out of date. The cluster has
//! one shard, number 0. Must never know: what requests mean.

mod answer;
pub mod control;
pub mod follower;
pub mod forward;
pub mod lease;
pub mod log;
pub mod metrics;
pub mod node;
pub mod nodes;
pub mod remembered;
pub mod secret;
pub mod seed;
pub mod serving;
pub mod shard;
pub mod upkeep;

pub use control::{ClusterControl, ClusterStatus, NodeStatus, OrderRefusal};
pub use follower::Follower;
pub use forward::{ForwardLimits, Forwarder};
pub use lease::Lease;
pub use log::ReplicaLog;
pub use metrics::NodeMetrics;
pub use node::{Membership, Node, NodeParts, Phase};
pub use shard::{SharedReplica, StoreShard};
pub use upkeep::UpkeepSettings;

/// The shard of the store. A later release has more of them.
pub const SHARD: u16 = 0;
