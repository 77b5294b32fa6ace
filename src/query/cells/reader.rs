//! A reader of the cells of series along an axis. It reads a number of series at a time, and
//! spreads the growth of counters in gaps over the slots of the gaps.
//!
//! Must never know: what is shown. Creating a view blocks the writer for a moment; this time grows
//! with the number of series.

use crate::{
    model::{Cell, GranularityIndex, Kind, SeriesId, UnixMillis},
    policy::coverage::{Coverage, Segment},
    query::{
        Budget, QueryError,
        cells::axis::Axis,
        cells::neighbours::{Ends, Neighbours, Side},
    },
    store::{Columns, Slot, Store, View},
};

/// Number of series that share one view of each segment.
const SERIES_PER_VIEW: usize = 1024;

/// A reader with one view per segment, for a number of series at a time.
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
    taken: usize,
    /// The stored ranges, for spreading growth over gaps; `None` returns cells as stored.
    coverage: Option<&'a Coverage<'a>>,
    /// The slots around the axis, for each series of the views that is a counter.
    counters: Vec<Option<Beside>>,
}

/// A counter's slots before and after the axis.
#[derive(Debug, Clone, Copy, Default)]
struct Beside {
    before: Option<Ends>,
    after: Option<Ends>,
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
        let (next, taken, coverage) = (0, 0, None);
        Self { store, budget, axis, series, next, views, filled, taken, coverage, counters }
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
        let place = self.next % SERIES_PER_VIEW;
        if place == 0 {
            let ids = &self.series[self.next..self.series.len().min(self.next + SERIES_PER_VIEW)];
            let segments = self.axis.segments.iter();
            // Drop the previous views first.
            self.views.clear();
            for segment in segments {
                self.views.push(self.store.view(segment.stored, segment.range.clone(), ids)?);
            }
            self.counters = self.beside(ids)?;
        }
        self.next += 1;
        let width_ms = self.store.granularities()[GranularityIndex::FINEST].width_ms;
        let beside = self.counters.get(place).copied().flatten();
        let mut before = beside.and_then(|counter| counter.before);
        for view in &self.views {
            self.budget.check()?;
            view.slots_into(id, Columns::ALL, &mut self.filled)?;
            let capacity = self.filled.capacity();
            self.budget.reserve(capacity.saturating_sub(self.taken) * size_of::<Slot>())?;
            self.taken = self.taken.max(capacity);
            self.axis.merge(&self.filled, cells);
            if beside.is_some() {
                for ends in self.filled.iter().filter_map(Ends::of) {
                    if let Some(gap) =
                        before.and_then(|ends_before| ends_before.gap_to(&ends, width_ms))
                    {
                        self.axis.spread(&gap, cells);
                    }
                    before = Some(ends);
                }
            }
        }
        let after = beside.and_then(|counter| counter.after);
        if let Some(gap) = before.zip(after).and_then(|(ends, after)| ends.gap_to(&after, width_ms))
        {
            self.axis.spread(&gap, cells);
        }
        Ok(())
    }

    /// Returns the slots around the axis for the counters among `ids`.
    fn beside(&self, ids: &[SeriesId]) -> Result<Vec<Option<Beside>>, QueryError> {
        let Some(coverage) = self.coverage else { return Ok(Vec::new()) };
        let segments = &self.axis.segments;
        let (Some(first), Some(last)) = (segments.first(), segments.last()) else {
            return Ok(Vec::new());
        };
        let mut out: Vec<Option<Beside>> = {
            let dictionary = self.store.dictionary();
            let is_counter = |id: &SeriesId| dictionary.kind(*id) == Some(Kind::Counter);
            ids.iter().map(|id| is_counter(id).then(Beside::default)).collect()
        };
        let last_at = self.store.last_samples(ids);
        let counters_since = |out: &[Option<Beside>], at: UnixMillis| -> Vec<usize> {
            let counters = (0..ids.len()).filter(|place| out[*place].is_some());
            counters.filter(|place| last_at[*place].is_some_and(|last| last.at >= at)).collect()
        };
        let find = |segment: &Segment, edge: UnixMillis, side: Side, places: &[usize]| {
            let (store, budget, granularity) = (self.store, self.budget, segment.granularity);
            let ids: Vec<_> = places.iter().map(|place| ids[*place]).collect();
            let search = Neighbours { store, budget, coverage, granularity, edge, side };
            let slots = search.of(&ids)?;
            Ok::<Vec<_>, QueryError>(slots.iter().map(|slot| Ends::of(slot.as_ref()?)).collect())
        };
        // A series without a reading since the start of the range cannot end a gap in it.
        let places = counters_since(&out, first.range.start);
        let found = find(first, first.range.start, Side::Before, &places)?;
        for (place, before) in places.into_iter().zip(found) {
            out[place] = out[place].map(|counter| Beside { before, ..counter });
        }
        let places = counters_since(&out, last.range.end);
        let found = find(last, last.range.end, Side::After, &places)?;
        for (place, after) in places.into_iter().zip(found) {
            out[place] = out[place].map(|counter| Beside { after, ..counter });
        }
        Ok(out)
    }
}
