//! The check of a partition: reads every document to find damage.
//!
//! Must never know: comparisons of documents with other granularities.

use std::ops::Range;

use redb::ReadableTable;

use super::reader::PartitionReader;
use crate::{
    model::{Cell, SeriesId, UnixMillis},
    store::{
        documents::{
            DocumentVisitor,
            segment::{Columns, Scratch},
        },
        encoding::lanes::series_at,
        error::StoreError,
    },
};

impl PartitionReader {
    /// Visits every document, and records damaged documents. `go_on` receives the number of bytes
    /// read since its last call, and returns false to stop.
    pub(crate) fn check(
        &self,
        visit: &mut DocumentVisitor<'_>,
        go_on: &dyn Fn(u64) -> bool,
    ) -> Result<(), StoreError> {
        let partition = &self.partition;
        let mut cells = Vec::new();
        partition.file.guard("read", || {
            for entry in self.documents.iter().map_err(partition.fail("read"))? {
                let (key, doc) = entry.map_err(partition.fail("read"))?;
                if !go_on(doc.value().len() as u64) {
                    return Ok(());
                }
                let (start, series) = partition.document_of(key.value());
                let layout = partition.layout(start);
                if let Err(fault) = layout.check(doc.value(), series, start) {
                    // Later comparisons skip the damaged document.
                    partition.note_damage(start, series);
                    visit(start, series, Err(fault.to_string()));
                    continue;
                }
                cells.clear();
                cells.extend((0..layout.slots()).map(|slot| layout.cell(doc.value(), slot)));
                visit(start, series, Ok(&cells));
            }
            Ok(())
        })?;
        self.check_histograms(visit, go_on)?;
        for lost in partition.segments.lost() {
            let problem = format!("a segment with documents up to {} is lost", lost.end);
            visit(lost.start, SeriesId(0), Err(problem));
        }
        (0..self.segments.len()).try_for_each(|index| self.check_segment(index, visit, go_on))
    }

    /// Visits the documents of a segment that have no open row, and no part in an earlier segment.
    fn check_segment(
        &self,
        index: usize,
        visit: &mut DocumentVisitor<'_>,
        go_on: &dyn Fn(u64) -> bool,
    ) -> Result<(), StoreError> {
        let (grid, segment) = (&self.partition.grid, &self.segments[index]);
        let mut scratch = Scratch::default();
        for (tile, id, slots) in segment.tiles() {
            if !go_on(segment.tile_bytes(tile)) {
                return Ok(());
            }
            let base = grid.id.start.plus(i64::from(id.seconds) * 1000);
            let end = base.plus(slots as i64 * grid.width_ms);
            let head = match segment.head(tile, &mut scratch) {
                Ok(head) => head,
                Err(fault) if fault.is_damage() => {
                    let series = series_at(id.row, 0);
                    self.partition.note_damage(base, series);
                    visit(base, series, Err(fault.with_causes()));
                    continue;
                }
                Err(fault) => return Err(fault),
            };
            for lane in head.lanes() {
                let series = series_at(id.row, lane);
                let mut all = vec![Cell::EMPTY; slots];
                let visit_cell = |slot: usize, cell| all[slot] = cell;
                let (range, scratch) = (&(0..slots), &mut scratch);
                let read =
                    segment.cells((tile, &head), lane, range, Columns::ALL, scratch, visit_cell);
                self.check_block(index, base..end, series, read.map(|()| all), visit)?;
            }
        }
        Ok(())
    }

    /// Visits the documents of a series in one block of a segment.
    fn check_block(
        &self,
        index: usize,
        range: Range<UnixMillis>,
        series: SeriesId,
        block: Result<Vec<Cell>, StoreError>,
        visit: &mut DocumentVisitor<'_>,
    ) -> Result<(), StoreError> {
        let grid = &self.partition.grid;
        let mut document = range.start;
        while document < range.end {
            let next = grid.next_document(document);
            let slot = |at: UnixMillis| ((at.0 - range.start.0) / grid.width_ms) as usize;
            if self.row(document, series)?.is_none() {
                match &block {
                    Ok(all) => {
                        let document_cells = &all[slot(document)..slot(next).min(all.len())];
                        if document_cells.iter().any(|cell| !cell.is_empty()) {
                            self.check_document(index, document, series, document_cells, visit)?;
                        }
                    }
                    Err(fault) if fault.is_damage() => {
                        self.partition.note_damage(document, series);
                        visit(document, series, Err(fault.with_causes()));
                    }
                    Err(_) => {}
                }
            }
            document = next;
        }
        block.map(drop).or_else(|fault| if fault.is_damage() { Ok(()) } else { Err(fault) })
    }

    /// Visits a document with its parts in all segments, unless an earlier segment also contains a
    /// part: the document was then visited with that segment.
    fn check_document(
        &self,
        index: usize,
        start: UnixMillis,
        series: SeriesId,
        document_cells: &[Cell],
        visit: &mut DocumentVisitor<'_>,
    ) -> Result<(), StoreError> {
        let (grid, sealed) = (&self.partition.grid, self.sealed());
        let (mut scratch, mut parts, mut slots) = (Scratch::default(), Vec::new(), Vec::new());
        let found = sealed.find(start, series, &mut scratch, &mut parts).and_then(|()| {
            let range = start..grid.next_document(start);
            if parts.len() < 2 {
                return Ok(());
            }
            sealed.slots(&parts, series, &range, Columns::ALL, &mut scratch, &mut slots)
        });
        match found {
            Ok(()) => {}
            Err(fault) if fault.is_damage() || matches!(fault, StoreError::DamagedPart { .. }) => {
                parts.clear();
            }
            Err(fault) => return Err(fault),
        }
        let Some(first) = parts.first() else {
            self.partition.note_damage(start, series);
            visit(start, series, Err("a part of it is damaged".to_owned()));
            return Ok(());
        };
        if !first.is_of(&self.segments[index]) {
            return Ok(());
        }
        let mut cells = document_cells.to_vec();
        for slot in slots {
            cells[grid.slot_index(start, slot.start)] = slot.cell;
        }
        // Corrections of samples that are not in the document are dropped.
        cells.iter_mut().filter(|cell| cell.n == 0).for_each(|cell| *cell = Cell::EMPTY);
        if cells.iter().any(|cell| cell.n > 0) {
            visit(start, series, Ok(&cells));
        }
        Ok(())
    }
}
