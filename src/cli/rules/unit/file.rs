//! Unit tests of rules in promtool's format
//! (`prometheus.io/docs/prometheus/latest/configuration/unit_testing_rules`).
//!
//! Must never know: how a test is run.

use std::collections::BTreeMap;

use serde::Deserialize;

/// A file of tests.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TestFile {
    /// Paths of rule files, relative to this file.
    #[serde(default)]
    pub(super) rule_files: Vec<String>,
    #[serde(default = "one_minute")]
    pub(super) evaluation_interval: String,
    #[serde(default)]
    pub(super) group_eval_order: Vec<String>,
    #[serde(default)]
    pub(super) tests: Vec<TestGroup>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct TestGroup {
    #[serde(default)]
    pub(super) name: String,
    #[serde(default = "one_minute")]
    pub(super) interval: String,
    #[serde(default)]
    pub(super) input_series: Vec<InputSeries>,
    #[serde(default)]
    pub(super) alert_rule_test: Vec<AlertTest>,
    #[serde(default)]
    pub(super) promql_expr_test: Vec<ExpressionTest>,
    /// The daemon's external labels, for templates.
    #[serde(default)]
    pub(super) external_labels: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) external_url: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct InputSeries {
    pub(super) series: String,
    pub(super) values: String,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct AlertTest {
    pub(super) eval_time: String,
    pub(super) alertname: String,
    #[serde(default)]
    pub(super) exp_alerts: Vec<ExpectedAlert>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExpectedAlert {
    #[serde(default)]
    pub(super) exp_labels: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) exp_annotations: BTreeMap<String, String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExpressionTest {
    pub(super) expr: String,
    pub(super) eval_time: String,
    #[serde(default)]
    pub(super) exp_samples: Vec<ExpectedSample>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct ExpectedSample {
    #[serde(default)]
    pub(super) labels: String,
    pub(super) value: f64,
}

fn one_minute() -> String {
    "1m".to_owned()
}
