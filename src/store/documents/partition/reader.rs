//! A consistent view of the documents and the mark of one partition.
//!
//! Must never know: what the mark means.

use std::{
    ops::Range,
    sync::{Arc, OnceLock},
};

use redb::{AccessGuard, ReadOnlyTable, ReadTransaction, ReadableTableMetadata};

use super::{
    CHECK_KEY, DOCUMENTS, HistogramTable, META, Partition, REPLACED_KEY, ShellTable, THROUGH_KEY,
    UNTIL_KEY,
    rows::layout::DocumentLayout,
    segments::{
        Named,
        parts::{SealedPart, Source},
    },
};
use crate::{
    model::{Cell, SeriesId, UnixMillis},
    store::{
        documents::{
            Slot,
            mark::Mark,
            segment::{Columns, Scratch, file::Segment},
            stored::{DocumentState, StoredDocument, StoredSlot},
        },
        error::StoreError,
    },
};

/// A consistent view of a partition and of its mark.
pub(crate) struct PartitionReader {
    pub(crate) partition: Arc<Partition>,
    /// The mark of the documents.
    pub(crate) mark: Mark,
    pub(crate) documents: ReadOnlyTable<u64, &'static [u8]>,
    /// The starts for which any series has an open document, ascending.
    pub(crate) open_starts: Vec<UnixMillis>,
    pub(crate) named: Vec<Named>,
    pub(crate) segments: Vec<Arc<Segment>>,
    /// The read transaction, with which some readers open more tables.
    pub(crate) txn: ReadTransaction,
    /// The table of shells after it was opened; `None` if the file has no such table.
    pub(crate) shells: OnceLock<Option<ShellTable>>,
    /// The table of rows of histograms after it was opened; `None` without histograms.
    pub(crate) histograms: OnceLock<Option<HistogramTable>>,
}

impl Partition {
    /// Returns a consistent view of the partition.
    pub(crate) fn read(self: &Arc<Self>) -> Result<PartitionReader, StoreError> {
        // While the guard is held, no segment of the transaction is removed.
        let (open, txn) = self.file.read_under(|| self.segments.open())?;
        self.file.guard("read", || {
            let named = self.named(&txn)?;
            let segments = open.get(&named)?;
            drop(open);
            let meta = txn.open_table(META).map_err(self.fail("read"))?;
            let damaged = || {
                let problem = "its mark is incomplete, or its checksum differs".to_owned();
                StoreError::Corrupt { file: self.file.name().to_owned(), problem }
            };
            let number = |key| {
                let found = meta.get(key).map_err(self.fail("read"))?;
                found.map(|guard| guard.value()).ok_or_else(damaged)
            };
            let until = UnixMillis(number(UNTIL_KEY)?);
            let mark = Mark { through: number(THROUGH_KEY)? as u64, until };
            if number(CHECK_KEY)? as u64 != mark.checksum() {
                return Err(damaged());
            }
            let documents = txn.open_table(DOCUMENTS).map_err(self.fail("read"))?;
            let open_starts = self.open_starts(&documents)?;
            let (partition, shells, histograms) = (self.clone(), OnceLock::new(), OnceLock::new());
            Ok(PartitionReader {
                partition,
                mark,
                documents,
                open_starts,
                named,
                segments,
                txn,
                shells,
                histograms,
            })
        })
    }
}

impl Partition {
    /// Returns the starts of open documents. Each start takes one look-up.
    fn open_starts(
        &self,
        documents: &ReadOnlyTable<u64, &'static [u8]>,
    ) -> Result<Vec<UnixMillis>, StoreError> {
        let (mut starts, mut from) = (Vec::new(), 0);
        while let Some(row) = documents.range(from..).map_err(self.fail("read"))?.next() {
            let (key, _) = row.map_err(self.fail("read"))?;
            let (start, _) = self.document_of(key.value());
            starts.push(start);
            from = self.key(self.grid.next_document(start), SeriesId(0));
            if from <= key.value() {
                break;
            }
        }
        Ok(starts)
    }
}

/// The bytes of an open document.
type Bytes = AccessGuard<'static, &'static [u8]>;

/// Consecutive documents of a series in the same tiles.
#[derive(Default)]
struct Run {
    parts: Vec<Source>,
    documents: Vec<UnixMillis>,
}

