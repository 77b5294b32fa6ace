//! Bounds of the size of one answer.
//!
//! Must never know: what is asked, settings.

/// Lines of a chart, series of a list or of a tail: a reader looks at fewer.
const LINES_MAX: usize = 1000;

/// Bounds of one answer.
#[derive(Debug, Clone, Copy)]
pub struct QueryLimits {
    /// Lines of a chart, series of a list or of a tail.
    pub lines_max: usize,
    /// Series that may be read.
    pub series_max: usize,
    /// Slots that may be read, and points or rows of the answer.
    pub points_max: usize,
}

impl QueryLimits {
    /// Bounds of what is read. At most 1000 series are shown.
    pub fn new(series_max: usize, points_max: usize) -> Self {
        Self { lines_max: LINES_MAX.min(series_max), series_max, points_max }
    }
}
