//! Reads the cells of series along an axis, some series at a time.
//!
//! Must never know: what is shown of them. Each view holds up the writer for a moment, and the
//! longer, the more series it is of.

use super::{Budget, QueryError, axis::Axis};
use crate::{
    model::{Cell, SeriesId},
    store::{Columns, Slot, Store, View},
};

/// Series that are read with one view of each segment.
const SERIES_PER_VIEW: usize = 1024;

/// Views of the parts of an axis, of some series at a time.
pub(super) struct CellReader<'a> {
    store: &'a Store,
    budget: &'a Budget,
    axis: &'a Axis,
    /// In the order in which they are read.
    series: Vec<SeriesId>,
    next: usize,
    views: Vec<View>,
    filled: Vec<Slot>,
    /// Slots that memory is taken for.
    taken: usize,
}

impl<'a> CellReader<'a> {
    pub(super) fn new(
        store: &'a Store,
        budget: &'a Budget,
        axis: &'a Axis,
        series: Vec<SeriesId>,
    ) -> Self {
        let (views, filled) = (Vec::new(), Vec::new());
        Self { store, budget, axis, series, next: 0, views, filled, taken: 0 }
    }

    /// Merges the slots of the next series into the cells of the axis.
    ///
    /// # Errors
    /// When the store cannot be read, or the budget is used up.
    pub(super) fn merge_next(&mut self, cells: &mut [Cell]) -> Result<(), QueryError> {
        let Some(id) = self.series.get(self.next).copied() else { return Ok(()) };
        if self.next.is_multiple_of(SERIES_PER_VIEW) {
            let ids = &self.series[self.next..self.series.len().min(self.next + SERIES_PER_VIEW)];
            let segments = self.axis.segments.iter();
            // Those of the series before are given up first.
            self.views.clear();
            for own in segments {
                self.views.push(self.store.view(own.stored, own.range.clone(), ids)?);
            }
        }
        self.next += 1;
        for view in &self.views {
            self.budget.check()?;
            view.slots_into(id, Columns::ALL, &mut self.filled)?;
            let room = self.filled.capacity();
            self.budget.take(room.saturating_sub(self.taken) * size_of::<Slot>())?;
            self.taken = self.taken.max(room);
            self.axis.merge(&self.filled, cells);
        }
        Ok(())
    }
}
