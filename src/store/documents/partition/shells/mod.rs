//! The shells of one partition: documents that were preallocated, as one bit each.
//!
//! A zeroed document is a pure function of its series and span, so the file only stores that it was
//! inserted. A set bit is a shell as long as nothing else is stored for its document. Must never
//! know: which series are live, and when a period begins.

mod block;

use std::{ops::Range, sync::Arc};

use redb::{ReadableTable, TableError, WriteTransaction};

use super::{Partition, SHELLS, ShellTable, reader::PartitionReader, rows::layout::DocumentLayout};
use crate::{
    model::{SeriesId, UnixMillis},
    store::{
        documents::{
            ShellsOfSpan,
            segment::Scratch,
            stored::{DocumentState, StoredDocument},
        },
        error::StoreError,
        file::database::DatabaseFile,
    },
};
use block::{BLOCK_SERIES, ShellBlock, block_and_bit};

impl Partition {
    /// Inserts a shell for each of the series (ascending) without a document of a span. Returns the
    /// number of new shells. Without a new shell, nothing is written.
    pub(crate) fn add_shells(
        self: &Arc<Self>,
        document: UnixMillis,
        series: &[SeriesId],
    ) -> Result<usize, StoreError> {
        let absent = self.read()?.absent(document, series)?;
        if absent.is_empty() {
            return Ok(0);
        }
        self.file.transact("preallocate", |txn| self.set_bits(txn, document, &absent))
    }

    /// Sets the bits of series (ascending) within a transaction. Returns the number of bits that
    /// were clear.
    pub(crate) fn set_bits(
        &self,
        txn: &WriteTransaction,
        document: UnixMillis,
        series: &[SeriesId],
    ) -> Result<usize, StoreError> {
        let mut table = txn.open_table(SHELLS).map_err(self.fail("preallocate"))?;
        let mut added = 0;
        let is_same_block =
            |one: &SeriesId, next: &SeriesId| block_and_bit(*one).0 == block_and_bit(*next).0;
        for of_block in series.chunk_by(is_same_block) {
            let key = self.key_of_block(document, block_and_bit(of_block[0]).0);
            let mut block = {
                let stored = table.get(key).map_err(self.fail("preallocate"))?;
                // New bits replace a damaged block.
                let block = stored.and_then(|bytes| ShellBlock::from_bytes(bytes.value(), key));
                block.unwrap_or_default()
            };
            for id in of_block {
                added += usize::from(block.insert(block_and_bit(*id).1));
            }
            table.insert(key, &*block.to_bytes(key)).map_err(self.fail("preallocate"))?;
        }
        Ok(added)
    }

    /// Returns the key of the block of a series.
    pub(super) fn key_of_shells(&self, document: UnixMillis, series: SeriesId) -> u64 {
        self.key_of_block(document, block_and_bit(series).0)
    }

    /// Returns the key of a block, in the order of spans and series.
    fn key_of_block(&self, document: UnixMillis, block: u32) -> u64 {
        self.key(document, SeriesId(block))
    }

    /// Logs a damaged block, whose shells are missing. No sample is lost.
    fn note_damaged_block(&self, document: UnixMillis, block: u32) {
        let (file, first_series) = (self.file.name(), block * BLOCK_SERIES);
        tracing::warn!(
            file,
            %document,
            first_series,
            "a block of shells is damaged: its preallocated documents are not shown"
        );
    }
}

/// Removes the table of shells within a transaction; returns the number of shells that it had.
pub(crate) fn remove_all(file: &DatabaseFile, txn: &WriteTransaction) -> Result<u64, StoreError> {
    const OPERATION: &str = "remove shells";
    let mut count = 0;
    {
        // Opening creates a missing table, which is removed below.
        let table = txn.open_table(SHELLS).map_err(file.fail(OPERATION))?;
        for row in table.iter().map_err(file.fail(OPERATION))? {
            let (key, bytes) = row.map_err(file.fail(OPERATION))?;
            let block = ShellBlock::from_bytes(bytes.value(), key.value());
            count += block.map_or(0, |block| u64::from(block.count()));
        }
    }
    txn.delete_table(SHELLS).map_err(file.fail(OPERATION))?;
    Ok(count)
}

