//! Bounds of the size of one answer.
//!
//! Must never know: what is asked, settings.

/// Bounds of one answer.
#[derive(Debug, Clone, Copy)]
pub struct QueryLimits {
    /// Series, at most.
    pub series_max: usize,
    /// Points or rows, at most.
    pub points_max: usize,
    /// Series that may be read for fewer lines of an answer.
    pub read_series_max: usize,
    /// Slots that may be read.
    pub read_points_max: usize,
}

impl QueryLimits {
    /// Limits under which no more is read than an answer may show.
    pub fn new(series_max: usize, points_max: usize) -> Self {
        Self { series_max, points_max, read_series_max: series_max, read_points_max: points_max }
    }
}
