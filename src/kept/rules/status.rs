//! The result of a group's evaluations, as others read it.
//!
//! Must never know: how a group is evaluated, who is told of its alerts.

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
    /// Past alerts of the group.
    pub history: Arc<GroupHistory>,
    /// The time of the last evaluation, by the clock.
    pub evaluated_at: Option<UnixMillis>,
    /// The duration of the last evaluation, in seconds.
    pub seconds: f64,
    /// Evaluations that nobody made, since the start.
    pub missed: u64,
    /// The report and the seconds of each rule, in the order of that evaluation; empty before
    /// the first evaluation.
    pub reports: Vec<(RuleReport, f64)>,
}

impl GroupStatus {
    /// The report of a rule, which may have had another place when it was evaluated.
    pub fn report(&self, place: usize, rule: &Rule) -> Option<&(RuleReport, f64)> {
        let is_it = |(report, _): &&(RuleReport, f64)| report.rule == rule.key;
        self.reports.get(place).filter(is_it).or_else(|| self.reports.iter().find(is_it))
    }
}

/// The notified part of a state: all values from which a [`MessageAlert`] is made.
pub(super) fn told(state: &GroupState) -> impl Iterator<Item = impl PartialEq> {
    let alerts = state.rules.values().flat_map(|rule| &rule.alerts);
    let is_any = |own: &&Alert| own.state.is_told() || own.resolved_at.is_some();
    alerts.filter(is_any).map(|own| {
        let times = (own.active_at, own.fired_at, own.resolved_at);
        (&own.labels, &own.annotations, own.state.is_told(), times, &own.acknowledged)
    })
}
