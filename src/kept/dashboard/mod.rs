//! A dashboard: variables, and panels with charts and texts. What one may be, in its JSON.
//!
//! Must never know: where dashboards are kept, and what is drawn.

pub(super) mod builtin;
mod check;

use serde::{Deserialize, Serialize};

use super::ObjectFault;
use crate::model::Display;

/// The form of dashboards that is known here.
const SCHEMA: u32 = 1;

/// A dashboard, as the page sends and gets it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Dashboard {
    /// The form of what follows.
    pub schema: u32,
    /// The title.
    pub title: String,
    /// The range that is shown at first, such as `6h`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub range: Option<String>,
    /// In what slots: `auto`, or a length such as `5m`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resolution: Option<String>,
    /// The variables on top.
    pub variables: Vec<Variable>,
    /// The panels.
    pub panels: Vec<Panel>,
}

/// A value that is chosen on top of a dashboard, and stands for `$name` in its queries.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Variable {
    /// The name in queries.
    pub name: String,
    /// The tag whose values there are to choose from.
    pub tag: String,
    /// The metric whose series have them; any when there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub metric: Option<String>,
    /// True when several values can be chosen.
    #[serde(default)]
    pub multi: bool,
}

/// A rectangle with a chart or a text; which fields it has besides its place follows from its kind.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "docs/page.md explains each")]
pub struct Panel {
    /// Tells it from the dashboard's other panels.
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
}

/// The content of a panel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum PanelKind {
    /// The answers to its queries, drawn.
    Chart,
    /// Its text.
    Text,
}

/// A query; its kind decides which fields it has.
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

/// Whom a query asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum QueryKind {
    /// `/api/v1/chart`.
    Metric,
    /// `/api/v1/query_range`.
    Promql,
}

impl Dashboard {
    /// Reads a dashboard and checks it.
    ///
    /// # Errors
    /// When it is none; the message begins with the place in it.
    pub fn read(json: &str) -> Result<Self, ObjectFault> {
        let mut text = serde_json::Deserializer::from_str(json);
        let dashboard: Self = serde_path_to_error::deserialize(&mut text).map_err(|fault| {
            let place = fault.path().to_string();
            let what = fault.inner().to_string();
            let is_root = place == ".";
            ObjectFault::Invalid(if is_root { what } else { format!("{place}: {what}") })
        })?;
        check::dashboard(&dashboard)?;
        Ok(dashboard)
    }
}
