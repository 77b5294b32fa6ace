//! The sealed documents of one partition, as of one moment.
//!
//! A document is in one segment at most, unless it has an open row, which has all of it. Must never
//! know: open rows.

use std::{ops::Range, sync::Arc};

use super::partition::Partition;
use crate::{
    model::{Cell, SeriesId, UnixMillis},
    store::{
        documents::sealed::{Columns, Scratch, segment::Segment},
        error::StoreError,
        rows::row_and_lane,
    },
};

/// Where a document's cells are: slots of a group.
#[derive(Debug, Clone)]
pub(super) struct Source {
    segment: Arc<Segment>,
    group: usize,
    /// Its slots there.
    from: usize,
    to: usize,
    /// When slot 0 of the group begins.
    base: UnixMillis,
}

impl Source {
    /// The bytes in which it lies, perhaps with documents before and after it.
    pub(super) fn block(
        &self,
        series: SeriesId,
        scratch: &mut Scratch,
    ) -> Result<Vec<u8>, StoreError> {
        self.segment.block(self.group, row_and_lane(series).1, scratch)
    }

    /// Takes in the document behind it, when that is of the same group.
    pub(super) fn extend(&mut self, next: &Self) -> bool {
        let is_next = Arc::ptr_eq(&self.segment, &next.segment)
            && self.group == next.group
            && self.to == next.from;
        if is_next {
            self.to = next.to;
        }
        is_next
    }
}

/// The segments that a view of a partition names.
pub(super) struct SealedPart<'p> {
    partition: &'p Partition,
    segments: &'p [Arc<Segment>],
}

impl<'p> SealedPart<'p> {
    pub(super) fn new(partition: &'p Partition, segments: &'p [Arc<Segment>]) -> Self {
        Self { partition, segments }
    }

    /// Where a document is; `None` when it is not there. A damaged one is as good as none, but for
    /// the first time, when it is an error.
    pub(super) fn find(
        &self,
        start: UnixMillis,
        series: SeriesId,
        scratch: &mut Scratch,
    ) -> Result<Option<Source>, StoreError> {
        let place = &self.partition.place;
        let (row, lane) = row_and_lane(series);
        let seconds = place.seconds(start);
        let mut damaged = None;
        for segment in self.segments {
            let Some((group, first, slots)) = segment.find(seconds, row) else { continue };
            let head = match segment.head(group, scratch) {
                Ok(head) => head,
                Err(fault) if fault.is_damage() => {
                    damaged = Some(fault);
                    continue;
                }
                Err(fault) => return Err(fault),
            };
            let base = place.id.start.plus(i64::from(first) * 1000);
            let from = ((start.0 - base.0) / place.width_ms) as usize;
            let to = (from + place.slots(start)).min(slots);
            if head.has(lane, from..to) {
                let segment = segment.clone();
                return Ok(Some(Source { segment, group, from, to, base }));
            }
        }
        damaged.map_or(Ok(None), |fault| self.meet(&[start], series, fault).map(|()| None))
    }

    /// Hands out the cells of what was found, between two times, with the starts of their slots; of
    /// columns that are not wanted anything.
    pub(super) fn cells(
        &self,
        source: &Source,
        series: SeriesId,
        times: &Range<UnixMillis>,
        wanted: Columns,
        scratch: &mut Scratch,
        mut visit: impl FnMut(UnixMillis, Cell),
    ) -> Result<(), StoreError> {
        let width_ms = self.partition.place.width_ms;
        let slot = |at: UnixMillis| ((at.0 - source.base.0).max(0) / width_ms) as usize;
        let range = source.from.max(slot(times.start))..source.to.min(slot(times.end));
        let (_, lane) = row_and_lane(series);
        source.segment.cells(source.group, lane, range, wanted, scratch, |slot, cell| {
            visit(source.base.plus(slot as i64 * width_ms), cell);
        })
    }

    /// What is to be said of documents that are damaged: an error, when that is not known yet.
    pub(super) fn meet(
        &self,
        starts: &[UnixMillis],
        series: SeriesId,
        fault: StoreError,
    ) -> Result<(), StoreError> {
        if !fault.is_damage() {
            return Err(fault);
        }
        let mut is_new = false;
        for start in starts {
            let key = self.partition.key(*start, series);
            is_new |= self.partition.damage.note(key, || {
                let (series, cause) = (series.0, fault.chain());
                tracing::error!(
                    series,
                    %start,
                    cause,
                    "a sealed document is damaged: its samples are missing at its granularity"
                );
            });
        }
        if !is_new {
            return Ok(());
        }
        let first = starts.first().copied().unwrap_or(UnixMillis::MIN);
        let part = format!("the document of series {} at {first}", series.0);
        Err(StoreError::DamagedPart { file: fault.file().to_owned(), part })
    }
}
