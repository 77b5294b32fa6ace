//! Reads the cells of series along an axis, some series at a time, and spreads what counters grew
//! in gaps over the slots of the gaps.
//!
//! Must never know: what is shown of them. Each view holds up the writer for a moment, and the
//! longer, the more series it is of.

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

/// Series that are read with one view of each segment.
const SERIES_PER_VIEW: usize = 1024;

/// Views of the parts of an axis, of some series at a time.
pub(crate) struct CellReader<'a> {
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
    /// `None`: cells are as they are stored.
    coverage: Option<&'a Coverage<'a>>,
    /// What is beside the axis, of each series of the views that is a counter.
    counters: Vec<Option<Beside>>,
}

/// A counter's slots before the axis and behind it.
#[derive(Debug, Clone, Copy, Default)]
struct Beside {
    before: Option<Ends>,
    after: Option<Ends>,
}

impl<'a> CellReader<'a> {
    /// Reads cells as they are stored.
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

    /// Spreads what counters grew in gaps, also across the ends of the axis.
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
            // Those of the series before are given up first.
            self.views.clear();
            for own in segments {
                self.views.push(self.store.view(own.stored, own.range.clone(), ids)?);
            }
            self.counters = self.beside(ids)?;
        }
        self.next += 1;
        let width_ms = self.store.granularities()[GranularityIndex::FINEST].width_ms;
        let beside = self.counters.get(place).copied().flatten();
        let mut before = beside.and_then(|own| own.before);
        for view in &self.views {
            self.budget.check()?;
            view.slots_into(id, Columns::ALL, &mut self.filled)?;
            let room = self.filled.capacity();
            self.budget.take(room.saturating_sub(self.taken) * size_of::<Slot>())?;
            self.taken = self.taken.max(room);
            self.axis.merge(&self.filled, cells);
            if beside.is_some() {
                for ends in self.filled.iter().filter_map(Ends::of) {
                    if let Some(gap) = before.and_then(|own| own.gap_to(&ends, width_ms)) {
                        self.axis.spread(&gap, cells);
                    }
                    before = Some(ends);
                }
            }
        }
        let after = beside.and_then(|own| own.after);
        if let Some(gap) = before.zip(after).and_then(|(own, after)| own.gap_to(&after, width_ms)) {
            self.axis.spread(&gap, cells);
        }
        Ok(())
    }

    /// What is beside the axis, of the counters among some series.
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
        let reach = |out: &[Option<Beside>], at: UnixMillis| -> Vec<usize> {
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
        // What has no reading since the range began has none that ends a gap in it.
        let places = reach(&out, first.range.start);
        let found = find(first, first.range.start, Side::Before, &places)?;
        for (place, before) in places.into_iter().zip(found) {
            out[place] = out[place].map(|own| Beside { before, ..own });
        }
        let places = reach(&out, last.range.end);
        let found = find(last, last.range.end, Side::After, &places)?;
        for (place, after) in places.into_iter().zip(found) {
            out[place] = out[place].map(|own| Beside { after, ..own });
        }
        Ok(out)
    }
}