impl Run {
    /// Adds a document if it directly follows in the same tiles. Returns true when it was added.
    fn extend(&mut self, found: &[Source], document: UnixMillis) -> bool {
        let is_next = Source::extend(&mut self.parts, found);
        if is_next {
            self.documents.push(document);
        }
        is_next
    }
}

impl PartitionReader {
    /// Returns the number of transactions that replaced cells.
    pub(crate) fn count_replaced(&self) -> Result<u64, StoreError> {
        let partition = &self.partition;
        let meta = self.txn.open_table(META).map_err(partition.fail("read"))?;
        let found = meta.get(REPLACED_KEY).map_err(partition.fail("read"))?;
        Ok(found.map_or(0, |count| count.value().max(0) as u64))
    }

    /// Passes an open document's bytes to `read`; `None` when the document is missing or damaged.
    pub(crate) fn document<T>(
        &self,
        start: UnixMillis,
        series: SeriesId,
        read: impl FnOnce(&DocumentLayout, &[u8]) -> T,
    ) -> Result<Option<T>, StoreError> {
        let partition = &self.partition;
        let Some(row) = self.row(start, series)? else { return Ok(None) };
        let layout = partition.layout(start);
        let is_sound = partition.is_sound(layout, row.value(), start, series)?;
        Ok(is_sound.then(|| read(layout, row.value())))
    }

    /// Returns the number of open documents.
    pub(crate) fn count(&self) -> Result<u64, StoreError> {
        let partition = &self.partition;
        partition.file.guard("read", || self.documents.len().map_err(partition.fail("read")))
    }

    /// Appends the slots of a series that have samples and begin within a range of whole slots.
    pub(crate) fn slots(
        &self,
        series: SeriesId,
        range: &Range<i64>,
        wanted: Columns,
        scratch: &mut Scratch,
        out: &mut Vec<Slot>,
    ) -> Result<(), StoreError> {
        let before = out.len();
        self.slots_and_corrections(series, range, wanted, scratch, out)?;
        if out[before..].iter().any(|slot| slot.cell.n == 0) {
            let mut appended = out.split_off(before);
            appended.retain(|slot| slot.cell.n > 0);
            out.append(&mut appended);
        }
        Ok(())
    }

    /// Appends the slots of [`Self::slots`], and corrections of slots whose samples are in no
    /// segment of this reader.
    pub(crate) fn slots_and_corrections(
        &self,
        series: SeriesId,
        range: &Range<i64>,
        wanted: Columns,
        scratch: &mut Scratch,
        out: &mut Vec<Slot>,
    ) -> Result<(), StoreError> {
        if self.open_starts.is_empty() && self.segments.is_empty() {
            return Ok(()); // only shells
        }
        let grid = &self.partition.grid;
        let from = UnixMillis(range.start.max(grid.id.start.0));
        let to = UnixMillis(range.end.min(grid.end.0));
        let span = from..to;
        let (mut run, mut found) = (Run::default(), Vec::new());
        let mut document = grid.document_start(from);
        while document < to {
            let next = grid.next_document(document);
            if let Some(row) = self.row(document, series)? {
                let before = std::mem::take(&mut run);
                self.push_run(&before, series, &span, wanted, scratch, out)?;
                self.push_row(document, series, row.value(), span.clone(), out)?;
            } else {
                self.sealed().find_within((document, &span), series, scratch, &mut found)?;
                if !found.is_empty() && !run.extend(&found, document) {
                    let parts = std::mem::take(&mut found);
                    let before =
                        std::mem::replace(&mut run, Run { parts, documents: vec![document] });
                    self.push_run(&before, series, &span, wanted, scratch, out)?;
                }
            }
            document = next;
        }
        self.push_run(&run, series, &span, wanted, scratch, out)
    }

