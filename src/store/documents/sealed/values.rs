//! The values of one series over one span: sum, min, max, first and last of each slot, by what they
//! have to do with each other.
//!
//! Must never know: where the bytes lie, and which slots they are of.

use super::{
    bits::PADDING,
    counter,
    cursor::{Cursor, Misfit},
    gauge,
    scratch::Scratch,
    stream::{self, Chosen, choose},
    times::Times,
};
use crate::{model::Cell, store::number::Scale};

/// Below them: how values become numbers.
const POWER: u8 = 7;
/// They are those of a counter.
const COUNTER: u8 = 8;

/// Which columns of cells are wanted, beside how many samples there are and when they came.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Columns(u8);

impl Columns {
    /// No other ones.
    pub const NONE: Self = Self(0);
    /// The sum.
    pub const SUM: Self = Self(1);
    /// The smallest value, of a counter the smallest rate.
    pub const MIN: Self = Self(2);
    /// The largest one.
    pub const MAX: Self = Self(4);
    /// Smallest and largest.
    pub(super) const RATES: Self = Self(6);
    /// The first and the last value.
    pub const ENDS: Self = Self(8);
    /// All.
    pub const ALL: Self = Self(15);

    /// These and others.
    pub const fn and(self, others: Self) -> Self {
        Self(self.0 | others.0)
    }

    /// Whether it has any of others.
    pub(crate) fn has_any(self, others: Self) -> bool {
        self.0 & others.0 != 0
    }
}

/// The columns of values, a row for each slot that is there.
#[derive(Debug, Clone, Default)]
pub(crate) struct Values {
    pub(crate) sum: Vec<f64>,
    pub(crate) min: Vec<f64>,
    pub(crate) max: Vec<f64>,
    pub(crate) first: Vec<f64>,
    pub(crate) last: Vec<f64>,
}

impl Values {
    /// Those of cells in place of what is there.
    pub(super) fn fill(&mut self, cells: &[Cell]) {
        let fill = |column: &mut Vec<f64>, value: fn(&Cell) -> f64| {
            column.clear();
            column.extend(cells.iter().map(value));
        };
        fill(&mut self.sum, |cell| cell.sum);
        fill(&mut self.min, |cell| cell.min);
        fill(&mut self.max, |cell| cell.max);
        fill(&mut self.first, |cell| cell.first);
        fill(&mut self.last, |cell| cell.last);
    }

    /// Gives the columns back that are not needed any more.
    pub(super) fn give_back(self, scratch: &mut Scratch) {
        let Self { sum, min, max, first, last } = self;
        scratch.doubles.give([sum, min, max, first, last]);
    }
}

/// The first bytes of a block: how its numbers are to be read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Head {
    pub(super) scale: Scale,
    /// The upper four bits are the model's.
    pub(super) flags: u8,
    /// The last number before the span, or what is taken for it.
    pub(super) base: i64,
}

/// Streams of a block, of which those that are all zero are left out.
pub(super) struct Writer<'a> {
    out: &'a mut Vec<u8>,
    /// Where the byte lies that says which are there.
    mask_at: usize,
    next: u8,
}

impl<'a> Writer<'a> {
    pub(super) fn new(head: Head, is_counter: bool, out: &'a mut Vec<u8>) -> Self {
        let counter = if is_counter { COUNTER } else { 0 };
        out.extend([head.scale.power() | counter | head.flags, head.scale.shift, 0]);
        let mask_at = out.len() - 1;
        super::cursor::put_zigzag(head.base, out);
        Self { out, mask_at, next: 1 }
    }

    /// What lies outside of streams.
    pub(super) fn out(&mut self) -> &mut Vec<u8> {
        self.out
    }

    /// Notes whether what comes next is there.
    pub(super) fn mark(&mut self, is_there: bool) -> bool {
        if is_there {
            self.out[self.mask_at] |= self.next;
        }
        self.next = self.next.wrapping_shl(1);
        is_there
    }

    pub(super) fn stream(&mut self, numbers: &[i64]) {
        if self.mark(numbers.iter().any(|number| *number != 0)) {
            choose(numbers).write(self.out);
        }
    }

    /// A stream of which it is known how.
    pub(super) fn chosen(&mut self, stream: &Chosen<'_>) {
        if self.mark(!stream.is_zero()) {
            stream.write(self.out);
        }
    }
}

/// Reads the streams of a block.
pub(super) struct Reader<'a, 's> {
    pub(super) from: Cursor<'a>,
    mask: u8,
    pub(super) scratch: &'s mut Scratch,
    /// Numbers that are wanted of each stream.
    limit: usize,
}

impl Reader<'_, '_> {
    /// Whether what comes next is there.
    pub(super) fn is_there(&mut self) -> bool {
        let is_there = self.mask & 1 == 1;
        self.mask >>= 1;
        is_there
    }

