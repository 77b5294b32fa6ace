//! A consistent view of the sealed documents of one partition.
//!
//! A document may have a part in each segment. It is the merge of its parts, unless it has an open
//! row, which contains all of its cells. Must never know: open rows.

use std::{ops::Range, sync::Arc};

use crate::{
    model::{Cell, SeriesId, UnixMillis},
    store::{
        documents::{
            Slot, merge_equal,
            partition::Partition,
            segment::{Columns, Scratch, file::Segment, tile::TileHead},
        },
        encoding::lanes::row_and_lane,
        error::StoreError,
        file::damage::Damage,
    },
};

/// The location of a part of a document's cells: some slots of a tile.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    segment: Arc<Segment>,
    tile: usize,
    head: Arc<TileHead>,
    /// The first of the document's slots in the tile; `to` is the end.
    from: usize,
    to: usize,
    /// Start of slot 0 of the tile.
    base: UnixMillis,
}

impl Source {
    /// Returns the bytes of the block that contains the part, perhaps with documents before and
    /// after it.
    pub(crate) fn block(&self, series: SeriesId) -> Result<Vec<u8>, StoreError> {
        self.segment.block((self.tile, &self.head), row_and_lane(series).1)
    }

    /// Returns whether the part is in a segment.
    pub(crate) fn is_of(&self, segment: &Arc<Segment>) -> bool {
        Arc::ptr_eq(&self.segment, segment)
    }

    /// Returns whether the part `next` directly follows this one in the same tile.
    fn is_before(&self, next: &Self) -> bool {
        Arc::ptr_eq(&self.segment, &next.segment) && self.tile == next.tile && self.to == next.from
    }

    /// Extends `all` by the parts of the next document if each of these directly follows. Returns
    /// true when it does.
    pub(crate) fn extend(all: &mut [Self], next: &[Self]) -> bool {
        let is_next = all.len() == next.len()
            && all.iter().zip(next).all(|(source, next)| source.is_before(next));
        if is_next {
            all.iter_mut().zip(next).for_each(|(source, next)| source.to = next.to);
        }
        is_next
    }
}

/// The segments that a view of a partition names.
pub(crate) struct SealedPart<'p> {
    partition: &'p Partition,
    segments: &'p [Arc<Segment>],
}

impl<'p> SealedPart<'p> {
    pub(crate) fn new(partition: &'p Partition, segments: &'p [Arc<Segment>]) -> Self {
        Self { partition, segments }
    }

    /// Finds the parts of a document; none when the document is missing. The first read of a
    /// damaged document is an error; after that, the document counts as missing.
    pub(crate) fn find(
        &self,
        start: UnixMillis,
        series: SeriesId,
        scratch: &mut Scratch,
        found: &mut Vec<Source>,
    ) -> Result<(), StoreError> {
        let document = start..self.partition.grid.next_document(start);
        self.find_within((start, &document), series, scratch, found)
    }

    /// Finds the parts of a document that have cells within a range; see [`Self::find`].
    pub(crate) fn find_within(
        &self,
        (start, range): (UnixMillis, &Range<UnixMillis>),
        series: SeriesId,
        scratch: &mut Scratch,
        found: &mut Vec<Source>,
    ) -> Result<(), StoreError> {
        let grid = &self.partition.grid;
        let (row, lane) = row_and_lane(series);
        let seconds = grid.seconds(start);
        found.clear();
        for segment in self.segments {
            let Some((tile, first, slots)) = segment.find(seconds, row) else { continue };
            let head = match segment.head(tile, scratch) {
                Ok(head) => head,
                Err(fault) => {
                    found.clear();
                    return self.meet(&[start], series, fault);
                }
            };
            let base = grid.id.start.plus(i64::from(first) * 1000);
            let slot = |at: UnixMillis| ((at.0 - base.0).max(0) / grid.width_ms) as usize;
            let from = slot(start);
            let to = (from + grid.slots(start)).min(slots);
            if head.has(lane, from.max(slot(range.start))..to.min(slot(range.end))) {
                found.push(Source { segment: segment.clone(), tile, head, from, to, base });
            }
        }
        Ok(())
    }

    /// Appends the slots of the found parts within a range, ascending, including corrections of
    /// slots that are elsewhere. Appends nothing when it fails.
    pub(crate) fn slots(
        &self,
        found: &[Source],
        series: SeriesId,
        range: &Range<UnixMillis>,
        wanted: Columns,
        scratch: &mut Scratch,
        out: &mut Vec<Slot>,
    ) -> Result<(), StoreError> {
        let before = out.len();
        // Two cells of one sample may become a cell of two samples, which needs all columns.
        let wanted = if found.len() > 1 { wanted.and(Columns::VALUES) } else { wanted };
        for source in found {
            let push = |start, cell| out.push(Slot { start, cell });
            if let Err(fault) = self.part(source, series, (range, wanted), scratch, push) {
                out.truncate(before);
                return Err(fault);
            }
        }
        if found.len() > 1 {
            let mut parts = out.split_off(before);
            merge_equal(&mut parts);
            out.append(&mut parts);
        }
        Ok(())
    }

    /// Passes the cells of a part within a range to `visit`, with the starts of their slots.
    /// Columns that are not wanted may contain anything.
    fn part(
        &self,
        source: &Source,
        series: SeriesId,
        (range, wanted): (&Range<UnixMillis>, Columns),
        scratch: &mut Scratch,
        mut visit: impl FnMut(UnixMillis, Cell),
    ) -> Result<(), StoreError> {
        let width_ms = self.partition.grid.width_ms;
        let slot = |at: UnixMillis| ((at.0 - source.base.0).max(0) / width_ms) as usize;
        let range = source.from.max(slot(range.start))..source.to.min(slot(range.end));
        let (_, lane) = row_and_lane(series);
        let tile = (source.tile, &*source.head);
        source.segment.cells(tile, lane, &range, wanted, scratch, |slot, cell| {
            visit(source.base.plus(slot as i64 * width_ms), cell);
        })
    }

    /// Records the damage of documents. Returns an error unless all of them were known to be
    /// damaged.
    pub(crate) fn meet(
        &self,
        starts: &[UnixMillis],
        series: SeriesId,
        fault: StoreError,
    ) -> Result<(), StoreError> {
        if !fault.is_damage() {
            return Err(fault);
        }
        let (partition, part) = (self.partition, (fault.file(), "the document"));
        partition.meet_damage(&partition.damage, (starts, series), part, |start| {
            let (series, cause) = (series.0, fault.with_causes());
            tracing::error!(
                series,
                %start,
                cause,
                "a sealed document is damaged: its samples are missing at its granularity"
            );
        })
    }
}

impl Partition {
    /// Records the damage of documents, or of a part of them, in a file. Returns an error unless
    /// all of them were known to be damaged. `log` logs a new one.
    pub(crate) fn meet_damage(
        &self,
        damage: &Damage,
        (starts, series): (&[UnixMillis], SeriesId),
        (file, part): (&str, &str),
        log: impl Fn(UnixMillis),
    ) -> Result<(), StoreError> {
        let mut is_new = false;
        for start in starts {
            is_new |= damage.note(self.key(*start, series), || log(*start));
        }
        if !is_new {
            return Ok(());
        }
        let first = starts.first().copied().unwrap_or(UnixMillis::MIN);
        let part = format!("{part} of series {} at {first}", series.0);
        Err(StoreError::DamagedPart { file: file.to_owned(), part })
    }
}
