//! Every document of a partition, read to find what is damaged.
//!
//! Must never know: what documents are compared with.

use std::ops::Range;

use redb::ReadableTable;

use super::reader::PartitionReader;
use crate::{
    model::{Cell, SeriesId, UnixMillis},
    store::{
        documents::{
            DocumentVisitor,
            sealed::{Columns, Scratch, segment::Segment},
        },
        error::StoreError,
        rows::series_at,
    },
};

impl PartitionReader {
    /// Visits every document; what is damaged is noted as such.
    pub(super) fn check(&self, visit: &mut DocumentVisitor<'_>) -> Result<(), StoreError> {
        let partition = &self.partition;
        let mut cells = Vec::new();
        partition.file.guard("read", || {
            for entry in self.documents.iter().map_err(partition.fail("read"))? {
                let (key, doc) = entry.map_err(partition.fail("read"))?;
                let (start, series) = partition.place_of(key.value());
                let layout = partition.layout(start);
                if let Err(fault) = layout.check(doc.value(), series, start) {
                    // What is compared later goes round it.
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
        for lost in partition.segments.lost() {
            let problem = format!("a segment with documents up to {} is lost", lost.end);
            visit(lost.start, SeriesId(0), Err(problem));
        }
        self.segments.iter().try_for_each(|segment| self.check_segment(segment, visit))
    }

    /// Visits the documents of a segment that have no open row.
    fn check_segment(
        &self,
        segment: &Segment,
        visit: &mut DocumentVisitor<'_>,
    ) -> Result<(), StoreError> {
        let place = &self.partition.place;
        let mut scratch = Scratch::default();
        for (group, (id, slots)) in segment.groups().enumerate() {
            let base = place.id.start.plus(i64::from(id.seconds) * 1000);
            let end = base.plus(slots as i64 * place.width_ms);
            let head = match segment.head(group, &mut scratch) {
                Ok(head) => head,
                Err(fault) if fault.is_damage() => {
                    let series = series_at(id.row, 0);
                    self.partition.note_damage(base, series);
                    visit(base, series, Err(fault.chain()));
                    continue;
                }
                Err(fault) => return Err(fault),
            };
            for lane in head.lanes() {
                let series = series_at(id.row, lane);
                let mut all = vec![Cell::EMPTY; slots];
                let read = segment.cells(
                    group,
                    lane,
                    0..slots,
                    Columns::ALL,
                    &mut scratch,
                    |slot, cell| {
                        all[slot] = cell;
                    },
                );
                self.check_block(base..end, series, read.map(|()| all), visit)?;
            }
        }
        Ok(())
    }

    /// Visits the documents of a series in one block that have no open row.
    fn check_block(
        &self,
        range: Range<UnixMillis>,
        series: SeriesId,
        block: Result<Vec<Cell>, StoreError>,
        visit: &mut DocumentVisitor<'_>,
    ) -> Result<(), StoreError> {
        let place = &self.partition.place;
        let mut document = range.start;
        while document < range.end {
            let next = place.next_document(document);
            let slot = |at: UnixMillis| ((at.0 - range.start.0) / place.width_ms) as usize;
            if self.row(document, series)?.is_none() {
                match &block {
                    Ok(all) => {
                        let own = &all[slot(document)..slot(next).min(all.len())];
                        if own.iter().any(|cell| cell.n > 0) {
                            visit(document, series, Ok(own));
                        }
                    }
                    Err(fault) if fault.is_damage() => {
                        self.partition.note_damage(document, series);
                        visit(document, series, Err(fault.chain()));
                    }
                    Err(_) => {}
                }
            }
            document = next;
        }
        block.map(drop).or_else(|fault| if fault.is_damage() { Ok(()) } else { Err(fault) })
    }
}
