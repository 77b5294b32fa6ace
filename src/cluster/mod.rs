//! A node of a cluster: several nodes have replicas of a store's shards, each of which is a store
//! with a log of its own in MongoDB.
//!
//! The crate `replication` decides which node holds a shard. [`shard`] applies its records to the
//! store, [`log`] appends those of the holder, and [`node`] starts the memberships of this node.
//! `daemon/clustering` alternates between following and holding the first shard, whose holder
//! answers all requests; [`forward`] passes them to it meanwhile, and [`lease`] refuses answers
//! that may be out of date. Must never know: what requests mean.

mod answer;
pub mod control;
pub mod follower;
pub mod forward;
pub mod lease;
pub mod log;
pub mod membership;
pub mod metrics;
pub mod node;
pub mod nodes;
pub mod remembered;
pub mod secret;
pub mod seed;
pub mod serving;
pub mod shard;
pub mod shards;
pub mod upkeep;

pub use control::{ClusterControl, ClusterStatus, NodeStatus, OrderRefusal, Place, ShardStatus};
pub use follower::Follower;
pub use forward::{ForwardLimits, Forwarder};
pub use lease::Lease;
pub use log::ReplicaLog;
pub use membership::{Membership, Phase};
pub use metrics::NodeMetrics;
pub use node::{Node, NodeParts};
pub use shard::{SharedReplica, StoreShard};
pub use upkeep::UpkeepSettings;
