//! Evaluation times, and their shift by `@` and `offset`.
//!
//! Must never know: values, the tree.

/// Evaluation times at a constant step.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Steps {
    /// The first time, Unix milliseconds.
    pub(crate) start: i64,
    /// The step.
    pub(crate) step_ms: i64,
    /// Number of times.
    pub(crate) count: usize,
}

impl Steps {
    /// Creates steps with a single time.
    pub(crate) fn instant(at: i64) -> Self {
        Self { start: at, step_ms: 1, count: 1 }
    }

    /// Returns the time at an index, Unix milliseconds.
    pub(crate) fn time_at(&self, index: usize) -> i64 {
        self.start.saturating_add(self.step_ms.saturating_mul(index as i64))
    }

    /// Returns all times.
    pub(crate) fn times(&self) -> impl Iterator<Item = i64> + Clone {
        let steps = *self;
        (0..self.count).map(move |index| steps.time_at(index))
    }

    /// Returns the last time.
    pub(crate) fn last(&self) -> i64 {
        self.time_at(self.count.saturating_sub(1))
    }
}

/// The times of the whole query, regardless of subqueries.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QueryRange {
    /// The first time, the value of `@ start()`, Unix milliseconds.
    pub(crate) start: i64,
    /// The requested end, the value of `@ end()`: the last time, or up to a step later.
    pub(crate) end: i64,
    /// The step; 0 for a single time.
    pub(crate) step_ms: i64,
    /// The values of `step()` and `range()` in durations.
    pub(crate) times: QueryTimes,
}

/// The values of `step()` and `range()` in durations, in seconds; 0 for instant queries.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct QueryTimes {
    /// The step between evaluation times.
    pub(crate) step: f64,
    /// The time from the first evaluation to the last.
    pub(crate) range: f64,
}

impl QueryTimes {
    /// The values for an instant query.
    pub(crate) const INSTANT: Self = Self { step: 0.0, range: 0.0 };
}

/// The shift of a selector or subquery by `@` and `offset`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimeShift {
    /// The time of `@`, which replaces all evaluation times.
    pub(crate) at: Option<i64>,
    /// The offset into the past.
    pub(crate) offset_ms: i64,
}

impl TimeShift {
    /// Returns the shifted time of an evaluation time.
    pub(crate) fn of(&self, evaluated_at: i64) -> i64 {
        self.at.unwrap_or(evaluated_at) - self.offset_ms
    }

    /// Returns the number of distinct shifted times.
    pub(crate) fn count(&self, steps: &Steps) -> usize {
        if self.at.is_some() { 1 } else { steps.count }
    }
}
