//! Documents without an open row to which a merge adds cells. They are sealed at once when there
//! are many of them; otherwise they become open documents.
//!
//! The first documents wait in memory until there are enough of them to seal, or the merge ends.
//! Must never know: what is in files.

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

/// The new cells of a document by slot, including corrections.
#[derive(Debug)]
pub(crate) struct FreshDocument {
    pub(crate) start: UnixMillis,
    pub(crate) series: SeriesId,
    pub(crate) cells: Vec<(u16, Cell)>,
}

impl FreshDocument {
    /// Collects the cells of a document, and merges the cells of the same slot.
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

/// The documents of a merge that have no open row: either none of them has cells in files, or all
/// of them have cells in segments.
pub(crate) struct Fresh<'p> {
    partition: &'p Partition,
    /// The minimum number of documents to seal; fewer documents become open documents.
    sealed_min: usize,
    /// True when the segment uses the partition's reserved file.
    takes_reserved: bool,
    /// Documents that are not in the segment yet: the documents of the last tile, or all documents
    /// while there is no segment.
    waiting: VecDeque<FreshDocument>,
    segment: Option<(u32, SegmentWriter)>,
    tile: TileWriter,
    /// The start of the first document in the segment, and the end of the last one.
    span: Option<(UnixMillis, UnixMillis)>,
    /// The documents that cannot be sealed.
    open: Vec<FreshDocument>,
}

/// The destinations of the documents.
#[derive(Default)]
pub(crate) struct Placed {
    /// The segment to register.
    pub(crate) segment: Option<(Named, Arc<Segment>)>,
    /// Documents that stay open.
    pub(crate) open: Vec<FreshDocument>,
    /// The number of documents whose tiles would not decode to the same bytes.
    pub(crate) refused: u64,
}

impl<'p> Fresh<'p> {
    pub(crate) fn new(partition: &'p Partition, sealed_min: usize, takes_reserved: bool) -> Self {
        Self {
            partition,
            sealed_min,
            takes_reserved,
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

    /// Adds a document. Documents must be added in the order of start and then series.
    pub(crate) fn push(&mut self, document: FreshDocument) -> Result<(), StoreError> {
        let is_next =
            self.waiting.back().is_some_and(|last| Self::tile_of(last) != Self::tile_of(&document));
        if is_next && self.segment.is_some() {
            self.seal_tile()?;
        }
        self.waiting.push_back(document);
        if self.segment.is_none() && self.waiting.len() >= self.sealed_min {
            self.segment = Some(self.partition.segments.begin(self.takes_reserved)?);
            self.seal_whole_tiles()?;
        }
        Ok(())
    }

    /// Seals all waiting tiles except the last tile, which may still receive documents.
    fn seal_whole_tiles(&mut self) -> Result<(), StoreError> {
        let Some(last) = self.waiting.back().map(Self::tile_of) else { return Ok(()) };
        while self.waiting.front().is_some_and(|first| Self::tile_of(first) != last) {
            self.seal_tile()?;
        }
        Ok(())
    }

    /// Seals the first waiting tile.
    fn seal_tile(&mut self) -> Result<(), StoreError> {
        let Some((_, writer)) = &mut self.segment else { return Ok(()) };
        let Some((start, row)) = self.waiting.front().map(Self::tile_of) else { return Ok(()) };
        let grid = &self.partition.grid;
        let id = TileId { seconds: grid.seconds(start), row };
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
            self.tile.add(id.key(), lane, grid.width_ms, cells);
        }
        if self.tile.is_empty() {
            return Ok(());
        }
        if writer.add(id, grid.slots(start), &mut self.tile)? {
            let end = grid.next_document(start);
            self.span = Some((self.span.map_or(start, |(first, _)| first), end));
        } else {
            self.open.extend(documents);
        }
        Ok(())
    }

    /// Finishes the segment; returns the destinations of all documents.
    pub(crate) fn finish(&mut self) -> Result<Placed, StoreError> {
        while self.segment.is_some() && !self.waiting.is_empty() {
            self.seal_tile()?;
        }
        let open = std::mem::take(&mut self.open);
        let refused = open.len() as u64;
        let mut placed = Placed { segment: None, open, refused };
        placed.open.extend(self.waiting.drain(..));
        if let (Some((number, writer)), Some((first, end))) = (self.segment.take(), self.span) {
            let grid = &self.partition.grid;
            let named = Named { number, from: grid.seconds(first), to: grid.seconds(end) };
            placed.segment = Some((named, Arc::new(writer.finish()?)));
        }
        Ok(placed)
    }
}
