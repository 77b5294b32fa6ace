//! The results of definitions and batches.
//!
//! Must never know: the responses to senders.

use super::{Kind, SeriesId};

/// The result of a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DefinitionVerdict {
    /// The series has this ID.
    Known(SeriesId),
    /// The series has this ID and another kind.
    KindConflict(SeriesId, Kind),
    /// The store has its maximum number of series.
    StoreLimit,
    /// The sender has registered its maximum number of series.
    SenderLimit,
    /// The project has its maximum number of series.
    ProjectLimit,
    /// The metric has its maximum number of series.
    MetricLimit,
}

/// The result of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchVerdict {
    /// The batch is durable, and all samples count except those in the tally.
    Accepted(TimesTally),
    /// The batch was accepted before; nothing was changed.
    Duplicate,
    /// The number is too far behind the sender's latest; nothing was changed.
    StaleNumber,
    /// The number is further ahead than any sender counts; nothing was changed.
    FarNumber,
    /// The batch has no samples and was not accepted before; its number stays free.
    Empty,
    /// The store has its maximum number of senders; nothing was changed.
    SenderLimit,
}

impl BatchVerdict {
    /// The verdict for a batch without refused samples.
    pub const ACCEPTED: Self =
        Self::Accepted(TimesTally { duplicates: 0, out_of_order: 0, of_replica: 0 });

    /// Returns true when the batch was made durable now.
    pub fn is_accepted(self) -> bool {
        matches!(self, Self::Accepted(_))
    }
}

/// The number of refused samples of an accepted batch, by reason.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TimesTally {
    /// Samples whose time was accepted before.
    pub duplicates: u64,
    /// Samples too far behind the latest of their series.
    pub out_of_order: u64,
    /// Samples that do not count because another sender's samples do, see [`super::replica`].
    pub of_replica: u64,
}

/// The results of a group, in the order of its definitions and batches.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GroupVerdict {
    /// The verdict of each definition.
    pub definitions: Vec<DefinitionVerdict>,
    /// The verdict of each batch.
    pub batches: Vec<BatchVerdict>,
}
