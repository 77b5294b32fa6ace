//! The cell of histograms: the aggregate of one slot of a series of histograms.
//!
//! Like [`super::Cell`], it is a commutative monoid: `merge` is associative and commutative, except
//! for the last bits of sums. Buckets of different schemas become those of the coarsest schema.

use std::cmp::Ordering;

use super::{Histogram, UnixMillis};

/// The aggregate of the histograms of one series in one slot.
///
/// Offsets are milliseconds from the start of the slot. For gauges and deltas, `total` is the sum
/// of the histograms. For counters, `total` is the increase, and `first` and `last` are readings.
#[derive(Debug, Clone, PartialEq)]
pub struct HistogramCell {
    /// The number of samples; 0 in a correction of the total.
    pub n: u32,
    /// The offset of the first sample.
    pub first_at: u32,
    /// The offset of the last sample.
    pub last_at: u32,
    /// The sum of the histograms, or the total increase.
    pub total: Histogram,
    /// The first sample in time; the smaller one of two at the same time.
    pub first: Histogram,
    /// The last sample in time; the larger one of two at the same time.
    pub last: Histogram,
}

impl HistogramCell {
    /// Returns the cell of one sample, which adds `total`.
    pub fn single(offset: u32, histogram: Histogram, total: Histogram) -> Self {
        let (n, first_at, last_at) = (1, offset, offset);
        Self { n, first_at, last_at, total, first: histogram.clone(), last: histogram }
    }

    /// Returns a cell without samples that changes the total of its slot.
    pub fn correction(total: Histogram) -> Self {
        let none = total.emptied();
        Self { n: 0, first_at: 0, last_at: 0, total, first: none.clone(), last: none }
    }

    /// Returns true when the cell changes nothing: it has neither samples nor a correction.
    pub fn is_empty(&self) -> bool {
        self.n == 0 && self.total.is_empty()
    }

    /// Adds another cell of the same slot.
    pub fn merge(&mut self, other: &Self) {
        self.total.merge(&other.total);
        if other.n == 0 {
            return;
        }
        let is_first = self.n == 0
            || (other.first_at, Less(&other.first)) < (self.first_at, Less(&self.first));
        if is_first {
            (self.first_at, self.first) = (other.first_at, other.first.clone());
        }
        let is_last =
            self.n == 0 || (other.last_at, Less(&other.last)) > (self.last_at, Less(&self.last));
        if is_last {
            (self.last_at, self.last) = (other.last_at, other.last.clone());
        }
        self.n = self.n.saturating_add(other.n);
    }

    /// Returns the cell as part of a wider slot that begins `millis` earlier.
    #[must_use]
    pub fn shifted(mut self, millis: u32) -> Self {
        self.first_at = self.first_at.saturating_add(millis);
        self.last_at = self.last_at.saturating_add(millis);
        self
    }

    /// Returns the approximate bytes in memory.
    pub fn bytes(&self) -> usize {
        size_of::<u32>() * 3 + self.total.bytes() + self.first.bytes() + self.last.bytes()
    }
}

/// The order of histograms at the same time: by counts, then by content.
#[derive(PartialEq)]
struct Less<'a>(&'a Histogram);

impl PartialOrd for Less<'_> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        let by_count = self.0.count.total_cmp(&other.0.count);
        let by_sum = || self.0.sum.total_cmp(&other.0.sum);
        let by_content = || {
            let [ours, theirs] = [self, other].map(|histogram| {
                let mut bytes = Vec::new();
                histogram.0.encode(&mut bytes);
                bytes
            });
            ours.cmp(&theirs)
        };
        Some(by_count.then_with(by_sum).then_with(by_content))
    }
}

/// A slot of a series of histograms.
#[derive(Debug, Clone, PartialEq)]
pub struct HistogramSlot {
    /// The start of the slot.
    pub start: UnixMillis,
    /// The cell, which has samples.
    pub cell: HistogramCell,
}
