//! The times of a series in a span: its slots, the number of samples in each, and the offsets of
//! the first and the last sample. Series that are sampled together share their times.
//!
//! Must never know: values.

use super::{
    bits::{pack, packed_bytes},
    buffers::Buffers,
    cursor::{Cursor, Misfit},
    stream::{self, choose},
};
use crate::model::Cell;

/// The maximum number of slots of a span.
pub(crate) const SLOTS_MAX: usize = 1024;
/// Every slot of the span has a cell.
const FULL: u8 = 1;
/// Numbers are differences from the first times of the tile, in the slots that both have.
const RELATIVE: u8 = 2;
/// The flags of streams that are not all zero: n, `first_at`, `last_at`.
const STREAMS: [u8; 3] = [4, 8, 16];

/// The slots of a series, ascending, with the number and the times of the samples in each.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Times {
    /// The offset of the first sample from the slot's start, in milliseconds. This field is
    /// compared first, because unequal times usually differ in it.
    pub(crate) first_at: Vec<u32>,
    pub(crate) last_at: Vec<u32>,
    /// The number of samples in each slot.
    pub(crate) n: Vec<u32>,
    /// The numbers of the slots that have cells, counted within the span.
    pub(crate) slots: Vec<u16>,
}

impl Times {
    /// The memory of a slot in bytes.
    pub(super) const SLOT_BYTES: usize = 3 * size_of::<u32>() + size_of::<u16>();

    /// Creates the times of cells.
    pub(super) fn of<'a>(cells: impl Iterator<Item = (u16, &'a Cell)>) -> Self {
        let mut times = Self::default();
        times.fill(cells);
        times
    }

    /// Replaces the content with the times of cells.
    pub(super) fn fill<'a>(&mut self, cells: impl Iterator<Item = (u16, &'a Cell)>) {
        let Self { first_at, last_at, n, slots } = self;
        for column in [&mut *first_at, &mut *last_at, &mut *n] {
            column.clear();
        }
        slots.clear();
        for (slot, cell) in cells {
            slots.push(slot);
            n.push(cell.n);
            first_at.push(cell.first_at);
            last_at.push(cell.last_at);
        }
    }

    /// Returns the number of slots.
    pub(super) fn count(&self) -> usize {
        self.slots.len()
    }

    /// Returns, for each slot, the milliseconds from the last sample of the previous slot to the
    /// first sample of the slot. For the first slot, returns `first`.
    pub(super) fn passed_before(&self, width_ms: i64, first: i64) -> impl Iterator<Item = i64> {
        let mut before = None;
        (0..self.count()).map(move |index| {
            let start = i64::from(self.slots[index]) * width_ms;
            let passed =
                before.map_or(first, |before| start + i64::from(self.first_at[index]) - before);
            before = Some(start + i64::from(self.last_at[index]));
            passed
        })
    }

    /// Appends the times; `first` are the tile's first times, or `None` when `self` is the first.
    pub(super) fn write(&self, slots: usize, first: Option<&Self>, out: &mut Vec<u8>) {
        let plain = self.numbers(None);
        let relative = first.map(|first| self.numbers(Some(first)));
        let bits = |numbers: &[Vec<i64>; 3]| -> usize {
            numbers
                .iter()
                .filter(|stream| stream.iter().any(|number| *number != 0))
                .map(|stream| choose(stream).bits())
                .sum()
        };
        let relative = relative.filter(|relative| bits(relative) < bits(&plain));
        let mut mode = if relative.is_some() { RELATIVE } else { 0 };
        if self.count() == slots {
            mode |= FULL;
        }
        let numbers = relative.unwrap_or(plain);
        for (stream, bit) in numbers.iter().zip(STREAMS) {
            if stream.iter().any(|number| *number != 0) {
                mode |= bit;
            }
        }
        out.push(mode);
        if mode & FULL == 0 {
            let mut bitmap = vec![0_u64; slots];
            self.slots.iter().for_each(|slot| bitmap[usize::from(*slot)] = 1);
            pack(bitmap.into_iter(), 1, out);
        }
        for (stream, _) in numbers.iter().zip(STREAMS).filter(|(_, bit)| mode & bit != 0) {
            choose(stream).write(out);
        }
    }

    /// Returns the numbers to write for all slots: their differences from the numbers of `first`.
    fn numbers(&self, first: Option<&Self>) -> [Vec<i64>; 3] {
        let base = self.base(first);
        let mut numbers = [const { Vec::new() }; 3];
        for (index, base) in base.into_iter().enumerate() {
            let row = self.at(index);
            for (number, (value, base)) in numbers.iter_mut().zip(row.into_iter().zip(base)) {
                number.push(value - base);
            }
        }
        numbers
    }

    /// Returns the numbers of a slot: n, `first_at`, and the milliseconds from there to `last_at`.
    fn at(&self, index: usize) -> [i64; 3] {
        let [n, first, last] =
            [&self.n, &self.first_at, &self.last_at].map(|column| i64::from(column[index]));
        [n, first, last - first]
    }

    /// Returns the numbers of `first` in the slots of `self`; zeros in slots that only `self` has.
    fn base(&self, first: Option<&Self>) -> Vec<[i64; 3]> {
        let Some(first) = first else { return vec![[0; 3]; self.count()] };
        let mut position = 0;
        let base = |slot: &u16| {
            while first.slots.get(position).is_some_and(|known| known < slot) {
                position += 1;
            }
            if first.slots.get(position) == Some(slot) { first.at(position) } else { [0; 3] }
        };
        self.slots.iter().map(base).collect()
    }

    /// Reads times.
    pub(super) fn read(
        from: &mut Cursor<'_>,
        slots: usize,
        first: Option<&Self>,
        buffers: &mut Buffers,
    ) -> Result<Self, Misfit> {
        let mode = from.byte()?;
        let mut times = Self::default();
        if mode & FULL != 0 {
            times.slots.extend((0..slots).map(|slot| slot as u16));
        } else {
            let bitmap = from.take(packed_bytes(slots, 1))?;
            let is_set = |slot: &usize| bitmap[slot / 8] >> (slot % 8) & 1 == 1;
            times.slots.extend((0..slots).filter(is_set).map(|slot| slot as u16));
        }
        if mode & RELATIVE != 0 && first.is_none() {
            return Err(from.misfit());
        }
        let mut numbers = [(); 3].map(|()| buffers.whole.take());
        for (column, bit) in numbers.iter_mut().zip(STREAMS) {
            if mode & bit == 0 {
                column.resize(times.count(), 0);
            } else {
                stream::read(from, times.count(), times.count(), buffers, column)?;
            }
        }
        if mode & RELATIVE != 0 {
            for (index, base) in times.base(first).into_iter().enumerate() {
                for (column, base) in numbers.iter_mut().zip(base) {
                    column[index] = column[index].wrapping_add(base);
                }
            }
        }
        let [n, first_at, length] = &numbers;
        times.n = n.iter().map(|n| *n as u32).collect();
        times.first_at = first_at.iter().map(|first| *first as u32).collect();
        let last_at =
            first_at.iter().zip(length).map(|(first, length)| first.wrapping_add(*length));
        times.last_at = last_at.map(|last| last as u32).collect();
        buffers.whole.give(numbers);
        Ok(times)
    }
}
