//! The spacing of readings, computed from the newest cells of a few series.
//!
//! Must never know: what is shown.

use std::ops::Range;

use crate::{
    model::{GranularityIndex, SeriesId, UnixMillis, counter::spread::spacing_ms},
    policy::coverage::Coverage,
    query::{Budget, QueryError},
    store::{Columns, Store},
};

/// Maximum number of series in the sample; they are evenly spaced among all series.
const SERIES_MAX: usize = 16;
/// Minimum number of readings in a cell for its spacing to count.
const READINGS_MIN: u32 = 3;

/// A search for the spacing of readings.
pub(crate) struct SpacingSearch<'a> {
    pub(crate) store: &'a Store,
    pub(crate) budget: &'a Budget,
    pub(crate) coverage: &'a Coverage<'a>,
    pub(crate) series: Vec<SeriesId>,
    pub(crate) range: &'a Range<UnixMillis>,
}

impl<'a> SpacingSearch<'a> {
    /// Creates a search over a few of the given series.
    pub(crate) fn new(
        (store, budget): (&'a Store, &'a Budget),
        coverage: &'a Coverage<'a>,
        series: impl ExactSizeIterator<Item = SeriesId>,
        range: &'a Range<UnixMillis>,
    ) -> Self {
        let step = series.len().div_ceil(SERIES_MAX).max(1);
        Self { store, budget, coverage, series: series.step_by(step).collect(), range }
    }

    /// Returns the mean time between two readings, in milliseconds, of the series with the most
    /// frequent readings. Returns `None` when no cell wider than `width_ms` has enough readings at
    /// the end of the range.
    ///
    /// # Errors
    /// When the store cannot be read, or the budget is used up.
    pub(crate) fn spacing_ms(&self, width_ms: i64) -> Result<Option<f64>, QueryError> {
        let last = self.store.last_samples(&self.series).into_iter().flatten();
        let Some(last) = last.map(|last| last.at).max() else { return Ok(None) };
        let end = self.range.end.min(last.plus(1));
        let granularities = self.coverage.granularities().as_slice();
        let mut slots = Vec::new();
        for (index, granularity) in granularities
            .iter()
            .enumerate()
            .filter(|(_, granularity)| granularity.width_ms > width_ms)
        {
            let range = granularity.slot_start(end.minus(1)).minus(granularity.width_ms)..end;
            let stored = self.coverage.stored(GranularityIndex(index));
            let view = self.store.view(stored, range, &self.series)?;
            let mut smallest = f64::INFINITY;
            for id in &self.series {
                self.budget.check()?;
                view.slots_into(*id, Columns::VALUES, &mut slots)?;
                let cells = slots.iter().map(|slot| &slot.cell);
                for cell in cells.filter(|cell| cell.n >= READINGS_MIN) {
                    let (first, last) = (i64::from(cell.first_at), i64::from(cell.last_at));
                    smallest = smallest.min(spacing_ms(cell.n, first, last));
                }
            }
            if smallest.is_finite() {
                return Ok(Some(smallest));
            }
        }
        Ok(None)
    }
}
