//! The groups of rules, each idle or being evaluated, and the requests that wait for them.
//!
//! This file contains only the state; `evaluating.rs` advances it. Must never know: schedules,
//! evaluation.

use tokio::{
    sync::oneshot,
    task::{JoinError, JoinSet},
};

use super::{group::RunningGroup, hosts::HostSeries};
use crate::{
    alerts::RuleGroup,
    kept::{Acknowledge, AcknowledgeResult, GroupStatus},
    model::UnixMillis,
};

/// The groups, with the rules that were last loaded.
#[derive(Debug, Default)]
pub(super) struct Groups {
    pub(super) generation: u64,
    pub(super) all: Vec<GroupEntry>,
    pub(super) in_flight: JoinSet<EvaluatedGroup>,
    /// Evaluations that ended and whose groups are not idle again yet.
    pub(super) evaluated: Vec<Result<EvaluatedGroup, JoinError>>,
    pub(super) pending: Vec<PendingRequest>,
    pub(super) hosts: HostSeries,
    pub(super) reviewed: ReviewProgress,
    /// The number of writes that ended series.
    pub(super) ends: usize,
    /// The number of times that the clock was set back, for the numbers of writes that end series.
    pub(super) set_back: u32,
}

/// A group, idle or being evaluated.
#[derive(Debug)]
pub(super) struct GroupEntry {
    pub(super) id: String,
    /// The group as its file defines it.
    pub(super) group: RuleGroup,
    /// The group's state; `None` while it is evaluated.
    pub(super) running: Option<Box<RunningGroup>>,
}

/// A group after its evaluation; without a status, the daemon is stopping and the evaluation is
/// discarded.
pub(super) type EvaluatedGroup = (Box<RunningGroup>, Option<GroupStatus>);

/// A request that waits for groups.
#[derive(Debug)]
pub(super) struct PendingRequest {
    pub(super) acknowledge: Acknowledge,
    pub(super) reply: oneshot::Sender<AcknowledgeResult>,
    /// The ids of the groups that the request has not reached.
    pub(super) remaining_ids: Vec<String>,
    pub(super) outcome: AcknowledgeResult,
}

/// The time of the last review of an episode, and the number of reviews.
#[derive(Debug, Default)]
pub(super) struct ReviewProgress {
    pub(super) at: UnixMillis,
    pub(super) count: usize,
    /// The generation of the dictionary, and the time since which it is current.
    pub(super) generation: Option<u64>,
    pub(super) since: UnixMillis,
}
