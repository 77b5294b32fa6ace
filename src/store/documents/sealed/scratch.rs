//! What decoding one block leaves for the next: room, and what neighbouring series share.
//!
//! Must never know: what the numbers mean.

use std::sync::Arc;

use super::heads::GroupHeads;

/// Columns of each kind that are kept for the next block, at most.
const SPARE_MAX: usize = 16;

/// Room for decoding, used again and again.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    pub(super) numbers: Vec<u64>,
    pub(super) places: Vec<u64>,
    pub(super) highs: Vec<u64>,
    /// Columns that nobody uses any more.
    whole: Vec<Vec<i64>>,
    doubles: Vec<Vec<f64>>,
    /// Bytes of a file.
    pub(super) bytes: Vec<u8>,
    /// Where heads of groups are kept for those that come after.
    pub(super) heads: Option<Arc<GroupHeads>>,
}

impl Scratch {
    /// One that goes by what was decoded before.
    pub(crate) fn with_heads(heads: Arc<GroupHeads>) -> Self {
        Self { heads: Some(heads), ..Self::default() }
    }

    /// An empty column of whole numbers.
    pub(super) fn take_whole(&mut self) -> Vec<i64> {
        self.whole.pop().unwrap_or_default()
    }

    /// Takes columns back.
    pub(super) fn give_whole(&mut self, columns: impl IntoIterator<Item = Vec<i64>>) {
        for mut column in columns {
            if column.capacity() > 0 && self.whole.len() < SPARE_MAX {
                column.clear();
                self.whole.push(column);
            }
        }
    }

    /// An empty column of doubles.
    pub(super) fn take_doubles(&mut self) -> Vec<f64> {
        self.doubles.pop().unwrap_or_default()
    }

    /// Takes columns back.
    pub(super) fn give_doubles(&mut self, columns: impl IntoIterator<Item = Vec<f64>>) {
        for mut column in columns {
            if column.capacity() > 0 && self.doubles.len() < SPARE_MAX {
                column.clear();
                self.doubles.push(column);
            }
        }
    }
}
