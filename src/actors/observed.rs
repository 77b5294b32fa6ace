//! What roles let be seen of their work.
//!
//! Must never know: who looks.

use super::{CheckpointHistory, IngestTally, ShellsAhead};
use crate::telemetry::Health;

/// What roles let be seen of their work. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub struct Observed {
    /// What is wrong.
    pub health: Health,
    /// The last checkpoints.
    pub checkpoints: CheckpointHistory,
    /// What came in, by sender, and examples of what was refused.
    pub ingest: IngestTally,
    /// What was preallocated.
    pub shells: ShellsAhead,
}
