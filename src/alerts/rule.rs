//! Rules after parsing: checked, with all defaults.
//!
//! Must never know: how files are written.

use std::collections::BTreeMap;

use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use super::LabelSet;

/// A group of rules, which are evaluated one after the other at the same times.
#[derive(Debug, Clone, PartialEq)]
pub struct RuleGroup {
    /// The path of its file.
    pub file: String,
    /// The name, unique in the file.
    pub name: String,
    /// The interval between evaluations, in milliseconds; whole seconds.
    pub interval_ms: i64,
    /// The offset into the past at which queries are evaluated, in milliseconds.
    pub query_offset_ms: i64,
    /// The maximum number of series or alerts of one rule; 0: no limit.
    pub limit: usize,
    /// The rules, in order of evaluation.
    pub rules: Vec<Rule>,
}

impl RuleGroup {
    /// Returns the group's identity, independent of its rules: a hash of its file and name.
    pub fn id(&self) -> String {
        format!("{:032x}", xxh3_128(format!("{}\0{}", self.file, self.name).as_bytes()))
    }

    /// Returns the name of the service level objective from which the group was expanded.
    pub fn slo(&self) -> Option<&str> {
        let target = self.rules.iter().find(|rule| rule.name == SLO_TARGET)?;
        target.labels.get(SLO).map(String::as_str)
    }

    /// Returns the version of a rule: a hash of its content, which changes when its results may
    /// change.
    pub(super) fn version_of(&self, rule: &Rule) -> u64 {
        let text = format!("{rule:?} {} {}", self.interval_ms, self.query_offset_ms);
        xxh3_64(text.as_bytes())
    }
}

/// A rule.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// The rule's identity in its group, independent of its expression: its name and labels.
    pub key: String,
    /// The recorded metric, or the name of the alerts.
    pub name: String,
    /// The PromQL expression.
    pub expression: String,
    /// Additional labels; the values of alerts' labels are templates.
    pub labels: BTreeMap<String, String>,
    /// The purpose of the rule.
    pub action: Action,
}

/// The purpose of a rule: to record samples or to alert.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// The values become samples.
    Record,
    /// Each series is an alert.
    Alert(AlertPolicy),
}

/// The conditions under which series of an expression are alerts.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AlertPolicy {
    /// The annotations, as templates.
    pub annotations: BTreeMap<String, String>,
    /// The time for which a series must be in the result before its alert fires, in milliseconds.
    pub for_ms: i64,
    /// The time for which an alert continues to fire after its series left the result, in
    /// milliseconds.
    pub keep_firing_ms: i64,
    /// The effect of missing samples.
    pub no_data: NoData,
    /// The time for which samples must be missing before alerts change, in milliseconds. `None`:
    /// alerts change at once with [`NoData::Alerting`], and never with [`NoData::Keep`].
    pub no_data_for_ms: Option<i64>,
    /// The measured expression, which is the rule's expression without the comparison at its end;
    /// `None` when the policy does not need it.
    pub measured: Option<String>,
    /// The recovery expression: a firing alert continues until this expression returns its series.
    pub recover: Option<String>,
}

/// The effect of missing samples on alerts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NoData {
    /// The alerts end, as in Prometheus.
    #[default]
    Ok,
    /// The alerts stay in their state.
    Keep,
    /// Missing samples fire an alert.
    Alerting,
}

impl Rule {
    /// Returns the labels that all alerts of the rule share.
    pub fn fixed_labels(&self) -> LabelSet {
        let mut labels = self.labels.clone();
        labels.retain(|_, text| !text.is_empty() && !text.contains("{{"));
        labels.insert(ALERT_NAME.to_owned(), self.name.clone());
        labels
    }
}

/// The metric of the target of a service level objective.
pub(super) const SLO_TARGET: &str = "slo:target";
/// The label with the name of a service level objective.
pub(super) const SLO: &str = "slo";
/// The label with the name of an alert.
pub(super) const ALERT_NAME: &str = "alertname";
