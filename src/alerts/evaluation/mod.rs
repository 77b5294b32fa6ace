//! One evaluation of a group: the samples and alerts that its rules produce at a time.
//!
//! A group is evaluated in stages: rules of later stages can query what earlier stages recorded.
//! Must never know: how an expression is evaluated, where samples and states are written.

mod finding;
mod stages;
#[cfg(test)]
mod tests;

use std::{collections::HashSet, ops::Range};

use finding::without_old_ends;
pub use stages::stages;

use super::{
    Action, Alert, AlertPolicy, ExternalIdentity, GroupState, Rule, RuleGroup,
    machine::{self, FoundSeries},
    template::{TemplateQuery, TemplateTime},
};
use crate::{
    model::{METRIC_TAG, UnixMillis, with_noun},
    query::{Labels, VectorSample},
};

/// The series that names pending and firing alerts.
const ALERTS: &str = "ALERTS";
/// The series whose value is the start of an alert, in Unix seconds.
const ALERTS_FOR_STATE: &str = "ALERTS_FOR_STATE";
/// The label of [`ALERTS`] with the state of the alert.
const ALERT_STATE: &str = "alertstate";

/// The functions that an evaluation needs from its caller.
pub struct EvaluationQueries<'a> {
    /// Returns the series of an expression.
    pub vector: &'a dyn Fn(&str, UnixMillis) -> ExpressionResult,
    /// The query function of templates.
    pub query: Option<TemplateQuery>,
    /// The time that the templates of the evaluation have used.
    pub time: TemplateTime,
    /// The address and the labels for templates.
    pub external: &'a ExternalIdentity,
}

/// The series of an expression, or the error.
pub type ExpressionResult = Result<Vec<VectorSample>, String>;

/// The series that a rule wrote at its last evaluation: series that are not written again have
/// ended.
pub type WrittenSeries = HashSet<Labels, foldhash::fast::RandomState>;

/// The result of a stage of an evaluation.
#[derive(Debug, Default)]
pub struct GroupRun {
    /// The series to write, with their values.
    pub samples: Vec<(Labels, f64)>,
    /// The series that end.
    pub ended: Vec<Labels>,
    /// The report of each rule.
    pub reports: Vec<RuleReport>,
}

/// The report of a rule.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct RuleReport {
    /// The rule's key.
    pub rule: String,
    /// The error, if the evaluation failed.
    pub error: Option<String>,
    /// The number of series that it wrote.
    pub series: usize,
    /// The number of alerts beyond the limit, which one alert represents.
    pub left_out: usize,
}

/// Evaluates some rules of a group at a time; `written` has one entry for each rule of the group.
pub fn evaluate(
    group: &RuleGroup,
    rules: Range<usize>,
    state: &mut GroupState,
    written: &mut [WrittenSeries],
    at: UnixMillis,
    queries: &EvaluationQueries<'_>,
) -> GroupRun {
    let mut run = GroupRun::default();
    let evaluation = Evaluation { group, at, queries };
    for index in rules {
        let rule = &group.rules[index];
        let mut report = RuleReport { rule: rule.key.clone(), ..RuleReport::default() };
        let series = match &rule.action {
            Action::Record => evaluation.record(rule),
            Action::Alert(policy) => evaluation.alert(rule, policy, state, &mut report),
        };
        match series {
            Ok(series) => {
                let current: WrittenSeries =
                    series.iter().map(|(labels, _)| labels.clone()).collect();
                let previous = std::mem::replace(&mut written[index], current);
                let ended = previous.into_iter().filter(|series| !written[index].contains(series));
                run.ended.extend(ended);
                report.series = series.len();
                run.samples.extend(series);
            }
            Err(cause) => {
                if let Some(rule_state) = state.rules.get_mut(&rule.key) {
                    rule_state.since = at.0 + group.interval_ms;
                }
                report.error = Some(cause);
            }
        }
        run.reports.push(report);
    }
    run.ended.sort_unstable();
    run
}

