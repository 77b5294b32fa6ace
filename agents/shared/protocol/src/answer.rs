//! What the daemon answers to a request.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// The answer to a request whose batches are now on disk (status 200).
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct IngestAnswer {
    /// Samples that are now durable and counted.
    pub accepted: u64,
    /// Samples of batches, or samples, that had been accepted before; nothing was changed.
    pub duplicates: u64,
    /// Samples of batches that had been accepted before, by sender, whose series have no sample any
    /// more: the series were deleted or renamed since.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub emptied: BTreeMap<String, u64>,
    /// Samples that will never be accepted, by reason. Do not send them again.
    #[serde(default)]
    pub refused: BTreeMap<String, u64>,
    /// A few of the refused samples.
    #[serde(default)]
    pub examples: Vec<Refusal>,
    /// Numbers of batches that were refused for their epoch or number, not for what they hold:
    /// their sender begins a new epoch and sends them again.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub renumber: Vec<u64>,
}

/// One refused sample or series.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Refusal {
    /// The reason's label, also used in the daemon's metrics.
    pub reason: String,
    /// The series, as `metric{tag=value}`, or `ref 7` when the series is not known.
    pub series: String,
    /// What is wrong and what would be accepted.
    pub message: String,
}

/// The answer when a request was not accepted as a whole (status 4xx or 5xx).
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorAnswer {
    /// A closed set of words: `malformed`, `too_large`, `unknown_refs`, `busy`, `disk_full`, ...
    pub error: String,
    /// What happened, where, and what to do.
    pub message: String,
}
