//! What one evaluation may take: time, points, cells, memory.
//!
//! Where an evaluation asks for its turn and for memory; selecting and reading ask the query's budget
//! themselves. Must never know: the tree, what is computed.

use std::{cell::Cell, sync::Arc};

use regex::Regex;

use crate::query::{
    promql::{
        request::PromqlLimits,
        value::{cells::TimedCell, error::PromqlError, series::Value},
    },
    whole_pattern,
};

/// Values of the size of a result that making it takes at a time: two operands, the result, and the
/// answer's times.
const VALUES_AT_A_TIME: usize = 4;

/// The limits of an answer, and what its evaluation has taken of them.
pub(crate) struct Bounds<'a> {
    /// The limits.
    pub(crate) limits: &'a PromqlLimits<'a>,
    /// Cells read.
    cells: Cell<usize>,
    /// Memory taken for values so far.
    values: Cell<usize>,
    /// What values take that wait for others to be evaluated.
    held: Cell<usize>,
}

impl<'a> Bounds<'a> {
    /// Nothing is taken yet.
    pub(crate) fn new(limits: &'a PromqlLimits<'a>) -> Self {
        Self { limits, cells: Cell::new(0), values: Cell::new(0), held: Cell::new(0) }
    }

    /// Ends an evaluation that takes too long.
    pub(crate) fn check_time(&self) -> Result<(), PromqlError> {
        if self.limits.budget.check().is_err() {
            return Err(PromqlError::Timeout(
                "query timed out in expression evaluation: ask for a shorter range, a larger step \
                 or fewer series, or raise limits.query_timeout"
                    .to_owned(),
            ));
        }
        Ok(())
    }

    /// Takes memory until the query ends.
    pub(crate) fn take(&self, bytes: usize) -> Result<(), PromqlError> {
        self.limits.take(bytes)
    }

    /// Refuses values of more points than allowed, and takes the memory for them before they are
    /// built: beside what is held meanwhile.
    pub(crate) fn check_points(&self, series: usize, times: usize) -> Result<(), PromqlError> {
        let max = self.limits.points_max;
        let points = series.saturating_mul(times);
        if points > max {
            return Err(PromqlError::TooMuch(format!(
                "{series} series at {times} times are more than {max} points: ask for a shorter range, \
                 a larger step or fewer series, or raise limits.query_points_max"
            )));
        }
        let needed = self.held.get() + points * VALUES_AT_A_TIME * size_of::<f64>();
        let more = needed.saturating_sub(self.values.get());
        self.values.set(self.values.get() + more);
        self.take(more)
    }

    /// Counts a value as held, until the guard is dropped: it waits for others to be evaluated.
    pub(crate) fn hold(&self, value: &Value) -> Holding<'_> {
        let bytes = value.bytes();
        self.held.set(self.held.get() + bytes);
        Holding { held: &self.held, bytes }
    }

    /// Counts cells read, and refuses more than allowed.
    pub(crate) fn count_cells(&self, more: usize) -> Result<(), PromqlError> {
        let (cells, max) = (self.cells.get() + more, self.limits.points_max);
        self.cells.set(cells);
        if cells > max {
            return Err(PromqlError::TooMuch(format!(
                "the query reads more than {max} cells: ask for a shorter range, a larger step \
                 with it or fewer series, or raise limits.query_points_max"
            )));
        }
        self.take(more * size_of::<TimedCell>())
    }

    /// Compiles a pattern that must match whole values.
    pub(crate) fn pattern(&self, pattern: &str) -> Result<Arc<Regex>, PromqlError> {
        whole_pattern(pattern, self.limits)
    }
}

/// A value that waits counts as held until this is dropped ([`Bounds::hold`]).
pub(crate) struct Holding<'a> {
    held: &'a Cell<usize>,
    bytes: usize,
}

impl Drop for Holding<'_> {
    fn drop(&mut self) {
        self.held.set(self.held.get() - self.bytes);
    }
}
