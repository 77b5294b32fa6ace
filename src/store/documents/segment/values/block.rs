//! The bytes of a block: columns of values as streams; streams of zeros are left out.
//!
//! Must never know: how columns depend on each other.

use crate::{
    model::Cell,
    store::{
        documents::segment::{
            buffers::Buffers,
            cursor::{Cursor, Misfit, put_zigzag},
            stream::{self, Chosen, choose},
        },
        encoding::number::Scale,
    },
};

/// The flag of a block of a counter.
pub(super) const COUNTER: u8 = 8;

/// The columns of cells that a reader wants, in addition to the number of samples and their times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Columns(u8);

impl Columns {
    /// No column.
    pub const NONE: Self = Self(0);
    /// The sum.
    pub const SUM: Self = Self(1);
    /// The smallest value, or for a counter the smallest rate.
    pub const MIN: Self = Self(2);
    /// The largest value, or for a counter the largest rate.
    pub const MAX: Self = Self(4);
    /// The smallest and the largest rate.
    pub(crate) const RATES: Self = Self(6);
    /// The first and the last value.
    pub const ENDS: Self = Self(8);
    /// The second central moment.
    pub const MOMENT: Self = Self(16);
    /// The columns of a cell of one or two samples: all but the moment, which follows from them.
    pub const VALUES: Self = Self(15);
    /// All columns.
    pub const ALL: Self = Self(31);

    /// Returns the bits, for another node.
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// Returns the columns of bits; unknown bits count as no columns.
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits & Self::ALL.0)
    }

    /// Returns the union of two sets of columns.
    pub const fn and(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// Returns whether two sets of columns overlap.
    pub(crate) fn has_any(self, others: Self) -> bool {
        self.0 & others.0 != 0
    }
}

/// The columns of values, with a row for each slot that has a cell.
#[derive(Debug, Clone, Default)]
pub(crate) struct Values {
    pub(crate) sum: Vec<f64>,
    pub(crate) min: Vec<f64>,
    pub(crate) max: Vec<f64>,
    pub(crate) first: Vec<f64>,
    pub(crate) last: Vec<f64>,
    pub(crate) m2: Vec<f64>,
}

impl Values {
    /// Replaces the values by the values of cells.
    pub(crate) fn fill(&mut self, cells: &[Cell]) {
        let fill = |column: &mut Vec<f64>, value: fn(&Cell) -> f64| {
            column.clear();
            column.extend(cells.iter().map(value));
        };
        fill(&mut self.sum, |cell| cell.sum);
        fill(&mut self.min, |cell| cell.min);
        fill(&mut self.max, |cell| cell.max);
        fill(&mut self.first, |cell| cell.first);
        fill(&mut self.last, |cell| cell.last);
        fill(&mut self.m2, |cell| cell.m2);
    }

    /// Returns the columns to the buffers, for reuse.
    pub(crate) fn recycle(self, buffers: &mut Buffers) {
        let Self { sum, min, max, first, last, m2 } = self;
        buffers.doubles.give([sum, min, max, first, last, m2]);
    }
}

/// The first bytes of a block, which describe how its numbers are encoded.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Head {
    pub(crate) scale: Scale,
    /// The upper four bits, whose meaning depends on the kind.
    pub(crate) flags: u8,
    /// The last number before the span, or a number that is assumed for it.
    pub(crate) base: i64,
}

/// Writes the streams of a block, and leaves out streams of zeros.
pub(crate) struct Writer<'a> {
    out: &'a mut Vec<u8>,
    /// The position of the mask byte, which has a bit for each stream that is present.
    mask_at: usize,
    next: u8,
}

impl<'a> Writer<'a> {
    pub(crate) fn new(head: Head, is_counter: bool, out: &'a mut Vec<u8>) -> Self {
        let counter = if is_counter { COUNTER } else { 0 };
        out.extend([head.scale.power() | counter | head.flags, head.scale.shift, 0]);
        let mask_at = out.len() - 1;
        put_zigzag(head.base, out);
        Self { out, mask_at, next: 1 }
    }

    /// Returns the bytes outside of streams.
    pub(crate) fn out(&mut self) -> &mut Vec<u8> {
        self.out
    }

    /// Records in the mask whether the next stream is present, and returns `is_present`.
    pub(crate) fn mark(&mut self, is_present: bool) -> bool {
        if is_present {
            self.out[self.mask_at] |= self.next;
        }
        self.next = self.next.wrapping_shl(1);
        is_present
    }

