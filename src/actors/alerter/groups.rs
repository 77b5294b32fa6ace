//! The groups of rules, each here or being evaluated, and the requests on their way through them.
//!
//! Must never know: when a group is due, how it is evaluated.

use tokio::{
    sync::oneshot,
    task::{JoinError, JoinSet},
};

use super::{group::Running, hosts::HostSeries};
use crate::{
    alerts::RuleGroup,
    kept::{Acknowledge, Acknowledged, GroupStatus},
    model::UnixMillis,
};

/// The groups, and when their rules were read.
#[derive(Debug, Default)]
pub(super) struct Groups {
    pub(super) generation: u64,
    pub(super) all: Vec<Place>,
    pub(super) under_way: JoinSet<Evaluated>,
    /// Evaluations that ended and were not taken back yet.
    pub(super) evaluated: Vec<Result<Evaluated, JoinError>>,
    pub(super) asking: Vec<Asking>,
    pub(super) hosts: HostSeries,
    pub(super) reviewed: Reviewed,
    /// The number of writes that ended series.
    pub(super) ends: usize,
    /// The number of times that the clock was set back, for those writes.
    pub(super) set_back: u32,
}

/// A group, here or being evaluated.
#[derive(Debug)]
pub(super) struct Place {
    pub(super) id: String,
    /// The group as its file defines it.
    pub(super) group: RuleGroup,
    /// `None` while it is evaluated.
    pub(super) running: Option<Box<Running>>,
}

/// A group after its evaluation; `None`: the daemon stops, and the evaluation counts for nothing.
pub(super) type Evaluated = (Box<Running>, Option<GroupStatus>);

/// A request on its way through the groups.
#[derive(Debug)]
pub(super) struct Asking {
    pub(super) asked: Acknowledge,
    pub(super) reply: oneshot::Sender<Acknowledged>,
    /// The groups that it has not come to, by their ids.
    pub(super) left: Vec<String>,
    pub(super) outcome: Acknowledged,
}

/// The last review of an episode, and the number of reviews.
#[derive(Debug, Default)]
pub(super) struct Reviewed {
    pub(super) at: UnixMillis,
    pub(super) count: usize,
    /// The generation of the dictionary, and the time since which it is current.
    pub(super) generation: Option<u64>,
    pub(super) since: UnixMillis,
}
