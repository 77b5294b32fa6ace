//! One column of a chunk: a count or the sum, in the first and last histogram and in the total of
//! each cell.
//!
//! Must never know: buckets.

use super::super::{
    buffers::Buffers,
    cursor::{Cursor, Misfit, put_zigzag},
    stream::{self, choose},
};
use crate::store::encoding::number::Scale;

/// The values of a cell: those of its first and last histogram, and of its total.
pub(super) type Values = [f64; 3];

/// The flag of a base.
const BASE: u8 = 8;

/// The dependency of the values on each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Mode {
    /// Readings of a counter: a total is the increase from the reading before.
    Counter,
    /// Levels, which change little.
    Level,
    /// Numbers that do not depend on the numbers before.
    Plain,
}

impl Mode {
    pub(super) const ALL: [Self; 3] = [Self::Counter, Self::Level, Self::Plain];
}

/// The cells of a column.
#[derive(Debug, Clone, Copy)]
pub(super) struct Part<'a> {
    pub(super) mode: Mode,
    pub(super) scale: Scale,
    /// The number of samples of each cell, and the positions of its forms.
    pub(super) cells: &'a [(u32, [u32; 3])],
    /// The position of the form of the column.
    pub(super) form: u32,
}

impl Part<'_> {
    /// Returns for each cell its number of samples, and which histograms have the form. A
    /// correction has only a total.
    fn cells(&self) -> impl Iterator<Item = (u32, [bool; 3])> {
        self.cells.iter().map(|(n, forms)| {
            let [first, last, total] = forms.map(|form| form == self.form);
            (*n, [first && *n > 0, last && *n > 0, total])
        })
    }

    /// Returns the likely total of a cell, whose values follow the value `before`.
    fn likely(&self, n: u32, has: [bool; 3], before: f64, [first, last, _]: Values) -> f64 {
        let likely = match self.mode {
            _ if has != [true; 3] => 0.0,
            Mode::Counter => last - before,
            Mode::Level | Mode::Plain if n == 1 => last,
            Mode::Level | Mode::Plain => f64::from(n) * (first + last) / 2.0,
        };
        if likely.is_nan() { 0.0 } else { likely }
    }

    /// Returns the number before the first one.
    fn base(&self, values: &[Values]) -> i64 {
        if self.mode == Mode::Plain {
            return 0;
        }
        let mut cells = self.cells().zip(values).filter(|((_, has), _)| has[0] || has[1]);
        let Some(((_, has), [first, last, total])) = cells.next() else { return 0 };
        match (self.mode, has) {
            (Mode::Counter, [true, true, true]) => self.scale.number(last - total),
            (_, [true, ..]) => self.scale.number(*first),
            _ => self.scale.number(*last),
        }
    }

    /// Appends the values of the column.
    pub(super) fn put(&self, values: &[Values], out: &mut Vec<u8>) {
        let base = self.base(values);
        let (mut before, mut streams) = (base, [const { Vec::new() }; 3]);
        for ((n, has), values) in self.cells().zip(values) {
            let [first, last, total] = values.map(|value| self.scale.number(value));
            let before_cell = self.scale.double(before);
            if has[0] {
                let from = if self.mode == Mode::Plain { 0 } else { before };
                streams[0].push(first.wrapping_sub(from));
                before = first;
            }
            if has[1] {
                streams[1].push(last.wrapping_sub(before));
                before = last;
            }
            if has[2] {
                let likely = self.likely(n, has, before_cell, *values);
                streams[2].push(total.wrapping_sub(self.scale.number(likely)));
            }
        }
        put_streams(&streams, base, out);
    }

    /// Reads the values of the column. Values of other forms are 0.
    pub(super) fn read(
        &self,
        from: &mut Cursor<'_>,
        buffers: &mut Buffers,
        values: &mut Vec<Values>,
    ) -> Result<(), Misfit> {
        let (base, streams) = self.read_streams(from, buffers)?;
        let mut numbers = streams.each_ref().map(|stream| stream.iter().copied());
        let [firsts, lasts, totals] = &mut numbers;
        let mut before = base;
        for (n, has) in self.cells() {
            let before_cell = self.scale.double(before);
            let mut cell = [0.0; 3];
            if has[0] {
                let from = if self.mode == Mode::Plain { 0 } else { before };
                before = from.wrapping_add(firsts.next().unwrap_or(0));
                cell[0] = self.scale.double(before);
            }
            if has[1] {
                before = before.wrapping_add(lasts.next().unwrap_or(0));
                cell[1] = self.scale.double(before);
            }
            if has[2] {
                let likely = self.scale.number(self.likely(n, has, before_cell, cell));
                let total = likely.wrapping_add(totals.next().unwrap_or(0));
                cell[2] = self.scale.double(total);
            }
            values.push(cell);
        }
        buffers.whole.give(streams);
        Ok(())
    }

    /// Appends values that are close to others.
    pub(super) fn put_near(&self, values: &[Values], others: &[Values], out: &mut Vec<u8>) {
        let mut streams = [const { Vec::new() }; 3];
        for ((_, has), (values, others)) in self.cells().zip(values.iter().zip(others)) {
            for (index, stream) in streams.iter_mut().enumerate().filter(|(index, _)| has[*index]) {
                let [number, other] = [values, others].map(|of| self.scale.number(of[index]));
                stream.push(number.wrapping_sub(other));
            }
        }
        put_streams(&streams, 0, out);
    }

    /// Reads values that are close to others, and replaces the others.
    pub(super) fn read_near(
        &self,
        from: &mut Cursor<'_>,
        buffers: &mut Buffers,
        others: &mut [Values],
    ) -> Result<(), Misfit> {
        let (_, streams) = self.read_streams(from, buffers)?;
        let mut numbers = streams.each_ref().map(|stream| stream.iter().copied());
        for ((_, has), values) in self.cells().zip(others) {
            for (index, numbers) in numbers.iter_mut().enumerate().filter(|(index, _)| has[*index])
            {
                let number = self.scale.number(values[index]);
                values[index] = self.scale.double(number.wrapping_add(numbers.next().unwrap_or(0)));
            }
        }
        buffers.whole.give(streams);
        Ok(())
    }

    /// Reads the base and the streams of first, last and total.
    fn read_streams(
        &self,
        from: &mut Cursor<'_>,
        buffers: &mut Buffers,
    ) -> Result<(i64, [Vec<i64>; 3]), Misfit> {
        let mask = from.byte()?;
        if mask >= 2 * BASE {
            return Err(from.misfit());
        }
        let base = if mask & BASE == 0 { 0 } else { from.zigzag()? };
        let mut counts = [0; 3];
        for (_, has) in self.cells() {
            counts.iter_mut().zip(has).for_each(|(count, has)| *count += usize::from(has));
        }
        let mut streams = [(); 3].map(|()| buffers.whole.take());
        for (index, (stream, count)) in streams.iter_mut().zip(counts).enumerate() {
            if mask >> index & 1 == 0 {
                stream.resize(count, 0);
            } else {
                stream::read(from, count, count, buffers, stream)?;
            }
        }
        Ok((base, streams))
    }
}

fn put_streams(streams: &[Vec<i64>; 3], base: i64, out: &mut Vec<u8>) {
    let chosen = streams.each_ref().map(|stream| choose(stream));
    let mask = (0..).zip(&chosen).map(|(index, stream)| u8::from(!stream.is_zero()) << index);
    out.push(mask.sum::<u8>() + u8::from(base != 0) * BASE);
    if base != 0 {
        put_zigzag(base, out);
    }
    for stream in chosen.iter().filter(|stream| !stream.is_zero()) {
        stream.write(out);
    }
}
