//! The mark of a partition: what its documents have.
//!
//! Must never know: where it is kept.

use crate::{model::UnixMillis, store::file::checksum::checksum};

/// Documents have everything up to a journal record, of the slots that begin before a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mark {
    /// The journal record.
    pub(crate) through: u64,
    /// The time.
    pub(crate) until: UnixMillis,
}

impl Mark {
    /// The mark of a partition without documents.
    pub(crate) const NONE: Self = Self { through: 0, until: UnixMillis::MIN };

    /// Kept beside the mark.
    pub(crate) fn checksum(self) -> u64 {
        checksum(&[self.through, self.until.0 as u64])
    }

    /// Returns whether the documents have the cells that the head, or the frozen catalog, holds of
    /// a slot when these are everything up to the record `through`.
    pub(crate) fn has_absorbed(&self, through: u64, slot_start: i64) -> bool {
        self.through >= through && slot_start < self.until.0
    }
}
