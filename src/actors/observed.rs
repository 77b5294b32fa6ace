//! State that roles publish for the API.
//!
//! Must never know: who looks.

use super::{CheckpointHistory, IngestTally, ShellsAhead};
use crate::telemetry::Health;

/// State that roles publish for the API. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Observed {
    /// Reasons for which the daemon is not ready.
    pub health: Health,
    /// The last checkpoints.
    pub checkpoints: CheckpointHistory,
    /// Accepted samples by sender, and examples of refused ones.
    pub ingest: IngestTally,
    /// Preallocated shells.
    pub shells: ShellsAhead,
}
