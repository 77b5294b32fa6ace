//! Verdicts: what became of definitions and batches that a sender sent.
//!
//! Must never know: how a sender is answered.

use super::{Kind, SeriesId};

/// What became of a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DefinitionVerdict {
    /// The series has this id.
    Known(SeriesId),
    /// The series has this id and another kind.
    KindConflict(SeriesId, Kind),
    /// The store has as many series as it may.
    StoreLimit,
    /// The sender has made as many series known as it may.
    SenderLimit,
}

/// What became of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchVerdict {
    /// Durable and counted, but for what the tally names.
    Accepted(TimesTally),
    /// Accepted before; nothing was changed.
    Duplicate,
    /// Its number is too far behind the sender's latest; nothing was changed.
    StaleNumber,
    /// Its number is further ahead than a sender counts; nothing was changed.
    FarNumber,
    /// It has no samples and was not accepted before; its number is not taken.
    Empty,
    /// The store has as many senders as it may; nothing was changed.
    SenderLimit,
}

impl BatchVerdict {
    /// Accepted whole.
    pub const ACCEPTED: Self =
        Self::Accepted(TimesTally { duplicates: 0, out_of_order: 0, of_replica: 0 });

    /// Whether the batch was made durable now.
    pub fn is_accepted(self) -> bool {
        matches!(self, Self::Accepted(_))
    }
}

/// What became of the samples of a batch that is accepted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TimesTally {
    /// Samples whose time was accepted before.
    pub duplicates: u64,
    /// Samples too far behind their series' latest.
    pub out_of_order: u64,
    /// Samples left out because those of another sender count, see [`super::replica`].
    pub of_replica: u64,
}

/// What became of a group, in the order in which it was given.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct GroupVerdict {
    /// One for each definition.
    pub definitions: Vec<DefinitionVerdict>,
    /// One for each batch.
    pub batches: Vec<BatchVerdict>,
}