impl PartitionReader {
    /// Opens the table at its first use; `None` in a file of format 1 without shells.
    fn shell_table(&self) -> Result<Option<&ShellTable>, StoreError> {
        if self.shells.get().is_none() {
            let table = match self.txn.open_table(SHELLS) {
                Ok(table) => Some(table),
                Err(TableError::TableDoesNotExist(_)) => None,
                Err(cause) => return Err(self.partition.fail("read")(cause)),
            };
            // Another thread may have opened it in the meantime.
            self.shells.get_or_init(|| table);
        }
        Ok(self.shells.get().and_then(Option::as_ref))
    }

    /// Reads a block; `None` when it is missing or damaged.
    fn block(&self, document: UnixMillis, number: u32) -> Result<Option<ShellBlock>, StoreError> {
        let partition = &self.partition;
        partition.file.guard("read", || {
            let Some(table) = self.shell_table()? else { return Ok(None) };
            let key = partition.key_of_block(document, number);
            let Some(bytes) = table.get(key).map_err(partition.fail("read"))? else {
                return Ok(None);
            };
            let block = ShellBlock::from_bytes(bytes.value(), key);
            if block.is_none() {
                partition.note_damaged_block(document, number);
            }
            Ok(block)
        })
    }

    /// Returns true when a document was preallocated and no data of its time was lost.
    fn has_shell(&self, document: UnixMillis, series: SeriesId) -> Result<bool, StoreError> {
        let (block, bit) = block_and_bit(series);
        let has_bit = self.block(document, block)?.is_some_and(|block| block.contains(bit));
        Ok(has_bit && !self.has_loss(document, series))
    }

    /// Returns whether the document, or another document of its time, was damaged or lost.
    fn has_loss(&self, document: UnixMillis, series: SeriesId) -> bool {
        let partition = &self.partition;
        let next = partition.grid.next_document(document);
        let overlaps = |lost: &Range<UnixMillis>| lost.start < next && document < lost.end;
        partition.damage.has(partition.key(document, series))
            || partition.damage.holes().stretches().iter().any(overlaps)
            || partition.segments.lost().iter().any(overlaps)
    }

    /// Returns the series, ascending, that have neither a shell nor a stored document of a span.
    pub(crate) fn absent(
        &self,
        document: UnixMillis,
        series: &[SeriesId],
    ) -> Result<Vec<SeriesId>, StoreError> {
        let is_open = self.open_starts.binary_search(&document).is_ok();
        // Usually the span is after the mark, and none of its documents is stored.
        let has_documents = is_open || document < self.mark.until;
        let (mut known, mut absent, mut scratch) = (None, Vec::new(), Scratch::default());
        for id in series {
            let (number, bit) = block_and_bit(*id);
            if known.as_ref().is_none_or(|(of, _)| *of != number) {
                known = Some((number, self.block(document, number)?));
            }
            let block = known.as_ref().and_then(|(_, block)| block.as_ref());
            let has_bit = block.is_some_and(|block| block.contains(bit));
            if has_bit || has_documents && self.has_document(document, *id, &mut scratch)? {
                continue;
            }
            absent.push(*id);
        }
        Ok(absent)
    }

    /// Returns true when a document is stored, even if it is damaged.
    fn has_document(
        &self,
        document: UnixMillis,
        series: SeriesId,
        scratch: &mut Scratch,
    ) -> Result<bool, StoreError> {
        let key = self.partition.key(document, series);
        if self.partition.damage.has(key) || self.row(document, series)?.is_some() {
            return Ok(true);
        }
        let mut parts = Vec::new();
        match self.sealed().find(document, series, scratch, &mut parts) {
            Ok(()) => Ok(!parts.is_empty()),
            Err(StoreError::DamagedPart { .. }) => Ok(true),
            Err(fault) => Err(fault),
        }
    }

