//! The values of queries that are not due in every round, and the times at which these are due.

use std::collections::BTreeMap;

use crate::{
    collections::CollectionSweep, connection::Fault, operations::RunningOperations,
    profile::SlowOperations, sharding::Sharding,
};

/// The state of these queries between rounds.
#[derive(Debug, Default)]
pub(crate) struct SlowValues {
    pub(crate) operations: Option<RunningOperations>,
    pub(crate) operations_next_ms: i64,
    pub(crate) operations_slow: SlowOperations,
    pub(crate) sharding: Sharding,
    pub(crate) balancer_next_ms: i64,
    pub(crate) chunks_next_ms: i64,
    pub(crate) cluster_next_ms: i64,
    pub(crate) collections: CollectionSweep,
    /// The refused queries, with the time after which each is repeated.
    pub(crate) refused: BTreeMap<&'static str, (i64, Fault)>,
}

impl SlowValues {
    /// Returns true when a query was refused, and is not repeated yet.
    pub(crate) fn is_refused(&self, name: &str, now_ms: i64) -> bool {
        self.refused.get(name).is_some_and(|(retry_ms, _)| now_ms < *retry_ms)
    }
}
