//! A reader of the cells of series along an axis. It reads a number of series at a time, and
//! spreads the growth of counters in gaps over the slots of the gaps.
//!
//! Must never know: what is shown. Creating a view blocks the writer for a moment; this time grows
//! with the number of series.

use crate::{
    model::{Cell, GranularityIndex, Kind, SeriesId, UnixMillis},
    policy::coverage::{Coverage, Interval},
    query::{
        Budget, QueryError,
        cells::axis::Axis,
        cells::neighbours::{NeighbourSearch, Side, SlotReadings},
    },
    store::{Columns, Slot, Store, View},
};

/// Number of series that share one view of each interval.
const SERIES_PER_VIEW: usize = 1024;

/// A reader with one view per interval, for a number of series at a time.
pub(crate) struct CellReader<'a> {
    store: &'a Store,
    budget: &'a Budget,
    axis: &'a Axis,
    /// The series, in the order in which they are read.
    series: Vec<SeriesId>,
    next: usize,
    views: Vec<View>,
    filled: Vec<Slot>,
    /// Number of slots whose memory is already reserved.
    reserved_slots: usize,
    /// The stored ranges, for spreading growth over gaps; `None` returns cells as stored.
    coverage: Option<&'a Coverage<'a>>,
    /// The slots around the axis, for each series of the views that is a counter.
    counters: Vec<Option<EdgeReadings>>,
}

/// A counter's slots before and after the axis.
#[derive(Debug, Clone, Copy, Default)]
struct EdgeReadings {
    before: Option<SlotReadings>,
    after: Option<SlotReadings>,
}

impl<'a> CellReader<'a> {
    /// Creates a reader that returns cells as stored.
    pub(crate) fn new(
        store: &'a Store,
        budget: &'a Budget,
        axis: &'a Axis,
        series: Vec<SeriesId>,
    ) -> Self {
        let (views, filled, counters) = (Vec::new(), Vec::new(), Vec::new());
        let (next, reserved_slots, coverage) = (0, 0, None);
        Self {
            store,
            budget,
            axis,
            series,
            next,
            views,
            filled,
            reserved_slots,
            coverage,
            counters,
        }
    }

    /// Spreads the growth of counters over gaps, including gaps that cross the ends of the axis.
    #[must_use]
    pub(crate) fn spreading(self, coverage: &'a Coverage<'a>) -> Self {
        Self { coverage: Some(coverage), ..self }
    }

    /// Merges the slots of the next series into the cells of the axis.
    ///
    /// # Errors
    /// When the store cannot be read, or the budget is used up.
    pub(crate) fn merge_next(&mut self, cells: &mut [Cell]) -> Result<(), QueryError> {
        let Some(id) = self.series.get(self.next).copied() else { return Ok(()) };
        let index = self.next % SERIES_PER_VIEW;
        if index == 0 {
            let ids = &self.series[self.next..self.series.len().min(self.next + SERIES_PER_VIEW)];
            let intervals = self.axis.intervals.iter();
            // Drop the previous views first.
            self.views.clear();
            for interval in intervals {
                self.views.push(self.store.view(interval.stored, interval.range.clone(), ids)?);
            }
            self.counters = self.readings_at_edges(ids)?;
        }
        self.next += 1;
        let width_ms = self.store.granularities()[GranularityIndex::FINEST].width_ms;
        let edge_readings = self.counters.get(index).copied().flatten();
        let mut before = edge_readings.and_then(|counter| counter.before);
        for view in &self.views {
            self.budget.check()?;
            view.slots_into(id, Columns::VALUES, &mut self.filled)?;
            let capacity = self.filled.capacity();
            self.budget
                .reserve(capacity.saturating_sub(self.reserved_slots) * size_of::<Slot>())?;
            self.reserved_slots = self.reserved_slots.max(capacity);
            self.axis.merge(&self.filled, cells);
            if edge_readings.is_some() {
                for ends in self.filled.iter().filter_map(SlotReadings::of) {
                    if let Some(gap) =
                        before.and_then(|ends_before| ends_before.gap_to(&ends, width_ms))
                    {
                        self.axis.spread(&gap, cells);
                    }
                    before = Some(ends);
                }
            }
        }
        let after = edge_readings.and_then(|counter| counter.after);
        if let Some(gap) = before.zip(after).and_then(|(ends, after)| ends.gap_to(&after, width_ms))
        {
            self.axis.spread(&gap, cells);
        }
        Ok(())
    }

    /// Returns the slots around the axis for the counters among `ids`.
    fn readings_at_edges(&self, ids: &[SeriesId]) -> Result<Vec<Option<EdgeReadings>>, QueryError> {
        let Some(coverage) = self.coverage else { return Ok(Vec::new()) };
        let intervals = &self.axis.intervals;
        let (Some(first), Some(last)) = (intervals.first(), intervals.last()) else {
            return Ok(Vec::new());
        };
        let mut out: Vec<Option<EdgeReadings>> = {
            let dictionary = self.store.dictionary();
            let is_counter = |id: &SeriesId| dictionary.kind(*id) == Some(Kind::Counter);
            ids.iter().map(|id| is_counter(id).then(EdgeReadings::default)).collect()
        };
        let last_at = self.store.last_samples(ids);
        let counters_since = |out: &[Option<EdgeReadings>], at: UnixMillis| -> Vec<usize> {
            let counters = (0..ids.len()).filter(|index| out[*index].is_some());
            counters.filter(|index| last_at[*index].is_some_and(|last| last.at >= at)).collect()
        };
        let find = |interval: &Interval, edge: UnixMillis, side: Side, indexes: &[usize]| {
            let (store, budget, granularity) = (self.store, self.budget, interval.granularity);
            let ids: Vec<_> = indexes.iter().map(|index| ids[*index]).collect();
            let search = NeighbourSearch { store, budget, coverage, granularity, edge, side };
            let slots = search.nearest_slots(&ids)?;
            Ok::<Vec<_>, QueryError>(
                slots.iter().map(|slot| SlotReadings::of(slot.as_ref()?)).collect(),
            )
        };
        // A series without a reading since the start of the range cannot end a gap in the range.
        let indexes = counters_since(&out, first.range.start);
        let found = find(first, first.range.start, Side::Before, &indexes)?;
        for (index, before) in indexes.into_iter().zip(found) {
            out[index] = out[index].map(|counter| EdgeReadings { before, ..counter });
        }
        let indexes = counters_since(&out, last.range.end);
        let found = find(last, last.range.end, Side::After, &indexes)?;
        for (index, after) in indexes.into_iter().zip(found) {
            out[index] = out[index].map(|counter| EdgeReadings { after, ..counter });
        }
        Ok(out)
    }
}
