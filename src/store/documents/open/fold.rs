//! Folding: all documents of a partition, open and sealed, become one segment: when its time is over,
//! or when much of it is open because it came late.
//!
//! Must never know: when a partition's time is over.

use std::{
    collections::BTreeSet,
    ops::Range,
    sync::{Arc, atomic::Ordering},
};

use redb::ReadableTable;

use super::{
    partition::{DOCUMENTS, Partition, SEGMENTS},
    reader::PartitionReader,
    segments::Named,
};
use crate::{
    model::UnixMillis,
    store::{
        documents::{
            Slot,
            sealed::{
                Columns, Scratch,
                group::{GroupWriter, SLOTS_MAX},
                segment::GroupId,
                segment_writer::SegmentWriter,
            },
        },
        error::StoreError,
        rows::{SERIES_PER_ROW, row_of, series_at},
    },
};

/// Open documents stay so beside a segment while they take less than this part of it.
const OPEN_PART: u64 = 8;

/// What folding a partition did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Folded {
    /// Open documents that are sealed now.
    pub(crate) documents: u64,
    /// Bytes of the segment.
    pub(crate) bytes: u64,
    /// Whether it was given up because some cells would not have come back as they are.
    pub(crate) refused: bool,
}

/// How filling a segment ended.
enum Filled {
    Whole,
    /// Some cells would not come back as they are.
    Refused,
    /// It was asked to end.
    Ended,
}

impl Partition {
    /// Makes one segment of all that the partition holds, if that is worth it.
    pub(super) fn fold(
        self: &Arc<Self>,
        is_over: bool,
        open_bytes_min: u64,
        go_on: &dyn Fn(u64) -> bool,
    ) -> Result<Option<Folded>, StoreError> {
        if self.is_loose.load(Ordering::Relaxed) {
            self.shrink()?;
        }
        let seen = self.file.stamp().map(|stamp| (stamp, is_over));
        if seen.is_some() && *self.not_worth.lock() == seen {
            return Ok(None);
        }
        let reader = self.read()?;
        // What is damaged would be forgotten.
        if *self.is_dropped.lock()
            || self.damage.count() > 0
            || self.segments.has_lost()
            || !reader.is_worth_folding(is_over, open_bytes_min)?
        {
            *self.not_worth.lock() = seen;
            return Ok(None);
        }
        let (number, mut writer) = self.segments.begin()?;
        match self.fill(&reader, &mut writer, go_on) {
            Ok(Filled::Whole) => {}
            Ok(Filled::Refused) => {
                *self.not_worth.lock() = seen;
                return Ok(Some(Folded { refused: true, ..Folded::default() }));
            }
            // What is damaged is noted by now.
            Ok(Filled::Ended) | Err(StoreError::DamagedPart { .. }) => return Ok(None),
            Err(fault) => return Err(fault),
        }
        // A query may have met it meanwhile.
        if self.damage.count() > 0 {
            return Ok(None);
        }
        let segment = Arc::new(writer.finish()?);
        let bytes = segment.bytes();
        self.segments.put(number, segment);
        let Some(documents) = self.install(&reader, number, is_over)? else { return Ok(None) };
        drop(reader);
        self.shrink()?;
        Ok(Some(Folded { documents, bytes, refused: false }))
    }

