//! A dashboard and its JSON form: variables, and panels with charts and texts.
//!
//! Must never know: the storage of dashboards, rendering.

pub(super) mod builtin;
mod check;
mod check_field;
mod check_panel;

pub(super) use check_field::check_dashboard_name;

use serde::{Deserialize, Serialize};

use super::ObjectFault;
use crate::model::Display;

/// The supported version of the JSON form.
const SCHEMA: u32 = 1;

/// A dashboard, in the form that the API accepts and returns.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dashboard {
    /// The version of the form.
    pub schema: u32,
    /// The title.
    pub title: String,
    /// The folder in the list.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folder: Option<String>,
    /// The initial time range, such as `6h`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<String>,
    /// The width of slots: `auto`, or a duration such as `5m`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolution: Option<String>,
    /// The variables at the top.
    pub variables: Vec<Variable>,
    /// The panels.
    pub panels: Vec<Panel>,
}

/// A value that is chosen at the top of a dashboard and replaces `$name` in its queries.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variable {
    /// The name in queries.
    pub name: String,
    /// The tag whose values can be chosen.
    pub tag: String,
    /// The metric that the series with these values must have; any by default.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<String>,
    /// True when several values can be chosen.
    #[serde(default)]
    pub multi: bool,
}

/// A rectangle with values or a text, or a row of panels; its kind determines the other fields.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "docs/page.md explains each")]
pub struct Panel {
    /// The identifier within the dashboard.
    pub id: String,
    /// The column of its left edge, of 12.
    pub x: u32,
    /// The row of its upper edge.
    pub y: u32,
    pub w: u32,
    pub h: u32,
    pub title: String,
    pub kind: PanelKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queries: Option<Vec<Query>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub display: Option<Display>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub stacked: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub log: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub unit: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reduce: Option<Reduction>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub min: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max: Option<f64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub thresholds: Option<Vec<Threshold>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeat: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub folded: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub link: Option<String>,
}

/// The content of a panel. All but texts and rows show the results of queries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PanelKind {
    /// Lines over time.
    Chart,
    /// A text.
    Text,
    /// The value of each series as a number.
    Stat,
    /// The value of each series as a part of a range.
    Gauge,
    /// A row for each series.
    Table,
    /// A bar for each series, the longest first.
    Bars,
    /// All series as colours.
    Heatmap,
    /// The states of each series over time.
    States,
    /// A heading that folds the panels below it, up to the next row.
    Row,
}

/// The number that summarizes a series over the time range.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names describe the numbers")]
pub enum Reduction {
    Last,
    Avg,
    Min,
    Max,
    Sum,
}

/// A value from which on numbers have another level.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Threshold {
    /// The lowest value of the level; none for the lowest level.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub from: Option<f64>,
    /// The meaning of the values, which determines their colour.
    pub level: ThresholdLevel,
}

/// The meaning of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[expect(missing_docs, reason = "the names describe the levels")]
pub enum ThresholdLevel {
    None,
    Good,
    Warn,
    Bad,
}

/// A query; its kind determines the other fields.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "docs/page.md explains each")]
pub struct Query {
    pub kind: QueryKind,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tags: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_by: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub merge: Option<bool>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub top: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bottom: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expression: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub legend: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hidden: Option<bool>,
}

/// The endpoint of a query.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum QueryKind {
    /// `/api/v1/chart`.
    Metric,
    /// `/api/v1/query_range`.
    Promql,
}

impl Dashboard {
    /// Parses and checks a dashboard.
    ///
    /// # Errors
    /// The JSON is not a valid dashboard; the message begins with the location of the fault.
    pub fn read(json: &str) -> Result<Self, ObjectFault> {
        let mut text = serde_json::Deserializer::from_str(json);
        let dashboard: Self = serde_path_to_error::deserialize(&mut text).map_err(|fault| {
            let location = fault.path().to_string();
            let problem = fault.inner().to_string();
            let is_root = location == ".";
            ObjectFault::Invalid(if is_root { problem } else { format!("{location}: {problem}") })
        })?;
        check::check_dashboard(&dashboard)?;
        Ok(dashboard)
    }
}
