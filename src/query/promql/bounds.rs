//! What an evaluation may take: time, points, cells, memory.
//!
//! Must never know: the tree, values.

use std::cell::Cell;

use crate::query::promql::{
    PromqlError,
    evaluate::expression::Evaluator,
    value::{cells::TimedCell, series::Value},
};

/// Values of the size of a result that making it takes at a time: two operands, the result, and the
/// answer's times.
const VALUES_AT_A_TIME: usize = 4;

impl Evaluator<'_> {
    /// Ends an evaluation that takes too long.
    pub(crate) fn check_time(&self) -> Result<(), PromqlError> {
        if self.limits.budget.check().is_err() {
            return Err(PromqlError::Timeout(
                "query timed out in expression evaluation: ask for a shorter range, a larger step \
                 or fewer series, or raise promql.timeout"
                    .to_owned(),
            ));
        }
        Ok(())
    }

    /// Refuses values of more points than allowed, and takes the memory for them before they are
    /// built: beside what is held meanwhile.
    pub(crate) fn check_points(&self, series: usize, times: usize) -> Result<(), PromqlError> {
        let max = self.limits.points_max;
        let points = series.saturating_mul(times);
        if points > max {
            return Err(PromqlError::TooMuch(format!(
                "{series} series at {times} times are more than {max} points: ask for a shorter range, \
                 a larger step or fewer series, or raise promql.points_max"
            )));
        }
        let needed = self.held.get() + points * VALUES_AT_A_TIME * size_of::<f64>();
        let more = needed.saturating_sub(self.values.get());
        self.values.set(self.values.get() + more);
        self.limits.take(more)
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
                 with it or fewer series, or raise promql.points_max"
            )));
        }
        self.limits.take(more * size_of::<TimedCell>())
    }
}

/// See [`Evaluator::hold`].
pub(crate) struct Holding<'a> {
    held: &'a Cell<usize>,
    bytes: usize,
}

impl Drop for Holding<'_> {
    fn drop(&mut self) {
        self.held.set(self.held.get() - self.bytes);
    }
}
