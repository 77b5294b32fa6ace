//! The decision which documents of a partition become one segment.
//!
//! Must never know: how documents are read, how segments are written.

use std::ops::Range;

use crate::{
    model::UnixMillis,
    store::{
        documents::{Stage, partition::reader::PartitionReader},
        error::StoreError,
    },
};

/// Open documents stay open next to segments if their bytes, times this number, are less than the
/// bytes of the segments.
const OPEN_PART: u64 = 8;

/// The documents that become one segment.
pub(super) struct Portion {
    /// A reader that returns only these documents.
    pub(super) reader: PartitionReader,
    /// The time span of these documents.
    pub(super) span: Range<UnixMillis>,
}

impl PartitionReader {
    /// Returns the documents to fold into one segment; `None` when that would save neither bytes
    /// nor files.
    pub(super) fn portion_to_fold(
        self,
        stage: Stage,
        bytes_min: u64,
    ) -> Result<Option<Portion>, StoreError> {
        let grid = &self.partition.grid;
        if self.is_worth_folding(stage, bytes_min)? {
            let span = grid.id.start..grid.end;
            return Ok(Some(Portion { reader: self, span }));
        }
        let numbers = self.layers_to_merge(stage != Stage::Busy, bytes_min);
        let replaced = || self.named.iter().filter(|entry| numbers.contains(&entry.number));
        let (Some(from), Some(to)) =
            (replaced().map(|entry| entry.from).min(), replaced().map(|entry| entry.to).max())
        else {
            return Ok(None);
        };
        let at = |seconds: u32| grid.id.start.plus(i64::from(seconds) * 1000);
        let span = at(from)..at(to);
        Ok(Some(Portion { reader: self.only(&numbers), span }))
    }

    /// Returns whether folding all documents would save bytes or files.
    fn is_worth_folding(&self, stage: Stage, bytes_min: u64) -> Result<bool, StoreError> {
        let open = self.open_bytes()? + self.histogram_bytes()?;
        let sealed: u64 = self.segments.iter().map(|segment| segment.bytes()).sum();
        let bytes_min = bytes_min.max(sealed / OPEN_PART);
        let is_small = open < bytes_min;
        Ok(match (stage, self.segments.len()) {
            (Stage::Busy, _) => false,
            (Stage::Over, 0) => open > 0,
            (Stage::Quiet, _) | (Stage::Over, 1) => !is_small,
            (Stage::Over, _) => true,
        })
    }
}
