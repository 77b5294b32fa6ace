//! Selectors: the cells that are read for a selector, and its values at each time.
//!
//! No other part of PromQL reads the store. Equal windows of a selector share their cells, unless a
//! later use needs more columns. Must never know: functions, operators, aggregations.

pub(crate) mod compiled;
mod extended;
mod instant;
pub(crate) mod modifiers;
mod neighbours;
mod plan;
mod reading;

use std::cell::RefCell;

use crate::query::QueryError;
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
            range_vector::RangeVector,
            steps::{QueryRange, Steps, TimeShift},
        },
    },
    store::{Columns, Store},
};
pub(crate) use instant::SampleProperty;
use modifiers::shift;
use plan::{CachedCells, NeededCells};

/// Reads the cells of a query's selectors, and keeps them for further uses of the same selector.
pub(crate) struct Selectors<'a> {
    store: &'a Store,
    now: UnixMillis,
    /// The maximum age of a sample that still counts as the value of its series, in milliseconds.
    pub(crate) lookback_ms: i64,
    query: QueryRange,
    bounds: &'a Bounds<'a>,
    notes: Notes<'a>,
    /// The cells that were read, for other uses of the same selector.
    read: RefCell<Vec<CachedCells>>,
}

impl<'a> Selectors<'a> {
    /// Creates the selectors of a query, without reading anything.
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

    /// Returns the windows of a range selector, with at least the given columns. Counters have all
    /// columns, unless no column or only the first and last samples are needed.
    pub(crate) fn range(
        &self,
        selector: &MatrixSelector,
        steps: &Steps,
        detail: Detail,
        columns: Columns,
    ) -> Result<RangeVector, QueryError> {
        let shift = self.shift(&selector.selector)?;
        let range_ms = selector.range.positive_millis(self.query.times)?;
        let windows = self.windows(shift, steps, range_ms, detail);
        let cells = self.cells(&selector.selector, &windows, NeededCells::All, columns)?;
        Ok(RangeVector { cells, range_ms, shift })
    }

    /// Calls `visit` with the windows of a few series at a time, in order of labels. The cells are
    /// not kept for other functions of the same selector.
    pub(crate) fn range_in_parts(
        &self,
        selector: &MatrixSelector,
        steps: &Steps,
        (detail, columns): (Detail, Columns),
        mut visit: impl FnMut(&RangeVector) -> Result<(), QueryError>,
    ) -> Result<(), QueryError> {
        let shift = self.shift(&selector.selector)?;
        let range_ms = selector.range.positive_millis(self.query.times)?;
        let windows = self.windows(shift, steps, range_ms, detail);
        let mut visit = |cells| visit(&RangeVector { cells, range_ms, shift });
        self.cells_in_parts(&selector.selector, &windows, columns, &mut visit)
    }

    /// Returns the time shift of a selector.
    pub(crate) fn shift(&self, selector: &VectorSelector) -> Result<TimeShift, QueryError> {
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
