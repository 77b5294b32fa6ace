//! The documents and the mark of one partition, read within a view of it.
//!
//! Must never know: what the mark means.

use std::{ops::Range, sync::Arc};

use redb::{AccessGuard, ReadOnlyTable, ReadableTableMetadata};

use super::{
    layout::DocumentLayout,
    partition::{CHECK_KEY, DOCUMENTS, META, Partition, THROUGH_KEY, UNTIL_KEY},
    sealed_part::{SealedPart, Source},
    segments::Named,
};
use crate::{
    model::{Cell, SeriesId, UnixMillis},
    store::{
        documents::{
            Slot,
            mark::Mark,
            sealed::{Scratch, segment::Segment},
            stored::{DocumentState, StoredDocument, StoredSlot},
        },
        error::StoreError,
    },
};

/// A consistent view of a partition and of its mark.
pub(super) struct PartitionReader {
    pub(super) partition: Arc<Partition>,
    /// What the documents have.
    pub(super) mark: Mark,
    pub(super) documents: ReadOnlyTable<u64, &'static [u8]>,
    /// Whether there are any open documents.
    has_rows: bool,
    pub(super) named: Vec<Named>,
    pub(super) segments: Vec<Arc<Segment>>,
}

impl Partition {
    /// A consistent view of the partition.
    pub(super) fn read(self: &Arc<Self>) -> Result<PartitionReader, StoreError> {
        // No segment goes before those that are named now are held.
        let (open, txn) = self.file.read_under(|| self.segments.open())?;
        self.file.guard("read", || {
            let named = self.named(&txn)?;
            let segments = open.get(&named)?;
            drop(open);
            let meta = txn.open_table(META).map_err(self.fail("read"))?;
            let value = |key| {
                let found = meta.get(key).map_err(self.fail("read"))?;
                Ok::<_, StoreError>(found.map(|guard| guard.value()))
            };
            let mark = Mark {
                through: value(THROUGH_KEY)?.unwrap_or(0) as u64,
                // The first format knew no such time: it wrote all slots.
                until: UnixMillis(value(UNTIL_KEY)?.unwrap_or(i64::MAX)),
            };
            // Older releases wrote none, and a new partition has none.
            if value(CHECK_KEY)?.is_some_and(|check| check as u64 != mark.checksum()) {
                let problem = "its mark is not as it was written".to_owned();
                return Err(StoreError::Corrupt { file: self.file.name().to_owned(), problem });
            }
            let documents = txn.open_table(DOCUMENTS).map_err(self.fail("read"))?;
            let has_rows = !documents.is_empty().map_err(self.fail("read"))?;
            let partition = self.clone();
            Ok(PartitionReader { partition, mark, documents, has_rows, named, segments })
        })
    }
}

/// The bytes of an open document.
type Bytes = AccessGuard<'static, &'static [u8]>;

/// Documents of a series that follow each other in one group.
struct Run {
    source: Source,
    documents: Vec<UnixMillis>,
}

impl Run {
    /// Takes in a document, when it is the next one of the group.
    fn extend(&mut self, found: &Source, document: UnixMillis) -> bool {
        let is_next = self.source.extend(found);
        if is_next {
            self.documents.push(document);
        }
        is_next
    }
}