    /// The next stream; `None` when all its numbers are zero, or it is not wanted.
    pub(super) fn stream(
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
        let mut numbers = self.scratch.whole.take();
        stream::read(&mut self.from, count, self.limit, self.scratch, &mut numbers)?;
        Ok(Some(numbers))
    }

    /// The next stream, or as many zeros.
    pub(super) fn numbers(&mut self, count: usize) -> Result<Vec<i64>, Misfit> {
        let stream = self.stream(count, true)?;
        Ok(stream.unwrap_or_else(|| self.zeros()))
    }

    pub(super) fn zeros(&mut self) -> Vec<i64> {
        let mut zeros = self.scratch.whole.take();
        zeros.resize(self.limit, 0);
        zeros
    }

    /// The doubles of numbers.
    pub(super) fn doubles(&mut self, scale: Scale, numbers: impl Iterator<Item = i64>) -> Vec<f64> {
        let mut doubles = self.scratch.doubles.take();
        scale.doubles(numbers, &mut doubles);
        doubles
    }

    /// The same column again.
    pub(super) fn copy(&mut self, column: &[f64]) -> Vec<f64> {
        let mut copy = self.scratch.doubles.take();
        copy.extend_from_slice(column);
        copy
    }

    /// Gives columns back that are not needed any more.
    pub(super) fn give_back(&mut self, columns: impl IntoIterator<Item = Vec<i64>>) {
        self.scratch.whole.give(columns);
    }

    /// A stream that is always there, whole.
    pub(super) fn unmarked_stream(&mut self, count: usize) -> Result<Vec<i64>, Misfit> {
        let mut numbers = self.scratch.whole.take();
        stream::read(&mut self.from, count, usize::MAX, self.scratch, &mut numbers)?;
        Ok(numbers)
    }

    /// The next stream whole.
    pub(super) fn whole_stream(&mut self, count: usize) -> Result<Option<Vec<i64>>, Misfit> {
        let limit = std::mem::replace(&mut self.limit, usize::MAX);
        let stream = self.stream(count, true);
        self.limit = limit;
        stream
    }
}

/// Appends the values of cells, most of which have samples.
pub(super) fn write(
    cells: &[Cell],
    values: &Values,
    times: &Times,
    width_ms: i64,
    scratch: &mut Scratch,
    out: &mut Vec<u8>,
) {
    if is_counter(cells) {
        counter::write(values, times, width_ms, scratch, out);
    } else {
        gauge::write(values, times, scratch, out);
    }
}

/// Whether the values are readings, with increases and rates.
fn is_counter(cells: &[Cell]) -> bool {
    // Of a gauge, each value lies between the smallest and the largest.
    let is_level = |cell: &&Cell| {
        cell.min <= cell.first && cell.first <= cell.max || cell.sum.is_nan() || cell.first.is_nan()
    };
    cells.iter().filter(is_level).count() * 2 < cells.len()
}

/// Reads the values of the first `limit` slots, those columns that are wanted; `bytes` are
/// followed by [`PADDING`].
pub(super) fn read(
    bytes: &[u8],
    times: &Times,
    width_ms: i64,
    limit: usize,
    wanted: Columns,
    scratch: &mut Scratch,
) -> Result<Values, Misfit> {
    let mut from = Cursor::new(bytes, bytes.len().saturating_sub(PADDING))?;
    let (how, shift, mask) = (from.byte()?, from.byte()?, from.byte()?);
    let scale = Scale::from_bytes(how & POWER, shift).ok_or_else(|| from.misfit())?;
    let head = Head { scale, flags: how & 0xf0, base: from.zigzag()? };
    if wanted == Columns::NONE {
        return Ok(Values::default());
    }
    let limit = limit.min(times.count());
    let mut reader = Reader { from, mask, scratch, limit };
    let values = if how & COUNTER == 0 {
        gauge::read(head, &mut reader, times, wanted)?
    } else {
        counter::read(head, &mut reader, times, width_ms, wanted)?
    };
    Ok(values)
}

/// Turns differences into sums of all so far, one column after the other: `first` begins where the
/// `last` before it ended.
pub(super) fn chain(base: i64, first: &mut [i64], last: &mut [i64]) {
    let mut before = base;
    for (first, last) in first.iter_mut().zip(last) {
        *first = first.wrapping_add(before);
        *last = last.wrapping_add(*first);
        before = *last;
    }
}

/// What [`chain`] undoes.
pub(super) fn unchain(base: i64, first: &mut [i64], last: &mut [i64]) {
    let mut before = base;
    for (first, last) in first.iter_mut().zip(last) {
        let end = *last;
        *last = end.wrapping_sub(*first);
        *first = first.wrapping_sub(before);
        before = end;
    }
}
