//! The values of one cell of a row in few bytes, bit for bit.
//!
//! As in sealed documents, exact decimals become whole numbers, and values stand for what they differ
//! by from others of the cell. Here a cell is read without its neighbours. FORMAT.md describes the
//! bytes. Must never know: when samples came, and which series they are of.

use super::elapsed::Elapsed;
use crate::{
    model::Cell,
    store::{
        number::{Scale, ordered, unordered},
        varint::{unzigzag, zigzag},
    },
};

/// Places of the values in a shape.
const FIRST: u32 = 0;
const LAST: u32 = 1;
const MIN: u32 = 2;
const MAX: u32 = 3;
const SUM: u32 = 4;
/// Values of a cell.
const VALUES: u32 = 5;
/// Of the power in a shape: min and max are rates.
const RATES: u32 = 8;
/// Codes above it are of values as they are: so many bytes less seven.
const DELTA_MAX: u32 = 8;
/// The same of a sum, which has codes for how many doubles it is off.
const SUM_DELTA_MAX: u32 = 7;
const OFF_DELTA_MAX: u32 = 4;
/// A sum as it is, in 2, 5 or 8 bytes.
const SUM_BARE: [(u32, usize); 3] = [(13, 2), (14, 5), (15, 8)];
/// In the byte of a rate: its increase is the sum.
const OF_SUM: u8 = 15;
/// Of the other numbers there: this one says that the increase is not off.
const NOT_OFF: i64 = 7;

/// How a cell is written: what values are multiplied with, and how each of them stands there.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Shape(u32);

impl Shape {
    pub(super) const BYTES: usize = 3;

    pub(super) fn to_bytes(self) -> [u8; Self::BYTES] {
        let [a, b, c, _] = self.0.to_le_bytes();
        [a, b, c]
    }

    pub(super) fn from_bytes([a, b, c]: [u8; Self::BYTES]) -> Self {
        Self(u32::from_le_bytes([a, b, c, 0]))
    }

    fn new(scale: Scale, has_rates: bool) -> Self {
        Self(u32::from(scale.power()) | if has_rates { RATES } else { 0 })
    }

    fn set(&mut self, value: u32, code: u32) {
        self.0 |= code << (4 * (value + 1));
    }

    fn code(self, value: u32) -> u32 {
        self.0 >> (4 * (value + 1)) & 0xf
    }

    fn has_rates(self) -> bool {
        self.0 & RATES != 0
    }

    fn scale(self) -> Scale {
        Scale::from_power((self.0 & 7) as u8)
    }

    /// Bytes that the cell takes.
    pub(super) fn length(self) -> usize {
        (FIRST..VALUES).map(|value| length(value, self.code(value))).sum()
    }
}

/// Bytes of a value with a code, then those of a sum.
const LENGTHS: [[u8; 16]; 2] = [
    [0, 1, 2, 3, 4, 5, 6, 7, 8, 2, 3, 4, 5, 6, 7, 8],
    [0, 1, 2, 3, 4, 5, 6, 7, 1, 2, 3, 4, 5, 2, 5, 8],
];

fn length(value: u32, code: u32) -> usize {
    LENGTHS[usize::from(value == SUM)][code as usize & 0xf].into()
}

/// Bytes of a number up to the zeros at its end.
fn bytes_of(number: u64) -> u32 {
    (u64::BITS - number.leading_zeros()).div_ceil(8)
}

/// Bytes of a double without the zeros behind, two at least.
fn bare_bytes(value: f64) -> u32 {
    (8 - value.to_bits().trailing_zeros() / 8).clamp(2, 8)
}

fn put(number: u64, bytes: u32, out: &mut Vec<u8>) {
    // Of constant length, and then cut: that is no call.
    out.extend_from_slice(&number.to_le_bytes());
    out.truncate(out.len() - 8 + bytes as usize);
}

fn put_bare(value: f64, bytes: u32, out: &mut Vec<u8>) {
    put(value.to_bits().swap_bytes(), bytes, out);
}

/// What the numbers of a cell go by.
struct Known {
    n: u32,
    scale: Scale,
    first: i64,
    last: i64,
    first_value: f64,
    last_value: f64,
}

