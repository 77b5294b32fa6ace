//! A consistent view of the histograms in the segments of a partition.
//!
//! Must never know: rows, which hide some of these histograms.

use std::{
    ops::{ControlFlow, Range},
    sync::Arc,
};

use crate::{
    model::{SeriesId, UnixMillis},
    store::{
        documents::{
            partition::Partition,
            segment::{Scratch, file::Segment, tile::TileHead},
        },
        encoding::lanes::row_and_lane,
        error::StoreError,
        histograms::{entries::Entries, map::HistogramVisitor},
    },
};

/// Consecutive documents of a series in one tile of histograms.
pub(super) struct Run {
    segment: Arc<Segment>,
    tile: usize,
    head: Arc<TileHead>,
    /// The start of slot 0 of the tile.
    base: UnixMillis,
    /// The slots of the documents in the tile.
    slots: Range<usize>,
    documents: Vec<UnixMillis>,
}

impl Run {
    /// Adds the documents to those of a run if they directly follow in the same tile; otherwise
    /// returns them.
    pub(super) fn join(self, before: &mut Self) -> Option<Self> {
        let is_next = Arc::ptr_eq(&before.segment, &self.segment)
            && before.tile == self.tile
            && before.slots.end == self.slots.start;
        if !is_next {
            return Some(self);
        }
        before.slots.end = self.slots.end;
        before.documents.extend(self.documents);
        None
    }
}

/// The segments that a view of a partition names.
pub(super) struct SealedHistograms<'p> {
    partition: &'p Partition,
    segments: &'p [Arc<Segment>],
}

impl<'p> SealedHistograms<'p> {
    pub(super) fn new(partition: &'p Partition, segments: &'p [Arc<Segment>]) -> Self {
        Self { partition, segments }
    }

    /// Returns whether any segment has histograms.
    pub(super) fn has_any(&self) -> bool {
        self.segments.iter().any(|segment| segment.histogram_tiles().next().is_some())
    }

    /// Finds the histograms of a document; `None` when there are none. The first read of a damaged
    /// tile is an error; after that, its histograms count as missing.
    pub(super) fn find(
        &self,
        start: UnixMillis,
        series: SeriesId,
        scratch: &mut Scratch,
    ) -> Result<Option<Run>, StoreError> {
        let grid = &self.partition.grid;
        let ((row, lane), seconds) = (row_and_lane(series), grid.seconds(start));
        for segment in self.segments {
            let Some((tile, first, slots)) = segment.find_histograms(seconds, row) else {
                continue;
            };
            let head = match segment.head(tile, scratch) {
                Ok(head) => head,
                Err(fault) => return self.meet(&[start], series, fault).map(|()| None),
            };
            let base = grid.id.start.plus(i64::from(first) * 1000);
            let from = ((start.0 - base.0) / grid.width_ms) as usize;
            let slots = from..(from + grid.slots(start)).min(slots);
            if head.has(lane, slots.clone()) {
                let (segment, documents) = (segment.clone(), vec![start]);
                return Ok(Some(Run { segment, tile, head, base, slots, documents }));
            }
        }
        Ok(None)
    }

    /// Passes the histograms of a run within a range to `visit` until it breaks.
    pub(super) fn visit(
        &self,
        run: Option<Run>,
        series: SeriesId,
        range: &Range<i64>,
        scratch: &mut Scratch,
        visit: &mut HistogramVisitor<'_>,
    ) -> Result<ControlFlow<()>, StoreError> {
        let Some(run) = run else { return Ok(ControlFlow::Continue(())) };
        let (_, lane) = row_and_lane(series);
        let start = |slot: usize| run.base.0 + slot as i64 * self.partition.grid.width_ms;
        let (tile, head) = (run.tile, &*run.head);
        let outcome =
            run.segment.histograms((tile, head), lane, &run.slots, scratch, &mut |slot, cell| {
                let start = start(slot);
                if range.contains(&start) { visit(start, cell) } else { ControlFlow::Continue(()) }
            });
        outcome.or_else(|fault| {
            self.meet(&run.documents, series, fault).map(|()| ControlFlow::Continue(()))
        })
    }

    /// Returns the histograms of a document by slot; `None` when they are damaged.
    pub(super) fn document(
        &self,
        start: UnixMillis,
        series: SeriesId,
        scratch: &mut Scratch,
    ) -> Result<Option<Entries>, StoreError> {
        let (grid, mut entries) = (&self.partition.grid, Entries::new());
        let range = start.0..grid.next_document(start).0;
        let mut add = |at: i64, cell| {
            entries.insert(grid.slot_index(start, UnixMillis(at)) as u32, cell);
            ControlFlow::Continue(())
        };
        let found = self.find(start, series, scratch);
        let outcome = found.and_then(|run| self.visit(run, series, &range, scratch, &mut add));
        match outcome {
            Ok(_) if self.partition.histogram_damage.has(self.partition.key(start, series)) => {
                Ok(None)
            }
            Ok(_) => Ok(Some(entries)),
            Err(StoreError::DamagedPart { .. }) => Ok(None),
            Err(fault) => Err(fault),
        }
    }

    fn meet(
        &self,
        starts: &[UnixMillis],
        series: SeriesId,
        fault: StoreError,
    ) -> Result<(), StoreError> {
        if !fault.is_damage() {
            return Err(fault);
        }
        self.partition.meet_histograms(starts, series, fault.file(), &fault.with_causes())
    }
}
