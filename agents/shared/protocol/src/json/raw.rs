//! The fields of JSON batches, as they stand in a body.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::values::{Entry, ObjectFields, Time};
use crate::Kind;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawBatch<'a> {
    #[serde(default)]
    pub(super) v: Option<i32>,
    #[serde(default)]
    pub(super) agent: Option<String>,
    #[serde(default)]
    pub(super) epoch: i64,
    #[serde(default)]
    pub(super) seq: u64,
    #[serde(default)]
    pub(super) sent: Option<Time>,
    #[serde(default)]
    pub(super) replace: bool,
    #[serde(default, borrow)]
    pub(super) series: Vec<&'a RawValue>,
    #[serde(borrow)]
    pub(super) samples: &'a RawValue,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawSeries<'a> {
    pub(super) r#ref: u32,
    pub(super) metric: String,
    #[serde(default, borrow)]
    pub(super) tags: ObjectFields<'a>,
    #[serde(default)]
    pub(super) kind: Kind,
    #[serde(default)]
    pub(super) unit: String,
}

/// The ref of an otherwise invalid definition.
#[derive(Deserialize)]
pub(super) struct DefinitionRef {
    pub(super) r#ref: u32,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RawColumns {
    pub(super) refs: Vec<Entry<u32>>,
    pub(super) times: Vec<Entry<Time>>,
    pub(super) values: Vec<Entry<f64>>,
    #[serde(default)]
    pub(super) starts: Vec<Entry<Time>>,
}