impl Known {
    /// What the sum is likely to be, as a number.
    fn likely_sum(&self, has_rates: bool) -> i64 {
        if has_rates {
            // What was counted before the first reading is not known.
            return if self.n > 1 { self.last.wrapping_sub(self.first) } else { 0 };
        }
        if self.scale.is_decimal() {
            return self.first.wrapping_add(self.last).wrapping_mul(i64::from(self.n)) >> 1;
        }
        let likely = f64::from(self.n) * (self.first_value + self.last_value) / 2.0;
        // What bits a NaN gets is not the same on all machines.
        if self.n <= 1 || likely.is_nan() { self.first } else { ordered(likely) }
    }

    /// The increase of a number, as readings tell it: off by how the last of them is rounded.
    fn increase(&self, number: i64, units: i64) -> f64 {
        let exact = self.scale.double(number);
        if self.scale.power() == 0 || !self.scale.is_decimal() {
            return exact;
        }
        let unit = f64::from_bits(self.last_value.abs().to_bits() + 1) - self.last_value.abs();
        self.last_value - (self.last_value - exact) + units as f64 * unit
    }

    /// The number of an increase, and by how much it is off, when that is all there is to say.
    fn number_of(&self, increase: f64, is_it: impl Fn(f64) -> bool) -> Option<(i64, i64)> {
        if !self.scale.is_decimal() {
            return None;
        }
        let number = self.scale.number(increase);
        let bare = self.increase(number, 0);
        if is_it(bare) {
            return Some((number, 0));
        }
        let unit = self.increase(number, 1) - bare;
        let units = ((increase - bare) / unit).round();
        // Not when it is NaN either.
        let units = if units.abs() <= NOT_OFF as f64 { units as i64 } else { return None };
        is_it(self.increase(number, units)).then_some((number, units))
    }
}

