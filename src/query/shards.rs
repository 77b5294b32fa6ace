//! The other shards of a store, as a query asks them.
//!
//! Must never know: nodes, HTTP.

use std::{fmt, sync::Arc, time::Duration};

use serde::{Deserialize, Serialize};

use crate::query::QueryError;

/// The kind of a question for the cells of a selector.
pub const CELLS: &str = "cells";
/// The kind of a question for the state of an aggregation.
pub const AGGREGATE: &str = "aggregate";

/// The kind of a question for the readings of matching series.
pub const READINGS: &str = "readings";
/// The kind of a question of Graphite's API.
pub const GRAPHITE: &str = "graphite";
/// The kind of a question for the sums of hosts that sparklines show.
pub const SPARKLINES: &str = "sparklines";
/// The kind of a question for the largest metrics, tags and senders.
pub const SERIES_COUNTS: &str = "series_counts";
/// The kind of a question for documents.
pub const DOCUMENTS: &str = "documents";
/// The kind of a question for a page of an export.
pub const EXPORT: &str = "export";
/// The kind of a question for the senders that number their batches.
pub const SENDERS: &str = "senders";
/// The kind of a question for the values of all tags with their numbers of series.
pub const TSDB_STATUS: &str = "tsdb_status";

/// Reserves memory for a number of bytes. Returns false when there is too little.
pub type ReserveBytes<'a> = dyn Fn(usize) -> bool + Sync + 'a;

/// The other shards of a store.
pub trait OtherShards: fmt::Debug + Send + Sync {
    /// Returns the number of other shards.
    fn count(&self) -> usize;

    /// Asks the holder of each shard the same question, a kind and its text, and returns their
    /// answers in the order of shards. Calls `reserve` before an answer is read. Blocks.
    ///
    /// # Errors
    /// The first error of a shard. A shard without a holder is an error: no answer is short.
    fn ask(
        &self,
        project: &str,
        question: (&str, &[u8]),
        time_max: Duration,
        reserve: &ReserveBytes<'_>,
    ) -> Result<Vec<Vec<u8>>, QueryError>;
}

/// The other shards of a store, for the queries of a project. Clones are cheap.
#[derive(Debug, Clone)]
pub struct ShardsOfProject {
    shards: Arc<dyn OtherShards>,
    project: Arc<str>,
}

impl ShardsOfProject {
    /// Returns the shards for the queries of a project.
    pub fn new(shards: Arc<dyn OtherShards>, project: &str) -> Self {
        Self { shards, project: project.into() }
    }

    /// Returns the shards for the queries of another project.
    #[must_use]
    pub fn of_project(&self, project: &str) -> Self {
        Self { project: project.into(), shards: self.shards.clone() }
    }

    /// Returns the number of other shards.
    pub fn count(&self) -> usize {
        self.shards.count()
    }

    /// Asks all other shards.
    ///
    /// # Errors
    /// See [`OtherShards::ask`].
    pub fn ask(
        &self,
        question: (&str, &[u8]),
        time_max: Duration,
        reserve: &ReserveBytes<'_>,
    ) -> Result<Vec<Vec<u8>>, QueryError> {
        self.shards.ask(&self.project, question, time_max, reserve)
    }
}

/// An error of a shard, for another node.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ErrorOfShard {
    /// The word for the kind of the error.
    pub error: String,
    /// The message.
    pub message: String,
}

impl From<&QueryError> for ErrorOfShard {
    fn from(cause: &QueryError) -> Self {
        let error = match cause {
            QueryError::Invalid(_) => "invalid",
            QueryError::Execution(_) => "execution",
            QueryError::TooMuch(_) => "too_much",
            QueryError::Busy(_) | QueryError::Store(_) => "busy",
            QueryError::Timeout(_) => "timeout",
        };
        Self { error: error.to_owned(), message: cause.to_string() }
    }
}

impl From<ErrorOfShard> for QueryError {
    fn from(ErrorOfShard { error, message }: ErrorOfShard) -> Self {
        match error.as_str() {
            "invalid" => Self::Invalid(message),
            "execution" => Self::Execution(message),
            "too_much" => Self::TooMuch(message),
            "timeout" => Self::Timeout(message),
            _ => Self::Busy(message),
        }
    }
}
