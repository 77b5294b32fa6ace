//! The check of histograms: reads all of them to find damage.
//!
//! Must never know: the cells of the same documents.

use std::{ops::ControlFlow, sync::Arc};

use super::PartitionReader;
use crate::{
    model::{SeriesId, UnixMillis},
    store::{
        documents::{
            DocumentVisitor,
            segment::{Scratch, file::Segment},
        },
        encoding::lanes::series_at,
        error::StoreError,
        histograms::entries,
    },
};

impl PartitionReader {
    /// Reads every row and every tile of histograms, records damaged ones, and visits them.
    pub(crate) fn check_histograms(
        &self,
        visit: &mut DocumentVisitor<'_>,
        go_on: &dyn Fn(u64) -> bool,
    ) -> Result<(), StoreError> {
        let (partition, mut goes_on) = (&self.partition, true);
        self.each_histogram_row(&mut |key, bytes| {
            goes_on = goes_on && go_on(bytes.len() as u64);
            if goes_on && entries::decode(bytes, key, |_| true).is_none() {
                let (start, series) = partition.document_of(key);
                partition.histogram_damage.note(key, || {});
                visit(start, series, Err("its histograms are damaged".to_owned()));
            }
            Ok(())
        })?;
        if !goes_on {
            return Ok(());
        }
        self.segments.iter().try_for_each(|segment| self.check_tiles(segment, visit, go_on))
    }

    fn check_tiles(
        &self,
        segment: &Arc<Segment>,
        visit: &mut DocumentVisitor<'_>,
        go_on: &dyn Fn(u64) -> bool,
    ) -> Result<(), StoreError> {
        let (grid, mut scratch) = (&self.partition.grid, Scratch::default());
        for (tile, seconds, row, slots) in segment.histogram_tiles() {
            if !go_on(segment.tile_bytes(tile)) {
                return Ok(());
            }
            let start = grid.id.start.plus(i64::from(seconds) * 1000);
            let span = (start, start.plus(slots as i64 * grid.width_ms));
            let head = match segment.head(tile, &mut scratch) {
                Ok(head) => head,
                Err(fault) => {
                    self.note_histograms(span, series_at(row, 0), fault, visit)?;
                    continue;
                }
            };
            for lane in head.lanes() {
                let (tile, all) = ((tile, &*head), 0..slots);
                let mut skip = |_, _| ControlFlow::Continue(());
                let read = segment.histograms(tile, lane, &all, &mut scratch, &mut skip);
                if let Err(fault) = read {
                    self.note_histograms(span, series_at(row, lane), fault, visit)?;
                }
            }
        }
        Ok(())
    }

    /// Records and visits the documents of a damaged block that no row hides.
    fn note_histograms(
        &self,
        (start, end): (UnixMillis, UnixMillis),
        series: SeriesId,
        fault: StoreError,
        visit: &mut DocumentVisitor<'_>,
    ) -> Result<(), StoreError> {
        if !fault.is_damage() {
            return Err(fault);
        }
        let (partition, mut document) = (&self.partition, start);
        while document < end {
            if !self.has_histogram_row(document, series)? {
                partition.histogram_damage.note(partition.key(document, series), || {});
                let problem = format!("its histograms are damaged: {}", fault.with_causes());
                visit(document, series, Err(problem));
            }
            document = partition.grid.next_document(document);
        }
        Ok(())
    }
}
