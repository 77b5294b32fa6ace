//! What an evaluation may take: time, points, cells, memory.
//!
//! Must never know: the tree, values.

use super::{PromqlError, evaluate::Evaluator, windows::TimedCell};

/// Values that an evaluation holds at a time: two operands, an outcome, and the answer's times.
const VALUES_AT_A_TIME: usize = 4;

impl Evaluator<'_> {
    /// Ends an evaluation that takes too long.
    pub(super) fn check_time(&self) -> Result<(), PromqlError> {
        if (self.limits.expired)() {
            return Err(PromqlError::Timeout(
                "query timed out in expression evaluation: ask for a shorter range, a larger step \
                 or fewer series, or raise promql.timeout"
                    .to_owned(),
            ));
        }
        Ok(())
    }

    /// Refuses values of more points than allowed.
    pub(super) fn check_points(&self, series: usize, times: usize) -> Result<(), PromqlError> {
        let max = self.limits.points_max;
        let points = series.saturating_mul(times);
        if points > max {
            return Err(PromqlError::TooMuch(format!(
                "{series} series at {times} times are more than {max} points: ask for a shorter range, \
                 a larger step or fewer series, or raise promql.points_max"
            )));
        }
        let more = points.saturating_sub(self.points.get());
        self.points.set(self.points.get() + more);
        self.take_memory(more * VALUES_AT_A_TIME * size_of::<f64>())
    }

    /// Counts cells read, and refuses more than allowed.
    pub(super) fn count_cells(&self, more: usize) -> Result<(), PromqlError> {
        let (cells, max) = (self.cells.get() + more, self.limits.points_max);
        self.cells.set(cells);
        if cells > max {
            return Err(PromqlError::TooMuch(format!(
                "the query reads more than {max} cells: ask for a shorter range, a larger step \
                 with it or fewer series, or raise promql.points_max"
            )));
        }
        self.take_memory(more * size_of::<TimedCell>())
    }

    /// Takes memory until the query ends.
    pub(super) fn take_memory(&self, bytes: usize) -> Result<(), PromqlError> {
        if (self.limits.take_memory)(bytes) {
            return Ok(());
        }
        Err(PromqlError::Busy(
            "the queries under way take all memory that they may: try again, ask for a shorter \
             range, a larger step or fewer series, or raise promql.memory_max"
                .to_owned(),
        ))
    }
}
