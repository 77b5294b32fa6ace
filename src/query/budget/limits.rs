//! Limits of one query: the amount of data that it may read, and the size of its answer.
//!
//! Must never know: what is queried, settings.

/// Maximum number of lines of a chart, and of series in a list or a tail. Nobody reads more.
const LINES_MAX: usize = 1000;

/// The limits of one query.
#[derive(Debug, Clone, Copy)]
pub struct QueryLimits {
    /// Maximum number of lines of a chart, and of series in a list or a tail.
    pub lines_max: usize,
    /// Maximum number of series to read.
    pub series_max: usize,
    /// Maximum number of slots to read, and of points or rows in the answer.
    pub points_max: usize,
}

impl QueryLimits {
    /// Creates the limits of a query. Charts, lists and tails show at most 1000 series.
    pub fn new(series_max: usize, points_max: usize) -> Self {
        Self { lines_max: LINES_MAX.min(series_max), series_max, points_max }
    }
}
