//! Encoding of the values of a cell. Must never know: the decoding.

use super::{
    DELTA_MAX, FIRST, Known, LAST, MAX, MIN, NOT_OFF, OF_SUM, OFF_DELTA_MAX, SUM, SUM_BARE,
    SUM_DELTA_MAX, Shape, likely_increase,
};
use crate::{
    model::Cell,
    store::{
        encoding::{
            number::{Scale, ordered},
            varint::zigzag,
        },
        head::elapsed::Elapsed,
    },
};

/// Returns the number of bytes of a number without the zero bytes at its high end.
fn bytes_of(number: u64) -> u32 {
    (u64::BITS - number.leading_zeros()).div_ceil(8)
}

/// Returns the number of bytes of a double without the zero bytes at its low end, at least two.
fn bare_bytes(value: f64) -> u32 {
    (8 - value.to_bits().trailing_zeros() / 8).clamp(2, 8)
}

fn put(number: u64, bytes: u32, out: &mut Vec<u8>) {
    // Appending a constant length and truncating is faster than a copy of variable length.
    out.extend_from_slice(&number.to_le_bytes());
    out.truncate(out.len() - 8 + bytes as usize);
}

fn put_bare(value: f64, bytes: u32, out: &mut Vec<u8>) {
    put(value.to_bits().swap_bytes(), bytes, out);
}

/// Writes the values of a cell, and returns their shape.
pub(in crate::head) fn encode(cell: &Cell, elapsed: &mut Elapsed, out: &mut Vec<u8>) -> Shape {
    let Cell { n, first, last, min, max, sum, .. } = *cell;
    let is_within = min <= first && min <= last && max >= first && max >= last;
    let is_same = |value: f64, other: f64| value.to_bits() == other.to_bits();
    let is_point = is_same(first, last);
    let scale = if is_within && !(is_same(min, first) && is_same(max, last)) {
        Scale::without_shift(&[first, last, min, max].into_iter())
    } else if is_point {
        Scale::without_shift(&[first].into_iter())
    } else {
        Scale::without_shift(&[first, last].into_iter())
    };
    let mut shape = Shape::new(scale, !is_within);
    let mut values = Writer { scale, shape: &mut shape, out };
    let first_number = values.value(FIRST, first, 0);
    if n == 1 && is_within && [last, min, max, sum].iter().all(|value| is_same(*value, first)) {
        // All other values follow from the only sample.
        return shape;
    }
    let last_number = if is_point { first_number } else { values.value(LAST, last, first_number) };
    let known = Known {
        n,
        scale,
        first: first_number,
        last: last_number,
        first_value: first,
        last_value: last,
    };
    if is_within {
        values.value(MIN, min, first_number.min(last_number));
        values.value(MAX, max, first_number.max(last_number));
        values.sum(sum, &known);
    } else {
        // Rates are predicted from the sum, which is therefore read before them.
        values.counted(sum, &known);
        values.rate(MIN, min, cell, &known, elapsed);
        if max.to_bits() != min.to_bits() {
            values.rate(MAX, max, cell, &known, elapsed);
        }
    }
    shape
}

struct Writer<'a> {
    scale: Scale,
    shape: &'a mut Shape,
    out: &'a mut Vec<u8>,
}

impl Writer<'_> {
    /// Writes a value, as its difference from a likely number or as a double; returns its number.
    fn value(&mut self, position: u32, value: f64, likely: i64) -> i64 {
        let number = self.scale.number(value);
        let delta = zigzag(number.wrapping_sub(likely));
        let (bytes, bare) = (bytes_of(delta), bare_bytes(value));
        if bytes <= bare {
            self.shape.set(position, bytes);
            put(delta, bytes, self.out);
        } else {
            self.shape.set(position, bare + 7);
            put_bare(value, bare, self.out);
        }
        number
    }

    /// Writes the sum of a gauge.
    fn sum(&mut self, sum: f64, known: &Known) {
        let number = self.scale.number(sum);
        let off = ordered(sum).wrapping_sub(ordered(self.scale.double(number)));
        self.sum_or_bare(sum, number.wrapping_sub(known.likely_sum(false)), off);
    }

    /// Writes the sum of a counter.
    fn counted(&mut self, sum: f64, known: &Known) {
        match known.number_of(sum, |value| value.to_bits() == sum.to_bits()) {
            Some((number, off)) => {
                self.sum_or_bare(sum, number.wrapping_sub(known.likely_sum(true)), off);
            }
            None => self.sum_or_bare(sum, 0, i64::MAX),
        }
    }

    fn sum_or_bare(&mut self, sum: f64, delta: i64, off: i64) {
        let delta = zigzag(delta);
        let bytes = bytes_of(delta);
        if off == 0 && bytes <= SUM_DELTA_MAX {
            self.shape.set(SUM, bytes);
            put(delta, bytes, self.out);
        } else if let (Ok(off), true) = (i8::try_from(off), bytes <= OFF_DELTA_MAX) {
            self.shape.set(SUM, SUM_DELTA_MAX + 1 + bytes);
            put(delta, bytes, self.out);
            self.out.push(off as u8);
        } else {
            let needed = bare_bytes(sum) as usize;
            let [.., whole] = SUM_BARE;
            let (code, bytes) =
                SUM_BARE.into_iter().find(|(_, bytes)| *bytes >= needed).unwrap_or(whole);
            self.shape.set(SUM, code);
            put_bare(sum, bytes as u32, self.out);
        }
    }

    /// Writes a rate: as an increase over milliseconds that the row stores, or as a double.
    fn rate(
        &mut self,
        position: u32,
        rate: f64,
        cell: &Cell,
        known: &Known,
        elapsed: &mut Elapsed,
    ) {
        if let Some(index) = elapsed.of_increase(cell.sum, rate, cell.n <= 1) {
            if index > 0 || position == MAX {
                self.shape.set(position, 1);
                self.out.push(index | OF_SUM << 4);
            }
            return;
        }
        let found = if cell.n > 1 && self.scale.is_decimal() {
            let step = cell.last_at.saturating_sub(cell.first_at) / (cell.n - 1);
            elapsed.of_rate(rate, step.into(), |increase, is_exact| {
                known.number_of(increase, is_exact)
            })
        } else {
            None
        };
        if let Some((index, (number, units))) = found {
            let delta = zigzag(number.wrapping_sub(likely_increase(cell, known)));
            let bytes = bytes_of(delta);
            if bytes < DELTA_MAX {
                self.shape.set(position, bytes + 1);
                self.out.push(index | ((units + NOT_OFF) as u8) << 4);
                put(delta, bytes, self.out);
                return;
            }
        }
        let bytes = bare_bytes(rate);
        self.shape.set(position, bytes + 7);
        put_bare(rate, bytes, self.out);
    }
}
