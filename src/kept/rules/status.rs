//! The results of a group's evaluations, for readers.
//!
//! Must never know: evaluation, notification.

use std::sync::Arc;

use crate::{
    alerts::{Alert, GroupHistory, GroupState, Rule, RuleReport},
    model::UnixMillis,
};

/// The result of a group's last evaluation.
#[derive(Debug, Clone, Default)]
pub struct GroupStatus {
    /// The state of its alerts.
    pub state: GroupState,
    /// The past alerts of the group.
    pub history: Arc<GroupHistory>,
    /// The time of the last evaluation, by the clock.
    pub evaluated_at: Option<UnixMillis>,
    /// The duration of the last evaluation, in seconds.
    pub seconds: f64,
    /// The number of missed evaluations since the start.
    pub missed: u64,
    /// The report and the duration of each rule in seconds, in the order of that evaluation; empty
    /// before the first one.
    pub reports: Vec<(RuleReport, f64)>,
}

impl GroupStatus {
    /// Returns the report of a rule, which may have had another index when it was evaluated.
    pub fn report(&self, index: usize, rule: &Rule) -> Option<&(RuleReport, f64)> {
        let is_of_rule = |(report, _): &&(RuleReport, f64)| report.rule == rule.key;
        self.reports.get(index).filter(is_of_rule).or_else(|| self.reports.iter().find(is_of_rule))
    }
}

/// Returns the notified part of a state: all values from which a [`MessageAlert`] is made.
pub(super) fn notified(state: &GroupState) -> impl Iterator<Item = impl PartialEq> {
    let alerts = state.rules.values().flat_map(|rule| &rule.alerts);
    let is_notified = |alert: &&Alert| alert.state.is_notified() || alert.resolved_at.is_some();
    alerts.filter(is_notified).map(|alert| {
        let times = (alert.active_at, alert.fired_at, alert.resolved_at);
        (&alert.labels, &alert.annotations, alert.state.is_notified(), times, &alert.acknowledged)
    })
}
