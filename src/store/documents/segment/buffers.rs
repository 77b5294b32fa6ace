//! Columns whose memory decoding reuses.
//!
//! Must never know: what the numbers mean.

/// The maximum number of columns of each kind that are kept for reuse.
const SPARE_MAX: usize = 16;

/// Unused columns for reuse.
#[derive(Debug)]
pub(super) struct Spare<T>(Vec<Vec<T>>);

impl<T> Default for Spare<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Spare<T> {
    /// Returns an empty column.
    pub(super) fn take(&mut self) -> Vec<T> {
        self.0.pop().unwrap_or_default()
    }

    /// Keeps columns for reuse.
    pub(super) fn give(&mut self, columns: impl IntoIterator<Item = Vec<T>>) {
        for mut column in columns {
            if column.capacity() > 0 && self.0.len() < SPARE_MAX {
                column.clear();
                self.0.push(column);
            }
        }
    }
}

/// Memory that decoding reuses.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    pub(super) numbers: Vec<u64>,
    pub(super) positions: Vec<u64>,
    pub(super) highs: Vec<u64>,
    /// Columns of whole numbers, and of doubles.
    pub(super) whole: Spare<i64>,
    pub(super) doubles: Spare<f64>,
}
