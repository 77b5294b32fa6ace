//! Columns whose memory decoding uses again and again.
//!
//! Must never know: what the numbers mean.

/// Columns of each kind that are kept for the next block, at most.
const SPARE_MAX: usize = 16;

/// Columns that nobody uses any more, whose room others will.
#[derive(Debug)]
pub(super) struct Spare<T>(Vec<Vec<T>>);

impl<T> Default for Spare<T> {
    fn default() -> Self {
        Self(Vec::new())
    }
}

impl<T> Spare<T> {
    /// An empty column.
    pub(super) fn take(&mut self) -> Vec<T> {
        self.0.pop().unwrap_or_default()
    }

    /// Takes columns back.
    pub(super) fn give(&mut self, columns: impl IntoIterator<Item = Vec<T>>) {
        for mut column in columns {
            if column.capacity() > 0 && self.0.len() < SPARE_MAX {
                column.clear();
                self.0.push(column);
            }
        }
    }
}

/// Memory for decoding, used again and again.
#[derive(Debug, Default)]
pub(crate) struct Buffers {
    pub(super) numbers: Vec<u64>,
    pub(super) places: Vec<u64>,
    pub(super) highs: Vec<u64>,
    /// Columns of whole numbers, and of doubles.
    pub(super) whole: Spare<i64>,
    pub(super) doubles: Spare<f64>,
}
