//! The limits of one evaluation: time, points, cells, memory.
//!
//! The evaluation uses turns and memory through [`Bounds`]; selecting and reading use the query's
//! budget directly. Must never know: the tree, what is computed.

use std::{cell::Cell, sync::Arc};

use regex::Regex;

use crate::query::{ExpressionLimits, QueryError};
use crate::query::{
    promql::value::{cells::TimedCell, series::Value},
    whole_pattern,
};

/// Memory of an operation as a multiple of its result: two operands, the result, and the answer's
/// times.
const VALUES_AT_A_TIME: usize = 4;

/// The limits of a query, and the resources that its evaluation has used.
pub(crate) struct Bounds<'a> {
    pub(crate) limits: &'a ExpressionLimits<'a>,
    /// Number of cells read.
    cells: Cell<usize>,
    /// Memory charged for values so far.
    values: Cell<usize>,
    /// Memory of values that wait for other operands.
    held: Cell<usize>,
    /// Memory that [`Self::released`] leaves reserved.
    kept: Cell<usize>,
}

impl<'a> Bounds<'a> {
    /// Creates the limits of a new evaluation.
    pub(crate) fn new(limits: &'a ExpressionLimits<'a>) -> Self {
        let [cells, values, held, kept] = [const { Cell::new(0) }; 4];
        Self { limits, cells, values, held, kept }
    }

    /// Returns an error when the evaluation exceeds its time.
    pub(crate) fn check_time(&self) -> Result<(), QueryError> {
        if self.limits.budget.check().is_err() {
            return Err(QueryError::Timeout(
                "query timed out in expression evaluation: ask for a shorter range, a larger step \
                 or fewer series, or raise limits.query_timeout"
                    .to_owned(),
            ));
        }
        Ok(())
    }

    /// Reserves memory until the query ends.
    pub(crate) fn reserve(&self, bytes: usize) -> Result<(), QueryError> {
        self.limits.reserve(bytes)
    }

    /// Rejects too many series or points in the result of an aggregation of any number of series.
    /// It charges no memory: the aggregation does.
    pub(crate) fn check_result(&self, series: usize, times: usize) -> Result<(), QueryError> {
        let max = self.limits.series_max;
        if series > max {
            return Err(QueryError::TooMuch(format!(
                "the result of an aggregation has more than {max} series: keep fewer labels or \
                 raise limits.query_points_max"
            )));
        }
        self.compare_points(series, times).map(drop)
    }

    /// Rejects too many values that an aggregation holds at the same time.
    pub(crate) fn check_held_values(&self, values: usize) -> Result<(), QueryError> {
        let max = self.limits.points_max;
        if values > max {
            return Err(QueryError::TooMuch(format!(
                "the aggregation quantile holds more than {max} values: ask for a shorter range, a \
                 larger step or fewer series, or raise limits.query_points_max"
            )));
        }
        Ok(())
    }

    /// Returns the number of points, if it is within the limit.
    fn compare_points(&self, series: usize, times: usize) -> Result<usize, QueryError> {
        let max = self.limits.points_max;
        let points = series.saturating_mul(times);
        if points > max {
            return Err(QueryError::TooMuch(format!(
                "{series} series at {times} times exceed the limit of {max} points: ask for a \
                 shorter range, a larger step or fewer series, or raise limits.query_points_max"
            )));
        }
        Ok(points)
    }

    /// Rejects values with too many points, and charges their memory before they are built, in
    /// addition to the values on hold.
    pub(crate) fn check_points(&self, series: usize, times: usize) -> Result<(), QueryError> {
        let points = self.compare_points(series, times)?;
        let needed = self.held.get() + points * VALUES_AT_A_TIME * size_of::<f64>();
        let more = needed.saturating_sub(self.values.get());
        self.values.set(self.values.get() + more);
        self.reserve(more)
    }

    /// Counts a value as on hold until the guard is dropped, while other operands are evaluated.
    pub(crate) fn hold(&self, value: &Value) -> HeldMemory<'_> {
        let bytes = value.bytes();
        self.held.set(self.held.get() + bytes);
        HeldMemory { held: &self.held, bytes }
    }

    /// Runs a part of the evaluation, and then releases its cells and values, except for memory
    /// that is kept.
    pub(crate) fn released<T>(
        &self,
        run: impl FnOnce() -> Result<T, QueryError>,
    ) -> Result<T, QueryError> {
        let budget = self.limits.budget;
        let (reserved, kept) = (budget.reserved(), self.kept.get());
        let (cells, values) = (self.cells.get(), self.values.get());
        let result = run()?;
        self.cells.set(cells);
        self.values.set(values);
        budget.shrink_to((reserved + self.kept.get()).saturating_sub(kept));
        Ok(result)
    }

    /// Creates a guard of memory that outlives a part of the evaluation; see [`Self::released`].
    pub(crate) fn keep(&self) -> KeptMemory<'_> {
        KeptMemory { bounds: self, bytes: 0 }
    }

    /// Counts the cells that are read, and rejects more cells than the limit.
    pub(crate) fn count_cells(&self, more: usize) -> Result<(), QueryError> {
        let (cells, max) = (self.cells.get() + more, self.limits.points_max);
        self.cells.set(cells);
        if cells > max {
            return Err(QueryError::TooMuch(format!(
                "the query reads more than {max} cells: ask for a shorter range, a larger step \
                 or fewer series, or raise limits.query_points_max"
            )));
        }
        self.reserve(more * size_of::<TimedCell>())
    }

    /// Compiles a pattern that must match whole values.
    pub(crate) fn pattern(&self, pattern: &str) -> Result<Arc<Regex>, QueryError> {
        whole_pattern(pattern, self.limits)
    }
}

/// A guard of [`Bounds::hold`].
pub(crate) struct HeldMemory<'a> {
    held: &'a Cell<usize>,
    bytes: usize,
}

impl Drop for HeldMemory<'_> {
    fn drop(&mut self) {
        self.held.set(self.held.get() - self.bytes);
    }
}

/// A guard of [`Bounds::keep`].
pub(crate) struct KeptMemory<'a> {
    bounds: &'a Bounds<'a>,
    bytes: usize,
}

impl KeptMemory<'_> {
    /// Reserves or releases memory, so that the guard keeps this number of bytes.
    pub(crate) fn resize(&mut self, bytes: usize) -> Result<(), QueryError> {
        if bytes > self.bytes {
            self.bounds.reserve(bytes - self.bytes)?;
            self.bounds.kept.set(self.bounds.kept.get() + bytes - self.bytes);
            self.bytes = bytes;
        } else {
            self.shrink(bytes);
        }
        Ok(())
    }

    fn shrink(&mut self, bytes: usize) {
        let (budget, surplus) = (self.bounds.limits.budget, self.bytes - bytes);
        budget.shrink_to(budget.reserved().saturating_sub(surplus));
        self.bounds.kept.set(self.bounds.kept.get() - surplus);
        self.bytes = bytes;
    }
}

impl Drop for KeptMemory<'_> {
    fn drop(&mut self) {
        self.shrink(0);
    }
}