    /// Appends the spans within a range, ascending, whose document of a series was preallocated,
    /// including documents that have received samples.
    pub(crate) fn shells(
        &self,
        series: SeriesId,
        range: &Range<i64>,
        out: &mut Vec<Range<UnixMillis>>,
    ) -> Result<(), StoreError> {
        let partition = &self.partition;
        let grid = &partition.grid;
        let to = UnixMillis(range.end.min(grid.end.0));
        let mut document = grid.document_start(UnixMillis(range.start.max(grid.id.start.0)));
        while document < to {
            let next = grid.next_document(document);
            let is_open_shell = self.row(document, series)?.is_some_and(|row| {
                partition.is_shell(partition.key(document, series), row.value())
            });
            if is_open_shell || self.has_shell(document, series)? {
                out.push(document..next);
            }
            document = next;
        }
        Ok(())
    }

    /// Returns the zeroed document of a series if it is a shell. The caller must have found nothing
    /// else stored for the document.
    pub(crate) fn stored_shell(
        &self,
        start: UnixMillis,
        series: SeriesId,
        show: impl FnOnce(&DocumentLayout, &[u8]) -> StoredDocument,
    ) -> Result<Option<StoredDocument>, StoreError> {
        if !self.has_shell(start, series)? {
            return Ok(None);
        }
        let (layout, mut zeroed) = (self.partition.layout(start), Vec::new());
        layout.write_shell(series, start, &mut zeroed);
        layout.write_checksum(&mut zeroed);
        let shown = show(layout, &zeroed);
        debug_assert_eq!(shown.state, DocumentState::Shell);
        Ok(Some(shown))
    }

    /// Appends the number of shells of each span that begins at or after a time.
    pub(crate) fn count_shells(
        &self,
        since: UnixMillis,
        out: &mut Vec<ShellsOfSpan>,
    ) -> Result<(), StoreError> {
        let grid = &self.partition.grid;
        self.each_block(since, &mut |start, _, block| {
            let Some(block) = block else { return };
            let count = u64::from(block.count());
            match out.last_mut() {
                Some(span) if span.start == start => span.count += count,
                _ => out.push(ShellsOfSpan { start, end: grid.next_document(start), count }),
            }
        })
    }

    /// Visits all blocks with the start of the span, and with the last series that has a shell, or
    /// the fault.
    pub(crate) fn check_shells(
        &self,
        visit: &mut dyn FnMut(UnixMillis, SeriesId, Option<&'static str>),
    ) -> Result<(), StoreError> {
        let grid = &self.partition.grid;
        self.each_block(grid.id.start, &mut |start, number, block| {
            let first = SeriesId(number.saturating_mul(BLOCK_SERIES));
            let is_on_grid = start < grid.end
                && grid.document_start(start) == start
                && number <= u32::MAX / BLOCK_SERIES;
            match block {
                None => visit(start, first, Some("its checksum does not fit")),
                Some(_) if !is_on_grid => visit(start, first, Some("no document begins there")),
                Some(block) => {
                    let last = block.last().unwrap_or(0);
                    visit(start, SeriesId(first.0 + last), None);
                }
            }
        })
    }

    /// Visits the blocks of spans that begin at or after a time; `None` is a damaged block.
    fn each_block(
        &self,
        since: UnixMillis,
        visit: &mut dyn FnMut(UnixMillis, u32, Option<ShellBlock>),
    ) -> Result<(), StoreError> {
        let partition = &self.partition;
        let since = since.max(partition.grid.id.start);
        if since >= partition.grid.end {
            return Ok(());
        }
        partition.file.guard("read", || {
            let Some(table) = self.shell_table()? else { return Ok(()) };
            let rows = table.range(partition.key_of_block(since, 0)..);
            for row in rows.map_err(partition.fail("read"))? {
                let (key, bytes) = row.map_err(partition.fail("read"))?;
                let (start, number) = partition.document_of(key.value());
                if start < since {
                    continue; // the same second
                }
                visit(start, number.0, ShellBlock::from_bytes(bytes.value(), key.value()));
            }
            Ok(())
        })
    }
}
