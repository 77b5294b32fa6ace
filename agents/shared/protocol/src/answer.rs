//! The daemon's responses to batches.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The response to a request whose batches are on disk (status 200).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct IngestAnswer {
    /// The number of accepted samples, which are durable.
    pub accepted: u64,
    /// The number of accepted samples that replaced stored ones.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub replaced: u64,
    /// The number of samples that had been accepted before; they changed nothing.
    pub duplicates: u64,
    /// The number of samples, by sender, that had been accepted before and whose series were
    /// deleted or renamed since then.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub emptied: BTreeMap<String, u64>,
    /// The number of samples that are refused for good, by reason. Do not send them again.
    #[serde(default)]
    pub refused: BTreeMap<String, u64>,
    /// Examples of refused samples.
    #[serde(default)]
    pub examples: Vec<Refusal>,
    /// The numbers of batches that were refused for their epoch or number, not for their content.
    /// The sender begins a new epoch and sends the batches again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub renumber: Vec<u64>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

/// A refused sample or series.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// The reason's label, also used in the daemon's metrics.
    pub reason: String,
    /// The series, as `metric{tag=value}`, or `ref 7` for an unknown series.
    pub series: String,
    /// The problem, and what would be accepted.
    pub message: String,
}

/// The response to a request that was rejected as a whole (status 4xx or 5xx).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorAnswer {
    /// One of a closed set of words: `malformed`, `too_large`, `unknown_refs`, `busy`, `disk_full`,
    /// ...
    pub error: String,
    /// The problem, its location, and the remedy.
    pub message: String,
}