/// Writes the values of a cell; returns how.
pub(super) fn encode(cell: &Cell, elapsed: &mut Elapsed, out: &mut Vec<u8>) -> Shape {
    let Cell { n, first, last, min, max, sum, .. } = *cell;
    let is_within = min <= first && min <= last && max >= first && max >= last;
    let is_same = |one: f64, other: f64| one.to_bits() == other.to_bits();
    let scale = if is_within && !(is_same(min, first) && is_same(max, last)) {
        Scale::without_shift(&[first, last, min, max].into_iter())
    } else {
        Scale::without_shift(&[first, last].into_iter())
    };
    let mut shape = Shape::new(scale, !is_within);
    let mut values = Writer { scale, shape: &mut shape, out };
    let first_number = values.value(FIRST, first, 0);
    let last_number = values.value(LAST, last, first_number);
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
        // Rates are told by the sum, which is read before them.
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
    /// Writes a value that is likely to be that of a number; returns its own.
    fn value(&mut self, place: u32, value: f64, likely: i64) -> i64 {
        let number = self.scale.number(value);
        let delta = zigzag(number.wrapping_sub(likely));
        let (bytes, bare) = (bytes_of(delta), bare_bytes(value));
        if bytes <= bare {
            self.shape.set(place, bytes);
            put(delta, bytes, self.out);
        } else {
            self.shape.set(place, bare + 7);
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
        match known.number_of(sum, |own| own.to_bits() == sum.to_bits()) {
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

    /// Writes a rate: milliseconds that others of the row have too, and the increase in them.
    fn rate(&mut self, place: u32, rate: f64, cell: &Cell, known: &Known, elapsed: &mut Elapsed) {
        if let Some(index) = elapsed.of_increase(cell.sum, rate, cell.n <= 1) {
            if index > 0 || place == MAX {
                self.shape.set(place, 1);
                self.out.push(index | OF_SUM << 4);
            }
            return;
        }
        let found = if cell.n > 1 && self.scale.is_decimal() {
            let step = cell.last_at.saturating_sub(cell.first_at) / (cell.n - 1);
            elapsed.of_rate(rate, step.into(), |increase, is_it| known.number_of(increase, is_it))
        } else {
            None
        };
        if let Some((index, (number, units))) = found {
            let delta = zigzag(number.wrapping_sub(likely_increase(cell, known)));
            let bytes = bytes_of(delta);
            if bytes < DELTA_MAX {
                self.shape.set(place, bytes + 1);
                self.out.push(index | ((units + NOT_OFF) as u8) << 4);
                put(delta, bytes, self.out);
                return;
            }
        }
        let bytes = bare_bytes(rate);
        self.shape.set(place, bytes + 7);
        put_bare(rate, bytes, self.out);
    }
}

/// What was counted from one reading to the next, in the mean.
fn likely_increase(cell: &Cell, known: &Known) -> i64 {
    known.scale.number(cell.sum) / i64::from(cell.n.max(1))
}

/// Reads the values of a cell behind its times; `None` when they are not there.
pub(super) fn decode(shape: Shape, bytes: &[u8], elapsed: &[u32], cell: &mut Cell) -> Option<()> {
    let scale = shape.scale();
    let mut rest = bytes;
    let mut values = Reader { scale, shape, rest: &mut rest };
    let (first_value, first) = values.value(FIRST, 0)?;
    let (last_value, last) = values.value(LAST, first)?;
    (cell.first, cell.last) = (first_value, last_value);
    let known = Known { n: cell.n, scale, first, last, first_value, last_value };
    if shape.has_rates() {
        cell.sum = values.sum(&known, |number, off| known.increase(number, off))?;
        cell.min = match shape.code(MIN) {
            0 => Elapsed::rate(cell.sum, elapsed, 0),
            code => values.rate(code, cell, &known, elapsed)?,
        };
        cell.max = match shape.code(MAX) {
            0 => cell.min,
            code => values.rate(code, cell, &known, elapsed)?,
        };
    } else {
        cell.min = values.value(MIN, first.min(last))?.0;
        cell.max = values.value(MAX, first.max(last))?.0;
        let off = |number, off| unordered(ordered(scale.double(number)).wrapping_add(off));
        cell.sum = values.sum(&known, off)?;
    }
    Some(())
}

struct Reader<'r, 'a> {
    scale: Scale,
    shape: Shape,
    rest: &'r mut &'a [u8],
}

impl Reader<'_, '_> {
    /// Takes so many bytes off the front, at most eight.
    fn take(&mut self, bytes: usize) -> Option<u64> {
        let number = match self.rest.first_chunk::<8>() {
            // Of constant length, and then cut: that is no call.
            Some(eight) if bytes < 8 => u64::from_le_bytes(*eight) & ((1 << (8 * bytes)) - 1),
            _ => {
                let mut own = [0; 8];
                own.get_mut(..bytes)?.copy_from_slice(self.rest.get(..bytes)?);
                u64::from_le_bytes(own)
            }
        };
        *self.rest = self.rest.get(bytes..)?;
        Some(number)
    }

    fn bare(&mut self, bytes: usize) -> Option<f64> {
        Some(f64::from_bits(self.take(bytes)?.swap_bytes()))
    }

    fn value(&mut self, place: u32, likely: i64) -> Option<(f64, i64)> {
        let code = self.shape.code(place);
        let bytes = length(place, code);
        if code > DELTA_MAX {
            let value = self.bare(bytes)?;
            return Some((value, self.scale.number(value)));
        }
        let number = likely.wrapping_add(unzigzag(self.take(bytes)?));
        Some((self.scale.double(number), number))
    }

    fn sum(&mut self, known: &Known, apply: impl Fn(i64, i64) -> f64) -> Option<f64> {
        let code = self.shape.code(SUM);
        let likely = known.likely_sum(self.shape.has_rates());
        if let Some((_, bytes)) = SUM_BARE.iter().find(|(own, _)| *own == code) {
            return self.bare(*bytes);
        }
        let is_off = code > SUM_DELTA_MAX;
        let bytes = if is_off { code - SUM_DELTA_MAX - 1 } else { code };
        let number = likely.wrapping_add(unzigzag(self.take(bytes as usize)?));
        let off = if is_off { i64::from(self.take(1)? as u8 as i8) } else { 0 };
        Some(apply(number, off))
    }

    fn rate(&mut self, code: u32, cell: &Cell, known: &Known, elapsed: &[u32]) -> Option<f64> {
        if code > DELTA_MAX {
            return self.bare((code - 7) as usize);
        }
        let byte = self.take(1)? as u8;
        let index = usize::from(byte & 0xf);
        if byte >> 4 == OF_SUM {
            return Some(Elapsed::rate(cell.sum, elapsed, index));
        }
        let delta = unzigzag(self.take((code - 1) as usize)?);
        let number = likely_increase(cell, known).wrapping_add(delta);
        let increase = known.increase(number, i64::from(byte >> 4) - NOT_OFF);
        Some(Elapsed::rate(increase, elapsed, index))
    }
}
