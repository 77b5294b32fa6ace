//! The readings on either side of a gap that begins before the first window or ends behind the last.
//!
//! What a counter grew in a gap is spread over the slots of the gap, so both readings are needed where
//! a window shows a part of it. Must never know: what becomes of the cells.

use std::ops::Range;

use super::Selectors;
use crate::{
    model::{GranularityIndex, Kind, SeriesId, UnixMillis, counter::spread::spacing_ms},
    policy::{coverage::Segment, query_plan::Windows},
    query::promql::value::{
        cells::{TimedCell, append_cells},
        error::PromqlError,
        range_vector::CellSeries,
    },
    store::{Columns, Slot},
};

/// Slots before the first window, and behind the last, among which the other side of a gap is found.
const SLOTS_MAX: i64 = 60;

/// Where the neighbours of windows lie.
#[derive(Debug, Clone)]
pub(super) struct Around {
    /// Beginning of the first window, and end of the last.
    windows: Range<i64>,
    before: (GranularityIndex, Range<UnixMillis>),
    after: (GranularityIndex, Range<UnixMillis>),
    finest_ms: i64,
}

impl Around {
    /// Around windows that are read from these segments; `None` without any.
    pub(super) fn new(
        windows: &Windows,
        segments: &[Segment],
        width_ms: impl Fn(&Segment) -> i64,
        finest_ms: i64,
    ) -> Option<Self> {
        let (first, last) = (segments.first()?, segments.last()?);
        let [before_ms, after_ms] = [first, last].map(|segment| SLOTS_MAX * width_ms(segment));
        let (start, end) = (first.range.start, last.range.end);
        Some(Self {
            windows: windows.first.0 - windows.range_ms..windows.last().0,
            before: (first.stored, start.minus(before_ms)..start),
            after: (last.stored, end..end.plus(after_ms)),
            finest_ms,
        })
    }

    /// Whether the counter's last reading before the first window is not among the cells.
    fn lacks_before(&self, series: &CellSeries) -> bool {
        let is_behind = |cell: &TimedCell| cell.last_at > self.windows.start;
        series.kind == Kind::Counter && series.cells.first().is_none_or(is_behind)
    }

    /// Whether the last window ends in a gap.
    fn lacks_after(&self, series: &CellSeries, now: UnixMillis) -> bool {
        let Some(last) = series.cells.last() else { return false };
        let spacing = spacing_ms(last.n, last.first_at, last.last_at);
        let passed = self.windows.end - last.last_at;
        series.kind == Kind::Counter
            && self.windows.end + self.finest_ms < now.0
            && passed as f64 > (1.5 * spacing).min(self.finest_ms as f64)
    }
}

impl Selectors<'_> {
    /// Adds to the cells of each counter those of its last reading before the first window, and of the
    /// next one behind the last, where there is a gap.
    pub(super) fn add_neighbours(
        &self,
        around: &Around,
        ids: &[SeriesId],
        series: &mut [CellSeries],
    ) -> Result<(), PromqlError> {
        let places = |lacks: &dyn Fn(&CellSeries) -> bool, series: &[CellSeries]| -> Vec<usize> {
            (0..series.len()).filter(|place| lacks(&series[*place])).collect()
        };
        let lacking = places(&|own| around.lacks_before(own), series);
        self.each_of(&around.before, ids, &lacking, |place, mut cells| {
            if let Some(before) = cells.pop() {
                series[place].cells.insert(0, before);
            }
        })?;
        let lacking = places(&|own| around.lacks_after(own, self.now), series);
        self.each_of(&around.after, ids, &lacking, |place, cells| {
            series[place].cells.extend(cells.first());
        })
    }

    /// Reads the cells of the series at some places.
    fn each_of(
        &self,
        (granularity, range): &(GranularityIndex, Range<UnixMillis>),
        ids: &[SeriesId],
        places: &[usize],
        mut found: impl FnMut(usize, Vec<TimedCell>),
    ) -> Result<(), PromqlError> {
        if places.is_empty() {
            return Ok(());
        }
        let wanted: Vec<_> = places.iter().map(|place| ids[*place]).collect();
        let view = self.store.view(*granularity, range.clone(), &wanted)?;
        let mut slots: Vec<Slot> = Vec::new();
        for (id, place) in wanted.iter().zip(places) {
            self.bounds.check_time()?;
            view.slots_into(*id, Columns::ALL, &mut slots)?;
            self.bounds.count_cells(slots.len())?;
            let mut cells = Vec::new();
            append_cells(&mut slots, Kind::Counter, &mut cells);
            found(*place, cells);
        }
        Ok(())
    }
}