    pub(crate) fn stream(&mut self, numbers: &[i64]) {
        if self.mark(numbers.iter().any(|number| *number != 0)) {
            choose(numbers).write(self.out);
        }
    }

    /// Writes a stream whose encoding is already chosen.
    pub(crate) fn chosen(&mut self, stream: &Chosen<'_>) {
        if self.mark(!stream.is_zero()) {
            stream.write(self.out);
        }
    }
}

/// Reads the streams of a block.
pub(crate) struct Reader<'a, 's> {
    pub(crate) from: Cursor<'a>,
    mask: u8,
    pub(crate) buffers: &'s mut Buffers,
    /// The number of values to read from each stream.
    limit: usize,
}

impl<'a, 's> Reader<'a, 's> {
    pub(crate) fn new(from: Cursor<'a>, mask: u8, buffers: &'s mut Buffers, limit: usize) -> Self {
        Self { from, mask, buffers, limit }
    }

    /// Returns whether the next stream is present.
    pub(crate) fn is_there(&mut self) -> bool {
        let is_present = self.mask & 1 == 1;
        self.mask >>= 1;
        is_present
    }

    /// Returns the next stream; `None` when all its numbers are zero, or the stream is not wanted.
    pub(crate) fn stream(
        &mut self,
        count: usize,
        is_wanted: bool,
    ) -> Result<Option<Vec<i64>>, Misfit> {
        if !self.is_there() {
            return Ok(None);
        }
        if !is_wanted {
            return stream::skip(&mut self.from, count).map(|()| None);
        }
        let mut numbers = self.buffers.whole.take();
        stream::read(&mut self.from, count, self.limit, self.buffers, &mut numbers)?;
        Ok(Some(numbers))
    }

    /// Returns the next stream; zeros when the stream was left out.
    pub(crate) fn numbers(&mut self, count: usize) -> Result<Vec<i64>, Misfit> {
        let stream = self.stream(count, true)?;
        Ok(stream.unwrap_or_else(|| self.zeros()))
    }

    pub(crate) fn zeros(&mut self) -> Vec<i64> {
        let mut zeros = self.buffers.whole.take();
        zeros.resize(self.limit, 0);
        zeros
    }

    /// Converts numbers to doubles.
    pub(crate) fn doubles(&mut self, scale: Scale, numbers: impl Iterator<Item = i64>) -> Vec<f64> {
        let mut doubles = self.buffers.doubles.take();
        scale.doubles(numbers, &mut doubles);
        doubles
    }

    /// Copies a column.
    pub(crate) fn copy(&mut self, column: &[f64]) -> Vec<f64> {
        let mut copy = self.buffers.doubles.take();
        copy.extend_from_slice(column);
        copy
    }

    /// Returns columns to the buffers, for reuse.
    pub(crate) fn recycle(&mut self, columns: impl IntoIterator<Item = Vec<i64>>) {
        self.buffers.whole.give(columns);
    }

    /// Reads a complete stream that is always present, without a bit in the mask.
    pub(crate) fn unmarked_stream(&mut self, count: usize) -> Result<Vec<i64>, Misfit> {
        let mut numbers = self.buffers.whole.take();
        stream::read(&mut self.from, count, usize::MAX, self.buffers, &mut numbers)?;
        Ok(numbers)
    }

    /// Returns the next stream in full, regardless of the limit.
    pub(crate) fn whole_stream(&mut self, count: usize) -> Result<Option<Vec<i64>>, Misfit> {
        let limit = std::mem::replace(&mut self.limit, usize::MAX);
        let stream = self.stream(count, true);
        self.limit = limit;
        stream
    }
}

/// Converts differences to running sums: each `first` is relative to the previous `last`, and each
/// `last` to its `first`.
pub(crate) fn chain(base: i64, first: &mut [i64], last: &mut [i64]) {
    let mut before = base;
    for (first, last) in first.iter_mut().zip(last) {
        *first = first.wrapping_add(before);
        *last = last.wrapping_add(*first);
        before = *last;
    }
}

/// The inverse of [`chain`].
pub(crate) fn unchain(base: i64, first: &mut [i64], last: &mut [i64]) {
    let mut before = base;
    for (first, last) in first.iter_mut().zip(last) {
        let end = *last;
        *last = end.wrapping_sub(*first);
        *first = first.wrapping_sub(before);
        before = end;
    }
}