impl GroupState {
    /// Returns the series that describe the alerts of a rule, as they were before a restart.
    pub fn series_of(&self, rule: &str) -> WrittenSeries {
        let alerts = self.rules.get(rule).map_or(&[][..], |rule| &rule.alerts);
        series_of_alerts(alerts).into_iter().map(|(labels, _)| labels).collect()
    }
}

/// Returns the series that describe these alerts.
fn series_of_alerts(alerts: &[Alert]) -> Vec<(Labels, f64)> {
    let mut series = Vec::new();
    for alert in alerts.iter().filter(|alert| alert.is_active()) {
        let labels = |metric: &str, state: Option<&str>| {
            let labels = alert.labels.iter().map(|(name, value)| (name.as_str(), value.as_str()));
            let more = [Some((METRIC_TAG, metric)), state.map(|state| (ALERT_STATE, state))];
            let pairs = labels.chain(more.into_iter().flatten());
            Labels::new(pairs.map(|(name, value)| (name.into(), value.into())).collect())
        };
        series.push((labels(ALERTS, Some(alert.state.as_str())), 1.0));
        series.push((labels(ALERTS_FOR_STATE, None), (alert.active_at as f64 / 1000.0).floor()));
    }
    series
}

/// Evaluates a rule's expression at a time. More alerts than the limit are an error too.
pub(super) fn find_series(
    group: &RuleGroup,
    (rule, policy): (&Rule, &AlertPolicy),
    at: UnixMillis,
    queries: &EvaluationQueries<'_>,
) -> Result<FoundSeries, String> {
    let (found, left_out) = Evaluation { group, at, queries }.find(rule, policy, &[])?;
    if left_out == 0 {
        Ok(found)
    } else {
        Err(format!("left out: {}", with_noun(left_out, "alert")))
    }
}

struct Evaluation<'a> {
    group: &'a RuleGroup,
    at: UnixMillis,
    queries: &'a EvaluationQueries<'a>,
}

impl Evaluation<'_> {
    fn vector(&self, expression: &str) -> ExpressionResult {
        (self.queries.vector)(expression, self.at.plus(-self.group.query_offset_ms))
    }

    fn record(&self, rule: &Rule) -> Result<Vec<(Labels, f64)>, String> {
        let mut seen = WrittenSeries::default();
        let mut series = Vec::new();
        for sample in self.vector(&rule.expression)? {
            let mut labels = sample.labels.without_metric().with(METRIC_TAG, &rule.name);
            for (name, value) in &rule.labels {
                labels = labels.with(name, value);
            }
            if !seen.insert(labels.clone()) {
                return Err(format!(
                    "two series have the labels {labels} after those of the rule were added"
                ));
            }
            series.push((labels, sample.value));
        }
        let (count, limit) = (series.len(), self.group.limit);
        if limit > 0 && count > limit {
            return Err(format!("{count} series exceed the group's limit of {limit}"));
        }
        Ok(series)
    }

    fn alert(
        &self,
        rule: &Rule,
        policy: &AlertPolicy,
        state: &mut GroupState,
        report: &mut RuleReport,
    ) -> Result<Vec<(Labels, f64)>, String> {
        let rule_state = state.rules.entry(rule.key.clone()).or_default();
        let (found, left_out) = self.find(rule, policy, &rule_state.alerts)?;
        let alerts = machine::advance(policy, rule_state.alerts.clone(), found, self.at.0);
        let active = alerts.iter().filter(|alert| alert.is_active()).count();
        let active = active + left_out.saturating_sub(1);
        if self.group.limit > 0 && active > self.group.limit {
            rule_state.alerts.clear();
            return Err(format!(
                "{active} alerts exceed the group's limit of {}",
                self.group.limit
            ));
        }
        report.left_out = left_out;
        rule_state.alerts = without_old_ends(alerts, self.at.0);
        Ok(series_of_alerts(&rule_state.alerts))
    }
}
