//! The state machine of a rule's alerts: inactive, pending, firing, no data.
//!
//! Without `no_data` and `recover`, it does what Prometheus does (`rules/alerting.go`): an alert is
//! active while its series exists, pending until `for` is over, and continues to fire for
//! `keep_firing_for`. Must never know: expressions, templates, the clock.

#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet};

use super::{Alert, AlertPolicy, AlertState, LabelSet, NoData};

/// The time for which an ended alert is remembered, in milliseconds, so that its end can be sent
/// later.
pub(super) const RESOLVED_KEPT_MS: i64 = 15 * 60_000;
/// The time for which missing samples are reported, in milliseconds: a series that is missing for
/// longer was removed.
pub(super) const MISSED_KEPT_MS: i64 = 24 * 3_600_000;

/// The series that an evaluation found for a rule.
#[derive(Debug, Default)]
pub(super) struct FoundSeries {
    /// The labels of the expression's series, each with its value and annotations.
    pub(super) active: BTreeMap<LabelSet, (f64, LabelSet)>,
    /// The alerts whose series is measured, if the rule needs that.
    pub(super) measured: BTreeSet<LabelSet>,
    /// The alerts that have recovered, if the rule needs that.
    pub(super) recovered: BTreeSet<LabelSet>,
    /// The labels of the alert that represents the whole rule when nothing is measured.
    pub(super) rule_labels: LabelSet,
}

impl FoundSeries {
    /// Returns whether any series of an alert, or of the whole rule, is measured.
    pub(super) fn is_measured(&self, labels: &LabelSet) -> bool {
        let measures_anything = !self.measured.is_empty() || !self.active.is_empty();
        self.active.contains_key(labels)
            || self.measured.contains(labels)
            || (*labels == self.rule_labels && measures_anything)
    }
}

/// Returns the alerts after an evaluation, in order of their labels.
pub(super) fn advance(
    policy: &AlertPolicy,
    before: Vec<Alert>,
    found: FoundSeries,
    at: i64,
) -> Vec<Alert> {
    let FoundSeries { active, measured, recovered, rule_labels } = found;
    let mut alerts: BTreeMap<LabelSet, Alert> =
        before.into_iter().map(|alert| (alert.labels.clone(), alert)).collect();
    let is_watched = policy.no_data == NoData::Alerting;
    let mut add_unknown = |labels: &LabelSet| {
        if !alerts.contains_key(labels) {
            alerts.insert(labels.clone(), Alert::inactive(labels.clone()));
        }
    };
    active.keys().for_each(&mut add_unknown);
    if is_watched {
        measured.iter().for_each(&mut add_unknown);
        if alerts.is_empty() {
            alerts.insert(rule_labels.clone(), Alert::inactive(rule_labels.clone()));
        }
    }
    // Missing samples of single series are not reported as missing samples of the rule.
    let measures_anything =
        !measured.is_empty() || alerts.keys().any(|labels| *labels != rule_labels);
    let is_measured = |labels: &LabelSet| {
        measured.contains(labels) || (*labels == rule_labels && measures_anything)
    };
    for (labels, alert) in &mut alerts {
        match active.get(labels) {
            Some((value, annotations)) => {
                alert.value = *value;
                alert.annotations.clone_from(annotations);
                activate(alert, at);
            }
            None if policy.no_data != NoData::Ok && !is_measured(labels) => {
                miss(policy, alert, at);
            }
            None => {
                alert.missing_since = None;
                let continues =
                    policy.recover.is_some() && is_measured(labels) && !recovered.contains(labels);
                deactivate(policy, alert, continues, at);
            }
        }
        let is_due = at - alert.active_at >= policy.for_ms && alert.missing_since.is_none();
        if alert.state == AlertState::Pending && is_due {
            alert.state = AlertState::Firing;
            alert.fired_at = Some(at);
        }
    }
    let is_kept = |alert: &Alert| {
        let is_fresh = |ended: i64| at - ended <= RESOLVED_KEPT_MS;
        let is_of_rule = alert.labels == rule_labels && !measured.contains(&rule_labels);
        let is_missed = alert.missing_since.is_some_and(|since| at - since <= MISSED_KEPT_MS);
        let is_watched = is_watched && (measured.contains(&alert.labels) || is_missed);
        alert.is_active()
            || alert.resolved_at.is_some_and(is_fresh)
            || (is_watched && !(is_of_rule && measures_anything))
    };
    alerts.into_values().filter(is_kept).collect()
}

/// Handles a series that is in the result.
fn activate(alert: &mut Alert, at: i64) {
    alert.keep_firing_since = None;
    alert.missing_since = None;
    if matches!(alert.state, AlertState::Inactive | AlertState::NoData) {
        alert.state = AlertState::Pending;
        alert.active_at = at;
        alert.fired_at = None;
        alert.resolved_at = None;
        alert.acknowledged = None;
    }
}

/// Handles missing samples: no series is measured that the alert's series could result from.
fn miss(policy: &AlertPolicy, alert: &mut Alert, at: i64) {
    let since = *alert.missing_since.get_or_insert(at);
    let missing_ms = at - since;
    match policy.no_data {
        NoData::Keep if policy.no_data_for_ms.is_none_or(|limit| missing_ms < limit) => {}
        NoData::Ok | NoData::Keep => end(alert, at),
        NoData::Alerting if missing_ms > MISSED_KEPT_MS => end(alert, at),
        NoData::Alerting => {
            let is_notified = alert.state.is_notified();
            if !is_notified && missing_ms >= policy.no_data_for_ms.unwrap_or(0) {
                alert.state = AlertState::NoData;
                alert.active_at = since;
                alert.fired_at = Some(at);
                alert.resolved_at = None;
                alert.acknowledged = None;
            }
        }
    }
}

/// Handles a series that is not in the result, when its samples are not missing.
fn deactivate(policy: &AlertPolicy, alert: &mut Alert, continues: bool, at: i64) {
    if alert.state != AlertState::Firing {
        return end(alert, at);
    }
    if continues {
        return;
    }
    if policy.keep_firing_ms > 0 {
        let since = *alert.keep_firing_since.get_or_insert(at);
        if at - since < policy.keep_firing_ms {
            return;
        }
    }
    end(alert, at);
}

fn end(alert: &mut Alert, at: i64) {
    if alert.state.is_notified() {
        alert.resolved_at = Some(at);
    }
    alert.state = AlertState::Inactive;
    alert.keep_firing_since = None;
    alert.acknowledged = None;
}
