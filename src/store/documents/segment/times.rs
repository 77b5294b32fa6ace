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

/// Every slot of the span is there.
const FULL: u8 = 1;
/// Numbers are less those of the first of the tile, where it has the slot.
const RELATIVE: u8 = 2;
/// The streams that are not all zero: n, `first_at`, `last_at`.
const STREAMS: [u8; 3] = [4, 8, 16];

/// The slots of a series, ascending, and what is known of each but for its values.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Times {
    /// The times of the first and the last sample, ms from the slot's start. They differ most often
    /// when times differ, so they are compared first.
    pub(crate) first_at: Vec<u32>,
    pub(crate) last_at: Vec<u32>,
    /// Samples in each slot.
    pub(crate) n: Vec<u32>,
    /// Slots that are there, by their number in the span.
    pub(crate) slots: Vec<u16>,
}

impl Times {
    /// Memory that a slot takes.
    pub(super) const SLOT_BYTES: usize = 3 * size_of::<u32>() + size_of::<u16>();

    /// The times of cells.
    pub(super) fn of<'a>(cells: impl Iterator<Item = (u16, &'a Cell)>) -> Self {
        let mut times = Self::default();
        times.fill(cells);
        times
    }

    /// Replaces the times by those of cells.
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

    /// Number of slots.
    pub(super) fn count(&self) -> usize {
        self.slots.len()
    }

    /// Milliseconds from one sample to the one before it: of each slot's first one to the last one
    /// of the slot before; of the first slot `first`.
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

    /// Appends it; `first` is that of the tile, unless it is that.
    pub(super) fn write(&self, slots: usize, first: Option<&Self>, out: &mut Vec<u8>) {
        let plain = self.numbers(None);
        let relative = first.map(|first| self.numbers(Some(first)));
        let bits = |numbers: &[Vec<i64>; 3]| -> usize {
            numbers
                .iter()
                .filter(|stream| stream.iter().any(|v| *v != 0))
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
            let mut there = vec![0_u64; slots];
            self.slots.iter().for_each(|slot| there[usize::from(*slot)] = 1);
            pack(there.into_iter(), 1, out);
        }
        for (stream, _) in numbers.iter().zip(STREAMS).filter(|(_, bit)| mode & bit != 0) {
            choose(stream).write(out);
        }
    }

    /// The numbers that are written for n, `first_at`, and `last_at` after it.
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

    /// n, `first_at`, and `last_at` after it.
    fn at(&self, index: usize) -> [i64; 3] {
        let [n, first, last] =
            [&self.n, &self.first_at, &self.last_at].map(|column| i64::from(column[index]));
        [n, first, last - first]
    }

    /// The numbers of `first` in these slots.
    fn base(&self, first: Option<&Self>) -> Vec<[i64; 3]> {
        let Some(first) = first else { return vec![[0; 3]; self.count()] };
        let mut place = 0;
        let base = |slot: &u16| {
            while first.slots.get(place).is_some_and(|known| known < slot) {
                place += 1;
            }
            if first.slots.get(place) == Some(slot) { first.at(place) } else { [0; 3] }
        };
        self.slots.iter().map(base).collect()
    }

    /// Reads it.
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
            let is_there = |slot: &usize| bitmap[slot / 8] >> (slot % 8) & 1 == 1;
            times.slots.extend((0..slots).filter(is_there).map(|slot| slot as u16));
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