    /// Returns a sealed document as it is stored; `None` when it does not exist.
    pub(crate) fn stored_sealed(
        &self,
        start: UnixMillis,
        series: SeriesId,
    ) -> Result<Option<StoredDocument>, StoreError> {
        let (grid, mut scratch) = (&self.partition.grid, Scratch::default());
        let (mut parts, mut cells) = (Vec::new(), Vec::new());
        self.sealed().find(start, series, &mut scratch, &mut parts)?;
        if parts.is_empty() {
            return Ok(None);
        }
        let slot = |index: usize| StoredSlot {
            start: start.plus(index as i64 * grid.width_ms),
            cell: Cell::EMPTY,
            parts: Vec::new(),
        };
        let mut slots: Vec<_> = (0..grid.slots(start)).map(slot).collect();
        let range = start..grid.next_document(start);
        let (sealed, all) = (self.sealed(), Columns::ALL);
        let read = sealed.slots(&parts, series, &range, all, &mut scratch, &mut cells);
        if let Err(fault) = read {
            return sealed.meet(&[start], series, fault).map(|()| None);
        }
        for slot in cells.into_iter().filter(|slot| slot.cell.n > 0) {
            slots[grid.slot_index(start, slot.start)].cell = slot.cell;
        }
        let mut bytes = Vec::new();
        for part in &parts {
            bytes.append(&mut part.block(series)?);
        }
        let state = DocumentState::Sealed;
        Ok(Some(StoredDocument { state, bytes, header: Vec::new(), slots }))
    }

    /// Returns whether all documents are open.
    pub(crate) fn is_open(&self) -> bool {
        self.named.is_empty()
    }

    /// Returns whether there are sealed documents and no open ones.
    pub(crate) fn is_sealed(&self) -> bool {
        self.open_starts.is_empty() && !self.named.is_empty()
    }

    /// Returns the approximate bytes of the open documents.
    pub(crate) fn open_bytes(&self) -> Result<u64, StoreError> {
        let count = self.documents.len().map_err(self.partition.fail("read"))?;
        Ok(count * self.partition.layout(self.partition.grid.id.start).length() as u64)
    }

    /// Restricts the reader to some segments, without open documents and rows of histograms.
    pub(crate) fn only(mut self, numbers: &[u32]) -> Self {
        self.open_starts.clear();
        self.histograms = OnceLock::from(None);
        let (named, segments) =
            (std::mem::take(&mut self.named), std::mem::take(&mut self.segments));
        let pairs = named.into_iter().zip(segments);
        (self.named, self.segments) =
            pairs.filter(|(entry, _)| numbers.contains(&entry.number)).unzip();
        self
    }

    pub(crate) fn sealed(&self) -> SealedPart<'_> {
        SealedPart::new(&self.partition, &self.segments)
    }

    /// Returns the bytes of an open document.
    pub(crate) fn row(
        &self,
        start: UnixMillis,
        series: SeriesId,
    ) -> Result<Option<Bytes>, StoreError> {
        if self.open_starts.binary_search(&start).is_err() {
            return Ok(None);
        }
        let partition = &self.partition;
        partition.file.guard("read", || {
            self.documents.get(partition.key(start, series)).map_err(partition.fail("read"))
        })
    }

    /// Appends the slots of an open document within a range.
    fn push_row(
        &self,
        document: UnixMillis,
        series: SeriesId,
        bytes: &[u8],
        range: Range<UnixMillis>,
        out: &mut Vec<Slot>,
    ) -> Result<(), StoreError> {
        let (partition, grid) = (&self.partition, &self.partition.grid);
        let layout = partition.layout(document);
        if !partition.is_sound(layout, bytes, document, series)? {
            return Ok(());
        }
        let next = grid.next_document(document);
        let first = grid.slot_index(document, range.start.max(document));
        let last = grid.slot_index(document, range.end.min(next));
        layout.for_each_cell(bytes, first..last, |slot, cell| {
            let start = document.plus(slot as i64 * grid.width_ms);
            out.push(Slot { start, cell });
        });
        Ok(())
    }

    /// Appends the slots of a run of sealed documents within a range.
    fn push_run(
        &self,
        run: &Run,
        series: SeriesId,
        range: &Range<UnixMillis>,
        wanted: Columns,
        scratch: &mut Scratch,
        out: &mut Vec<Slot>,
    ) -> Result<(), StoreError> {
        let read = self.sealed().slots(&run.parts, series, range, wanted, scratch, out);
        read.or_else(|fault| self.sealed().meet(&run.documents, series, fault))
    }
}
