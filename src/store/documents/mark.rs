//! The mark of a partition: the extent of its documents.
//!
//! Must never know: where marks are stored.

use crate::{model::UnixMillis, store::file::checksum::checksum};

/// The extent of a partition's documents: they contain all cells up to a journal record, of the
/// slots that begin before a time.
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

    /// Returns the checksum that is stored with the mark.
    pub(crate) fn checksum(self) -> u64 {
        checksum(&[self.through, self.until.0 as u64])
    }

    /// Returns whether the documents already contain a slot's cells from the head, or from the
    /// frozen catalog, where `through` is the last record of these cells.
    pub(crate) fn has_absorbed(&self, through: u64, slot_start: i64) -> bool {
        self.through >= through && slot_start < self.until.0
    }
}
