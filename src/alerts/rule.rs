//! Rules as they are evaluated: checked, with every default filled in.
//!
//! Must never know: how files are written.

use std::collections::BTreeMap;

use xxhash_rust::xxh3::{xxh3_64, xxh3_128};

use super::LabelSet;

/// Rules that are evaluated one after the other, at the same times.
#[derive(Debug, Clone, PartialEq)]
pub struct RuleGroup {
    /// The file that it stands in.
    pub file: String,
    /// Its name, unique in the file.
    pub name: String,
    /// Between evaluations, in milliseconds; whole seconds.
    pub interval_ms: i64,
    /// How far behind its time an evaluation looks, in milliseconds.
    pub query_offset_ms: i64,
    /// Series or alerts that one rule may give; 0: as many as there are.
    pub limit: usize,
    /// In order of evaluation.
    pub rules: Vec<Rule>,
}

impl RuleGroup {
    /// Which group it is, however its rules change: a hash of its file and name.
    pub fn id(&self) -> String {
        format!("{:032x}", xxh3_128(format!("{}\0{}", self.file, self.name).as_bytes()))
    }

    /// Changes when what one of its rules finds may change: a hash of what the rule says.
    pub(super) fn version_of(&self, rule: &Rule) -> u64 {
        let text = format!("{rule:?} {} {}", self.interval_ms, self.query_offset_ms);
        xxh3_64(text.as_bytes())
    }
}

/// A rule.
#[derive(Debug, Clone, PartialEq)]
pub struct Rule {
    /// Which rule of its group it is, however its expression changes: its name and labels.
    pub key: String,
    /// The metric that it records, or the name of its alerts.
    pub name: String,
    /// What is evaluated.
    pub expression: String,
    /// Labels that are added; those of alerts are templates.
    pub labels: BTreeMap<String, String>,
    /// What is done with the values.
    pub action: Action,
}

/// What a rule is for.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Its values become samples.
    Record,
    /// Each of its series is an alert.
    Alert(AlertPolicy),
}

/// When series of a rule's expression are alerts.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct AlertPolicy {
    /// What people are told, as templates.
    pub annotations: BTreeMap<String, String>,
    /// How long a series is there until its alert fires, in milliseconds.
    pub for_ms: i64,
    /// How long an alert fires on after its series is gone, in milliseconds.
    pub keep_firing_ms: i64,
    /// What becomes of alerts about which nothing is measured.
    pub no_data: NoData,
    /// How long nothing is measured until that counts, in milliseconds; when `None`, at once with
    /// [`NoData::Alerting`], and never with [`NoData::Keep`].
    pub no_data_for_ms: Option<i64>,
    /// What the rule measures: its expression without the comparison at its end. Only when it is
    /// needed.
    pub measured: Option<String>,
    /// An alert that fires goes on until this has its series.
    pub recover: Option<String>,
}

/// What becomes of alerts about which nothing is measured any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum NoData {
    /// They end, as in Prometheus.
    #[default]
    Ok,
    /// They are as they were.
    Keep,
    /// That is an alert.
    Alerting,
}

impl Rule {
    /// The labels that its alerts have whatever is measured.
    pub fn fixed_labels(&self) -> LabelSet {
        let mut labels = self.labels.clone();
        labels.retain(|_, text| !text.is_empty() && !text.contains("{{"));
        labels.insert(ALERT_NAME.to_owned(), self.name.clone());
        labels
    }
}

/// The label that names an alert.
pub(super) const ALERT_NAME: &str = "alertname";
