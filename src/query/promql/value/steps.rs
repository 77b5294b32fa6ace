//! The times at which an expression is evaluated, and how `@` and `offset` move them.
//!
//! Must never know: values, the tree.

/// Evaluation times, a step apart.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Steps {
    /// The first, Unix milliseconds.
    pub(crate) start: i64,
    /// From one to the next.
    pub(crate) step_ms: i64,
    /// How many.
    pub(crate) count: usize,
}

impl Steps {
    /// A single time.
    pub(crate) fn instant(at: i64) -> Self {
        Self { start: at, step_ms: 1, count: 1 }
    }

    /// One of the times, Unix milliseconds.
    pub(crate) fn at(&self, index: usize) -> i64 {
        self.start.saturating_add(self.step_ms.saturating_mul(index as i64))
    }

    /// All of them.
    pub(crate) fn times(&self) -> impl Iterator<Item = i64> {
        let steps = *self;
        (0..self.count).map(move |index| steps.at(index))
    }

    /// The last time.
    pub(crate) fn last(&self) -> i64 {
        self.at(self.count.saturating_sub(1))
    }
}

/// The times of the whole query, whatever a subquery within it goes by.
#[derive(Debug, Clone, Copy)]
pub(crate) struct QueryRange {
    /// The first, which `@ start()` means, Unix milliseconds.
    pub(crate) start: i64,
    /// Where the query was asked to end, which `@ end()` means: the last time, or up to a step later.
    pub(crate) end: i64,
    /// From one time to the next; 0 when there is only one.
    pub(crate) step_ms: i64,
    /// The same for lengths of time.
    pub(crate) times: QueryTimes,
}

/// The meaning of `step()` and `range()` in lengths of time, in seconds; 0 for instant queries.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct QueryTimes {
    /// Between the evaluation times.
    pub(crate) step: f64,
    /// From the first evaluation time to the last.
    pub(crate) range: f64,
}

impl QueryTimes {
    /// The times of an instant query.
    pub(crate) const INSTANT: Self = Self { step: 0.0, range: 0.0 };
}

/// The time that a selector or subquery looks at: by its `@` and its `offset`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TimeShift {
    /// The time of `@`, in place of all evaluation times.
    pub(crate) at: Option<i64>,
    /// How far back from there.
    pub(crate) offset_ms: i64,
}

impl TimeShift {
    /// Where it looks at an evaluation time.
    pub(crate) fn of(&self, evaluated_at: i64) -> i64 {
        self.at.unwrap_or(evaluated_at) - self.offset_ms
    }

    /// At how many of the times it looks elsewhere than before.
    pub(crate) fn count(&self, steps: &Steps) -> usize {
        if self.at.is_some() { 1 } else { steps.count }
    }
}
