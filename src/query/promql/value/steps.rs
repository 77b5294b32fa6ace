//! The times at which an expression is evaluated.
//!
//! Must never know: values.

/// Evaluation times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Grid {
    /// The first, Unix milliseconds.
    pub(crate) start: i64,
    /// Milliseconds from one to the next.
    pub(crate) step: i64,
    /// How many.
    pub(crate) count: usize,
}

impl Grid {
    /// A single time.
    pub(crate) fn instant(at: i64) -> Self {
        Self { start: at, step: 1, count: 1 }
    }

    /// One of the times, Unix milliseconds.
    pub(crate) fn at(&self, index: usize) -> i64 {
        self.start.saturating_add(self.step.saturating_mul(index as i64))
    }

    /// All of them.
    pub(crate) fn times(&self) -> impl Iterator<Item = i64> {
        let grid = *self;
        (0..self.count).map(move |index| grid.at(index))
    }

    /// The last time.
    pub(crate) fn last(&self) -> i64 {
        self.at(self.count.saturating_sub(1))
    }
}
