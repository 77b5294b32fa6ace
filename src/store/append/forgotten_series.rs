//! The series that were forgotten since the start.
//!
//! Must never know: why series are forgotten.

use crate::model::SeriesId;

/// A set with one bit per series. Batches that were resolved before a series was forgotten may
/// still name it.
#[derive(Debug, Default)]
pub(super) struct Forgotten(Vec<u64>);

impl Forgotten {
    pub(super) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn word_and_bit(id: SeriesId) -> (usize, u64) {
        (id.0 as usize / u64::BITS as usize, 1 << (id.0 % u64::BITS))
    }

    pub(super) fn add(&mut self, id: SeriesId) {
        let (word, bit) = Self::word_and_bit(id);
        if word >= self.0.len() {
            self.0.resize(word + 1, 0);
        }
        self.0[word] |= bit;
    }

    pub(super) fn has(&self, id: SeriesId) -> bool {
        let (word, bit) = Self::word_and_bit(id);
        self.0.get(word).is_some_and(|bits| bits & bit > 0)
    }
}
