//! Selectors: the cells that are read for a selector, and its values at each time.
//!
//! No other part of PromQL reads the store. Equal windows of a selector share their cells, unless a
//! later use needs more columns. Must never know: functions, operators, aggregations.

mod chunks;
pub(crate) mod compiled;
mod extended;
mod instant;
pub(crate) mod modifiers;
mod neighbours;
mod plan;
mod reading;
mod request;
mod selected;
pub(crate) mod shards;
pub(crate) mod sizes;

use std::cell::RefCell;

use crate::query::{QueryError, series::labels::METRIC_LABELS};
use crate::{
    model::{METRIC_TAG, UnixMillis},
    policy::query_plan::{Detail, Windows},
    query::promql::{
        context::bounds::Bounds,
        syntax::{
            MILLIS_MAX,
            tree::{Expr, MatrixSelector, VectorSelector},
        },
        value::{
            annotations::Notes,
            range_vector::RangeVector,
            steps::{QueryRange, Steps, TimeShift},
        },
    },
    store::{Columns, Store},
};
use compiled::matchers_of;
pub(crate) use instant::SampleProperty;
use modifiers::shift;
use plan::CachedCells;
pub(crate) use request::Held;
use request::{NeededCells, ReadRequest};
use shards::read_series::ReadSeries;
use sizes::ChunkSizes;

/// Reads the cells of a query's selectors, and keeps them for further uses of the same selector.
pub(crate) struct Selectors<'a> {
    store: &'a Store,
    now: UnixMillis,
    /// The maximum age of a sample that still counts as the value of its series, in milliseconds.
    pub(crate) lookback_ms: i64,
    query: QueryRange,
    bounds: &'a Bounds<'a>,
    notes: Notes<'a>,
    /// The texts of selectors that the query uses several times.
    repeated: Vec<String>,
    sizes: ChunkSizes,
    /// The cells that were read, for other uses of the same selector.
    read: RefCell<Vec<CachedCells>>,
    /// The series that were read, while only the cells of this shard are read.
    of_this_shard: RefCell<Option<ReadSeries>>,
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
        let (repeated, sizes, read) = (Vec::new(), ChunkSizes::DEFAULT, RefCell::default());
        let of_this_shard = RefCell::new(None);
        Self { store, now, lookback_ms, query, bounds, notes, repeated, sizes, read, of_this_shard }
    }

    /// Keeps the cells of selectors that an expression uses several times, if they fit in a chunk.
    pub(crate) fn for_expression(mut self, expression: &Expr, sizes: ChunkSizes) -> Self {
        let selectors = expression.selectors();
        if selectors.len() > 1 {
            let mut texts: Vec<_> =
                selectors.into_iter().map(VectorSelector::series_text).collect();
            texts.sort_unstable();
            let several = texts.chunk_by(|text, next| text == next).filter(|same| same.len() > 1);
            self.repeated = several.map(|same| same[0].clone()).collect();
        }
        Self { sizes, ..self }
    }

    fn is_repeated(&self, text: &str) -> bool {
        self.repeated.iter().any(|repeated| repeated == text)
    }

    /// Returns true when series of one metric may differ only in labels that describe the metric
    /// and are dropped with its name.
    pub(crate) fn has_metric_labels(&self) -> bool {
        if self.bounds.limits.budget.others().is_some() {
            return true;
        }
        let dictionary = self.store.dictionary();
        let mut names = METRIC_LABELS.iter().filter(|name| **name != METRIC_TAG);
        names.any(|name| !dictionary.values_after(name, None, 1).is_empty())
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

    /// Calls `visit` with the windows of some series at a time, in order of labels. The cells are
    /// not kept for other functions, unless the query repeats the selector.
    pub(crate) fn range_in_chunks(
        &self,
        selector: &MatrixSelector,
        steps: &Steps,
        (detail, columns): (Detail, Columns),
        held: Held,
        visit: &mut dyn FnMut(&RangeVector) -> Result<(), QueryError>,
    ) -> Result<(), QueryError> {
        let shift = self.shift(&selector.selector)?;
        let range_ms = selector.range.positive_millis(self.query.times)?;
        let request = ReadRequest {
            text: &selector.selector.series_text(),
            matchers: &|| matchers_of(&selector.selector, self.bounds.limits),
            windows: &self.windows(shift, steps, range_ms, detail),
            needed: NeededCells::All,
            columns,
            held,
        };
        let mut visit = |cells| visit(&RangeVector { cells, range_ms, shift });
        self.cells_in_chunks(&request, &mut visit)
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
