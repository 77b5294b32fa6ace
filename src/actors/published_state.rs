//! State that roles publish for the API.
//!
//! Must never know: its readers.

use super::{CheckpointHistory, IngestTally};
use crate::telemetry::Health;

/// State that roles publish for the API. Clones are cheap.
#[derive(Debug, Clone, Default)]
pub struct PublishedState {
    /// The reasons for which the daemon is not ready.
    pub health: Health,
    /// The history of checkpoints.
    pub checkpoints: CheckpointHistory,
    /// The accepted samples by sender, and examples of refused samples.
    pub ingest: IngestTally,
}
