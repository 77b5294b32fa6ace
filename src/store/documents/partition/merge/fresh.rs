//! Documents of a merge that have no open row: sealed at once when there are many, else open.
//!
//! The first ones wait in memory, until it is known which. Must never know: what is in files.

use std::{collections::VecDeque, sync::Arc};

use crate::{
    model::{Cell, SeriesId, UnixMillis},
    store::{
        documents::{
            partition::{Partition, segments::Named},
            segment::{
                file::{Segment, TileId},
                tile::TileWriter,
                writer::SegmentWriter,
            },
        },
        encoding::lanes::row_and_lane,
        error::StoreError,
    },
};

/// The new cells of a document by their slots, corrections too.
#[derive(Debug)]
pub(crate) struct FreshDocument {
    pub(crate) start: UnixMillis,
    pub(crate) series: SeriesId,
    pub(crate) cells: Vec<(u16, Cell)>,
}

impl FreshDocument {
    /// Merges the cells of each slot.
    pub(crate) fn new(
        start: UnixMillis,
        series: SeriesId,
        slots: usize,
        cells: &[(usize, Cell)],
    ) -> Self {
        if cells.is_sorted_by(|(before, _), (slot, _)| before < slot) {
            let mut filled = Vec::with_capacity(cells.len());
            let all = cells.iter().map(|(slot, cell)| (*slot as u16, *cell));
            filled.extend(all.filter(|(_, cell)| !cell.is_empty()));
            return Self { start, series, cells: filled };
        }
        let mut all = vec![Cell::EMPTY; slots];
        for (slot, cell) in cells {
            all[*slot].merge(cell);
        }
        let filled = (0_u16..).zip(all).filter(|(_, cell)| !cell.is_empty());
        Self { start, series, cells: filled.collect() }
    }
}

/// The new documents of a merge: all that are in no file yet, or all that are in a segment.
pub(crate) struct Fresh<'p> {
    partition: &'p Partition,
    /// Fewer documents become open ones.
    sealed_min: usize,
    /// Documents that are not in a segment yet: those of the tile under way, or all.
    waiting: VecDeque<FreshDocument>,
    segment: Option<(u32, SegmentWriter)>,
    tile: TileWriter,
    /// The first and the last of the documents in the segment.
    span: Option<(UnixMillis, UnixMillis)>,
    /// The documents that cannot be sealed.
    open: Vec<FreshDocument>,
}

/// The places of the new documents.
#[derive(Default)]
pub(crate) struct Placed {
    /// The segment that is to be named.
    pub(crate) segment: Option<(Named, Arc<Segment>)>,
    /// Documents that stay open.
    pub(crate) open: Vec<FreshDocument>,
    /// Tiles that did not come back as they were.
    pub(crate) refused: u64,
}

impl<'p> Fresh<'p> {
    pub(crate) fn new(partition: &'p Partition, sealed_min: usize) -> Self {
        Self {
            partition,
            sealed_min,
            waiting: VecDeque::new(),
            segment: None,
            tile: TileWriter::default(),
            span: None,
            open: Vec::new(),
        }
    }

    fn tile_of(document: &FreshDocument) -> (UnixMillis, u32) {
        (document.start, row_and_lane(document.series).0)
    }

    /// Takes a document; documents come by their start and then by their series.
    pub(crate) fn push(&mut self, document: FreshDocument) -> Result<(), StoreError> {
        let is_next =
            self.waiting.back().is_some_and(|last| Self::tile_of(last) != Self::tile_of(&document));
        if is_next && self.segment.is_some() {
            self.seal_tile()?;
        }
        self.waiting.push_back(document);
        if self.segment.is_none() && self.waiting.len() >= self.sealed_min {
            self.segment = Some(self.partition.segments.begin()?);
            self.seal_whole_tiles()?;
        }
        Ok(())
    }

    /// Seals all tiles that wait but the last, which may go on.
    fn seal_whole_tiles(&mut self) -> Result<(), StoreError> {
        let Some(last) = self.waiting.back().map(Self::tile_of) else { return Ok(()) };
        while self.waiting.front().is_some_and(|first| Self::tile_of(first) != last) {
            self.seal_tile()?;
        }
        Ok(())
    }

    /// Seals the first tile that waits.
    fn seal_tile(&mut self) -> Result<(), StoreError> {
        let Some((_, writer)) = &mut self.segment else { return Ok(()) };
        let Some((start, row)) = self.waiting.front().map(Self::tile_of) else { return Ok(()) };
        let place = &self.partition.place;
        let id = TileId { seconds: place.seconds(start), row };
        let count = self
            .waiting
            .iter()
            .take_while(|document| Self::tile_of(document) == (start, row))
            .count();
        let documents: Vec<_> = self.waiting.drain(..count).collect();
        self.tile.clear();
        for document in &documents {
            let (_, lane) = row_and_lane(document.series);
            let cells = document.cells.iter().map(|(slot, cell)| (*slot, cell));
            self.tile.add(id.key(), lane, place.width_ms, cells);
        }
        if self.tile.is_empty() {
            return Ok(());
        }
        if writer.add(id, place.slots(start), &mut self.tile)? {
            let end = place.next_document(start);
            self.span = Some((self.span.map_or(start, |(first, _)| first), end));
        } else {
            self.open.extend(documents);
        }
        Ok(())
    }

    /// Ends the segment.
    pub(crate) fn finish(&mut self) -> Result<Placed, StoreError> {
        while self.segment.is_some() && !self.waiting.is_empty() {
            self.seal_tile()?;
        }
        let open = std::mem::take(&mut self.open);
        let refused = open.len() as u64;
        let mut placed = Placed { segment: None, open, refused };
        placed.open.extend(self.waiting.drain(..));
        if let (Some((number, writer)), Some((first, end))) = (self.segment.take(), self.span) {
            let place = &self.partition.place;
            let named = Named { number, from: place.seconds(first), to: place.seconds(end) };
            placed.segment = Some((named, Arc::new(writer.finish()?)));
        }
        Ok(placed)
    }
}
