//! From a selector to its series: the cells that are read for it, and what they say at each time.
//!
//! The only room that reads the store, and each document once. Must never know: functions,
//! operators, aggregations.

mod extended;
mod instant;
pub(crate) mod matchers;
pub(crate) mod modifiers;
mod neighbours;
mod plan;
mod reading;

use std::cell::RefCell;

use crate::{
    model::UnixMillis,
    policy::query_plan::{Detail, Windows},
    query::promql::{
        context::bounds::Bounds,
        syntax::{
            MILLIS_MAX,
            tree::{MatrixSelector, VectorSelector},
        },
        value::{
            annotations::Notes,
            error::PromqlError,
            range_vector::RangeVector,
            steps::{QueryRange, Steps, TimeShift},
        },
    },
    store::{Columns, Store},
};
pub(crate) use instant::Take;
use modifiers::shift;
use plan::{Needed, Read};

/// Answers selectors.
pub(crate) struct Selectors<'a> {
    store: &'a Store,
    now: UnixMillis,
    /// How old a sample may be that still counts.
    pub(crate) lookback_ms: i64,
    query: QueryRange,
    bounds: &'a Bounds<'a>,
    notes: Notes<'a>,
    read: RefCell<Vec<Read>>,
}

impl<'a> Selectors<'a> {
    /// Nothing is read yet.
    pub(crate) fn new(
        store: &'a Store,
        now: UnixMillis,
        lookback_ms: i64,
        query: QueryRange,
        bounds: &'a Bounds<'a>,
        notes: Notes<'a>,
    ) -> Self {
        let lookback_ms = lookback_ms.clamp(1, MILLIS_MAX);
        Self { store, now, lookback_ms, query, bounds, notes, read: RefCell::default() }
    }

    /// The windows of a range selector; of gauges and deltas only columns that are needed.
    pub(crate) fn range(
        &self,
        selector: &MatrixSelector,
        steps: &Steps,
        detail: Detail,
        columns: Columns,
    ) -> Result<RangeVector, PromqlError> {
        let shift = self.shift(&selector.selector)?;
        let range_ms = selector.range.positive_millis(self.query.times)?;
        let windows = self.windows(shift, steps, range_ms, detail);
        let cells = self.cells(&selector.selector, &windows, Needed::All, columns)?;
        Ok(RangeVector { cells, range_ms, shift })
    }

    /// The same, the windows of some series at a time, in order of labels; nothing of it is kept for
    /// another function of the same selector.
    pub(crate) fn range_in_parts(
        &self,
        selector: &MatrixSelector,
        steps: &Steps,
        (detail, columns): (Detail, Columns),
        mut visit: impl FnMut(&RangeVector) -> Result<(), PromqlError>,
    ) -> Result<(), PromqlError> {
        let shift = self.shift(&selector.selector)?;
        let range_ms = selector.range.positive_millis(self.query.times)?;
        let windows = self.windows(shift, steps, range_ms, detail);
        let mut visit = |cells| visit(&RangeVector { cells, range_ms, shift });
        self.cells_in_parts(&selector.selector, &windows, columns, &mut visit)
    }

    /// Where a selector looks.
    pub(crate) fn shift(&self, selector: &VectorSelector) -> Result<TimeShift, PromqlError> {
        shift(&selector.shift, &self.query)
    }

    fn windows(&self, shift: TimeShift, steps: &Steps, range_ms: i64, detail: Detail) -> Windows {
        Windows {
            first: UnixMillis(shift.of(steps.start)),
            step_ms: steps.step_ms,
            count: shift.count(steps),
            range_ms,
            lookback_ms: self.lookback_ms,
            detail,
        }
    }
}