impl PartitionReader {
    /// Hands a document's bytes to `read`; `None` when there is no such document, or a damaged one.
    pub(super) fn document<T>(
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

    /// How many documents there are.
    pub(super) fn count(&self) -> Result<u64, StoreError> {
        let partition = &self.partition;
        partition.file.guard("read", || self.documents.len().map_err(partition.fail("read")))
    }

    /// Appends the slots of a series that begin within a range of whole slots.
    pub(super) fn slots(
        &self,
        series: SeriesId,
        range: &Range<i64>,
        out: &mut Vec<Slot>,
    ) -> Result<(), StoreError> {
        let place = &self.partition.place;
        let from = UnixMillis(range.start.max(place.id.start.0));
        let to = UnixMillis(range.end.min(place.end.0));
        let (mut scratch, mut finding) = (Scratch::default(), Scratch::default());
        let mut run: Option<Run> = None;
        let mut document = place.document_start(from);
        while document < to {
            let next = place.next_document(document);
            let mut push = |out: &mut Vec<Slot>, run: Option<Run>| {
                run.map_or(Ok(()), |run| self.push_run(&run, series, from..to, &mut scratch, out))
            };
            if let Some(row) = self.row(document, series)? {
                push(out, run.take())?;
                self.push_row(document, series, row.value(), from..to, out)?;
            } else if let Some(source) = self.sealed().find(document, series, &mut finding)?
                && !run.as_mut().is_some_and(|run| run.extend(&source, document))
            {
                push(out, run.replace(Run { source, documents: vec![document] }))?;
            }
            document = next;
        }
        match run {
            Some(run) => self.push_run(&run, series, from..to, &mut scratch, out),
            None => Ok(()),
        }
    }

    /// A sealed document as it is stored; `None` when there is none.
    pub(super) fn stored_sealed(
        &self,
        start: UnixMillis,
        series: SeriesId,
    ) -> Result<Option<StoredDocument>, StoreError> {
        let (place, mut scratch) = (&self.partition.place, Scratch::default());
        let Some(source) = self.sealed().find(start, series, &mut scratch)? else {
            return Ok(None);
        };
        let slot = |index: usize| StoredSlot {
            start: start.plus(index as i64 * place.width_ms),
            cell: Cell::EMPTY,
            parts: Vec::new(),
        };
        let mut slots: Vec<_> = (0..place.slots(start)).map(slot).collect();
        let end = place.next_document(start);
        let read = self.sealed().cells(&source, series, start, end, &mut scratch, |at, cell| {
            slots[place.slot_index(start, at)].cell = cell;
        });
        if let Err(fault) = read {
            return self.sealed().meet(&[start], series, fault).map(|()| None);
        }
        let bytes = source.block(series, &mut scratch)?;
        let state = DocumentState::Sealed;
        Ok(Some(StoredDocument { state, bytes, header: Vec::new(), slots }))
    }

    /// Whether all documents are open ones.
    pub(super) fn is_open(&self) -> bool {
        self.named.is_empty()
    }

    /// Whether there are sealed documents and no others.
    pub(super) fn is_sealed(&self) -> bool {
        !self.has_rows && !self.named.is_empty()
    }

    /// Bytes of the open documents, about.
    pub(super) fn open_bytes(&self) -> Result<u64, StoreError> {
        let count = self.documents.len().map_err(self.partition.fail("read"))?;
        Ok(count * self.partition.layout(self.partition.place.id.start).length() as u64)
    }

    fn sealed(&self) -> SealedPart<'_> {
        SealedPart::new(&self.partition, &self.segments)
    }

    /// The bytes of an open document.
    pub(super) fn row(
        &self,
        start: UnixMillis,
        series: SeriesId,
    ) -> Result<Option<Bytes>, StoreError> {
        if !self.has_rows {
            return Ok(None);
        }
        let partition = &self.partition;
        partition.file.guard("read", || {
            self.documents.get(partition.key(start, series)).map_err(partition.fail("read"))
        })
    }

    /// Appends what an open document has of a range.
    fn push_row(
        &self,
        document: UnixMillis,
        series: SeriesId,
        bytes: &[u8],
        range: Range<UnixMillis>,
        out: &mut Vec<Slot>,
    ) -> Result<(), StoreError> {
        let (partition, place) = (&self.partition, &self.partition.place);
        let layout = partition.layout(document);
        if !partition.is_sound(layout, bytes, document, series)? {
            return Ok(());
        }
        let next = place.next_document(document);
        let first = place.slot_index(document, range.start.max(document));
        let last = place.slot_index(document, range.end.min(next));
        layout.for_each_cell(bytes, first..last, |slot, cell| {
            let start = document.plus(slot as i64 * place.width_ms);
            out.push(Slot { start, cell });
        });
        Ok(())
    }

    /// Appends what sealed documents have of a range.
    fn push_run(
        &self,
        run: &Run,
        series: SeriesId,
        range: Range<UnixMillis>,
        scratch: &mut Scratch,
        out: &mut Vec<Slot>,
    ) -> Result<(), StoreError> {
        let before = out.len();
        let sealed = self.sealed();
        let outcome =
            sealed.cells(&run.source, series, range.start, range.end, scratch, |start, cell| {
                out.push(Slot { start, cell });
            });
        outcome.or_else(|fault| {
            out.truncate(before);
            sealed.meet(&run.documents, series, fault)
        })
    }
}