    /// Gives back the space of what was folded, later when somebody reads.
    fn shrink(&self) -> Result<(), StoreError> {
        self.is_loose.store(true, Ordering::Relaxed);
        if self.file.compact()? {
            self.is_loose.store(false, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Has a segment count instead of all that a reader has; returns how many open documents are
    /// gone, and `None` when the partition is being removed.
    fn install(
        &self,
        reader: &PartitionReader,
        number: u32,
        is_over: bool,
    ) -> Result<Option<u64>, StoreError> {
        let is_dropped = self.is_dropped.lock();
        if *is_dropped {
            return self.segments.remove(number).map(|()| None);
        }
        let named = Named { number, from: 0, to: self.place.seconds(self.place.end) };
        let documents = self.take_place(reader, named, is_over);
        if documents.is_err() {
            self.remove_unnamed(number);
        }
        let documents = documents?;
        for own in &reader.named {
            self.segments.remove(own.number)?;
        }
        Ok(Some(documents))
    }

    /// Writes all documents into a segment.
    fn fill(
        &self,
        reader: &PartitionReader,
        writer: &mut SegmentWriter,
        go_on: &dyn Fn(u64) -> bool,
    ) -> Result<Filled, StoreError> {
        let place = &self.place;
        let rows = reader.rows()?;
        let (mut group, mut slots, mut bytes) = (GroupWriter::default(), Vec::new(), 0);
        let mut scratch = Scratch::default();
        for span in self.spans() {
            let seconds = place.seconds(UnixMillis(span.start));
            let count = ((span.end - span.start) / place.width_ms) as usize;
            let number = |slot: &Slot| ((slot.start.0 - span.start) / place.width_ms) as u16;
            for row in &rows {
                let before = std::mem::replace(&mut bytes, writer.bytes());
                if !go_on(bytes - before) {
                    return Ok(Filled::Ended);
                }
                let id = GroupId { seconds, row: *row };
                group.clear();
                for lane in 0..SERIES_PER_ROW {
                    slots.clear();
                    let (series, all) = (series_at(*row, lane), Columns::ALL);
                    reader.slots(series, &span, all, &mut scratch, &mut slots)?;
                    let cells = slots.iter().map(|slot| (number(slot), &slot.cell));
                    group.add(id.key(), lane, place.width_ms, cells);
                }
                if !group.is_empty() && !writer.add(id, count, &mut group)? {
                    return Ok(Filled::Refused);
                }
            }
        }
        Ok(Filled::Whole)
    }

    /// Spans of whole documents that a group can hold.
    fn spans(&self) -> Vec<Range<i64>> {
        let place = &self.place;
        let longest_ms = SLOTS_MAX as i64 * place.width_ms;
        let mut spans: Vec<Range<i64>> = Vec::new();
        let mut document = place.id.start;
        while document < place.end {
            let next = place.next_document(document);
            match spans.last_mut() {
                Some(span) if next.0 - span.start <= longest_ms => span.end = next.0,
                _ => spans.push(document.0..next.0),
            }
            document = next;
        }
        spans
    }

    /// Names the segment instead of those that it holds, and removes the open documents that are as
    /// they were: one that has changed stays, and counts. Shells stay where they may be filled yet.
    /// Returns how many are gone.
    fn take_place(
        &self,
        reader: &PartitionReader,
        named: Named,
        is_over: bool,
    ) -> Result<u64, StoreError> {
        self.file.transact("seal", |txn| {
            let mut table = txn.open_table(DOCUMENTS).map_err(self.fail("seal"))?;
            let mut gone = 0;
            for entry in reader.documents.iter().map_err(self.fail("seal"))? {
                let (key, then) = entry.map_err(self.fail("seal"))?;
                let key = key.value();
                if !is_over && self.is_shell(key, then.value()) {
                    continue;
                }
                let now = table.get(key).map_err(self.fail("seal"))?;
                let is_same = now.is_some_and(|now| now.value() == then.value());
                if is_same {
                    table.remove(key).map_err(self.fail("seal"))?;
                    gone += 1;
                }
            }
            let mut segments = txn.open_table(SEGMENTS).map_err(self.fail("seal"))?;
            for own in &reader.named {
                segments.remove(own.number).map_err(self.fail("seal"))?;
            }
            segments.insert(named.number, named.span()).map_err(self.fail("seal"))?;
            Ok(gone)
        })
    }
}

impl PartitionReader {
    /// Whether it would become smaller, or fewer files.
    fn is_worth_folding(&self, is_over: bool, open_bytes_min: u64) -> Result<bool, StoreError> {
        let open = self.open_bytes()?;
        let sealed: u64 = self.segments.iter().map(|segment| segment.bytes()).sum();
        let open_bytes_min = open_bytes_min.max(sealed / OPEN_PART);
        let is_small = open < open_bytes_min;
        if !is_over {
            return Ok(!is_small && self.filled_bytes()? >= open_bytes_min);
        }
        Ok(match self.segments.len() {
            0 => open > 0,
            1 => !is_small,
            _ => true,
        })
    }

    /// Bytes of the open documents that are no shells, about.
    fn filled_bytes(&self) -> Result<u64, StoreError> {
        let partition = &self.partition;
        let mut bytes = 0;
        for entry in self.documents.iter().map_err(partition.fail("read"))? {
            let (key, document) = entry.map_err(partition.fail("read"))?;
            if !partition.is_shell(key.value(), document.value()) {
                bytes += document.value().len() as u64;
            }
        }
        Ok(bytes)
    }

    /// The rows of series that have documents, ascending.
    fn rows(&self) -> Result<BTreeSet<u32>, StoreError> {
        let groups = self.segments.iter().flat_map(|segment| segment.groups());
        let mut rows: BTreeSet<u32> = groups.map(|(id, _)| id.row).collect();
        let partition = &self.partition;
        for entry in self.documents.iter().map_err(partition.fail("read"))? {
            let (key, _) = entry.map_err(partition.fail("read"))?;
            rows.insert(row_of(partition.place_of(key.value()).1));
        }
        Ok(rows)
    }
}
