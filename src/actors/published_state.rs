//! State that roles publish for the API.
//!
//! Must never know: its readers.

use super::{BudgetReport, CheckpointHistory, Forecast, IngestTally};
use crate::{
    kept::{KnownCardinality, NearNames},
    telemetry::Health,
};

/// State that roles publish for the API. Clones are cheap.
#[derive(Debug, Clone, Default)]
pub struct PublishedState {
    /// The reasons for which the daemon is not ready.
    pub health: Health,
    /// The history of checkpoints.
    pub checkpoints: CheckpointHistory,
    /// The forecast of disk space.
    pub forecast: Forecast,
    /// The use of the disk budget.
    pub budget: BudgetReport,
    /// The numbers of series at the beginnings of days.
    pub cardinality: KnownCardinality,
    /// The new metrics that may be typos.
    pub near_names: NearNames,
    /// The accepted samples by sender, and examples of refused samples.
    pub ingest: IngestTally,
}
